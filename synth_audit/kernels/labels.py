"""Labels of many pairs of rows compared at once, as bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from synth_audit.core.arrays import Bools, Counts8, Integers

_BYTE = 255
"""As many unlike labels as a byte can count."""


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
    out: npt.NDArray[Any],
    steps: Sequence[float],
    labels: npt.NDArray[Any],
    others: npt.NDArray[Any],
    memory: npt.NDArray[Any],
) -> None:
    """Add to each pair of rows what their unlike labels weigh; columns that weigh the same are counted first.

    Args:
        out, memory: shape (n, m), of one type, which holds every sum.
        steps: weight of each column, length q. labels, others: shape (q, n) and (q, m).
    """
    for weight in dict.fromkeys(steps):
        alike = [j for j, other in enumerate(steps) if other == weight]
        some, whole = (labels, others) if len(alike) == len(steps) else (labels[alike], others[alike])
        for count in count_unlike(some, whole):
            np.multiply(count, out.dtype.type(weight), out=memory, dtype=out.dtype)
            out += memory


def count_unlike(labels: npt.NDArray[Any], others: npt.NDArray[Any]) -> Iterator[Counts8]:
    """In how many columns each pair of rows differs, shape (n, m); the sum of the parts that it comes in.

    Args:
        labels, others: of :func:`small_codes`, shape (q, n) and (q, m).
    """
    shape = labels.shape[1], others.shape[1]
    differs = np.empty(shape, np.bool_)
    for first in range(0, len(labels), _BYTE):
        count = np.zeros(shape, np.uint8)
        for mine, theirs in zip(labels[first : first + _BYTE], others[first : first + _BYTE], strict=True):
            np.not_equal(mine[:, None], theirs, out=differs)
            count += differs.view(np.uint8)
        yield count
