"""Columns of people in columns of a release: which are found, and that ties and columns alike are none."""

from __future__ import annotations

import numpy as np
import pytest

from synth_audit.kernels.rank_links import RankPlace, correspondences, spread_ranks

N = 1000


@pytest.fixture
def rng():
    return np.random.default_rng(6)


def planted(rng, share):
    """Ranks of people, and of a release in whose columns 1, 3 (turned round) and 0 a few of theirs stand."""
    people, release = rng.random((2, 4, N))
    n = round(share * N)
    release[1, :n], release[3, :n], release[0, :n] = people[0, :n], 1 - people[1, :n], people[2, :n]
    return people, release


def test_columns_in_the_places_of_others_are_found(rng):
    found = correspondences(*planted(rng, 0.05), [], 3)
    assert found[0] == (RankPlace(0, 1, False), RankPlace(1, 3, True), RankPlace(2, 0, False))


def test_labels_that_stay_make_coarse_ranks_plain(rng):
    people, release = planted(rng, 0.15)
    release = np.clip(release + rng.normal(size=release.shape) * 0.008, 0, 1)
    labels = rng.integers(0, 8, (2, N))
    labels[1, :150] = labels[0, :150]
    whole = (RankPlace(0, 1, False), RankPlace(1, 3, True), RankPlace(2, 0, False))
    assert whole not in correspondences(people, release, [], 3)
    assert correspondences(people, release, [tuple(labels)], 3)[0] == whole


def test_a_label_that_nobody_has_changes_nothing(rng):
    tables, nobody = planted(rng, 0.05), np.full(N, -1)
    assert correspondences(*tables, [(nobody, nobody)], 3) == correspondences(*tables, [], 3)


def test_columns_that_go_together_are_no_correspondence(rng):
    def alike(seed):
        z = np.random.default_rng(seed).normal(size=(4, N))
        return np.array([np.exp(z[0]), z[0] + 0.01 * z[1], np.rint(z[0] + 0.1 * z[2]), z[3]])

    people, release = alike(1), alike(2)
    ranks = [
        [spread_ranks(x, of, rng) for x, of in zip(table, people, strict=True)] for table in (people, release)
    ]
    assert max(map(len, correspondences(*ranks, [], 3)), default=0) < 3


def test_equal_values_are_spread_and_missing_ones_stay(rng):
    found = spread_ranks(np.array([1.0, 1, 1, 1, 5, np.nan]), np.array([1.0, 1, 1, 2]), rng)
    assert len(set(found[:4])) == 4
    assert found[:4].max() < 0.75 < found[4] < 1
    assert np.isnan(found[5])
    assert correspondences([found], [found], [], 3) == []
