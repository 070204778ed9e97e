"""Rows of several tables as groups of equal ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from synth_audit.core.arrays import Codes, Positions
from synth_audit.core.schema import Column
from synth_audit.core.table import Table
from synth_audit.encoding.codes import codes
from synth_audit.kernels.labels import smallest_type

Scalar = TypeVar("Scalar", bound=np.generic)

_FEW = 0.125
"""Share of all rows up to which a column is coded for the rows at hand alone."""

_WORTHWHILE = 0.75
"""Share of the rows at hand that may stay when those that agree with no other are dropped."""


def row_groups(tables: Sequence[Table], columns: Sequence[Column]) -> list[Codes]:
    """Number rows so that two rows share a number exactly when they agree in every column.

    Missing agrees with missing. Numbers are compared as float64, so integers beyond 2**53 may be
    taken for equal: an audit then errs to the safe side.

    Returns:
        One array of shape (n,) per table; numbers 0 … k−1 in order of appearance.
    """
    coded = _CodedColumns(tables, keeps=False)
    found = coded.every
    for column in columns:
        found = found.told_by(coded.of(column, found.rows))
    own = np.arange(len(coded)) + len(coded)  # a row that agrees with no other is alone in its group
    own[found.rows] = found.groups
    return split_rows(_factorized(own), tables)


def row_groups_but_one(
    tables: Sequence[Table], columns: Sequence[Column]
) -> Iterator[tuple[Column, list[Codes]]]:
    """For each column, the groups of :func:`row_groups` on all the others.

    Halving keeps it at about log2(d) times the work of one grouping instead of d times, and rows that agree
    with no other in some columns are not looked at again.

    Yields:
        The column, and for each table the groups of its rows in their order; rows of any table which agree
        with no other row may be left out.
    """
    coded = _CodedColumns(tables)
    for column, found in _without_each(coded, columns, coded.every):
        yield column, found.by_table(tables)


@dataclass(frozen=True, eq=False)
class _Alike:
    """Rows that agree with another one in the columns compared so far, and perhaps some that do not.

    Attributes:
        rows: their positions among the rows of all tables, ascending. groups: numbers that rows which agree
            share, from 0 on; shape (n,) each.
    """

    rows: Positions
    groups: Codes

    def told_by(self, part: npt.NDArray[Any]) -> _Alike:
        """By one more column, given its codes from 0 on, shape (n,)."""
        groups = _factorized(self.groups * (int(part.max(initial=0)) + 1) + part)
        again = np.bincount(groups)[groups] > 1
        if again.sum() > _WORTHWHILE * len(again):
            return _Alike(self.rows, groups)
        return _Alike(self.rows[again], _factorized(groups[again]))

    def by_table(self, tables: Sequence[Table]) -> list[Codes]:
        """The groups of the rows of each table."""
        ends = np.cumsum([t.n_rows for t in tables])[:-1]
        return list(np.split(self.groups, np.searchsorted(self.rows, ends)))


@dataclass(frozen=True, eq=False)
class _CodedColumns:
    """Columns of several tables as codes that these share.

    Attributes:
        keeps: whether the codes of all rows are kept for the next who asks, in the smallest type that holds
            them.
    """

    tables: Sequence[Table]
    keeps: bool = True
    known: dict[str, npt.NDArray[Any]] = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(t.n_rows for t in self.tables)

    @property
    def every(self) -> _Alike:
        """All rows, of which nothing is compared yet."""
        return _Alike(np.arange(len(self)), np.zeros(len(self), dtype=np.int64))

    def of(self, column: Column, rows: Positions) -> npt.NDArray[Any]:
        """Codes of a column from 0 on, at least as many rows as asked sharing them, shape of ``rows``."""
        if (known := self.known.get(column.name)) is not None:
            return known[rows]
        if len(rows) <= _FEW * len(self):
            return np.concatenate(column.kind.codes(self._some(column, rows))) + 1
        joint = np.concatenate(codes(self.tables, column)) + 1
        if self.keeps:
            self.known[column.name] = joint = joint.astype(smallest_type(joint))
        return joint[rows]

    def _some(self, column: Column, rows: Positions) -> list[pa.ChunkedArray]:
        ends = np.cumsum([t.n_rows for t in self.tables])
        parts = np.split(rows, np.searchsorted(rows, ends[:-1]))
        return [
            t.column(column.name).take(pa.array(part - end + t.n_rows))
            for t, part, end in zip(self.tables, parts, ends, strict=True)
        ]


def _without_each(
    coded: _CodedColumns, columns: Sequence[Column], others: _Alike
) -> Iterator[tuple[Column, _Alike]]:
    """Each column with the groups by all other columns and those that ``others`` were told by."""
    if len(columns) == 1:
        yield columns[0], others
        return
    half = len(columns) // 2
    for left, right in ((columns[:half], columns[half:]), (columns[half:], columns[:half])):
        found = others
        for column in right:
            found = found.told_by(coded.of(column, found.rows))
        yield from _without_each(coded, left, found)


def _factorized(values: Codes) -> Codes:
    """Equal values as equal numbers 0 … k−1 in order of appearance, shape (n,)."""
    from pandas import factorize  # here, since a code location must not load it

    numbers, _ = factorize(values)
    return numbers.astype(np.int64)


def split_rows(joint: npt.NDArray[Scalar], tables: Sequence[Table]) -> list[npt.NDArray[Scalar]]:
    """Rows of several tables, one below the other, as one array per table."""
    ends = np.cumsum([t.n_rows for t in tables])[:-1]
    return list(np.split(joint, ends))
