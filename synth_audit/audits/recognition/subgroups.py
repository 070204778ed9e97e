"""Subgroups: is some group of people recognised far more often than people as a whole?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from synth_audit.audits.recognition.engine import Recognised
from synth_audit.audits.recognition.people import PooledColumn, PooledPeople
from synth_audit.core.arrays import Bools, Floats

FEWEST = 40, 10
"""Training and control people of a group at least: fewer can prove nothing."""

QUARTERS = (0.25, 0.5, 0.75)
"""Quantiles between the groups of a number."""


@dataclass(frozen=True)
class WorstSubgroup:
    """The group with the largest lower bound, and how many groups there are."""

    low: float
    column: str
    groups: int


def worst_subgroup(found: Recognised, pool: PooledPeople, family: float) -> WorstSubgroup | None:
    """The group that is most surely recognised: people of one label, or of one quarter of a number.

    Args:
        family: probability that any of the bounds is too large, divided evenly among the groups.

    Returns:
        None where no group is large enough.
    """
    groups = [
        (column.name, people)
        for column in pool.columns
        for people in _groups(column, pool)
        if (people & found.member).sum() >= FEWEST[0] and (people & ~found.member).sum() >= FEWEST[1]
    ]
    if not groups:
        return None
    level = 1 - 2 * family / len(groups)
    lows = [found.interval(level, people).low for _, people in groups]
    worst = int(np.argmax(lows))
    return WorstSubgroup(lows[worst], groups[worst][0], len(groups))


def _groups(column: PooledColumn, pool: PooledPeople) -> Iterator[Bools]:
    """People with a record in each group."""
    known = np.isfinite(column.people) if column.numeric else column.people >= 0
    cells: Floats = column.people
    if column.numeric:
        cells = np.searchsorted(np.quantile(cells[known], QUARTERS), cells).astype(np.float64)
    for cell in np.unique(cells[known]):
        yield np.bincount(pool.person[known & (cells == cell)], minlength=pool.people) > 0
