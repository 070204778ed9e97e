"""Whole numbers."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from synth_audit.arrays import Floats, Labels
from synth_audit.column_kinds._bases import Numbers, counts
from synth_audit.table.kind import Clues, Disturbance, Domain, KindInfo

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Integer(Numbers):
    """Whole numbers, in whatever type they are stored."""

    info: ClassVar[KindInfo] = KindInfo(
        title="Integer", summary="Whole numbers.", frame_types=("int64", "Int64Dtype")
    )
    whole = True

    def step(self, storage: pa.DataType) -> float:
        """Whole numbers are 1 apart in any type."""
        return 1.0

    def suits(self, values: pa.ChunkedArray, clues: Clues) -> bool:
        """Any number that is stored as a whole one."""
        return counts(values, clues) and bool(pa.types.is_integer(values.type))

    def disturbed(
        self, values: Floats | Labels, domain: Domain, how: Disturbance, rng: np.random.Generator
    ) -> Floats | Labels:
        """``x + Poisson(λ)``, in the column's own unit."""
        moved: Floats = np.asarray(values, dtype=np.float64) + rng.poisson(how.rate, len(values))
        return moved

    def framed(self, values: pa.ChunkedArray) -> "pd.Series[Any]":
        """As int64, as Int64 where values are missing, and as float64 where one has a fraction."""
        numbers = super().framed(values)
        present = numbers.dropna()
        if not (present == present.round()).all():
            return numbers
        return numbers.astype("int64" if len(present) == len(numbers) else "Int64")

    def like_identifier(self, distinct: int, present: int, rows: int) -> str:
        """A different number in every row may be one that somebody gave it."""
        if distinct < rows:
            return ""
        return (
            "has a different value in every row, like an identifier; if it is one, give it `role: identifier`"
        )
