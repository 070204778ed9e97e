"""What a fit shows and is handed: losses or spending, and labels of enough people."""

import itertools
import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pytest

from synth_audit import registry
from synth_audit.dp.accountant import Accountant
from synth_audit.dp.guarantee import Budget, Unit
from synth_audit.plugins.fitting import fit
from synth_audit.plugins.generator import (
    FEWEST_PEOPLE,
    FitContext,
    GeneratorInfo,
    TrainingCourse,
    minimum_people,
    training_series,
)
from synth_audit.table.schema_inference import ColumnSpec, infer_schema
from synth_audit.table.table import read_table


def accountant(epsilon: float | None = None, delta: float = 1e-5) -> Accountant:
    return Accountant(None if epsilon is None else Budget(epsilon, delta), unit=Unit.ROW)


def stated(found: Accountant) -> Accountant:
    found.domain("declared")
    found.draws(10)
    return found


def test_losses_of_many_steps_are_means_of_equal_stretches():
    course = TrainingCourse()
    for step in range(1, 1001):
        course.step("train", step, 1000, float(step))
    [curve] = training_series(course, accountant())
    assert len(curve.x) == 100
    assert (curve.x[0], curve.x[-1]) == (10, 1000)
    assert curve.lines == {"train": tuple((10 * i + 5.5) for i in range(100))}
    assert "means of 10" in curve.x_label


def test_a_loss_of_few_steps_is_shown_as_it_is_without_its_last_digits():
    course = TrainingCourse()
    for step, loss in enumerate((0.123456, math.nan, 0.25), 1):  # a batch without rows has none
        course.step("train", step, 3, loss)
    [curve] = training_series(course, accountant())
    assert curve.x == (1, 3)
    assert curve.lines == {"train": (0.1235, 0.25)}


def test_trainings_one_after_the_other_are_curves_of_their_own_and_not_endless():
    course = TrainingCourse()
    for loss in range(20):
        for step in (1, 2):
            course.step("train", step, 2, float(loss))
    curves = training_series(course, accountant())
    assert [c.lines["train"][0] for c in curves] == [float(i) for i in range(8)]
    assert len({str(c.id) for c in curves}) == 8


def test_no_loss_is_shown_where_privacy_was_spent():
    for states in (stated, lambda found: found):  # with a guarantee, and without one
        course, found = TrainingCourse(), states(accountant(1.0))
        found.laplace(2.0, what="counts")
        course.step("train", 1, 2, 0.5)
        course.step("train", 2, 2, 0.4)
        shown = training_series(course, found)
        assert [s.id.quantity for s in shown] == (["epsilon"] if found.guarantee() else [])


def test_pure_privacy_grows_with_every_run():
    found = stated(accountant(1.0, 0.0))
    found.laplace(10.0, what="counts", count=4)
    found.exponential(0.3, what="a choice")
    [curve] = training_series(TrainingCourse(), found)
    assert curve.x == (0, 1, 2, 3, 4, 5)
    assert curve.lines["spent at most"] == pytest.approx((0, 0.1, 0.2, 0.3, 0.4, 0.7))


def test_privacy_of_steps_ends_at_what_is_claimed():
    found = stated(accountant(1.0))
    found.gaussian(20.0, what="counts")
    noise = found.least_noise(sampling_rate=0.05, steps=200)
    found.poisson_subsampled_gaussian(0.05, noise, 200, what="training")
    [curve] = training_series(TrainingCourse(), found)
    [spent] = curve.lines.values()
    claimed = found.guarantee()
    assert claimed is not None
    assert (curve.x[0], curve.x[1], curve.x[-1]) == (0, 1, 201)
    assert (spent[0], spent[-1]) == (0, claimed.epsilon)
    assert all(a <= b for a, b in itertools.pairwise(spent))
    assert 0 < spent[1] < spent[-2] <= claimed.epsilon


def test_a_step_is_told_to_progress_and_kept_for_the_curve():
    told = []
    context = FitContext(rng=None, progress=lambda *what: told.append(what))  # type: ignore[arg-type]
    context.trained("train", 1, 2, 0.5)
    replace(context).trained("train", 2, 2, 0.25)
    assert told == [("train, loss 0.5", 1, 2), ("train, loss 0.25", 2, 2)]
    [curve] = training_series(context.course, accountant())
    assert curve.lines == {"train": (0.5, 0.25)}


LABELS = [*["a"] * 40, *["b"] * 40, *["rare"] * 19, None]


@dataclass(frozen=True)
class Handed:
    """A generator whose model is what it was handed."""

    info: ClassVar[GeneratorInfo] = GeneratorInfo(title="Handed", summary="Learns nothing.")

    def fit(self, train, context):
        return train

    def load(self, folder):
        raise NotImplementedError


@dataclass(frozen=True)
class HandedAll(Handed):
    """One that sees to rare labels itself."""

    minimum_people: int = 1


def handed(columns, generator=None, specs=None, **context):
    table = pa.table(columns)
    schema = infer_schema(table, {name: ColumnSpec(**spec) for name, spec in (specs or {}).items()})
    train = read_table(table, schema, where="train")
    given = FitContext(rng=np.random.default_rng(0), **context)
    return train, fit(generator or Handed(), train, given).model


def test_labels_of_few_people_give_way_to_others():
    train, seen = handed({"c": LABELS, "x": np.arange(100.0)})
    assert set(seen.labels("c")) == {"a", "b", None}
    kept = train.labels("c") != "rare"
    assert (seen.labels("c")[kept] == train.labels("c")[kept]).all()
    assert seen.data["x"].equals(train.data["x"])


def test_where_no_others_are_nothing_is_left():
    _, seen = handed({"lone": ["x"] * 19 + [None] * 81})
    assert seen.missing("lone").all()


@pytest.mark.parametrize(
    "terms",
    [
        {"specs": {"c": {"categories": ["a", "b", "rare"]}}},
        {"generator": HandedAll()},
        {"accountant": Accountant(Budget(1.0, 1e-6), unit=Unit.ROW)},
    ],
    ids=["declared", "its own rule", "under a budget"],
)
def test_every_label_is_handed_over(terms):
    train, seen = handed({"c": LABELS}, **terms)
    assert seen.data.equals(train.data)


def test_the_rows_of_one_person_are_one():
    people = np.r_[np.arange(40), np.full(40, 40)]
    _, seen = handed({"c": ["a"] * 40 + ["own"] * 40}, entities=lambda: people)
    assert set(seen.labels("c")) == {"a"}


@pytest.mark.parametrize(
    ("name", "people"),
    [*((name, 1) for name in ("resample", "cart", "arf")), *((n, FEWEST_PEOPLE) for n in ("vine", "ctgan"))],
)
def test_who_is_handed_every_label(name, people):
    """Copies are meant, and trees look at it themselves."""
    assert minimum_people(registry.build("generator", name, {})) == people
