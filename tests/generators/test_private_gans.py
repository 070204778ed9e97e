"""GANs with a private critic: what they learn, what they pay, and that real rows reach them no other way."""

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
import torch
from made_tables import table_of  # made importable by conftest.py

from synth_audit import registry
from synth_audit.dp.accountant import Accountant
from synth_audit.dp.guarantee import Budget, Unit
from synth_audit.dp.mechanisms import Noise
from synth_audit.generators._deep.gan import NOT_ASKED, activated, pair_losses, settled
from synth_audit.generators._deep.network_model import on_train
from synth_audit.generators._deep.networks import AskedNet, Critic
from synth_audit.generators._deep.private_gradient import NORMALISER, GradientNoise, private_gradient
from synth_audit.generators._deep.transforms import RowLayout
from synth_audit.generators.dp_auto_gan import DpAutoGan, rebuilding_losses
from synth_audit.table.schema_inference import ColumnSpec

from .conftest import context

NAMES = ("dp_wgan", "dpgan", "dp_ctgan", "dp_auto_gan")
MADE = (*NAMES, "pate_gan")
EACH = pytest.mark.parametrize("name", NAMES)
QUICK = {"steps": 4, "hidden": 8, "noise": 4, "batch": 20, "sampling_rate": 1.0}
"""All rows in every batch, whose cost is quick to add up."""

CODES = {"latent": 2, "autoencoder_steps": 4}
DECLARED = {
    "x": ColumnSpec(kind="continuous", bounds=(-9, 9), nullable=False),
    "y": ColumnSpec(kind="continuous", bounds=(-9, 9), nullable=False),
    "label": ColumnSpec(kind="categorical", categories=("low", "high"), nullable=False),
    "half": ColumnSpec(kind="categorical", categories=("one", "two"), nullable=False),
}


def rows(n=120, seed=0, **specs):
    """Two groups of numbers, told by the label."""
    rng = np.random.default_rng(seed)
    high = np.arange(n) % 2 > 0
    x, y = np.where(high, 3, -3) + rng.normal(size=(2, n))
    label, half = np.where(high, "high", "low"), np.where(np.arange(n) % 4 > 1, "one", "two")
    return table_of({"x": x, "y": y, "label": label, "half": half}, specs)


def declared(n=120, seed=0):
    return rows(n, seed, **DECLARED)


def generator(name, **settings):
    codes = CODES if name == "dp_auto_gan" else {}
    return registry.build("generator", name, QUICK | {"margins": 0} | codes | settings)


def made(name, table, handed, n=50, **settings):
    return generator(name, **settings).fit(table, handed).sample(n, np.random.default_rng(1))


@pytest.mark.parametrize("name", ["dpgan", pytest.param("dp_ctgan", marks=pytest.mark.slow)])
def test_it_learns_which_numbers_a_label_has(name):
    settings = {"steps": 300, "hidden": 24, "sampling_rate": 0.5, "batch": 100, "learning_rate": 3e-3}
    drawn = made(name, rows(), context(), n=600, generator_rate=3e-3, dropout=0.0, **settings)
    x, label = drawn.numbers("x"), drawn.labels("label")
    assert 0.2 < np.mean(label == "high") < 0.8
    assert np.mean(x[label == "high"]) - np.mean(x[label == "low"]) > 1.5


@EACH
def test_what_is_claimed_is_what_was_spent_within_the_budget(name):
    table = declared()
    handed = context(table, 2.0)
    made(name, table, handed)
    guarantee = handed.accountant.guarantee()
    assert 1.9 < guarantee.epsilon <= 2.0
    first = {
        "dp_ctgan": ["counts of the labels of each column"],
        "dp_auto_gan": ["training of the autoencoder"],
    }
    assert [m.what for m in guarantee.mechanisms] == [*first.get(name, []), "training of the critic"]
    assert guarantee.mechanisms[-1].count == 4


@pytest.mark.parametrize("name", ["dp_ctgan", "dp_auto_gan"])
def test_the_first_part_costs_its_share(name):
    table = declared()
    handed = context(table, 2.0)
    made(name, table, handed, share=0.25)
    assert handed.accountant.mechanisms[0].epsilon_alone == pytest.approx(0.5, abs=0.02)


@EACH
def test_noise_has_the_scale_that_was_bought(name, monkeypatch):
    table, scales = declared(), []

    def gaussian(scale, shape):
        scales.append(scale)
        return np.zeros(shape)

    handed = context(table, 2.0)
    monkeypatch.setattr(Noise, "gaussian", staticmethod(gaussian))
    made(name, table, handed, clip=0.5)
    bought = [m.noise_multiplier for m in handed.accountant.mechanisms]
    norms = {"dp_ctgan": (2**0.5, 0.5), "dp_auto_gan": (0.5, 0.5)}.get(name, (0.5,))
    assert set(scales) == {norm * multiplier for norm, multiplier in zip(norms, bought, strict=True)}


