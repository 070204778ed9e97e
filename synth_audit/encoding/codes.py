"""Columns of several tables as codes that they share, and rows as groups of equal ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from synth_audit.core.arrays import Codes, Codes32, Positions
from synth_audit.core.schema import Column
from synth_audit.core.table import Table
from synth_audit.kernels.coordinates import MISSING
from synth_audit.kernels.labels import smallest_type

Scalar = TypeVar("Scalar", bound=np.generic)

Wanted: TypeAlias = Sequence[Positions | None]
"""Positions of the rows of each table that are wanted; None for all of them."""


def codes(tables: Sequence[Table], column: Column) -> list[Codes]:
    """One column of several tables as shared integer codes: equal values get equal codes.

    Numbers are numbered in their order; labels by how often all the tables together hold them, the most
    frequent first, and in the order of their texts where that is equal.

    Returns:
        One array of shape (n,) per table; values in 0 … k−1, and :data:`MISSING`.
    """
    return column.kind.codes([table.column(column.name) for table in tables])


def anchored_codes(tables: Sequence[Table], column: Column) -> list[Codes]:
    """Codes that are the same beside whatever other tables: those of the first table's values are its own.

    Returns:
        One array per table. The k values of the first table are numbered as :func:`codes` numbers them there
        alone; what others hold besides has codes from k on, and :data:`MISSING` stays.
    """
    joint, [alone] = codes(tables, column), codes(tables[:1], column)
    known = alone != MISSING
    place = np.full(2 + max(int(part.max(initial=MISSING)) for part in joint), MISSING, dtype=np.int64)
    place[joint[0][known]] = alone[known]
    others = np.flatnonzero(place[:-1] == MISSING)
    place[others] = 1 + alone.max(initial=MISSING) + np.arange(len(others))
    return [place[part] for part in joint]


def wanted_codes(joint: Sequence[Codes], rows: Wanted) -> list[npt.NDArray[Any]]:
    """Codes of some rows of each table, in the smallest type that holds those of all."""
    small = np.result_type(*map(smallest_type, joint))
    return [(c if some is None else c[some]).astype(small) for c, some in zip(joint, rows, strict=True)]


def row_groups(tables: Sequence[Table], columns: Sequence[Column]) -> list[Codes]:
    """Number rows so that two rows share a number exactly when they agree in every column.

    Missing agrees with missing. Numbers are compared as float64, so integers beyond 2**53 may be
    taken for equal: an audit then errs to the safe side.

    Returns:
        One array of shape (n,) per table.
    """
    parts = (np.concatenate(codes(tables, column)) + 1 for column in columns)  # one at a time in memory
    return split_rows(_agreeing(parts, sum(t.n_rows for t in tables)), tables)


def row_groups_but_one(
    tables: Sequence[Table], columns: Sequence[Column]
) -> Iterator[tuple[Column, list[Codes]]]:
    """For each column, :func:`row_groups` on all the others.

    Halving keeps it at about log2(d) times the work of one grouping instead of d times.
    """
    # Half the width: as many numbers as all tables have rows, for each column at a time.
    parts = [(np.concatenate(codes(tables, column)) + 1).astype(np.int32) for column in columns]
    start = np.zeros(sum(t.n_rows for t in tables), dtype=np.int64)
    for position, groups in _without_each(parts, 0, start):
        yield columns[position], split_rows(groups, tables)


def _without_each(parts: Sequence[Codes | Codes32], first: int, others: Codes) -> Iterator[tuple[int, Codes]]:
    """Position of each part, counted from ``first``, with the groups by all other parts and ``others``."""
    if len(parts) == 1:
        yield first, others
        return
    half = len(parts) // 2
    left, right = parts[:half], parts[half:]
    yield from _without_each(left, first, _agreeing([others, *right], len(others)))
    yield from _without_each(right, first + half, _agreeing([others, *left], len(others)))


def _agreeing(parts: Iterable[Codes | Codes32], n: int) -> Codes:
    """Numbers that rows share exactly when they agree in every part, shape (n,)."""
    total = np.zeros(n, dtype=np.int64)
    for part in parts:
        total = _factorized(total * (part.max(initial=0) + 1) + part)
    return total


def _factorized(values: Codes) -> Codes:
    """Equal values as equal numbers 0 … k−1 in order of appearance, shape (n,)."""
    from pandas import factorize  # here, since a code location must not load it

    numbers, _ = factorize(values)
    return numbers.astype(np.int64)


def split_rows(joint: npt.NDArray[Scalar], tables: Sequence[Table]) -> list[npt.NDArray[Scalar]]:
    """Rows of several tables, one below the other, as one array per table."""
    ends = np.cumsum([t.n_rows for t in tables])[:-1]
    return list(np.split(joint, ends))
