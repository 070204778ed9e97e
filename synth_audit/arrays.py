"""Types of arrays, in one place: what they hold is in the name, their shape where they are used."""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
"""Numbers; NaN where missing."""

Floats32: TypeAlias = npt.NDArray[np.float32]
"""Numbers of which there are too many for more digits."""

Bools: TypeAlias = npt.NDArray[np.bool_]
"""Which rows, columns or cells."""

Labels: TypeAlias = npt.NDArray[np.object_]
"""Text; None where missing."""

Positions: TypeAlias = npt.NDArray[np.intp]
"""Places of rows or columns, to take by."""

Integers: TypeAlias = npt.NDArray[np.int64]
"""Whole numbers of any meaning."""

Codes: TypeAlias = npt.NDArray[np.int64]
"""Numbers that stand for labels, groups or cells; negative where missing."""

Codes32: TypeAlias = npt.NDArray[np.int32]
"""Codes in half the room."""

Counts: TypeAlias = npt.NDArray[np.int64]
"""How many rows."""

Counts32: TypeAlias = npt.NDArray[np.int32]
"""Counts in half the room."""

Counts8: TypeAlias = npt.NDArray[np.uint8]
"""Counts that stay below 256."""

Scores: TypeAlias = npt.NDArray[Any]
"""Distances of pairs of rows, or what orders them alike, in the type that is fastest."""

Target: TypeAlias = npt.NDArray[Any]
"""What a model predicts: codes, or numbers."""