@EACH
def test_real_rows_reach_the_model_by_clipped_gradients_alone(name, monkeypatch):
    """With next to nothing left of a gradient and no noise, other numbers make no other model."""
    monkeypatch.setattr(Noise, "gaussian", staticmethod(lambda scale, shape: np.zeros(shape)))
    monkeypatch.setattr(Noise, "bits", staticmethod(lambda count: 7))
    one, other = declared(seed=0), declared(seed=1)
    assert one.fingerprint != other.fingerprint
    blind, blind_too, seeing, seeing_too = (
        generator(name, clip=clip).fit(table, context(table, 2.0)).weights
        for clip in (1e-30, 1.0)
        for table in (one, other)
    )
    assert all(np.array_equal(w, blind_too[k]) for k, w in blind.items())
    assert not all(np.array_equal(w, seeing_too[k]) for k, w in seeing.items())


@EACH
def test_no_seed_of_the_plan_moves_what_training_draws(name, monkeypatch):
    """Draws that one more row would shift for all others are secret, as the noise is."""
    monkeypatch.setattr(Noise, "gaussian", staticmethod(lambda scale, shape: np.zeros(shape)))
    table = declared()
    one, other = (made(name, table, context(table, 2.0)) for _ in range(2))
    assert one.fingerprint != other.fingerprint


@EACH
def test_rows_made_for_real_ones_do_not_depend_on_the_batch(name):
    """A layer that mixes rows, as batch normalisation does, would let a row move the gradients of others."""
    layout, chosen = on_train(declared()).layout, generator(name)
    network = chosen.generator(layout, NOT_ASKED).train()
    inputs = torch.randn(9, chosen.noise)
    torch.testing.assert_close(network(inputs)[:1], network(inputs[:1]), rtol=1e-5, atol=1e-6)


@EACH
def test_a_batch_may_be_empty(name, monkeypatch):
    monkeypatch.setattr(Noise, "poisson_sample", staticmethod(lambda n, rate: np.zeros(0, dtype=np.intp)))
    table = declared()
    assert made(name, table, context(table, 2.0)).n_rows == 50


@EACH
@pytest.mark.parametrize("columns", [["x", "y"], ["label"]])
def test_few_rows_of_one_kind_and_a_draw_of_one_row(name, columns):
    data = rows(3).data.select(columns)
    specs = {k: DECLARED[k] for k in columns}
    table = table_of(data, specs)
    handed = context(table, 2.0)
    assert made(name, table, handed, n=1).n_rows == 1
    assert handed.accountant.guarantee() is not None


@EACH
def test_ten_thousand_labels(name):
    labels = tuple(f"code {i:05}" for i in range(10_000))
    data = pa.table({"code": list(labels[:30])})
    spec = ColumnSpec(kind="categorical", categories=labels, nullable=False)
    table = table_of(data, {"code": spec})
    drawn = made(name, table, context(table, 2.0), n=5, hidden=4)
    assert set(drawn.labels("code")) <= set(labels)


@pytest.mark.parametrize(
    ("name", "delta"),
    [
        *(pytest.param(n, 1e-5, marks=[pytest.mark.slow] * (n in ("dp_auto_gan", "pate_gan"))) for n in MADE),
        ("pate_gan", 0.0),
    ],
)
def test_what_is_drawn_has_the_margins_that_were_bought(name, delta):
    """Nearly nothing is learnt in so few steps, yet every value is as often as in train."""
    table = declared(2000)
    handed = replace(context(table, 40.0), accountant=Accountant(Budget(40.0, delta), unit=Unit.ROW))
    handed.accountant.draws(500)
    settings = dict(registry.find("generator", name).load().info.trial)
    if name != "pate_gan":
        settings["sampling_rate"] = 1.0
    drawn = (
        registry.build("generator", name, settings).fit(table, handed).sample(2000, np.random.default_rng(1))
    )
    assert handed.accountant.spent().epsilon <= 40
    assert handed.accountant.mechanisms[0].what.startswith("counts of the values")
    for column in () if name == "pate_gan" else ("x", "y"):  # untrained its numbers are all at one end
        ours, theirs = np.sort(table.numbers(column)), np.sort(drawn.numbers(column))
        assert np.abs(ours - theirs).mean() < 1.5  # of even draws it is 2.5
    assert np.mean(drawn.labels("label") == "high") == pytest.approx(0.5, abs=0.06)
    assert np.mean(drawn.labels("half") == "one") == pytest.approx(0.5, abs=0.06)


