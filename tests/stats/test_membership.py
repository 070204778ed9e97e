"""Alarms against random tie-breaking, exact nulls under ties, precision, and coverage of the AUC."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synth_audit.stats.roc import alarm, auroc, auroc_interval, precision

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


@given(members=SCORES, others=SCORES, rate=RATE)
def test_one_more_stranger_alarms_at_the_rate_itself(members, others, rate):
    """The mean over everybody, each against the rest."""
    every = np.concatenate([members, others])
    found = [alarm(every[[i]], np.delete(every, i), rate)[0] for i in range(len(every))]
    assert np.mean(found) == pytest.approx(rate)


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
    """Nominal 95 %; the truth from large samples."""
    rng = np.random.default_rng(0)
    draw = SITUATIONS[name]
    blur = (lambda x: np.round(x)) if name == "rounded" else (lambda x: x)
    truth = auroc(draw(400_000, rng), blur(rng.normal(size=400_000)))
    covered = 0
    for _ in range(1000):
        interval = auroc_interval(draw(m, rng), blur(rng.normal(size=n)), 0.95)
        covered += interval.low <= truth <= interval.high
    assert 0.93 < covered / 1000 < (1.0 if name == "nearly all copied" else 0.985)  # the wider of two there
