"""Subgroups of people by single properties, and the people who are in none that is large enough."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synth_audit.core.arrays import Bools, Codes, Floats, Integers
from synth_audit.core.schema import Column
from synth_audit.core.table import Table

FEWEST_TRAIN, FEWEST_CONTROL = 100, 20
"""People of a subgroup on either side below which its share says nothing."""

_MOST_BINS = 10

Sides = tuple[Bools, Bools]
"""Masks over the rows of train and of control."""

Persons = tuple[Integers, Integers]
"""Number of the person of each row, in train and in control."""


@dataclass(frozen=True, eq=False)
class Partition:
    """The people of train and control by one property.

    Attributes:
        judged: the subgroups that are large enough, the last of them made of small ones where ``pooled``.
        unjudged: people of train in subgroups that are too small, also when taken together.
        pooled: some are judged together, since each is too small.
    """

    judged: tuple[Sides, ...]
    unjudged: int = 0
    pooled: bool = False


def by_column(column: Column, train: Table, control: Table, persons: Persons) -> Partition:
    """Subgroups by label, or by tenth of the numbers (fewer parts of few people); missing is one of them."""
    groups = column.kind.grouping(train, column, bins=_bins(persons))
    return _partition(groups.of(train), groups.of(control), persons)


def by_number(train: Floats, control: Floats, persons: Persons) -> Partition:
    """Subgroups by tenth of train, or fewer parts."""
    bins = _bins(persons)
    edges = np.unique(np.quantile(train, np.arange(1, bins) / bins))
    one, other = (np.searchsorted(edges, values, "right") for values in (train, control))
    return _partition(one, other, persons)


def _partition(train: Codes, control: Codes, persons: Persons) -> Partition:
    """Each code a subgroup, the small ones together another where that is large enough."""
    size = 1 + int(max(train.max(), control.max()))
    n_train, n_control = (
        _people(codes, people, size) for codes, people in zip((train, control), persons, strict=True)
    )
    large = np.flatnonzero((n_train >= FEWEST_TRAIN) & (n_control >= FEWEST_CONTROL))
    groups = [(train == k, control == k) for k in large]
    rest = ~np.isin(train, large), ~np.isin(control, large)
    if not groups or not rest[0].any():  # a column of small subgroups alone is everybody, once more
        return Partition(tuple(groups) if len(groups) > 1 else ())
    left = [len(np.unique(people[side])) for people, side in zip(persons, rest, strict=True)]
    if left[0] >= FEWEST_TRAIN and left[1] >= FEWEST_CONTROL:
        return Partition((*groups, rest), pooled=True)
    return Partition(tuple(groups), unjudged=left[0])


def _bins(persons: Persons) -> int:
    """Parts of a number so many that nearly all hold enough people of either side, and at least two."""
    n_train, n_control = (len(np.unique(p)) for p in persons)
    return max(2, min(_MOST_BINS, 2 * n_train // (3 * FEWEST_TRAIN), n_control // (2 * FEWEST_CONTROL)))


def _people(codes: Codes, persons: Integers, size: int) -> Integers:
    """People with a row of each code, shape (size,)."""
    most = 1 + int(persons.max())
    pairs = np.unique(codes.astype(np.int64) * most + persons)
    return np.bincount(pairs // most, minlength=size)
