"""How often the intervals hold what they promise; simulation, slow."""

from __future__ import annotations

import numpy as np
import pytest

from synth_audit.audits.published.closest_record import (
    bootstrap_privacy_score,
    closest_share,
    privacy_score,
)
from synth_audit.neighbours.coordinates import Coordinates
from synth_audit.neighbours.search import nearest
from synth_audit.stats.proportions import wilson
from synth_audit.stats.resampling import percentile_interval

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
    held = [(i := wilson(int(s), n, LEVEL)).low <= share <= i.high for s in draws]
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
        around = wilson(found.share * found.n_effective, found.n_effective, LEVEL)
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
