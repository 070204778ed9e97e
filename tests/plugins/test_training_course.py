"""What may be shown of a fit: its losses where nothing is claimed, what it spent where something is."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest

from synth_audit.dp.accountant import Accountant
from synth_audit.dp.guarantee import Budget, Unit
from synth_audit.plugins.generator import FitContext, TrainingCourse, training_series


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
