"""Diffusion in a few steps: what it learns, what it pays, and what it refuses."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
import torch
from made_tables import table_of  # made importable by conftest.py

from synth_audit import registry
from synth_audit.dp.mechanisms import Noise
from synth_audit.errors import PluginError
from synth_audit.generators._deep import diffusion
from synth_audit.generators.table_diffusion import TableDiffusion
from synth_audit.table.schema_inference import ColumnSpec

from .conftest import context

WHOLE = {"sampling_rate": 1.0}
"""All rows in every batch, whose cost is quick to add up."""

SLOW_DENOISER = pytest.mark.parametrize(
    "name", ["table_diffusion", pytest.param("table_diffusion_denoiser", marks=pytest.mark.slow)]
)
BOTH = pytest.mark.parametrize("name", ["table_diffusion", "table_diffusion_denoiser"])
DECLARED = {
    "x": ColumnSpec(kind="continuous", bounds=(-6, 6), nullable=False),
    "y": ColumnSpec(kind="continuous", bounds=(-6, 6), nullable=False),
    "label": ColumnSpec(kind="categorical", categories=("low", "high"), nullable=False),
}


def rows(n=600, seed=0, **specs):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    y = 0.9 * x + 0.45 * rng.normal(size=n)
    return table_of({"x": x, "y": y, "label": np.where(x > 0, "high", "low")}, specs)


def made(name, table, handed, n=1500, **settings):
    settings = {"steps": 150, "hidden": 32, "levels": 3} | settings
    return registry.build("generator", name, settings).fit(table, handed).sample(n, np.random.default_rng(1))


@SLOW_DENOISER
def test_it_learns_how_columns_hang_together(name):
    drawn = made(name, rows(), context())
    x, y, label = drawn.numbers("x"), drawn.numbers("y"), drawn.labels("label")
    assert np.corrcoef(x, y)[0, 1] > 0.6
    assert np.mean(x[label == "high"]) - np.mean(x[label == "low"]) > 0.7
    assert np.mean(label == "high") == pytest.approx(0.5, abs=0.15)


@pytest.mark.parametrize("epsilon", [None, pytest.param(50.0, marks=pytest.mark.slow)])
def test_less_noise_draws_rows_nearer_to_the_mean_from_the_same_weights(epsilon, tmp_path):
    table, spread = rows(**DECLARED), {}
    settings = {"steps": 60, "hidden": 16, "levels": 3} | (WHOLE if epsilon else {})
    usual = registry.build("generator", "table_diffusion", settings)
    usual.fit(table, context(table, epsilon)).save(tmp_path)
    for heat in (1.0, 0.5):
        generator = registry.build("generator", "table_diffusion", settings | {"temperature": heat})
        drawn = generator.load(tmp_path).sample(2000, np.random.default_rng(1))
        spread[heat] = np.std(drawn.numbers("x"))
    assert spread[0.5] < 0.7 * spread[1.0]
    model = generator.fit(table, context(table, epsilon))
    assert np.std(model.sample(2000, np.random.default_rng(1)).numbers("x")) < 0.75, "margins are learnt hot"


def test_the_mean_of_the_weights_lags_behind_the_last_ones():
    trained = {}
    for decay in (0.0, 0.5, 0.99):
        generator = registry.build(
            "generator", "table_diffusion", {"steps": 30, "hidden": 8, "averaging": decay}
        )
        trained[decay] = generator.fit(rows(200), context()).weights
    away = {d: max(np.abs(w - trained[0.0][k]).max() for k, w in trained[d].items()) for d in trained}
    assert 0 < away[0.5] < away[0.99]


def test_a_falling_rate_ends_near_nothing():
    settings = TableDiffusion(learning_rate=0.01, falling=True)
    assert [settings.rate(done) for done in (0, 0.5, 0.75, 1)] == pytest.approx([0.01, 0.01, 0.005, 0])
    assert replace(settings, falling=False).rate(1) == 0.01


def test_what_is_claimed_is_what_was_spent_within_the_budget():
    table = rows(**DECLARED)
    handed = context(table, 2.0)
    made("table_diffusion", table, handed, steps=5)
    guarantee = handed.accountant.guarantee()
    assert 1.9 < guarantee.epsilon <= 2.0
    counts, mechanism = guarantee.mechanisms
    assert counts.count == 3 + 3 + 1  # rounds of either number, and the labels
    assert (mechanism.count, mechanism.sampling_rate) == (5, 0.03)


@SLOW_DENOISER
def test_noise_is_that_of_the_budget_and_no_seed_moves_it(name, monkeypatch):
    table = rows(**DECLARED)
    scales = []

    def gaussian(scale, shape):
        scales.append(scale)
        return np.zeros(shape)

    handed = context(table, 2.0)
    monkeypatch.setattr(Noise, "gaussian", staticmethod(gaussian))
    made(name, table, handed, steps=5, clip=0.5, **WHOLE)
    counts, mechanism = handed.accountant.mechanisms
    assert set(scales) == {counts.noise_multiplier, 0.5 * mechanism.noise_multiplier}
    monkeypatch.undo()
    one, other = (made(name, table, context(table, 2.0), steps=5, **WHOLE) for _ in range(2))
    assert one.fingerprint != other.fingerprint


@BOTH
def test_what_is_drawn_has_the_margins_that_were_bought(name):
    """Nearly nothing is learnt in so few steps, yet atoms, tails and rare labels are as often as in train."""
    rng = np.random.default_rng(0)
    n = 4000
    gain = np.where(rng.random(n) < 0.9, 0, np.round(rng.exponential(3000, n)))
    data = pa.table(
        {
            "gain": pa.array(gain.astype(np.int64)),
            "age": pa.array(rng.integers(20, 60, n), mask=rng.random(n) < 0.3),
            "label": rng.choice(["a", "b", "c"], n, p=[0.85, 0.1, 0.05]),
        }
    )
    declared = {
        "gain": ColumnSpec(kind="integer", bounds=(0, 100_000), nullable=False),
        "age": ColumnSpec(kind="integer", bounds=(0, 120)),
        "label": ColumnSpec(kind="categorical", categories=("a", "b", "c", "never"), nullable=False),
    }
    table = table_of(data, declared)
    drawn = made(name, table, context(table, 20.0), n=4000, steps=5, **WHOLE)
    assert np.mean(drawn.numbers("gain") == 0) == pytest.approx(0.9, abs=0.04)
    assert np.nanmean(drawn.numbers("age")) == pytest.approx(39.5, abs=2.5)
    assert np.mean(drawn.missing("age")) == pytest.approx(0.3, abs=0.05)
    for label, share in {"a": 0.85, "b": 0.1, "c": 0.05, "never": 0}.items():
        assert np.mean(drawn.labels("label") == label) == pytest.approx(share, abs=0.04)
    plain = made(name, table, context(table, 20.0), n=4000, steps=5, margins=0, **WHOLE)
    off = (
        np.mean(plain.labels("label") == "a") - 0.85,
        np.mean(plain.numbers("gain") == 0) - 0.9,
        np.mean(plain.missing("age")) - 0.3,
    )
    assert np.abs(off).max() > 0.1, "as published it is far off"


@BOTH
def test_no_seed_of_the_plan_moves_what_is_added_to_rows(name, monkeypatch):
    """One row more would shift it for all others, were it known."""
    monkeypatch.setattr(Noise, "gaussian", staticmethod(lambda scale, shape: np.zeros(shape)))
    table = rows(60, **DECLARED)
    one, other = (made(name, table, context(table, 2.0), steps=5, **WHOLE) for _ in range(2))
    assert one.fingerprint != other.fingerprint


def test_under_a_budget_the_loss_of_real_rows_does_not_end_the_training(monkeypatch):
    """It is not paid for: one row's, which is no number, would tell that the row is there."""
    real = diffusion.row_losses

    def losses(network, layout, target, rows, added):
        found = real(network, layout, target, rows, added)
        return torch.cat([found[:1] * float("nan"), found[1:]])

    monkeypatch.setattr(diffusion, "row_losses", losses)
    table = rows(**DECLARED)
    handed = context(table, 2.0)
    made("table_diffusion", table, handed, steps=3, **WHOLE)
    assert handed.accountant.guarantee().epsilon <= 2
    with pytest.raises(PluginError, match="diverged"):
        made("table_diffusion", table, context(), steps=3)


@BOTH
def test_progress_is_told(name):
    told = []
    handed = replace(context(), progress=lambda what, done, total: told.append((what, done, total)))
    made(name, rows(60), handed, steps=3)
    assert [(done, total) for _, done, total in told] == [(1, 3), (2, 3), (3, 3)]
    assert all("loss" in what for what, *_ in told)
