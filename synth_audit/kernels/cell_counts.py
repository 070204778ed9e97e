"""Counts of rows in the cells of several columns, and what noise leaves of them made counts again.

Adding or removing one row changes one cell of a table of counts by 1: its L1 and its L2 sensitivity are 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from synth_audit.core.arrays import Codes, Floats

Attributes = tuple[int, ...]
"""Positions of columns."""


def cells_of(sizes: Sequence[int], attributes: Attributes) -> int:
    """How many cells the table of these columns has."""
    return math.prod(sizes[a] for a in attributes)


def counted(codes: Codes, sizes: Sequence[int], attributes: Attributes) -> Floats:
    """Rows in each cell.

    Args:
        codes: the cell of every row and column, shape (n, d).
        sizes: cells of every column.

    Returns:
        Shape ``[sizes[a] for a in attributes]``.
    """
    shape = tuple(sizes[a] for a in attributes)
    if not attributes:
        return np.array(float(len(codes)))
    flat = np.ravel_multi_index(tuple(codes[:, a] for a in attributes), shape)
    return np.bincount(flat, minlength=math.prod(shape)).astype(np.float64).reshape(shape)


def no_less_than_nothing(counts: Floats) -> Floats:
    """Counts below 0 as 0; where none is above, all the same."""
    kept = np.maximum(counts, 0.0)
    return kept if kept.any() else np.ones_like(counts)


def on_simplex(values: Floats) -> Floats:
    """The nearest point with entries of 0 or more and sum 1 (Duchi et al. 2008), shape (k,)."""
    falling = np.sort(values)[::-1]
    over = (np.cumsum(falling) - 1) / np.arange(1, len(values) + 1)
    threshold = over[np.flatnonzero(falling > over)[-1]]
    found: Floats = np.maximum(values - threshold, 0.0)
    return found


def nearest_counts(counts: Floats) -> Floats:
    """The nearest table without counts below 0 and of the same sum; where that is not above 0, as above.

    Cutting off what is below 0 alone would leave the noise of empty cells that is above it: rows that nobody
    has, the more of them the more cells.
    """
    total = counts.sum()
    if total <= 0:
        return no_less_than_nothing(counts)
    found: Floats = on_simplex(counts.ravel() / total).reshape(counts.shape) * total
    return found
