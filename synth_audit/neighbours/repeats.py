"""Rows that occur several times, so that a search need look at each only once."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from synth_audit.arrays import Floats, Integers, Positions

_LOOK = 1000
"""Rows looked at to see whether duplicates abound."""


def abound(numbers: Floats, labels: npt.NDArray[Any]) -> bool:
    """Whether many rows have a twin, by rows evenly spread: then equal rows are better searched once."""
    few = np.unique(np.linspace(0, len(numbers) - 1, min(len(numbers), _LOOK)).astype(np.intp))
    return len(np.unique(row_kinds(numbers[few], labels[few]))) < 0.9 * len(few)


def row_kinds(*parts: npt.NDArray[Any]) -> Integers:
    """Numbers that rows share exactly when they are equal in all parts, shape (n,); of several (n, p)."""
    from pandas import factorize  # here, so that looking around stays light

    kinds = np.zeros(len(parts[0]), dtype=np.int64)
    for column in (column for part in parts for column in part.T):
        if kinds.max(initial=0) + 1 >= len(kinds):
            break  # all rows differ already
        values = factorize(np.ascontiguousarray(column))[0].astype(np.int64)
        kinds = factorize(kinds * (values.max(initial=0) + 1) + values)[0].astype(np.int64)
    return kinds


def repeated_at_most(kinds: Integers, most: int) -> Positions:
    """Positions of rows, ascending: the first of equal ones that are ``most`` or fewer, every one of others.

    Args:
        kinds: by :func:`row_kinds`, shape (n,).
    """
    often = np.bincount(kinds, minlength=1)[kinds] > most
    often[np.unique(kinds, return_index=True)[1]] = True
    return np.flatnonzero(often)


def copy_number(kinds: Integers, place: Positions | None = None) -> Integers:
    """How many equal rows stand before each row, shape (n,), by :func:`row_kinds`.

    Args:
        place: of each row in the order in which they stand; its position if left out.
    """
    order = np.argsort(kinds, kind="stable") if place is None else np.lexsort((place, kinds))
    starts = np.searchsorted(kinds[order], np.arange(kinds.max(initial=0) + 1))
    number = np.empty(len(kinds), dtype=np.int64)
    number[order] = np.arange(len(kinds)) - starts[kinds[order]]
    return number
