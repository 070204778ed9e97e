"""Whom a record is compared with: rows of train that are other people's, for train as for strangers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from synth_audit.core.arrays import Integers, Positions
from synth_audit.core.entities import key_columns, persons
from synth_audit.core.table import Table
from synth_audit.kernels.gower import Mixed, nearest, nearest_but, nearest_other
from synth_audit.kernels.neighbours import Nearest


@dataclass(frozen=True, eq=False)
class Fellows:
    """The rows of a table as fellows of one another, and of strangers.

    Somebody's other rows are no fellows: who comes three times resembles nobody as much as oneself, and a
    copy of one visit would seem far beside the other two.

    Attributes:
        whose: number of the person of each row, shape (n,); None where every row is a person.
    """

    whose: Integers | None

    @classmethod
    def of(cls, table: Table, rows: Positions | None = None) -> Self:
        """Those among some rows of a table, or all."""
        if not key_columns(table.schema):
            return cls(None)
        whose = persons(table)
        return cls(whose if rows is None else whose[rows])

    def of_members(self, table: Mixed, rows: Positions) -> Nearest:
        """The nearest fellow of rows of the table; infinitely far where there is none."""
        return nearest_other(table, rows, self.whose)

    def of_strangers(
        self, queries: Mixed, table: Mixed, one: int | None, rng: np.random.Generator
    ) -> Nearest:
        """The nearest row of each query, of as many as a row of the table has fellows.

        Args:
            one: position of a row that nobody looks at where every row is a person. Elsewhere each query does
                without the rows of a person of its own, drawn by a row of theirs.
        """
        if self.whose is None:
            return nearest(queries, table, but=one)
        without = self.whose[rng.integers(len(table), size=len(queries))]
        return nearest_but(queries, table, without, self.whose)


def most_independent(table: Table, rows: Positions) -> float:
    """How many draws some rows are worth at most: rows of one person may all say the same."""
    return float(len(np.unique(persons(table.take(rows))))) if key_columns(table.schema) else np.inf
