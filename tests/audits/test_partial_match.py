"""Matches on a few columns against a slow twin that compares every pair of rows."""

from __future__ import annotations

import numpy as np
import pytest

from synth_audit.audits.privacy.partial_knowledge import MOST_VOTES, NearestRows, combined


def nearest_of(labels, numbers, m):
    placed = [np.unique(x, return_inverse=True) for x in np.asarray(numbers, float).T]
    return NearestRows.of([np.asarray(x) for x in labels], [r for _, r in placed], [x for x, _ in placed], m)


def twin(labels, numbers, m):
    """Distance, and rows at it, of every person."""
    found = []
    for x in range(m, len(numbers)):
        alike = np.array([all(c[x] == c[r] for c in labels) for r in range(m)])
        apart = np.where(alike, np.abs(numbers[:m] - numbers[x]).sum(axis=1), np.inf)
        least = apart.min()
        found.append((least, set(np.flatnonzero(apart <= least + 1e-9)) if np.isfinite(least) else set()))
    return found


def rows_of(matches, person):
    return {
        int(r)
        for place in matches.found[person]
        if place >= 0
        for r in matches.order[matches.starts[place] : matches.starts[place + 1]]
    }


@pytest.mark.parametrize("n_labels", [0, 1, 2])
@pytest.mark.parametrize("n_numbers", [0, 1, 2, 3])
@pytest.mark.parametrize("grain", [1.0, 0.0])
def test_the_nearest_rows_are_those_of_a_slow_twin(n_labels, n_numbers, grain):
    if not n_labels + n_numbers:
        return
    rng = np.random.default_rng(n_labels * 10 + n_numbers)
    n, m = 160, 100
    labels = [rng.integers(0, 4, n) for _ in range(n_labels)]
    numbers = rng.normal(size=(n, n_numbers)) * 3
    if grain:
        numbers = np.rint(numbers)
    matches = nearest_of(labels, numbers, m)
    for person, (distance, rows) in enumerate(twin(labels, numbers, m)):
        assert matches.distance[person] == pytest.approx(distance)
        several = len({tuple(numbers[r]) for r in rows})
        if several <= 2:
            assert rows_of(matches, person) == rows
            assert matches.crowd[person] == (len(rows) or m + 1)
        else:
            assert rows_of(matches, person) < rows or len(rows_of(matches, person)) >= 3
            assert matches.crowd[person] == m + 1, "it is not known who else is as near"


def test_a_guess_is_what_all_nearest_rows_agree_on():
    numbers = [[0.0], [0.0], [2.0], [2.0], [5.0], [0.0], [1.0], [2.0], [4.9]]
    secrets = np.array([[1.0, 7.0], [1.0, 8.0], [1.0, 7.0], [1.0, 7.02], [3.0, 9.0]])
    matches = nearest_of([], numbers, 5)
    guesses = matches.guesses(np.arange(4), secrets.__getitem__, 0.045)
    expected = [[1.0, np.nan], [1.0, np.nan], [1.0, 7.01], [3.0, 9.0]]
    assert guesses == pytest.approx(np.array(expected), nan_ok=True)
    assert matches.crowd.tolist() == [2, 4, 2, 1]


def test_who_is_claimed_is_as_near_as_the_nearest_strangers():
    rng = np.random.default_rng(0)
    release, train, control = rng.normal(size=(300, 1)), rng.normal(size=(100, 1)), rng.normal(size=(100, 1))
    matches = nearest_of([], np.vstack([release, train, control]), 300)
    stranger = np.arange(200) >= 100
    claimed = matches.claimed(stranger, 0.05)
    assert claimed[stranger].sum() == 5
    assert matches.distance[claimed].max() <= np.sort(matches.distance[stranger])[4]


def test_claims_do_not_reach_far_into_a_tie():
    labels = [np.repeat([0, 1], [40, 40])]
    matches = nearest_of(labels, np.empty((80, 0)), 40)
    none_there = matches.claimed(np.arange(40) >= 20, 0.05)
    assert not none_there.any(), "nobody's labels are in the release"
    labels = [np.zeros(80, np.int64)]
    matches = nearest_of(labels, np.empty((80, 0)), 40)
    assert not matches.claimed(np.arange(40) >= 20, 0.05).any(), "everybody is as near"


def test_a_claim_does_not_rest_on_a_crowd():
    n = MOST_VOTES + 1
    matches = nearest_of([np.zeros(n + 4, np.int64)], np.empty((n + 4, 0)), n)
    assert not matches.claimed(np.arange(4) >= 2, 0.5).any()


@pytest.mark.parametrize("most", [2**62, 50])
def test_combined_codes_are_equal_for_equal_rows_and_keep_the_order(most):
    rng = np.random.default_rng(1)
    codes = [rng.integers(0, k, 200) for k in (5, 7, 9)]
    found = combined(codes, 200, most)
    keys = list(zip(*codes, strict=True))
    order = sorted(range(200), key=lambda i: keys[i])
    assert (np.diff(found[order]) >= 0).all()
    assert len(np.unique(found)) == len(set(keys))
    assert combined([], 3, most).tolist() == [0, 0, 0]
