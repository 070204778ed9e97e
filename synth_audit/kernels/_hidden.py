"""Which reference rows a query does not look at: its own row, or all rows of one person."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from synth_audit.core.arrays import Integers, Positions


class Hidden(Protocol):
    """Rows of a reference that are out of sight of each of n queries."""

    def inside(self, rows: slice | Positions, start: int, stop: int) -> tuple[Positions, Positions]:
        """Pairs of one of some queries and a row from ``start`` to ``stop``, both counted from the first."""

    def of(self, block: slice) -> Hidden:
        """The same for some of the queries."""

    def under(self, order: Positions) -> Hidden:
        """The same, the reference put into another order."""


@dataclass(frozen=True, eq=False)
class OwnRow:
    """One row for each query, at this place of the reference; shape (n,)."""

    place: Positions

    def inside(self, rows: slice | Positions, start: int, stop: int) -> tuple[Positions, Positions]:
        place = self.place[rows]
        here = np.flatnonzero((place >= start) & (place < stop))
        return here, place[here] - start

    def of(self, block: slice) -> OwnRow:
        return OwnRow(self.place[block])

    def under(self, order: Positions) -> OwnRow:
        return OwnRow(np.argsort(order)[self.place])


@dataclass(frozen=True, eq=False)
class SamePerson:
    """The rows of one person for each query.

    Attributes:
        asked: number of that person, shape (n,). whose: number of the person of each row, shape (m,).
    """

    asked: Integers
    whose: Integers

    def inside(self, rows: slice | Positions, start: int, stop: int) -> tuple[Positions, Positions]:
        query, row = np.nonzero(self.asked[rows][:, None] == self.whose[start:stop])
        return query, row

    def of(self, block: slice) -> SamePerson:
        return SamePerson(self.asked[block], self.whose)

    def under(self, order: Positions) -> SamePerson:
        return SamePerson(self.asked, self.whose[order])
