"""Where rows lie in a space that several tables share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from synth_audit.core.arrays import Codes, Floats, Positions
from synth_audit.kernels.labels import smallest_type
from synth_audit.kernels.leaves import Leaves

Indicators = npt.NDArray[np.int32]

NOWHERE = -1
"""Place of what has no coordinate: one more than there are, and cut off."""

MISSING = -1
"""Code of a missing value."""

MOST_ONE_HOT = 64
"""A column with more categories keeps its codes, so that memory does not grow with the categories."""

FAR = 10.0
"""Standard deviations beyond which only the logarithm grows."""


def drawn_in(values: Floats, far: float = FAR) -> Floats:
    """Numbers, those beyond ``far`` drawn in: ``sign(z) (far + log(|z| / far))``."""
    size = np.clip(np.abs(values), far, np.finfo(np.float64).max)
    return np.where(size > far, np.sign(values) * (far + np.log(size / far)), values)


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Where rows lie in a space that several tables share.

    ``|a − b|² = Σ_j (a_j − b_j)² + Σ_l u_l [code_l(a) ≠ code_l(b)]``

    Attributes:
        dense: real coordinates, shape (n, width).
        labels: codes of labels, −1 or more, equal for equal ones, in the smallest type that holds them,
            shape (n, m).
        unlike: u, what two different labels add to the squared distance, shape (m,).
    """

    dense: Floats
    labels: npt.NDArray[Any]
    unlike: Floats

    @classmethod
    def of(cls, dense: Floats, labels: npt.NDArray[Any] | None = None, unlike: Floats | None = None) -> Self:
        """Rows of one table.

        Args:
            dense: shape (n, width). labels: shape (n, m); none if left out.
            unlike: 2 for each column of labels if left out, which is how far two one-hot rows are apart.
        """
        codes = np.empty((len(dense), 0), np.int8) if labels is None else labels
        return cls(
            np.ascontiguousarray(dense, np.float64),
            np.ascontiguousarray(codes, smallest_type(codes)),
            np.full(codes.shape[1], 2.0) if unlike is None else np.asarray(unlike, np.float64),
        )

    def __len__(self) -> int:
        return len(self.dense)

    def folded(self) -> Coordinates:
        """How far each centred coordinate lies from the middle, whichever way: ``2 |a_j|``.

        Where coordinates are ranks, no reversal of a column, of whichever and however many, can alter it.
        """
        return Coordinates(2 * np.abs(self.dense), self.labels, self.unlike)

    @cached_property
    def leaves(self) -> Leaves:
        """The rows in leaves that lie close together."""
        return Leaves.of(self.dense, self.labels, self._apart)

    def _apart(self, one: Positions, other: Positions) -> Floats:
        with np.errstate(over="ignore"):  # infinitely far is far
            numbers = (self.dense[one] - self.dense[other]) ** 2
        return np.hstack([numbers, (self.labels[one] != self.labels[other]) * self.unlike])

    def take(self, rows: Positions) -> Coordinates:
        """The rows at these positions."""
        return Coordinates(self.dense[rows], self.labels[rows], self.unlike)


@dataclass(frozen=True, eq=False)
class CoordinateRows:
    """A table read into the coordinates of a standardised coordinates, not yet spread out.

    Attributes:
        numbers: the first coordinates, shape (n, p).
        places: for each column the place of its one indicator, shape (n, q).
        weights: value of each indicator.
    """

    numbers: Floats
    places: Indicators
    weights: Floats

    def __len__(self) -> int:
        return len(self.numbers)

    def dense(self, rows: slice | Positions) -> Floats:
        """Coordinates of some rows, shape (m, width)."""
        numbers, places = self.numbers[rows], self.places[rows]
        found = np.zeros((len(numbers), len(self.weights)))
        found[np.arange(len(numbers))[:, None], places] = self.weights[places]
        found[:, : numbers.shape[1]] = numbers
        return found[:, :NOWHERE]


def one_hot(joint: Codes) -> Floats:
    """Indicator coordinates, missing as a category of its own; joint, so that unseen labels differ."""
    used, position = np.unique(joint, return_inverse=True)
    block = np.zeros((len(joint), len(used)))
    block[np.arange(len(joint)), position] = 1.0
    return block


def labels_that_fit(counts: Sequence[int], room: int, most: int) -> int:
    """The largest number of labels, at most ``most``, that every column can keep in ``room``; at least 1.

    Args:
        counts: labels of each column, of which it keeps all if it has no more.
    """
    kept = most
    while kept > 1 and sum(min(n, kept) for n in counts) > room:
        kept -= 1
    return max(kept, 1)
