"""Diffusion of mixed tables: what it learns, its schedule and loss, and what it refuses."""

import numpy as np
import pyarrow as pa
import pytest
import torch
from made_tables import table_of  # made importable by conftest.py

from synth_audit import registry
from synth_audit.generators._deep.networks import LabelSlices, TimedNet
from synth_audit.generators._deep.transforms import QuantileTransform, RowLayout
from synth_audit.generators._model_files import read_model, write_model
from synth_audit.generators.tab_ddpm import MixedDiffusion, kept_shares
from synth_audit.plugins.generator import FitContext

LAYOUT = RowLayout(numbers=(3,), slices=((0, 3), (4, 6)), width=6, choices=(0, 1))
QUICK = {"steps": 250, "hidden": 48, "batch": 128, "levels": 20, "learning_rate": 4e-3}


def made(table, n=1500, **settings):
    context = FitContext(rng=np.random.default_rng(0))
    model = registry.build("generator", "tab_ddpm", QUICK | settings).fit(table, context)
    assert "without clipping and noise" in context.accountant.why_none
    return model.sample(n, np.random.default_rng(1))


@pytest.fixture(scope="module")
def rows():
    """Two groups: low numbers and mostly `a`, high numbers and mostly `b`; a fifth of them is missing."""
    rng = np.random.default_rng(0)
    high = rng.random(600) < 0.5
    x = np.where(high, 6.0, -6.0) + rng.normal(size=600)
    label = np.where(rng.random(600) < 0.95, np.where(high, "b", "a"), "rare")
    gain = np.where(rng.random(600) < 0.9, 0.0, np.round(rng.exponential(900, 600)))
    return table_of({"x": pa.array(x, mask=rng.random(600) < 0.2), "label": label, "gain": gain})


def test_modes_labels_atoms_and_gaps_hang_together_as_in_train(rows):
    drawn = made(rows)
    x, label = drawn.numbers("x"), drawn.labels("label")
    assert np.mean(np.abs(np.abs(x[~np.isnan(x)]) - 6) < 3) > 0.85, "two modes, little between them"
    assert np.nanmean(x[label == "b"]) - np.nanmean(x[label == "a"]) > 6
    assert np.mean(np.isnan(x)) == pytest.approx(0.2, abs=0.08)
    assert np.mean(label == "rare") == pytest.approx(0.05, abs=0.05)
    assert np.mean(drawn.numbers("gain") == 0) == pytest.approx(0.9, abs=0.06)


@pytest.mark.parametrize("column", ["x", "label"])
def test_tables_of_one_sort_of_columns(rows, column):
    drawn = made(table_of({column: rows.data.column(column)}), n=5, steps=2)
    assert (drawn.n_rows, drawn.names) == (5, (column,))


def test_the_schedule_falls_from_all_to_next_to_nothing():
    kept = kept_shares(100)
    assert kept[0] == 1
    assert (np.diff(kept) < 0).all()
    assert kept[50] == pytest.approx(0.49, abs=0.01)  # cos²(π/4), and a little noise from the start
    assert 0 < kept[-1] < 1e-6


def test_chances_of_labels_one_level_before_are_those_of_bayes():
    """By hand, for every x_t and x_0 of one column with three labels."""
    model, kept = MixedDiffusion(LAYOUT, TimedNet(LAYOUT.width, 8, 1, 10)), kept_shares(10)
    for t in (1, 4, 10):
        step, uniform = kept[t] / kept[t - 1], np.full(3, 1 / 3)
        for now in range(3):
            for first in range(3):
                likely = step * np.eye(3)[now] + (1 - step) / 3
                prior = kept[t - 1] * np.eye(3)[first] + (1 - kept[t - 1]) * uniform
                expected = likely * prior / (likely * prior).sum()
                labels, one = torch.zeros(1, 5), torch.full((1, 5), -69.0)
                labels[0, now] = labels[0, 3] = 1
                one[0, first] = one[0, 3] = 0
                found = model.before(one, labels, torch.tensor([t])).exp()[0, :3]
                assert found.numpy() == pytest.approx(expected, abs=1e-5)


def test_a_network_that_knows_the_row_loses_nothing(monkeypatch):
    model = MixedDiffusion(LAYOUT, TimedNet(LAYOUT.width, 8, 1, 10))
    rows = torch.zeros(40, 6)
    rows[:, 0] = torch.arange(40) / 20 - 1
    rows[torch.arange(40), 1 + torch.arange(40) % 3] = rows[:, 4] = 1
    t, behind = torch.arange(40) % 10 + 1, {}
    noised = model.noised

    def kept(*args):
        both = noised(*args)
        behind["noise"] = both[:, 6:]
        return both

    def known(at, t):
        return torch.cat([behind["noise"], 100 * rows[:, 1:]], dim=1)

    monkeypatch.setattr(model, "noised", kept)
    monkeypatch.setattr(model.network, "forward", known)
    assert model.losses(rows, t, torch.Generator()).abs().max() < 1e-4
    monkeypatch.setattr(model.network, "forward", lambda at, t: known(at, t).roll(1, dims=1))
    assert model.losses(rows, t, torch.Generator()).min() > 1e-3


def test_slices_are_summed_and_drawn_each_by_itself():
    slices = LabelSlices(LAYOUT)
    scores = torch.tensor([[0.0, 1.0, 2.0, 200.0, 202.0]])
    chances = slices.log_softmax(scores).exp()
    assert slices.sums(chances).tolist() == [[pytest.approx(1), pytest.approx(1)]]
    assert float(chances[0, 4]) == pytest.approx(np.exp(2) / (1 + np.exp(2)))
    drawn = slices.drawn(scores.expand(4000, -1), torch.Generator().manual_seed(0))
    assert (slices.sums(drawn) == 1).all()
    assert drawn.mean(dim=0).numpy() == pytest.approx(chances[0].numpy(), abs=0.03)


def test_numbers_become_standard_normal_and_shared_values_come_back(tmp_path):
    rng = np.random.default_rng(0)
    values = np.where(rng.random(3000) < 0.6, 0.0, rng.exponential(5, 3000).round(3))
    table = table_of({"v": pa.array(values, mask=rng.random(3000) < 0.1)})
    transform = QuantileTransform.of("v", table.numbers("v"), (0.0, 30.0))
    write_model(tmp_path, transform)
    transform = read_model(tmp_path, QuantileTransform)
    vectors = transform.encode(table, rng)
    assert (vectors.shape, transform.slices) == ((3000, 3), (2,))
    assert vectors[:, 0].mean() == pytest.approx(0, abs=0.06)
    assert vectors[:, 0].std() == pytest.approx(1, abs=0.05)
    back, there = transform.decode(vectors), ~table.missing("v")
    assert np.array_equal(np.isnan(back), ~there)
    zero = there & (values == 0)
    assert (back[zero] == 0).all()
    inner = there & (values > 0.01) & (values < 25)
    assert np.abs(back - values)[inner].max() < 1e-3
    far = np.array([[-9, 1, 0], [9, 1, 0]], dtype=np.float32)
    assert transform.decode(far).tolist() == [0, 30]
