"""Columns divided into parts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth_audit.generators.disjoint import partition


def matrix(d, rng):
    strength = rng.uniform(-1, 1, (d, d))
    return (strength + strength.T) / 2


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 14), st.integers(1, 14), st.integers(0, 2**32))
def test_every_column_has_one_part_and_sizes_differ_by_one_at_most(d, k, seed):
    k, rng = min(d, k), np.random.default_rng(seed)
    for part in (partition.correlated_partition(matrix(d, rng), k), partition.random_partition(d, k, rng)):
        sizes = np.bincount(part, minlength=k)
        assert len(sizes) == k
        assert sizes.sum() == d
        assert sizes.max() - sizes.min() <= 1


def by_hand(strength):
    """The published rule, pair by pair: which pairs go apart."""
    left, apart = set(range(len(strength))), []
    while len(left) > 1:
        pairs = [(abs(strength[i, j]), -i, -j) for i in left for j in left if i < j]
        _, i, j = max(pairs)
        apart.append((-i, -j))
        left -= {-i, -j}
    return apart


@pytest.mark.parametrize("k", [2, 3, 5])
def test_the_columns_of_the_strongest_relations_go_apart(k):
    strength = matrix(10, np.random.default_rng(k))
    part = partition.correlated_partition(strength, k)
    assert all(part[i] != part[j] for i, j in by_hand(strength))


def test_twins_cross_the_parts_and_the_ratio_says_so():
    strength = np.eye(4)
    for i, j, r in ((0, 1, 0.9), (2, 3, -0.8), (0, 2, 0.3)):
        strength[i, j] = strength[j, i] = r
    part = partition.correlated_partition(strength, 2)
    assert part[0] != part[1]
    assert part[2] != part[3]
    assert part[0] != part[2], "what is left over goes where it leaves less inside"
    assert partition.exterior_to_interior(strength, part) == float("inf")
    together = np.array([0, 0, 1, 1])
    assert partition.exterior_to_interior(strength, together) == pytest.approx(0.3 / np.hypot(0.9, 0.8))
    strength[0, 1] = strength[1, 0] = np.nan
    assert partition.exterior_to_interior(strength, together) == pytest.approx(0.3 / 0.8)
