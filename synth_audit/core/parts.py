"""The parts in which the cells of a column are compared: a number, a label, a vector."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from synth_audit.core.arrays import Codes, Floats, Floats32

TIME = "time"
"""Unit of dates and times."""


@dataclass(frozen=True, eq=False)
class NumberPart:
    """Values whose differences have a meaning.

    Attributes:
        read: values of a column as float64, NaN where there is no number, shape (n,).
        weight: how much of the column this part is; the parts of one column weigh 1 together.
        unit: of columns with the same one differences may be taken, "" for plain numbers; None where a
            difference to another column means nothing.
    """

    read: Callable[[pa.ChunkedArray], Floats]
    weight: float = 1.0
    unit: str | None = None


@dataclass(frozen=True, eq=False)
class LabelPart:
    """Values that are equal or not.

    Attributes:
        read: the column of several tables as codes that these share, :data:`MISSING` where there is no
            value, one array of shape (n,) per table.
        weight: as of a number.
    """

    read: Callable[[Sequence[pa.ChunkedArray]], list[Codes]]
    weight: float = 1.0


@dataclass(frozen=True, eq=False)
class VectorPart:
    """Values that are alike by the distance of vectors.

    Attributes:
        read: values of a column as vectors of length 1, NaN where there is no value, shape (n, width).
        width: numbers of a vector.
        weight: as of a number.
    """

    read: Callable[[pa.ChunkedArray], Floats32]
    width: int
    weight: float = 1.0


Part = NumberPart | LabelPart | VectorPart
