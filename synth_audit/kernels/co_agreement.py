"""In which pairs of columns do release rows agree with train people at once more often than with strangers?

A look at all pairs together that takes one product of matrices per person, for tables with so many pairs that
each cannot be searched.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from synth_audit.core.arrays import Bools, Floats

Places = npt.NDArray[np.int32]

_NEAR = 0.02
"""Share of the release that is near a number."""

_FAR = 10.0
"""A pair of rare values agrees no more than so much: one person must not decide for all."""

_ROWS = 2**16
"""Rows of the release whose products are taken at a time."""

_WORK, _FEWEST, _MOST = 2e10, 25, 250
"""Products that may be taken, and people of each side that are looked at in any case and at most."""


@dataclass(frozen=True, eq=False)
class _Windows:
    """Which cells of a release are near to cells of people.

    Attributes:
        places: of each cell of the release among those of its column, shape (d, m).
        first, last: places near to each cell of a person, shape (people, d).
    """

    places: Places
    first: Places
    last: Places

    @classmethod
    def of(cls, columns: Iterable[tuple[Floats, Floats]], step: float) -> Self:
        places, first, last = zip(*(_near_places(*column, step) for column in columns), strict=True)
        return cls(np.array(places), np.column_stack(first), np.column_stack(last))

    def agreement(self, person: int) -> Floats:
        """Rows near in both columns of each pair, in standard deviations of those by chance; (d, d)."""
        first, last = self.first[person], self.last[person]
        d, m = self.places.shape
        both = np.zeros((d, d), np.float32)
        for start in range(0, m, _ROWS):
            places = self.places[:, start : start + _ROWS]
            near = (places >= first[:, None]) & (places <= last[:, None])
            ones = near.astype(np.float32)  # of which products are whole numbers, and sums exact
            both += ones @ ones.T
        counts = last - first + 1.0
        scale = np.where(counts > 0, np.maximum(counts, 1) ** -0.5, 0.0) * m**0.25
        together: Floats = np.minimum(both * np.outer(scale, scale), _FAR)
        return together


def _near_places(release: Floats, people: Floats, step: float) -> tuple[Places, Places, Places]:
    """Of one column the places of the release's cells, and the first and last near to each person's."""
    m, reach = len(release), max(1, round(_NEAR * len(release) / 2))
    ordered = np.sort(release)
    low = np.searchsorted(ordered, people, "left") - reach
    high = np.searchsorted(ordered, people, "right") + reach - 1
    # No further than to other labels.
    low = np.maximum(low, np.searchsorted(ordered, people - step / 2, "left"))
    high = np.minimum(high, np.searchsorted(ordered, people + step / 2, "right") - 1)
    inside = high >= low
    low_value, high_value = ordered[np.clip(low, 0, m - 1)], ordered[np.clip(high, 0, m - 1)]
    last = np.where(inside, np.searchsorted(ordered, high_value, "right") - 1, -1)
    found = (np.searchsorted(ordered, release), np.searchsorted(ordered, low_value, "left"), last)
    places, first, last = (x.astype(np.int32) for x in found)
    return places, first, last


def co_agreement(columns: Iterable[tuple[Floats, Floats]], member: Bools, step: float) -> Floats:
    """How much more train people agree with single rows in two columns at once than strangers, shape (d, d).

    For each person and pair of columns, the number of release rows that are near in both over the square root
    of how many there were if the columns had nothing to do with each other; of that the difference of the
    means of train and control, in standard errors. Near are equal labels, and the nearest 2 % of numbers.

    Args:
        columns: d of them, cells of the release and of people of both sides, none NaN, shape (m,) and
            (people,); each is asked for once. member: who is in train, shape (people,).
        step: what lies further apart is not the same label.
    """
    windows = _Windows.of(columns, step)
    d, m = windows.places.shape
    most = int(np.clip(_WORK / (2 * m * d * d), _FEWEST, _MOST))
    chosen = [np.flatnonzero(member)[:most], np.flatnonzero(~member)[:most]]
    means, errors = [], []
    for rows in chosen:
        total, squares = np.zeros((d, d)), np.zeros((d, d))
        for person in rows:
            found = windows.agreement(int(person))
            total += found
            squares += found * found
        mean = total / len(rows)
        means.append(mean)
        errors.append((np.maximum(squares / len(rows) - mean * mean, 0) + 1 / len(rows)) / len(rows))
    apart: Floats = (means[0] - means[1]) / np.sqrt(errors[0] + errors[1])
    np.fill_diagonal(apart, -np.inf)
    return apart


def strongest_pairs(apart: Floats, most: int) -> list[tuple[int, int]]:
    """The pairs that stand out most, from the largest down."""
    rows, columns = np.triu_indices(len(apart), 1)
    order = np.argsort(-apart[rows, columns], kind="stable")[:most]
    return [(int(rows[i]), int(columns[i])) for i in order]


def grown(apart: Floats, pair: tuple[int, int], size: int) -> tuple[int, ...]:
    """A pair with the columns that stand out most beside all that are in already, ascending."""
    members = list(pair)
    while len(members) < min(size, len(apart)):
        beside = np.clip(apart[members], -_FAR, _FAR).sum(axis=0)
        beside[members] = -np.inf
        members.append(int(np.argmax(beside)))
    return tuple(sorted(members))
