"""Votes of teachers: what they cost, whose row moves whose vote, and what a student makes of them."""

import numpy as np
import pyarrow as pa
import pytest
import torch

from synth_audit import registry
from synth_audit.dp.mechanisms import Noise
from synth_audit.errors import BudgetSpent
from synth_audit.generators import pate_gan as pate
from synth_audit.generators._deep.network_model import on_train
from synth_audit.generators._deep.training import Training
from synth_audit.table.schema_inference import ColumnSpec, infer_schema
from synth_audit.table.table import read_table

from .conftest import context

QUICK = {
    "teachers": 5,
    "rounds": 3,
    "votes": 4,
    "teacher_steps": 2,
    "student_steps": 2,
    "generator_steps": 2,
    "batch": 8,
    "hidden": 8,
    "noise": 4,
}
DECLARED = {
    "x": ColumnSpec(kind="continuous", bounds=(-9, 9), nullable=False),
    "label": ColumnSpec(kind="categorical", categories=("low", "high"), nullable=False),
}


def rows(n=80, seed=0, columns=("x", "label")):
    x = np.random.default_rng(seed).normal(2, 1, size=n)
    data = pa.table({"x": x, "label": np.where(x > 1, "high", "low")}).select(list(columns))
    return read_table(data, infer_schema(data, {k: DECLARED[k] for k in columns}), where="train")


def fitted(table, handed, **settings):
    return registry.build("generator", "pate_gan", QUICK | {"margins": 0} | settings).fit(table, handed)


@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_all_votes_are_bought_beforehand_within_the_budget(delta):
    table, handed = rows(), context(rows(), 20.0, delta=delta)
    fitted(table, handed)
    guarantee = handed.accountant.guarantee()
    assert 19 < guarantee.epsilon <= 20
    [mechanism] = guarantee.mechanisms
    assert mechanism.count == 12
    assert mechanism.noise_multiplier <= 12 / 20 * 1.005, "never more than the sum of all"


@pytest.mark.parametrize(("epsilon", "rounds"), [(0.1, 1), (1.0, 1), (8.0, 2), (9.7, 3), (500.0, 3)])
def test_as_many_rounds_are_asked_as_the_budget_bears(epsilon, rounds):
    """With four votes a round, five teachers and noise of a quarter of them, a round costs 3.2."""
    handed = context(rows(), epsilon, delta=0.0)
    fitted(rows(), handed)
    [mechanism] = handed.accountant.mechanisms
    assert mechanism.count == 4 * rounds
    assert 0.98 * epsilon < handed.accountant.spent().epsilon <= epsilon


@pytest.mark.parametrize(("epsilon", "rounds"), [(1e-4, 1), (1e-3, 2)])
def test_next_to_nothing_buys_the_rounds_that_noise_can_still_hide(epsilon, rounds):
    """Noise is known up to 100,000 times a vote: beyond it that many rounds cannot be bought, fewer may."""
    handed = context(rows(), epsilon, delta=0.0)
    fitted(rows(), handed, rounds=50, vote_noise=1e9)
    [mechanism] = handed.accountant.mechanisms
    assert mechanism.count >= 4 * rounds
    assert handed.accountant.guarantee().epsilon <= epsilon
    with pytest.raises(BudgetSpent):
        fitted(rows(), context(rows(), 1e-6, delta=0.0))


def test_noise_has_the_scale_that_was_bought_once_for_each_vote(monkeypatch):
    table, handed, drawn = rows(), context(rows(), 20.0), []

    def laplace(scale, size):
        drawn.append((scale, size))
        return np.zeros(size)

    monkeypatch.setattr(Noise, "laplace", staticmethod(laplace))
    fitted(table, handed)
    [mechanism] = handed.accountant.mechanisms
    assert drawn == [(mechanism.noise_multiplier, 4)] * 3


