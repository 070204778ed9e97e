"""A grid that leaves out most rows of a large reference before they are searched."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from synth_audit.arrays import Integers, Positions

_CELLS = 2**22
"""Cells of a grid, a byte each: a thousand for each of 4,000 queries, and a processor's cache holds them."""

_BLOCK = 2**16
"""Rows whose cells are looked up at a time."""


def reachable(columns: Sequence[npt.NDArray[Any]], low: Integers, high: Integers) -> Positions:
    """Reference rows whose codes may lie between those of some query in every column, ascending.

    No such row is left out. Some others are among them, since neighbouring codes share a cell.

    Args:
        columns: codes 0 … k−1 of m rows in each of d ≥ 1 columns, shape (m,) each; codes near one another
            stand for values near one another, where a query reaches more than one.
        low, high: least and largest code that each query reaches, at most k−1, shape (n, d); no row where
            the least is larger.

    >>> reachable([np.array([0, 5, 9]), np.array([1, 1, 2])], np.array([[4, 0]]), np.array([[9, 1]]))
    array([1])
    """
    sizes = np.array([int(column.max(initial=0)) + 1 for column in columns])
    shifts, room = np.zeros(len(columns), dtype=np.int64), float(_CELLS)
    for place, j in enumerate(np.argsort(sizes)):  # what a column of few codes does not need, others have
        most = room ** (1 / (len(columns) - place))
        shifts[j] = max(0, int(np.ceil(np.log2(sizes[j] / most))))
        room /= ((sizes[j] - 1) >> shifts[j]) + 1
    shape = ((sizes - 1) >> shifts) + 1
    near = np.zeros(shape, dtype=np.bool_)
    boxes = np.hstack([low >> shifts, (high >> shifts) + 1])[(low <= high).all(axis=1)]
    for box in np.unique(boxes, axis=0).tolist():
        near[tuple(map(slice, box[: len(columns)], box[len(columns) :]))] = True
    kept, flat = np.empty(len(columns[0]), dtype=np.bool_), near.ravel()
    for start in range(0, len(kept), _BLOCK):
        cell = _cells([column[start : start + _BLOCK] for column in columns], shifts.tolist(), shape.tolist())
        kept[start : start + _BLOCK] = flat[cell]
    return np.flatnonzero(kept)


def _cells(columns: Sequence[npt.NDArray[Any]], shifts: Sequence[int], sizes: Sequence[int]) -> Integers:
    """The cell of each row, shape (rows,)."""
    cell = np.zeros(len(columns[0]), dtype=np.int64)
    for column, shift, size in zip(columns, shifts, sizes, strict=True):
        cell *= size
        cell += column >> shift
    return cell
