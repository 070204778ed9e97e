"""Attention over columns and rows: what is learnt, whom a drawn row depends on, and what is refused."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
import torch
from made_tables import table_of  # made importable by conftest.py

from synth_audit import registry
from synth_audit.generators._deep.attention import AttentionTraining
from synth_audit.generators._deep.networks import AttentionAutoencoder, AttentionEncoder, ColumnHeads
from synth_audit.generators._deep.transforms import RowLayout
from synth_audit.generators.attention_ae import mixture_codes
from synth_audit.plugins.generator import FitContext

ALL = pytest.mark.parametrize("name", ["attention_ae", "attention_vae", "attention_gan"])
LAYOUT = RowLayout(numbers=(3,), slices=((0, 3), (4, 6)), width=6, choices=(0, 1))
SETTINGS = AttentionTraining(width=8, heads=2, hidden=8, mixtures=2)
QUICK = {
    "steps": 150,
    "batch": 64,
    "width": 8,
    "heads": 2,
    "hidden": 32,
    "mixtures": 2,
    "learning_rate": 1e-2,
}
OWN = (
    {"attention_ae": {"steps": 100, "components": 4}}
    | {"attention_vae": {"steps": 250, "latent": 4, "divergence": 0.3}}
    | {"attention_gan": {"gan_steps": 150, "gan_hidden": 32, "noise": 8, "gan_rate": 3e-3}}
)


def made(name, table, n=1500, **settings):
    context = FitContext(rng=np.random.default_rng(0))
    generator = registry.build("generator", name, QUICK | OWN[name] | settings)
    model = generator.fit(table, context)
    assert "without clipping and noise" in context.accountant.why_none
    return model.sample(n, np.random.default_rng(1))


def short(name):
    return {"steps": 2} | ({"gan_steps": 2} if name == "attention_gan" else {})


@pytest.fixture(scope="module")
def rows():
    """Two groups: low numbers and mostly `a`, high numbers and mostly `b`; a fifth of them is missing."""
    rng = np.random.default_rng(0)
    high = rng.random(500) < 0.5
    x = np.where(high, 6.0, -6.0) + rng.normal(size=500)
    label = np.where(rng.random(500) < 0.95, np.where(high, "b", "a"), "rare")
    return table_of({"x": pa.array(x, mask=rng.random(500) < 0.2), "label": label})


@pytest.mark.parametrize(
    "name",
    ["attention_vae", *(pytest.param(n, marks=pytest.mark.slow) for n in ("attention_ae", "attention_gan"))],
)
def test_modes_labels_and_gaps_hang_together_as_in_train(name, rows):
    drawn = made(name, rows)
    x, label = drawn.numbers("x"), drawn.labels("label")
    assert np.mean(np.abs(np.abs(x[~np.isnan(x)]) - 6) < 3) > 0.75, "two modes, little between them"
    assert np.nanmean(x[label == "b"]) - np.nanmean(x[label == "a"]) > 4
    assert np.mean(np.isnan(x)) == pytest.approx(0.2, abs=0.15)
    assert np.mean(label == "b") == pytest.approx(0.47, abs=0.2)


@ALL
@pytest.mark.parametrize("column", ["x", "label"])
def test_tables_of_one_sort_of_columns(name, column, rows):
    drawn = made(name, table_of({column: rows.data.column(column)}), n=5, **short(name))
    assert (drawn.n_rows, drawn.names) == (5, (column,))


@ALL
def test_the_model_holds_no_encoder_and_so_no_attention_to_other_rows(name, rows):
    """What draws is codes and heads; a row of a draw is the same whatever stands beside it."""
    generator = registry.build("generator", name, QUICK | OWN[name] | short(name))
    model = generator.fit(rows, FitContext(rng=np.random.default_rng(0)))
    assert {key.split(".")[0] for key in model.weights} == {"codes", "heads"}
    assert not any("attention" in key for key in model.weights)


def batch(n=5, seed=0):
    rng = np.random.default_rng(seed)
    rows = np.zeros((n, 6), dtype=np.float32)
    rows[np.arange(n), rng.integers(0, 3, n)] = 1
    rows[np.arange(n), rng.integers(4, 6, n)] = 1
    rows[:, 3] = rng.normal(size=n)
    return torch.as_tensor(rows)


def test_rows_hear_of_one_another_in_whatever_order_and_heads_of_their_own_code_alone():
    torch.manual_seed(0)
    encoder, heads, rows = AttentionEncoder(LAYOUT, SETTINGS), ColumnHeads(LAYOUT, SETTINGS), batch()
    codes = encoder(rows)
    assert torch.allclose(encoder(rows.flip(0)).flip(0), codes, atol=1e-5)
    changed = rows.clone()
    changed[4, 3] += 3
    assert (encoder(changed)[0] - codes[0]).abs().max() > 1e-5
    other = codes.clone()
    other[4] += 1
    assert torch.equal(heads(other)[:4], heads(codes)[:4])
    assert heads(codes).shape == (5, 3 * 2 + 5)


def test_every_column_of_a_row_reaches_its_code():
    torch.manual_seed(0)
    encoder, rows = AttentionEncoder(LAYOUT, SETTINGS), batch()[:1]
    for changed in ([0, 1, 0], 3), ([1, 0, 0], 4), ([0, 0, 1], 5):
        other = rows.clone()
        other[0, :3] = torch.tensor(changed[0])
        other[0, 3] = changed[1]
        assert not torch.allclose(encoder(other), encoder(rows), atol=1e-5)


def test_the_loss_is_cross_entropy_rmse_and_density():
    heads, rows = ColumnHeads(LAYOUT, replace(SETTINGS, labels_weight=3.0, numbers_weight=2.0)), batch(1)
    rows[0] = torch.tensor([0, 1, 0, 0.5, 1, 0])
    told = torch.tensor([[0.0, np.log(3), 1.5, 0.5, 0.0, np.log(2), 0, np.log(2), 0, 0, 0]])
    density = 0.25 * np.exp(-0.5) + 0.75 * 0.5
    density /= np.sqrt(2 * np.pi)
    entropy = (-np.log(2 / 4) - np.log(1 / 2)) / 2
    rmse = abs(0.25 * 1.5 + 0.75 * 0.5 - 0.5)
    expected = 3 * entropy + 2 * (rmse - np.log(density))
    assert float(heads.losses(told.float(), rows)) == pytest.approx(expected, abs=1e-4)


def test_numbers_are_drawn_from_their_mixtures():
    heads = ColumnHeads(LAYOUT, SETTINGS)
    told = np.tile(np.array([0, np.log(3), -5, 5, -1, -2, 0, 9, 0, 0, 0], dtype=np.float32), (8000, 1))
    drawn = heads.drawn(told, np.random.default_rng(0))
    x = drawn[:, 3]
    assert np.mean(x > 0) == pytest.approx(0.75, abs=0.02)
    assert x[x < 0].std() == pytest.approx(np.exp(-1), rel=0.05)
    assert x[x > 0].std() == pytest.approx(np.exp(-2), rel=0.05)
    assert np.mean(drawn[:, :3].argmax(axis=1) == 1) > 0.99


def test_codes_are_drawn_from_the_mixture():
    mixture = {
        "ends": np.array([0.3, 1.0], dtype=np.float32),
        "means": np.array([[-9.0, 0], [9, 1]], dtype=np.float32),
        "factors": np.array([[[1.0, 0], [0, 1]], [[2, 0], [1, 0.1]]], dtype=np.float32),
    }
    inputs = torch.randn((8000, 3), generator=torch.Generator().manual_seed(0))
    codes = mixture_codes(mixture, inputs).numpy()
    first = codes[:, 0] < 0
    assert first.mean() == pytest.approx(0.3, abs=0.02)
    assert np.cov(codes[~first].T) == pytest.approx(np.array([[4, 2], [2, 1.01]]), abs=0.3)


def test_training_rebuilds_rows():
    torch.manual_seed(0)
    network, rows = AttentionAutoencoder(LAYOUT, SETTINGS), batch(64)
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-2)
    before = float(network.losses(rows).detach().mean())
    for _ in range(60):
        optimiser.zero_grad()
        network.losses(rows).mean().backward()
        optimiser.step()
    assert float(network.losses(rows).detach().mean()) < before - 1.5
