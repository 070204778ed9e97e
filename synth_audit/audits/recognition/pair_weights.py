"""Weights of pairs of records and rows, summed over columns by blocks that a processor's cache holds.

Columns that come in few combinations of cells form a group, whose weights take one look-up. Four weightings
travel in one pass, as 16-bit steps in one machine word.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from synth_audit.arrays import Positions
from synth_audit.audits.recognition.coded_cells import Cells, CodedCells

WEIGHTINGS = 4
"""Weightings in one pass: four times 16 bits are a machine word."""

RECORDS, ROWS = 64, 1024
"""Records and rows that are weighed at once: the weights, half a MiB, stay in a processor's cache."""

_PLACE = 32
"""Bits that name a row, below those of its weight."""

_COLUMN = 48
"""Bits of a weight and its row, below those that name a column while several are sorted at once."""

_CHUNKS = 16
"""Chunks of rows for each weight that is kept: few rows of the others are looked at."""

_FEWER, _COMBINATIONS = 8, 2048
"""Columns form a group while it has so many times fewer combinations than rows, so that it costs little, and
so many at most, whose weights stay in the cache as well."""

Packed = npt.NDArray[np.uint64]


def placed(weights: npt.NDArray[np.uint16], place: Positions) -> Packed:
    """Weights with their rows, ``weight << 32 | row``."""
    return (weights.astype(np.uint64) << np.uint64(_PLACE)) | place.astype(np.uint64)


def rows_of(keyed: Packed) -> Positions:
    """The rows of weights that have one."""
    found: Positions = keyed.astype(np.intp) & (2**_PLACE - 1)
    return found


def weights_of(keyed: Packed) -> npt.NDArray[np.uint16]:
    """The weights alone."""
    return (keyed >> np.uint64(_PLACE)).astype(np.uint16)


