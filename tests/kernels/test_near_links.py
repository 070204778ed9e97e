"""Columns near together in people and rows: which are found, and that columns that go together are not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from synth_audit.kernels.lag_spikes import LagColumn, LagSpike, near_spikes
from synth_audit.kernels.lagged_links import linked_bits
from synth_audit.kernels.near_links import NearColumns

N, WIDE, KEPT = 500, 40, {0, 2, 3, 5, 6}


@pytest.fixture
def rng():
    return np.random.default_rng(4)


def beside(people, release):
    """Numbers near within a step, the last column a label of two."""
    last = people.shape[1] - 1
    return [
        LagColumn(a, b, 64, near=int(i < last), fixed=True, sources=(i, i))
        for i, (a, b) in enumerate(zip(people.T, release.T, strict=True))
    ]


def planted(rng, share):
    people, release = rng.integers(0, WIDE, (2, N, 7))
    people[:, -1], release[:, -1] = rng.integers(0, 2, (2, N))
    n, kept = round(share * N), sorted(KEPT)
    release[:n, kept] = people[:n, kept] + rng.integers(-1, 2, (n, 5)) * (np.array(kept) < 6)
    return beside(people, release)


def surest(columns):
    near = NearColumns(columns, [replace(c, release=c.people) for c in columns])
    found = [near.with_two(spike) for spike in near_spikes(columns)]
    return max((x for x in found if x is not None), key=lambda x: x.score)


def test_columns_near_in_a_tenth_are_found_and_lead_to_people(rng):
    columns = planted(rng, 0.1)
    shift = surest(columns)
    assert {x.column for x in shift.lags} == KEPT
    bits = linked_bits(columns, shift, 12.0, near=True)
    assert (bits[:50] > 12).mean() > 0.8
    assert (bits[50:] > 12).mean() < 0.05


def test_exactly_equal_values_alone_lead_to_fewer(rng):
    columns = planted(rng, 0.1)
    shift = surest(columns)
    assert (linked_bits(columns, shift, 12.0)[:50] > 12).mean() < (
        linked_bits(columns, shift, 12.0, near=True)[:50] > 12
    ).mean()


def test_columns_that_go_together_in_everybody_are_no_set(rng):
    people, release = np.cumsum(rng.integers(0, 9, (2, N, 6)), axis=2)
    assert surest(beside(people, release)).score < surest(planted(rng, 0.1)).score / 2


def test_too_few_pairs_are_followed_nowhere(rng):
    columns = [replace(c, people=c.people[:3]) for c in planted(rng, 0.1)]
    among = [replace(c, release=c.people) for c in columns]
    assert NearColumns(columns, among).with_two(LagSpike(1.0, (0, 1), (0, 0))) is None
