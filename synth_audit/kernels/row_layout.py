"""Where the numbers and the labels of a row lie in the vector that a network reads and writes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synth_audit.core.arrays import Floats32, Positions


@dataclass(frozen=True)
class RowLayout:
    """The coordinates of a row vector.

    Attributes:
        numbers: positions of numbers, each in [−1, 1], or standard normal where read by ranks.
        slices: first and last-plus-one position of each label, one-hot: one of its coordinates is 1.
        width: coordinates in all.
        choices: which of the slices are columns of labels; the others are modes of numbers and gaps.
    """

    numbers: tuple[int, ...]
    slices: tuple[tuple[int, int], ...]
    width: int
    choices: tuple[int, ...] = ()


def one_hot(codes: Positions, width: int) -> Floats32:
    """A 1 at each code, shape (n, width)."""
    vectors = np.zeros((len(codes), width), dtype=np.float32)
    vectors[np.arange(len(codes)), codes] = 1
    return vectors