LAYOUT = RowLayout(numbers=(0, 1), slices=((2, 5), (5, 7)), width=7, choices=(0, 1))
ROWS = 9


def pairs():
    torch.manual_seed(0)
    critic = Critic(LAYOUT.width, 16).double()
    real, made = torch.rand(2, ROWS, LAYOUT.width, dtype=torch.float64) * 4
    kept = critic.kept(ROWS, torch.Generator().manual_seed(1)).double()
    apart = pair_losses(critic, 0.0, real, made, kept)
    with torch.no_grad():  # half of the pairs are judged too steeply
        critic.out.weight.mul_(1 / (apart.abs() / (real - made).norm(dim=1)).median())
    return critic, lambda *rows: pair_losses(critic, 50.0, *rows), (real, made, kept)


def rebuilt():
    torch.manual_seed(0)
    network = DpAutoGan(latent=2, hidden=6).autoencoder(LAYOUT).double()
    rows = torch.rand(ROWS, LAYOUT.width, dtype=torch.float64)
    return network, lambda rows: rebuilding_losses(network, LAYOUT, rows), (rows,)


def silent(clip):
    return GradientNoise(clip, 1.0, lambda scale, shape: np.zeros(shape))


@pytest.mark.parametrize("case", [pairs, rebuilt])
@pytest.mark.parametrize("clip", [0.1, 1e6])
def test_the_sum_is_that_of_rows_clipped_one_by_one(case, clip):
    network, losses, rows = case()
    expected = {name: torch.zeros_like(w) for name, w in network.named_parameters()}
    for i in range(ROWS):
        network.zero_grad()
        losses(*(x[i : i + 1] for x in rows)).sum().backward()
        own = {name: w.grad.clone() for name, w in network.named_parameters()}
        norm = math.sqrt(sum(float(g.square().sum()) for g in own.values()))
        for name, g in own.items():
            expected[name] += g * min(1.0, clip / norm)
    private_gradient(network, losses, silent(clip), *rows)
    for name, w in network.named_parameters():
        torch.testing.assert_close(w.grad * NORMALISER, expected[name], rtol=1e-4, atol=3e-5)


@pytest.mark.parametrize("case", [pairs, rebuilt])
def test_one_row_more_moves_the_sum_by_the_clipping_norm_at_most(case):
    network, losses, rows = case()
    found = []
    for first in (0, 1):
        private_gradient(network, losses, silent(0.1), *(x[first:] for x in rows))
        found.append({name: w.grad.clone() for name, w in network.named_parameters()})
    moved = math.sqrt(sum(float((g - found[1][name]).square().sum()) for name, g in found[0].items()))
    assert 0.099 < moved * NORMALISER <= 0.1 * (1 + 1e-9)


def test_a_critic_steeper_than_one_between_a_pair_is_penalised():
    critic, _, (real, made, kept) = pairs()
    apart = pair_losses(critic, 0.0, real, made, kept)
    steep = apart.abs() / (real - made).norm(dim=1)
    assert steep.min() < 0.9
    assert steep.max() > 1.1
    expected = apart + 3 * (steep - 1).clamp(min=0) ** 2
    torch.testing.assert_close(pair_losses(critic, 3.0, real, made, kept), expected)


def test_numbers_reach_the_ends_of_their_range_and_labels_stay_chances():
    scores = torch.full((200, 7), 3.0)
    made = activated(scores, LAYOUT, torch.Generator().manual_seed(0), reach=1.25)
    assert (made[:, :2] == 1).all()
    assert torch.allclose(made[:, 2:5].sum(dim=1), torch.ones(200))
    assert (activated(scores, LAYOUT, torch.Generator().manual_seed(0))[:, :2] < 1).all()
    drawn = settled(scores.numpy(), LAYOUT, np.random.default_rng(0), reach=1.25)
    assert (drawn[:, :2] > 1).all(), "beyond the end of a range ranks still differ"
    assert len(set(drawn[:, 2:5].argmax(axis=1))) == 3, "equal scores are equal chances"


def test_what_is_asked_for_is_heard():
    torch.manual_seed(0)
    network = AskedNet(4, 3, LAYOUT.width, 8, 2)
    noise = torch.randn(1, 4).expand(3, -1)
    made = network(torch.cat([noise, torch.eye(3)], dim=1))
    assert not torch.allclose(made[0], made[1])
    assert sum(w.numel() for w in AskedNet(4, 10_000, 10_000, 8, 2).parameters()) < 400_000
