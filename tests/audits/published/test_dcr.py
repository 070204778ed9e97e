"""Closest-record statistics: scales that reach 1 at a copy, nulls that hold under ties."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth_audit.audits.published.closest_record import (
    bootstrap_privacy_score,
    closest_share,
    distance_ratio,
    privacy_score,
    score_of,
    threshold,
)
from synth_audit.audits.published.closest_record.identifiability import independent_number, part_nearer
from synth_audit.neighbours.coordinates import Coordinates
from synth_audit.neighbours.search import Nearest, nearest

DISTANCES = st.lists(st.sampled_from([0.0, 0.0, 0.5, 1.0, 1.5, 2.0]), min_size=1, max_size=60).map(np.array)
ALPHA = st.sampled_from([0.02, 0.1, 0.5])


def points(values):
    dense = np.asarray(values, dtype=np.float64).reshape(len(values), -1)
    return Coordinates.of(dense)


@given(distances=DISTANCES, alpha=ALPHA)
def test_threshold_takes_exactly_alpha_of_the_real_rows(distances, alpha):
    q, part = threshold(distances, alpha)
    assert np.mean(distances < q) + part * np.mean(distances == q) == pytest.approx(alpha)
    assert 0 < part <= 1 + 1e-9


@given(control=DISTANCES, alpha=ALPHA, n=st.integers(1, 50))
def test_a_full_copy_scores_one_or_cannot_be_told_whatever_the_ties(control, alpha, n):
    found = privacy_score(np.zeros(n), control, alpha)
    if (control == 0).all():
        assert np.isnan(found)
    else:
        assert found == pytest.approx(1)


@given(control=DISTANCES, alpha=ALPHA)
def test_control_rows_themselves_score_nothing(control, alpha):
    found = privacy_score(control, control, alpha)
    assert np.isnan(found) or found == pytest.approx(0, abs=1e-9)


@settings(deadline=None)
@given(control=DISTANCES, rows=DISTANCES, alpha=ALPHA, more=st.integers(1, 30))
def test_more_copies_never_lower_the_score(control, rows, alpha, more):
    before = privacy_score(rows, control, alpha)
    after = privacy_score(np.concatenate([rows, np.zeros(more)]), control, alpha)
    assert np.isnan(before) == np.isnan(after)
    assert np.isnan(after) or after >= before - 1e-9
    assert np.isnan(after) or after <= 1 + 1e-9


def test_the_published_scale():
    control = np.arange(1, 101.0)
    release = np.concatenate([np.zeros(30), np.full(70, 50.0)])
    limit = threshold(control, 0.02)
    assert limit == (2.0, 1.0)
    dcr = 0.3 / 0.02
    assert privacy_score(release, control, 0.02) == pytest.approx(0.02 * (dcr - 1) / (1 - 0.02))
    assert score_of(0.3, limit, 0.02) == privacy_score(release, control, 0.02)


@pytest.mark.parametrize("ties", [False, True])
def test_bootstrap_score_is_distributed_as_a_real_bootstrap(ties):
    rng = np.random.default_rng(0)
    synthetic, control = rng.gamma(2, size=80), rng.gamma(2, size=60)
    if ties:
        synthetic, control = np.round(synthetic), np.round(control)
    fast = bootstrap_privacy_score(synthetic, control, 0.1, 4000, rng)
    slow = [privacy_score(rng.choice(synthetic, 80), rng.choice(control, 60), 0.1) for _ in range(4000)]
    assert fast.mean() == pytest.approx(np.mean(slow), abs=0.01)
    assert np.quantile(fast, [0.025, 0.5, 0.975]) == pytest.approx(
        np.quantile(slow, [0.025, 0.5, 0.975]), abs=0.03
    )


def shares_under_the_null(pool, n_train, n_control, n_draws=200, seed=0):
    """Shares of a release of fresh rows, over random splits of a pool of real rows."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n_draws):
        rows = pool(n_train + n_control, rng)
        train, control = points(rows[:n_train]), points(rows[n_train:])
        release = points(pool(40, rng))
        found.append(closest_share(nearest(release, train), nearest(release, control), n_train).share)
    return np.array(found)


