"""Intervals from bootstrap draws and over repeated games, against closed forms and simulations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from synth_audit.audits.published.closest_record import bootstrap_privacy_score, closest_share, privacy_score
from synth_audit.findings.measurement import BOX_LINES, Series
from synth_audit.neighbours.coordinates import Coordinates
from synth_audit.neighbours.search import nearest
from synth_audit.stats.proportions import proportion_interval
from synth_audit.stats.resampling import (
    box_lines,
    mean_interval,
    percentile_interval,
    ratio_interval,
    reference_rows,
)


@given(st.integers(1, 60), st.sets(st.integers(0, 59)), st.integers(1, 80), st.integers(0, 5))
def test_reference_rows_are_distinct_allowed_and_as_many_as_there_are(n, excluded, size, seed):
    excluded = [i for i in excluded if i < n]
    drawn = reference_rows(n, excluded, size, np.random.default_rng(seed)).tolist()
    assert drawn == sorted(set(drawn))
    assert set(drawn) <= set(range(n)) - set(excluded)
    assert len(drawn) == min(size, n - len(set(excluded)))


def test_every_row_is_as_likely_to_be_a_reference():
    rng = np.random.default_rng(0)
    counts = np.bincount(np.concatenate([reference_rows(10, [3], 4, rng) for _ in range(3000)]), minlength=10)
    assert counts[3] == 0
    assert np.abs(np.delete(counts, 3) / 3000 - 4 / 9).max() < 0.05


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=30), st.floats(0.9, 0.999))
def test_mean_interval_is_students(values, level):
    found = mean_interval(np.array(values), level)
    n, error = len(values), stats.sem(values)
    low, high = (np.mean(values) + sign * stats.t.ppf(0.5 + level / 2, n - 1) * error for sign in (-1, 1))
    assert found.low == pytest.approx(low, rel=1e-9, abs=1e-6)
    assert found.high == pytest.approx(high, rel=1e-9, abs=1e-6)
    assert found.level == level


def test_one_iteration_has_no_interval():
    with pytest.raises(ValueError, match="at least two"):
        mean_interval(np.array([1.0]), 0.95)


def test_a_ratio_that_never_varies_is_certain_and_has_no_unit():
    rng = np.random.default_rng(0)
    below = rng.uniform(1, 2, 10)
    exact = ratio_interval(0.3 * below, below, 0.95)
    assert (exact.low, exact.high) == pytest.approx((0.3, 0.3))
    above = rng.uniform(0, 1, 10)
    one, other = ratio_interval(above, below, 0.95), ratio_interval(above * 7, below * 7, 0.95)
    assert (one.low, one.high) == pytest.approx((other.low, other.high))
    with pytest.raises(ValueError, match="other than 0"):
        ratio_interval(above, np.zeros(10), 0.95)


def test_box_lines_are_a_series_of_boxes():
    lines = box_lines([np.arange(5.0), np.array([7.0])])
    assert Series("s", "s", "box", "", "", ("a", "b"), lines).lines == lines
    assert [lines[name] for name in BOX_LINES] == [(0, 7), (1, 7), (2, 7), (3, 7), (4, 7)]


@pytest.mark.slow
@pytest.mark.parametrize("draw", [np.random.Generator.normal, np.random.Generator.uniform])
@pytest.mark.parametrize("n", [5, 10])
def test_mean_interval_covers(draw, n):
    rng = np.random.default_rng(1)
    truth = float(np.mean(draw(rng, size=200_000)))
    held = [(i := mean_interval(draw(rng, size=n), 0.95)).low <= truth <= i.high for _ in range(4000)]
    print(f"student {draw.__name__} {n}: {np.mean(held):.4f}")  # noqa: T201
    assert 0.92 <= np.mean(held) <= 0.97  # a little short for few draws of a flat distribution


@pytest.mark.slow
@pytest.mark.parametrize("n", [5, 10])
def test_ratio_interval_covers(n):
    rng = np.random.default_rng(2)
    held = []
    for _ in range(4000):
        below = 0.4 + 0.03 * rng.normal(size=n)
        above = 0.5 * below + 0.02 * rng.normal(size=n)
        interval = ratio_interval(above, below, 0.95)
        held.append(interval.low <= 0.5 <= interval.high)
    print(f"ratio {n}: {np.mean(held):.4f}")  # noqa: T201
    assert 0.93 <= np.mean(held) <= 0.97


pytestmark = pytest.mark.slow
LEVEL = 0.95
RUNS = 400
"""Enough to tell intervals that hold in nine of ten cases: 0.93 is two standard errors above that."""


def points(values):
    return Coordinates.of(values)


def mixed(n, rng):
    """Few distinct values beside a smooth column."""
    return np.column_stack(
        [rng.integers(0, 4, n), rng.poisson(1.0, n), np.round(rng.normal(size=n), 1)]
    ).astype(float)


def smooth(n, rng):
    return rng.normal(size=(n, 4))


@pytest.mark.parametrize("share", [0.005, 0.05, 0.5])
def test_wilson_covers(share):
    rng = np.random.default_rng(0)
    n, draws = 300, rng.binomial(300, share, 20_000)
    held = [(i := proportion_interval(int(s), n, LEVEL)).low <= share <= i.high for s in draws]
    print(f"wilson {share}: {np.mean(held):.4f}")  # noqa: T201
    assert 0.92 <= np.mean(held) <= 0.995


@pytest.mark.parametrize("pool", [smooth, mixed])
@pytest.mark.parametrize(("n_train", "n_control"), [(400, 100), (250, 250)])
def test_share_interval_covers_the_null(pool, n_train, n_control):
    rng = np.random.default_rng(1)
    null, held, widths = n_train / (n_train + n_control), [], []
    for _ in range(RUNS):
        train, control, release = (points(pool(n, rng)) for n in (n_train, n_control, n_train))
        found = closest_share(nearest(release, train), nearest(release, control), n_train)
        around = proportion_interval(found.share * found.n_effective, found.n_effective, LEVEL)
        held.append(around.low <= null <= around.high)
        widths.append(around.high - around.low)
    print(f"share {pool.__name__} {n_train}/{n_control}: {np.mean(held):.4f} width {np.mean(widths):.3f}")  # noqa: T201
    assert np.mean(held) >= 0.93


@pytest.mark.parametrize("pool", [smooth, mixed])
@pytest.mark.parametrize(("n_train", "n_control"), [(400, 100), (400, 400), (1600, 400)])
def test_privacy_score_interval_covers_the_null(pool, n_train, n_control):
    rng = np.random.default_rng(2)
    held, above = [], []
    for _ in range(RUNS):
        train, control, release = (points(pool(n, rng)) for n in (n_train, n_control, n_train))
        to_train, real = nearest(release, train).first, nearest(control, train).first
        if not np.isfinite(privacy_score(to_train, real, 0.02)):
            continue
        around = percentile_interval(bootstrap_privacy_score(to_train, real, 0.02, 200, rng), LEVEL)
        held.append(around.low <= 0 <= around.high)
        above.append(around.high >= 0)
    print(f"score {pool.__name__} {n_train}/{n_control}: {np.mean(held):.4f}, upper {np.mean(above):.4f}")  # noqa: T201
    assert np.mean(held) >= 0.85
    assert np.mean(above) >= 0.9
