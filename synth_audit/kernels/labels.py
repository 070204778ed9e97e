"""Labels of many pairs of rows compared at once, as bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from synth_audit.core.arrays import Bools, Counts8, Integers

_BYTE = 255
"""As many unlike labels as a byte can count."""

_PAIRS = 2**17
"""Pairs that are compared at a time, few enough to stay in a processor's cache."""


def told_apart(labels: Integers, others: Integers) -> Bools:
    """The columns in which not all rows of two tables agree, shape (q,); what is the same adds nothing."""
    [first] = labels[:1] if len(labels) else others[:1]
    told: Bools = (labels != first).any(axis=0) | (others != first).any(axis=0)
    return told


def smallest_type(codes: npt.NDArray[Any]) -> np.dtype[Any]:
    """The smallest type of whole numbers that holds these codes, of which missing ones are negative."""
    most, least = int(codes.max(initial=0)), int(codes.min(initial=0))
    return np.result_type(np.min_scalar_type(-1 - most), np.min_scalar_type(min(least, -1)))


def side_by_side(columns: Sequence[npt.NDArray[Any]], n: int) -> npt.NDArray[Any]:
    """Columns of n codes beside one another, shape (n, q), in the smallest of their types that holds all."""
    found = np.empty((n, len(columns)), np.result_type(np.int8, *(c.dtype for c in columns)))
    for j, column in enumerate(columns):
        found[:, j] = column
    return found


def small_codes(labels: Integers, others: Integers) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Codes of two tables, shape (n, q) and (m, q), column by column in the smallest type that holds them."""
    most = max(int(labels.max(initial=0)), int(others.max(initial=0))) + 1
    small = np.uint8 if most < 2**8 else np.uint16 if most < 2**16 else np.int64
    return _shrunk(labels, small), _shrunk(others, small)


def _shrunk(labels: Integers, small: type[np.integer[Any]]) -> npt.NDArray[Any]:
    """Column by column, so that no second table of large numbers is made on the way."""
    codes = np.empty(labels.shape[::-1], small)
    for place, column in zip(codes, labels.T, strict=True):
        np.add(column, 1, out=place, dtype=small, casting="unsafe")
    return codes


def add_unlike(
    out: npt.NDArray[Any], steps: Sequence[float], labels: npt.NDArray[Any], others: npt.NDArray[Any]
) -> None:
    """Add to each pair of rows what their unlike labels weigh; columns that weigh the same are counted first.

    Args:
        out: shape (n, m), of a type which holds every sum.
        steps: weight of each column, length q. labels, others: of :func:`small_codes`, shape (q, n) and
            (q, m); several times as fast where each column of the others lies in one piece.
    """
    alike = [(w, [j for j, step in enumerate(steps) if step == w]) for w in dict.fromkeys(steps)]
    at_once = min(len(out), max(1, _PAIRS // max(1, out.shape[1])))
    # Small, and used again and again: new memory for all pairs takes as long as the counting.
    memory = [np.empty((at_once, out.shape[1]), t) for t in (np.bool_, np.uint8, out.dtype)]
    for first in range(0, len(out), max(1, at_once)):
        part, mine = out[first : first + at_once], labels[:, first : first + at_once]
        differs, count, added = (x[: len(part)] for x in memory)
        for weight, columns in alike:
            for start in range(0, len(columns), _BYTE):
                some = columns[start : start + _BYTE]
                _count_unlike(mine, others, some, differs, count)
                of_all = differs.view(np.uint8) if len(some) == 1 else count
                np.multiply(of_all, out.dtype.type(weight), out=added, dtype=out.dtype)
                part += added


def _count_unlike(
    labels: npt.NDArray[Any], others: npt.NDArray[Any], columns: Sequence[int], differs: Bools, count: Counts8
) -> None:
    """In how many of some columns each pair of rows differs, shape (n, m); of one column, in ``differs``."""
    unlike = differs.view(np.uint8)
    for place, j in enumerate(columns):
        np.not_equal(labels[j][:, None], others[j], out=differs)
        if place:
            count += unlike
        elif len(columns) > 1:
            count[:] = unlike
