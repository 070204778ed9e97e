"""Which columns are near together in a person and a row, whatever the others are.

Who copies a few values of people, none of them exactly, leaves rows that are near in all of these columns at
once. Chance makes many pairs near in two of them; among those the other copied columns are near more often
than among pairs of people that are near in the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from synth_audit.core.arrays import Bools, Floats, Positions
from synth_audit.kernels.lag_spikes import MISSING, LagColumn, LagSpike, different
from synth_audit.kernels.lagged_links import NOT_HELD, Lag, Shift, joined, mean_told, most_telling

_MOST_PAIRS, _FEWEST = 40_000, 20
"""Pairs near in two columns that are looked at, and fewer that are too few."""

_LIKELY, _SURELY = 1.0, 3.0
"""Standard errors by which a column goes with two others: to weigh pairs by it, and to be one of them."""

_FAR, _FARTHER = 2**29, 2**60
"""Steps that stand for none, near no others: where columns hold few steps, and where they hold more."""

_SHARES = (0.1, 0.03, 0.01)
"""Shares of the pairs of people that weigh as much as those in which a column is looked at, one by one."""

_ENOUGH = 100
"""Pairs of people of which such a share must be so many, but for the first."""


Steps = npt.NDArray[Any]
"""Steps in the smallest type that holds them."""


class NearColumns:
    """Columns that go with two in which rows are near people, wherever they are.

    Args:
        columns: no lag but 0 is possible in them. among: the same with people in place of the release.
    """

    def __init__(self, columns: Sequence[LagColumn], among: Sequence[LagColumn]) -> None:
        self._columns = columns
        self._beside = [_Beside.of(x) for x in (columns, among)]
        self._told = [mean_told(c, 0) for c in columns]

    def with_two(self, spike: LagSpike) -> Shift | None:
        """The columns that go with two; None where hardly any row is near anybody in these.

        Pairs that are near in the two columns are weighed by the other columns that go with them, and each
        of those is counted again among the pairs that weigh most without it, three times, of ever fewer
        pairs.
        """
        columns = self._columns
        first, second = (columns[k] for k in spike.columns)
        others = [k for k, c in enumerate(columns) if different(c, first) and different(c, second)]
        if not others:
            return None
        found, usual = (x.near(spike.columns, others) for x in self._beside)
        if min(found.n, usual.n) < _FEWEST:
            return None
        sure = _oftener(found, usual, None, None)
        for share in (x for x in _SHARES if x == _SHARES[0] or x * usual.n >= _ENOUGH):
            going = sure > _LIKELY
            weights = [x.weights(going) for x in (found, usual)]
            limits = weights[1].limits(1 - share)
            sure = _oftener(found, usual, *(x.reach(limits) for x in weights))
        chosen = [*spike.columns, *(k for k, z in zip(others, sure, strict=True) if z > _SURELY)]
        lags = [Lag(self._told[k], k, 0) for k in chosen]
        return most_telling(columns, lags, float(np.sqrt((sure[sure > _SURELY] ** 2).sum())))


class _Beside(NamedTuple):
    """People and rows in all columns.

    Attributes:
        people, release: steps that are near nothing where there are none, shape (d, n) and (d, m).
        known: which of them are there; None where all are.
    """

    columns: Sequence[LagColumn]
    people: Steps
    release: Steps
    known: tuple[Bools, Bools] | None

    @classmethod
    def of(cls, columns: Sequence[LagColumn]) -> _Beside:
        people, release = (np.array(of) for of in zip(*((c.people, c.release) for c in columns), strict=True))
        known = people != MISSING, release != MISSING
        largest = max(
            int(np.abs(x[there]).max(initial=0)) for x, there in zip((people, release), known, strict=True)
        )
        kind, nowhere = (np.int32, _FAR) if largest < _FAR // 2 else (np.int64, _FARTHER)
        for steps, there, where in zip((people, release), known, (-nowhere, nowhere), strict=True):
            steps[~there] = where
        every = all(x.all() for x in known)
        return cls(columns, people.astype(kind), release.astype(kind), None if every else known)

    def near(self, pair: tuple[int, int], others: Sequence[int]) -> _Pairs:
        """Pairs near in two columns, beside others."""
        people, rows = joined(self.columns, [(k, 0) for k in pair], whole=True, near=True, most=_MOST_PAIRS)
        kept = self._held(pair[0], people, rows) & self._held(pair[1], people, rows)
        if self.columns[0].release is self.columns[0].people:
            kept &= people != rows
        people, rows = people[kept], rows[kept]
        held, known = np.empty((2, len(others), len(people)), np.bool_)
        told = np.empty(held.shape)
        for i, k in enumerate(others):
            held[i] = self._held(k, people, rows)
            known[i] = True if self.known is None else self.known[0][k][people] & self.known[1][k][rows]
            told[i] = np.where(held[i], self.columns[k].told_by_row[rows], -NOT_HELD * known[i])
        return _Pairs(held, known, told)

    def _held(self, k: int, people: Positions, rows: Positions) -> Bools:
        held: Bools = np.abs(self.release[k][rows] - self.people[k][people]) <= self.columns[k].near
        return held


class _Pairs(NamedTuple):
    """Pairs of a person and a row beside some columns.

    Attributes:
        held: whether they are near in each; known: whether both have a value; told: how much being near
            tells, less than nothing where they are not; shape (columns, pairs).
    """

    held: Bools
    known: Bools
    told: Floats

    @property
    def n(self) -> int:
        """How many pairs."""
        return len(self.held.T)

    def weights(self, some: Bools) -> _Weights:
        """What some columns tell together, each left out in turn."""
        told = self.told[some]
        total = told.sum(axis=0)
        return _Weights(some, total, total - told)


class _Weights(NamedTuple):
    """What pairs weigh by some columns, each left out in turn.

    Attributes:
        some: which columns. total: by all of them, shape (pairs,). without: each, shape (some, pairs).
    """

    some: Bools
    total: Floats
    without: Floats

    def limits(self, share: float) -> Floats:
        """A quantile of the weights without each column, shape (columns,)."""
        found = np.full(len(self.some), np.quantile(self.total, share))
        found[self.some] = np.quantile(self.without, share, axis=1)
        return found

    def reach(self, limits: Floats) -> Bools:
        """Which pairs weigh as much without each column, shape (columns, pairs)."""
        found = np.empty((len(self.some), len(self.total)), np.bool_)
        found[~self.some] = self.total >= limits[~self.some, None]
        found[self.some] = self.without >= limits[self.some, None]
        return found


def _oftener(found: _Pairs, usual: _Pairs, some: Bools | None, others: Bools | None) -> Floats:
    """Standard errors by which columns are near oftener than usual, shape (columns,).

    Args:
        some, others: which pairs of either count for each column, shape (columns, pairs); all if left out.
    """
    (a, n), (b, m) = (
        [np.count_nonzero(y if of is None else y & of, axis=1) for y in (x.held, x.known)]
        for x, of in ((found, some), (usual, others))
    )
    n, m = np.maximum(1, n), np.maximum(1, m)
    share = (a + b + 1) / (n + m + 2)
    errors: Floats = (a / n - b / m) / np.sqrt(share * (1 - share) * (1 / n + 1 / m))
    return errors
