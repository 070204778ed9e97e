"""Where rows lie in a space that several tables share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from synth_audit.core.arrays import Codes, Floats, Positions

Indicators = npt.NDArray[np.int32]

NOWHERE = -1
"""Place of what has no coordinate: one more than there are, and cut off."""

MISSING = -1
"""Code of a missing value."""

MOST_ONE_HOT = 64
"""A column with more categories keeps its codes, so that memory does not grow with the categories."""


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Where rows lie in a space that several tables share.

    Attributes:
        dense: real coordinates, shape (n, width).
        labels: codes of columns with too many categories for one coordinate each, shape (n, m);
            two different codes are as far apart as two one-hot rows, squared distance 2.
    """

    dense: Floats
    labels: Codes

    def __len__(self) -> int:
        return len(self.dense)

    def take(self, rows: Positions) -> Coordinates:
        """The rows at these positions."""
        return Coordinates(self.dense[rows], self.labels[rows])

    def as_features(self) -> Floats:
        """One matrix for a predictive model, codes as they are, shape (n, width + m)."""
        return np.hstack([self.dense, self.labels.astype(np.float64)])


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
