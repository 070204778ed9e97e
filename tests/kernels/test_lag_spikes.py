"""Common lags: what stands out, what does not, and whom it leads to."""

from __future__ import annotations

import numpy as np
import pytest

from synth_audit.kernels import lagged_links
from synth_audit.kernels.lag_spikes import MISSING, LagColumn, lag_spikes, moved_on
from synth_audit.kernels.lagged_links import followed, linked_bits, moved_by

N = 500


def beside(people, release, size=128, **options):
    columns = zip(people.T, release.T, strict=True)
    return [LagColumn(a, b, size, sources=(i, i), **options) for i, (a, b) in enumerate(columns)]


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def planted(rng, share, lags, wide=90):
    people, release = rng.integers(0, wide, (2, N, len(lags)))
    n = round(share * N)
    release[:n] = people[:n] + lags
    return people, release


def test_common_lags_of_a_tenth_stand_out_and_are_followed(rng):
    lags = (17, -5, 40)
    columns = beside(*planted(rng, 0.1, lags))
    best = max(lag_spikes(columns, 3))
    assert best.score > 4
    assert best.lags == tuple(lags[k] % 128 for k in best.columns)
    shift = followed(columns, best)
    assert {(x.column, x.lag) for x in shift.lags} == set(enumerate(lags))
    bits = linked_bits(columns, shift, 12)
    assert (bits[:50] > 15).all()
    assert (bits[50:] > 15).mean() < 0.02


def test_without_common_lags_nothing_stands_out(rng):
    assert max(lag_spikes(beside(*planted(rng, 0.0, (0, 0, 0))), 3)).score < 5


def test_grids_and_formulas_do_not_stand_out(rng):
    first, second = rng.integers(0, 40, (2, N, 1)) * 3
    columns = beside(np.hstack([first, first // 2]), np.hstack([second, second // 2]))
    assert max(lag_spikes(columns, 3)).score < 5


def test_lags_go_round_where_steps_are_not_whole(rng):
    people, release = planted(rng, 0.2, (95, 60), 100)
    columns = beside(people % 100, release % 100, 100, whole=False)
    assert max(lag_spikes(columns, 2)).lags == (95, 60)
    assert columns[0].holds(np.arange(5), np.arange(5), 95).all()


def test_a_series_that_begins_later(rng):
    people, release = rng.integers(0, 60, (2, N, 8))
    release[:100, 2:] = people[:100, :6] + 4
    score, places, lag = max(moved_on(beside(people, release)))
    assert (places, lag) == (2, 4)
    assert score > 5


def test_missing_and_common_values_lead_nowhere(rng):
    people, release = planted(rng, 0.0, (0, 0))
    people[:, 1] = release[:, 1] = 7
    release[:, 0] = MISSING
    columns = beside(people, release)
    assert list(lag_spikes(columns, 2)) == []
    assert not linked_bits(columns, moved_by(columns), 12).any()


def test_noughts_in_all_columns_lead_to_nobody_and_two_of_a_kind_do(rng):
    """Ten people lack a thing, and so have ten rows; of two others there is one row."""
    people, release = planted(rng, 0.0, (0, 0, 0))
    people[:10], release[:10] = 0, 0
    people[10:12] = release[10] = 77
    columns = beside(people, release)
    bits = linked_bits(columns, moved_by(columns), 12)
    assert (bits[:10] == 12).all()
    assert (bits[10:12] > 15).all()


def test_rows_are_joined_alike_where_keys_are_numbered_anew(rng, monkeypatch):
    columns = beside(*planted(rng, 0.2, (3, 3, 3), wide=1000))
    found = linked_bits(columns, moved_by(columns, 3), 12)
    assert found.any()
    common = beside(*planted(rng, 0.2, (0, 0, 0), wide=6))
    of_common = linked_bits(common, moved_by(common), 5)
    assert of_common.any()
    monkeypatch.setattr(lagged_links, "_LARGEST_PRODUCT", 0)
    monkeypatch.setattr(lagged_links, "_LARGEST_KEY", 0)
    assert (linked_bits(columns, moved_by(columns, 3), 12) == found).all()
    assert (linked_bits(common, moved_by(common), 5) == of_common).all()