@pytest.fixture
def training():
    """After a step of its teachers, on rows of which some were changed."""
    table = rows()
    layout = on_train(table).layout
    settings = registry.build("generator", "pate_gan", QUICK | {"dropout": 0.5, "learning_rate": 1e-2})

    def taught(changed=(), removed=()):
        vectors = on_train(table).encode(table, np.random.default_rng(0))
        vectors[list(changed)] = 0
        rng = np.random.default_rng(3)
        whole = Training(vectors, layout, 3, lambda: np.zeros(0), lambda done, loss: None, rng)
        made = pate.PateTraining(whole, settings, None)
        made.parts = [np.setdiff1d(part, list(removed)) for part in made.parts]
        for _ in range(3):
            made._teach()
        return made

    return taught


@pytest.mark.parametrize("how", ["changed", "removed"])
def test_a_row_moves_the_teacher_that_has_it_and_no_other(training, how):
    before = training()
    row = int(before.parts[2][0])
    after = training(**{how: [row]})
    one, other = (t.teachers.weights[0].detach() for t in (before, after))
    moved = [j for j in range(5) if not torch.equal(one[j], other[j])]
    assert moved == [2]
    assert torch.equal(before._made(7), after._made(7)), "what all share is drawn alike"


def test_a_teacher_without_rows_votes_too(training):
    before = training()
    after = training(removed=before.parts[1].tolist())
    assert torch.isfinite(after.teachers.weights[0]).all()
    after._vote()


def test_parts_hold_every_row_once():
    found = pate.parts(1000, 7, np.random.default_rng(0))
    assert sorted(np.concatenate(found).tolist()) == list(range(1000))
    assert len({len(part) for part in found}) > 1, "by throws, not in equal shares"


def test_noise_moves_what_part_votes_for_a_row():
    votes = np.array([0.0, 2.0, 3.5, 5.0])
    assert pate.answered(votes, 5, None).tolist() == pytest.approx([0, 0.4, 0.7, 1])
    assert pate.answered(votes, 5, lambda n: np.full(n, 1.0)).tolist() == pytest.approx([0.2, 0.6, 0.9, 1])


def test_no_teacher_has_more_than_one_vote_nor_does_one_that_diverged(training, monkeypatch):
    heard = []
    monkeypatch.setattr(pate, "answered", lambda votes, *_: heard.append(votes) or votes.astype(np.float32))
    taught = training()
    with torch.no_grad():
        taught.teachers.biases[1] += torch.tensor([1e6, -1e6, 1e6, float("nan"), 1e6])[:, None, None]
    taught._vote()
    assert heard[0].tolist() == pytest.approx([3.0] * 4)


def test_real_rows_reach_the_model_by_votes_alone(monkeypatch):
    """With votes drowned in the same noise other rows make no other model."""
    monkeypatch.setattr(Noise, "bits", staticmethod(lambda count: 7))
    drowning = np.array([100.0, -100.0, 100.0, -100.0])
    monkeypatch.setattr(Noise, "laplace", staticmethod(lambda scale, size: drowning))
    one, other = rows(seed=0), rows(n=50, seed=1)
    weights, again = (fitted(table, context(table, 1.0)).weights for table in (one, other))
    assert all(np.array_equal(w, again[k]) for k, w in weights.items())


def test_teachers_learn_to_tell_real_rows_from_made_ones(training):
    taught = training()
    for _ in range(30):
        taught._teach()
    with torch.no_grad():
        real, made = (taught.teachers(x.expand(5, -1, -1)).mean() for x in (taught.rows, taught._made(80)))
    assert real > 0 > made


@pytest.mark.parametrize("columns", [("x",), ("label",)])
def test_few_rows_of_one_kind_and_a_draw_of_one_row(columns):
    table = rows(3, columns=columns)
    assert fitted(table, context(table, 2.0)).sample(1, np.random.default_rng(1)).n_rows == 1


def test_a_spent_budget_is_refused_before_a_row_is_seen():
    table, handed = rows(), context(rows(), 1.0)
    handed.accountant.pure(1.0, what="all of it")
    with pytest.raises(BudgetSpent, match="Laplace"):
        fitted(table, handed)