def at_most_last(weights: npt.NDArray[Any], kept: int) -> npt.NDArray[Any]:
    """A weight that so many in each column reach, not much below the last of the largest so many.

    Rows are cut into chunks. As many chunks as wanted have a largest weight that reaches the one returned.
    Neighbours are in different chunks, so that the last so many may all be the largest.

    Args:
        weights: shape (rows, columns), with at least so many rows.
    """
    size = max(1, len(weights) // (_CHUNKS * kept))
    chunks = weights[: len(weights) // size * size].reshape(size, -1, weights.shape[1]).max(axis=0)
    found: npt.NDArray[Any] = np.partition(chunks, len(chunks) - kept, axis=0)[len(chunks) - kept]
    return found


def best_rows(
    columns: Sequence[CodedCells],
    packed: Sequence[Packed],
    most: int,
    person: Positions | None = None,
    of_rows: Positions | None = None,
) -> Packed:
    """The rows that weigh most for each record, of equal ones the last, ``weight << 32 | row``, ascending.

    Args:
        most: at most the number of rows.
        person, of_rows: the person of each record and row, given where nobody is compared with themselves.

    Returns:
        shape (weightings, records, most).
    """
    found = np.zeros((len(columns[0].people), WEIGHTINGS, most), np.uint64)
    for records, blocks in weighed(columns, packed):
        best = found[records].reshape(-1, most)
        for rows, weights in blocks:
            if person is not None and of_rows is not None:
                weights[of_rows[rows, None] == person[records]] = 0
            lanes = weights.view(np.uint16)
            first = rows.stop == len(columns[0].release)
            some = np.flatnonzero(first | (lanes.max(axis=0) > weights_of(best[:, 0])))
            if len(some):
                best[some] = _larger(best[some], lanes.take(some, axis=1), rows.start)
    return np.ascontiguousarray(np.moveaxis(found, 1, 0))


def _larger(best: Packed, weights: npt.NDArray[np.uint16], first: int) -> Packed:
    """The largest weights so far, once further rows were weighed.

    Args:
        best: ``weight << 32 | row``, 0 where there are fewer, shape (columns, kept).
        weights: of the rows from the first one on, shape (rows, columns).

    Returns:
        As ``best``, ascending.
    """
    columns, kept = best.shape
    row = np.arange(first, first + len(weights))[:, None]
    able = np.ones(weights.shape, np.bool_)
    if len(weights) > kept:
        able = weights >= at_most_last(weights, kept)
        if np.count_nonzero(able) > able.size // _CHUNKS:  # many are equal, but no two with their rows
            keyed = placed(weights, row)
            able = keyed >= at_most_last(keyed, kept)
    at, column = np.divmod(np.flatnonzero(able), columns)
    own = np.arange(columns, dtype=np.uint64) << np.uint64(_COLUMN)
    new = placed(weights[at, column], row[at, 0]) | own[column]
    both = np.sort(np.concatenate([(best | own[:, None]).ravel(), new]))
    last = np.append(np.searchsorted(both, own[1:]), len(both))
    larger: Packed = both[last[:, None] - np.arange(kept, 0, -1)] ^ own[:, None]
    return larger


def weighed(
    columns: Sequence[CodedCells], tables: Sequence[npt.NDArray[Any]]
) -> Iterator[tuple[slice, Iterator[tuple[slice, npt.NDArray[Any]]]]]:
    """Weights of all pairs: for each block of records, blocks of rows from the last to the first.

    Args:
        tables: what two cells of each column weigh, a person's cell first, shape (k + 1, k + 1).

    Yields:
        Records, and their rows with the weights of the pairs, shape (rows, records), until the next rows.
    """
    n, groups = len(columns[0].people), _grouped([c.release for c in columns])
    for start in range(0, n, RECORDS):
        records = slice(start, min(start + RECORDS, n))
        of_people = [t[c.people[records]].T for c, t in zip(columns, tables, strict=True)]
        weights = [np.ascontiguousarray(sum(of_people[j][cells] for j, cells in g.cells)) for g in groups]
        yield records, _of_rows(weights, groups)


def _of_rows(
    weights: Sequence[npt.NDArray[Any]], groups: Sequence[_Group]
) -> Iterator[tuple[slice, npt.NDArray[Any]]]:
    """Blocks of all rows with their weights for some records, see :func:`weighed`.

    Args:
        weights: of each group's combinations, shape (combinations, records).
    """
    m = len(groups[0].rows)
    total, more = np.empty((2, min(ROWS, m), weights[0].shape[1]), weights[0].dtype)
    for stop in range(m, 0, -ROWS):
        rows = slice(max(0, stop - ROWS), stop)
        some, added = (x[: stop - rows.start] for x in (total, more))
        for k, (of_group, group) in enumerate(zip(weights, groups, strict=True)):
            into = added if k else some
            np.take(of_group, group.rows[rows].astype(np.intp), axis=0, out=into, mode="clip")
            if k:
                some += added
        yield rows, some


@dataclass(frozen=True, eq=False)
class _Group:
    """Columns whose cells come in few combinations, so that one look-up weighs them all.

    Attributes:
        cells: columns, and their cell in each combination.
        rows: combination of each row.
    """

    cells: list[tuple[int, Positions]] = field(repr=False)
    rows: npt.NDArray[np.uint16] = field(repr=False)


def _grouped(cells: Sequence[Cells]) -> list[_Group]:
    """Columns in groups, those of fewest cells first.

    Args:
        cells: of the rows in each column.
    """
    groups: list[_Group] = []
    most = min(len(cells[0]) // _FEWER, _COMBINATIONS)
    for j in sorted(range(len(cells)), key=lambda j: int(cells[j].max())):
        k = int(cells[j].max()) + 1
        if groups:
            both = groups[-1].rows * np.intp(k) + cells[j]
            number = np.bincount(both)
            seen = np.flatnonzero(number)
            if len(seen) <= most:
                number[seen] = np.arange(len(seen))
                before, own = np.divmod(seen, k)
                of_columns = [(i, of[before]) for i, of in groups[-1].cells]
                groups[-1] = _Group([*of_columns, (j, own)], number[both].astype(np.uint16))
                continue
        groups.append(_Group([(j, np.arange(k))], cells[j].astype(np.uint16)))
    return groups
