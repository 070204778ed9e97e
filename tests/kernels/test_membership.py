"""Rates of membership attacks against loops over all pairs, exact nulls under ties, and coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth_audit.kernels.membership import (
    alarm,
    alarms,
    detection,
    own_alarm,
    precision,
)
from synth_audit.kernels.roc import auroc, auroc_interval

SCORES = st.lists(st.sampled_from([-1.0, 0.0, 0.5, 1.0, 2.0]), min_size=1, max_size=25).map(np.array)
RATE = st.sampled_from([0.01, 0.1, 0.3, 0.77])


@given(members=SCORES, others=SCORES, rate=RATE)
def test_alarm_agrees_with_random_tie_breaking(members, others, rate):
    """The chance that at most (n + 1) · rate of the strangers and the record itself are above its place."""
    found = alarm(members, others, rate)
    for score, sure in zip(members, found, strict=True):
        above, level = np.sum(others > score), np.sum(others == score)
        places = np.linspace(0, 1, 20_001)[:-1] + 0.5 / 20_000
        expected = np.mean((above + places * (1 + level)) / (len(others) + 1) <= rate)
        assert sure == pytest.approx(expected, abs=1e-4)
    for told, each in zip(alarms(members, others, np.array([rate, 0.5])), (rate, 0.5), strict=True):
        assert (told == alarm(members, others, each)).all()


@given(scores=SCORES.filter(lambda s: len(s) > 1), rate=RATE)
def test_every_stranger_against_the_rest_alarms_at_the_rate_itself(scores, rate):
    found = own_alarm(scores, rate)
    loops = [alarm(scores[[i]], np.delete(scores, i), rate)[0] for i in range(len(scores))]
    assert found == pytest.approx(loops)
    assert found.mean() == pytest.approx(rate)


def test_constant_scores_are_guessing():
    members, others = np.zeros(300), np.zeros(200)
    found = detection(members, others, 0.01, 0.95)
    assert found.value == pytest.approx(0.01)
    assert found.interval.low <= 0.01 <= found.interval.high


def test_separate_scores_are_found_and_the_interval_keeps_a_width():
    members, others = np.arange(1000.0) + 5000, np.arange(2000.0)
    found = detection(members, others, 0.01, 0.95)
    assert found.value == 1
    assert 0.99 < found.interval.low < 1


def test_few_strangers_promise_nothing_at_a_small_rate():
    members, others = np.ones(500), np.zeros(150)
    found = detection(members, others, 0.01, 0.95)
    assert found.value == 1
    assert found.interval.low == 0


@pytest.mark.parametrize(
    ("hits", "alarms", "value"), [(80, 10, 80 / 90), (0, 10, 0), (50, 0, 1), (30, 15, 0.5)]
)
def test_precision_is_that_of_equal_numbers(hits, alarms, value):
    n_others = 50 if (hits, alarms) == (30, 15) else 100
    found = precision(hits, 100, alarms, n_others, 0.95)
    assert found.value == pytest.approx(value)
    assert 0 <= found.interval.low <= found.value <= found.interval.high <= 1
    assert found.interval.high - found.interval.low > 0.005


def test_precision_of_nobody_is_not_a_number():
    assert math.isnan(precision(0, 10, 0, 10, 0.95).value)


@settings(max_examples=50, deadline=None)
@given(members=SCORES, others=SCORES, rate=RATE)
def test_the_interval_stands_around_its_value(members, others, rate):
    value, interval = detection(members, others, rate, 0.95)
    assert 0 <= interval.low <= value + 1e-12
    assert value - 1e-12 <= interval.high <= 1


SITUATIONS = {
    "nothing": lambda n, rng: rng.normal(size=n),
    "shifted": lambda n, rng: rng.normal(1.5, size=n),
    "a tenth copied": lambda n, rng: rng.normal(size=n) + 9 * (rng.random(n) < 0.1),
    "nearly all copied": lambda n, rng: rng.normal(size=n) + 9 * (rng.random(n) < 0.98),
    "rounded": lambda n, rng: np.round(rng.normal(0.5, size=n)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SITUATIONS)
@pytest.mark.parametrize(("m", "n"), [(400, 200), (100, 400), (1000, 1000)])
def test_intervals_cover(name, m, n):
    """Nominal 95 %; the truth from large samples. Rates of detection may cover more, never less."""
    rng = np.random.default_rng(0)
    draw = SITUATIONS[name]
    blur = (lambda x: np.round(x)) if name == "rounded" else (lambda x: x)
    many = draw(400_000, rng), blur(rng.normal(size=400_000))
    true_area, true_rate = auroc(*many), detection(*many, 0.05, 0.95).value
    covered = np.zeros(2)
    for _ in range(1000):
        members, others = draw(m, rng), blur(rng.normal(size=n))
        intervals = auroc_interval(members, others, 0.95), detection(members, others, 0.05, 0.95).interval
        covered += [i.low <= t <= i.high for i, t in zip(intervals, (true_area, true_rate), strict=True)]
    assert (covered / 1000 > 0.93).all(), covered
    assert covered[0] / 1000 < (1.0 if name == "nearly all copied" else 0.985)  # the wider of two there
