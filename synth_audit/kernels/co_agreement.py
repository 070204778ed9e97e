"""In which pairs of columns do release rows agree with train people at once more often than with strangers?

A look at all pairs together that takes one product of matrices per person, for tables with so many pairs that
each cannot be searched.
"""

from __future__ import annotations

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
    def of(cls, release: Floats, people: Floats, step: float) -> Self:
        m, reach = len(release), max(1, round(_NEAR * len(release) / 2))
        places = np.empty(release.shape[::-1], np.int32)
        first, last = (np.empty(people.shape, np.int32, order="F") for _ in range(2))
        for j, (mine, asked) in enumerate(zip(release.T, people.T, strict=True)):
            ordered = np.sort(mine)
            low = np.searchsorted(ordered, asked, "left") - reach
            high = np.searchsorted(ordered, asked, "right") + reach - 1
            # No further than to other labels.
            low = np.maximum(low, np.searchsorted(ordered, asked - step / 2, "left"))
            high = np.minimum(high, np.searchsorted(ordered, asked + step / 2, "right") - 1)
            inside = high >= low
            low_value, high_value = ordered[np.clip(low, 0, m - 1)], ordered[np.clip(high, 0, m - 1)]
            places[j] = np.searchsorted(ordered, mine)
            first[:, j] = np.searchsorted(ordered, low_value, "left")
            last[:, j] = np.where(inside, np.searchsorted(ordered, high_value, "right") - 1, -1)
        return cls(places, first, last)

    def agreement(self, person: int) -> Floats:
        """Rows near in both columns of each pair, in standard deviations of those by chance; (d, d)."""
        first, last = self.first[person], self.last[person]
        near = (self.places >= first[:, None]) & (self.places <= last[:, None])
        ones = near.astype(np.float32)  # of which products are whole numbers, and exact
        counts = last - first + 1.0
        scale = np.where(counts > 0, np.maximum(counts, 1) ** -0.5, 0.0) * self.places.shape[1] ** 0.25
        together: Floats = np.minimum((ones @ ones.T) * np.outer(scale, scale), _FAR)
        return together


def co_agreement(release: Floats, people: Floats, member: Bools, step: float) -> Floats:
    """How much more train people agree with single rows in two columns at once than strangers, shape (d, d).

    For each person and pair of columns, the number of release rows that are near in both over the square root
    of how many there were if the columns had nothing to do with each other; of that the difference of the
    means of train and control, in standard errors. Near are equal labels, and the nearest 2 % of numbers.

    Args:
        release: shape (m, d), none NaN; people: shape (people, d), of both sides. member: who is in train.
        step: what lies further apart is not the same label.
    """
    d = release.shape[1]
    most = int(np.clip(_WORK / (2 * len(release) * d * d), _FEWEST, _MOST))
    chosen = [np.flatnonzero(member)[:most], np.flatnonzero(~member)[:most]]
    means, errors = [], []
    windows = _Windows.of(release, people, step)
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
