"""Uniques and attributions by keys, against loops over the definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth_audit.audits.published.disclosure import disclosed_target, replicated_unique, unique_rows


@st.composite
def tables(draw):
    """Keys and targets of two tables."""

    def column(n, most):
        return np.array(draw(st.lists(st.integers(0, most), min_size=n, max_size=n)))

    sizes = draw(st.integers(1, 12)), draw(st.integers(1, 12))
    return [(column(n, 4), column(n, 2)) for n in sizes]


@settings(max_examples=60, deadline=None)
@given(pair=tables())
def test_counts_are_those_of_loops(pair):
    (keys, targets), (made, made_targets) = pair
    real, other = keys.tolist(), made.tolist()
    unique = [real.count(q) == 1 for q in real]
    assert unique_rows(keys).tolist() == unique
    replicated = [u and other.count(q) == 1 for u, q in zip(unique, real, strict=True)]
    assert replicated_unique(keys, keys, made, inside=True).tolist() == replicated
    strangers = [real.count(q) == 0 and other.count(q) == 1 for q in other]
    assert replicated_unique(made, keys, made, inside=False).tolist() == strangers
    found = [{t for k, t in zip(other, made_targets, strict=True) if k == q} for q in real]
    told = [values == {t} for values, t in zip(found, targets, strict=True)]
    assert disclosed_target(keys, targets, made, made_targets).tolist() == told


def test_published_shares_of_a_small_example():
    """Two of four people are unique by key, one of them in the release too; of three who are found two are
    told, one of them rightly."""
    keys, targets = np.array([0, 1, 2, 2]), np.array([0, 1, 0, 0])
    made, made_targets = np.array([0, 2, 2, 2, 3]), np.array([0, 0, 0, 1, 1])
    assert unique_rows(keys).mean() == 0.5
    assert replicated_unique(keys, keys, made, inside=True).mean() == 0.25
    assert disclosed_target(keys, targets, made, made_targets).mean() == 0.25
    assert disclosed_target(keys, targets, keys, targets).mean() == 1


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_stranger_is_asked_about_as_if_added(share):
    """Whoever is drawn from the same people has the number of train, whether the release is a copy of others
    or of nobody."""
    rng = np.random.default_rng(0)
    train, other, made = (rng.integers(0, 3000, n) for n in (2000, 2000, 2000))
    made = np.where(rng.random(2000) < share, made, 3000 + np.arange(2000))
    inside = replicated_unique(train, train, made, inside=True).mean()
    outside = replicated_unique(other, train, made, inside=False).mean()
    assert inside == pytest.approx(outside, abs=0.03)
    assert (inside > 0.1) == (share == 1)
