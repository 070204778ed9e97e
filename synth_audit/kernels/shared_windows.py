"""Which rows of a table share a value with people: equal labels, or numbers near in rank. Arrays only."""

from __future__ import annotations

import numpy as np

from synth_audit.core.arrays import Floats, Positions

_NEIGHBOURS, _ROWS_EACH = 4, 250
"""Release rows to either side of a number that share it, at most, and of how many rows one is.

Of few rows the fourth in rank is far away.
"""


def window_width(m: int) -> int:
    """Rows of a release of m that share a number with somebody, where no more are equal."""
    return 2 * min(_NEIGHBOURS, max(1, m // _ROWS_EACH))


def shared_windows(
    mine: Floats, asked: Floats, step: float, width: int, own: Positions | int = 0
) -> tuple[Positions, Positions, Positions]:
    """Which rows share a column's value with each person.

    Args:
        mine: of the rows, shape (m,); asked: of the people, shape (people,). step: what lies further
            apart is not the same label. width: rows that share a number, where no more are equal.
        own: how many of the rows are the person's own, which come on top of these; shape (people,).

    Returns:
        Rows by value, shape (m,), and where among them those that share it begin and end, shape (people,).
    """
    m, order = len(mine), np.argsort(mine, kind="stable")
    ordered = mine[order]
    left, right = np.searchsorted(ordered, asked, "left"), np.searchsorted(ordered, asked, "right")
    # As many rows for those who have a value of the release as for others: else whoever lent it margins
    # would share more with it by chance.
    beside = np.maximum(width - (right - left - own), 0)
    first, last = left - beside // 2, right + (beside + 1) // 2 - 1
    # No further than to other labels.
    first = np.maximum(first, np.searchsorted(ordered, asked - step / 2, "left"))
    last = np.minimum(last, np.searchsorted(ordered, asked + step / 2, "right") - 1)
    there = last >= first
    first = np.searchsorted(ordered, ordered[np.clip(first, 0, m - 1)], "left")
    end = np.searchsorted(ordered, ordered[np.clip(last, 0, m - 1)], "right")
    return order, first, np.where(there, end, first)
