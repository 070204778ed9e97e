"""Which columns are near together in a person and a row, whatever the others are.

Who copies a few values of people, none of them exactly, leaves rows that are near in all of these columns at
once. Chance makes many pairs near in two of them; among those the other copied columns are near more often
than among pairs of people that are near in the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from synth_audit.core.arrays import Bools, Floats
from synth_audit.kernels.lag_spikes import LagColumn, LagSpike, different
from synth_audit.kernels.lagged_links import NOT_HELD, Lag, Shift, joined, mean_told, most_telling

_MOST_PAIRS, _FEWEST = 40_000, 20
"""Pairs near in two columns that are looked at, and fewer that are too few."""

_LIKELY, _SURELY = 1.0, 3.0
"""Standard errors by which a column goes with two others: to weigh pairs by it, and to be one of them."""

_SHARES = (0.1, 0.03, 0.01)
"""Shares of the pairs of people that weigh as much as those in which a column is looked at, one by one."""

_ENOUGH = 100
"""Pairs of people of which such a share must be so many, but for the first."""


def followed_near(columns: Sequence[LagColumn], among: Sequence[LagColumn], spike: LagSpike) -> Shift | None:
    """The columns that go with two; None where hardly any row is near anybody in these.

    Pairs that are near in the two columns are weighed by the other columns that go with them, and each of
    those is counted again among the pairs that weigh most without it, three times, of ever fewer pairs.

    Args:
        columns: no lag but 0 is possible in them. among: the same with people in place of the release.
    """
    first, second = (columns[k] for k in spike.columns)
    others = [k for k, c in enumerate(columns) if different(c, first) and different(c, second)]
    if not others:
        return None
    found, usual = (_Pairs.near(x, spike.columns, others) for x in (columns, among))
    if min(len(found.held), len(usual.held)) < _FEWEST:
        return None
    sure = _oftener(found, usual, *(np.ones_like(x.held) for x in (found, usual)))
    for share in (x for x in _SHARES if x == _SHARES[0] or x * len(usual.held) >= _ENOUGH):
        weights = [x.weights_without_each(sure > _LIKELY) for x in (found, usual)]
        limits = np.quantile(weights[1], 1 - share, axis=0)
        sure = _oftener(found, usual, *(x >= limits for x in weights))
    chosen = [*spike.columns, *(k for k, z in zip(others, sure, strict=True) if z > _SURELY)]
    lags = [Lag(mean_told(columns[k], 0), k, 0) for k in chosen]
    return most_telling(columns, lags, float(np.sqrt((sure[sure > _SURELY] ** 2).sum())))


class _Pairs(NamedTuple):
    """Pairs of a person and a row beside some columns.

    Attributes:
        held: whether they are near in each; known: whether both have a value; told: how much being near
            tells, less than nothing where they are not; shape (pairs, columns).
    """

    held: Bools
    known: Bools
    told: Floats

    @classmethod
    def near(cls, columns: Sequence[LagColumn], pair: tuple[int, int], others: Sequence[int]) -> _Pairs:
        """Those near in two columns, beside others."""
        at_0 = [(k, 0) for k in pair]
        people, rows = joined(columns, at_0, whole=True, near=True, most=_MOST_PAIRS)
        kept = columns[pair[0]].holds(people, rows, 0) & columns[pair[1]].holds(people, rows, 0)
        if columns[0].release is columns[0].people:
            kept &= people != rows
        people, rows = people[kept], rows[kept]
        held = np.column_stack([columns[k].holds(people, rows, 0) for k in others])
        known = np.column_stack([columns[k].apart(people, rows)[1] for k in others])
        told = np.column_stack([columns[k].told(rows) for k in others])
        return cls(held, known, np.where(held, told, -NOT_HELD * known))

    def weights_without_each(self, some: Bools) -> Floats:
        """What some columns tell together, each left out in turn, shape (pairs, columns)."""
        weights: Floats = self.told[:, some].sum(axis=1, keepdims=True) - np.where(some, self.told, 0.0)
        return weights


def _oftener(found: _Pairs, usual: _Pairs, some: Bools, others: Bools) -> Floats:
    """Standard errors by which columns are near oftener than usual, shape (columns,).

    Args:
        some, others: which pairs of either count for each column, shape (pairs, columns).
    """
    n, m = (np.maximum(1, (x.known & of).sum(axis=0)) for x, of in ((found, some), (usual, others)))
    a, b = ((x.held & of).sum(axis=0) for x, of in ((found, some), (usual, others)))
    share = (a + b + 1) / (n + m + 2)
    errors: Floats = (a / n - b / m) / np.sqrt(share * (1 - share) * (1 / n + 1 / m))
    return errors