POOLS = {
    "smooth": lambda n, rng: rng.normal(size=(n, 2)),
    "many duplicates": lambda n, rng: rng.integers(0, 3, (n, 2)).astype(float),
    "mostly one value": lambda n, rng: (rng.random((n, 1)) < 0.1).astype(float),
    "all equal": lambda n, rng: np.zeros((n, 1)),
}


@pytest.mark.parametrize(
    ("n_train", "n_control", "name"),
    [
        *((60, 15, name) for name in POOLS),
        (12, 48, "many duplicates"),
        *(
            pytest.param(*sizes, name, marks=pytest.mark.slow)
            for sizes in ((30, 30), (12, 48))
            for name in POOLS
            if (sizes, name) != ((12, 48), "many duplicates")
        ),
    ],
)
def test_the_null_of_the_share_holds_for_unequal_sizes_and_ties(name, n_train, n_control):
    found = shares_under_the_null(POOLS[name], n_train, n_control)
    null = n_train / (n_train + n_control)
    error = found.std() / np.sqrt(len(found))
    assert abs(found.mean() - null) < 4 * error + 1e-9


def neighbours(first, ties=1, index=None):
    first = np.array(first, dtype=float)
    n = len(first)
    return Nearest(first, first + 1, np.arange(n) if index is None else np.array(index), np.full(n, ties))


def test_a_copy_has_share_one_and_ties_count_by_rows():
    assert closest_share(neighbours([0, 0]), neighbours([1, 2]), 2).share == 1
    assert closest_share(neighbours([1, 2]), neighbours([0, 0]), 2).share == 0
    assert closest_share(neighbours([0, 0], ties=3), neighbours([0, 0], ties=1), 2).share == 0.75


def test_one_row_repeated_is_worth_one_draw():
    many = closest_share(neighbours([0] * 50, index=[3] * 50), neighbours([1] * 50), 10)
    assert (many.share, many.trials) == (1, 1)
    assert closest_share(neighbours([0] * 50), neighbours([1] * 50), 50).trials == 50


def test_distance_ratio_of_a_duplicated_record_is_one():
    first, second = np.array([0.0, 0.0, 1.0, 1.0, np.inf]), np.array([0.0, 2.0, 4.0, np.inf, np.inf])
    found = Nearest(first, second, np.zeros(5, int), np.ones(5, int))
    assert distance_ratio(found).tolist() == [1, 0, 0.25, 0, 1]


@given(one=DISTANCES, other=DISTANCES)
def test_part_nearer_agrees_with_picking_among_all_rows(one, other):
    """One query at 0, rows at the distances of either set."""
    query = points([0.0])
    found = part_nearer(nearest(query, points(one)), nearest(query, points(other)))
    least = min(one.min(), other.min())
    mine, theirs = np.sum(one == least), np.sum(other == least)
    assert found[0] == pytest.approx(mine / (mine + theirs))


@given(rows=st.lists(st.integers(0, 9), min_size=1, max_size=10, unique=True), seed=st.integers(0, 99))
def test_queries_that_share_a_nearest_row_or_are_each_others_count_as_one(rows, seed):
    index = np.random.default_rng(seed).integers(0, 12, len(rows))
    nearest_of = dict(zip(rows, index.tolist(), strict=True))
    alone, paired = Counter(nearest_of.values()), Counter()
    for row, found in nearest_of.items():
        mutual = nearest_of.get(found, -1) == row
        paired[min(row, found) if mutual else found] += 1
    n = len(rows)
    assert independent_number(index) == pytest.approx(n**2 / sum(w * w for w in alone.values()))
    own = np.array(rows)
    assert independent_number(index, own) == pytest.approx(n**2 / sum(w * w for w in paired.values()))
