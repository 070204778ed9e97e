"""The look at all pairs of columns: counts of a slow twin, and the pairs that were copied together."""

from __future__ import annotations

import numpy as np
import pytest

from synth_audit.audits.privacy._known_columns import _Windows, co_agreement, grown, strongest_pairs

STEP = 1e4


def test_near_rows_are_those_of_a_slow_twin():
    rng = np.random.default_rng(0)
    m = 200
    release = np.column_stack([rng.normal(size=m), rng.integers(0, 5, m), rng.integers(0, 3, m) * STEP])
    people = np.column_stack([rng.normal(size=9), rng.integers(-1, 7, 9), rng.integers(0, 4, 9) * STEP])
    windows = _Windows.of(zip(release.T, people.T, strict=True), STEP)
    for i, person in enumerate(people):
        near = np.empty((m, 3), bool)
        for j in range(3):
            ordered = np.sort(release[:, j])
            low = max(np.searchsorted(ordered, person[j]) - 2, 0)  # two values on either side: 2 % in all
            high = min(np.searchsorted(ordered, person[j], "right") + 1, m - 1)
            inside = (release[:, j] >= ordered[low]) & (release[:, j] <= ordered[high])
            near[:, j] = inside & (np.abs(release[:, j] - person[j]) < STEP / 2)
        counts = near.sum(axis=0)
        expected = np.minimum(
            (near.astype(float).T @ near) / np.sqrt(np.maximum(np.outer(counts, counts) / m, 1e-300)), 10
        )
        assert windows.agreement(i) == pytest.approx(np.where(np.outer(counts, counts) > 0, expected, 0))


def test_pairs_that_were_copied_together_stand_out():
    rng = np.random.default_rng(1)
    train, control, release = (rng.normal(size=(400, 12)) for _ in range(3))
    release[:, [2, 5, 7]] = train[rng.permutation(400)][:, [2, 5, 7]]
    member = np.arange(800) < 400
    apart = co_agreement(zip(release.T, np.vstack([train, control]).T, strict=True), member, STEP)
    assert set(strongest_pairs(apart, 3)) == {(2, 5), (2, 7), (5, 7)}
    assert apart[2, 5] > 6
    assert grown(apart, (2, 5), 3) == (2, 5, 7)
    assert len(set(grown(apart, (2, 5), 5))) == 5
    others = np.delete(np.delete(apart, [2, 5, 7], 0), [2, 5, 7], 1)[np.triu_indices(9, 1)]
    assert np.abs(others).max() < 4.5
    assert abs(others.mean()) < 1
