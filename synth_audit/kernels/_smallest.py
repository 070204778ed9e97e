"""Small steps that searches take for every block of scores, in the ways that take least time."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from synth_audit.core.arrays import Bools, Floats, Positions, Scores


def smallest(values: npt.NDArray[Any], k: int) -> npt.NDArray[Any]:
    """The k smallest of each row, in any order; shape (n, k) of (n, m), k ≤ m.

    Of one or two by looking for the least, which takes a third of the time of putting rows in part in order.

    Args:
        values: no NaN among them. They are changed on the way, and left as they were.
    """
    if k == 1:
        least: npt.NDArray[Any] = values.min(axis=1, keepdims=True)
        return least
    if k > 2 or values.shape[1] < 3:
        return np.partition(values, k - 1, axis=1)[:, :k]
    rows, where = np.arange(len(values)), values.argmin(axis=1)
    first = values[rows, where]
    values[rows, where] = np.iinfo(values.dtype).max if values.dtype.kind == "i" else np.inf
    second = values.min(axis=1)
    values[rows, where] = first
    return np.stack([first, second], axis=1)


def rounded_down(limit: Floats, dtype: np.dtype[Any]) -> Scores:
    """The largest numbers of a type that are not above limits, for comparing in that type; shape (n,)."""
    if dtype.kind == "i":
        return np.asarray(np.clip(np.floor(limit), np.iinfo(dtype).min, np.iinfo(dtype).max), dtype)
    near = limit.astype(dtype)
    below: Scores = np.where(near > limit, np.nextafter(near, dtype.type(-np.inf)), near)
    return below


def true_places(mask: Bools) -> tuple[Positions, Positions]:
    """Rows and columns where a mask is true, row by row; a sixth of the time of ``np.nonzero``."""
    row, column = np.divmod(np.flatnonzero(mask), mask.shape[1])
    return row, column
