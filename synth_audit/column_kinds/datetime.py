"""Dates and times."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from synth_audit.arrays import Floats, Labels
from synth_audit.column_kinds._bases import DAY, TimedNumbers, rounded
from synth_audit.table.arrow import in_microseconds, is_datetime
from synth_audit.table.kind import TIME, Bounds, Clues, KindInfo, Order
from synth_audit.table.rules import as_number, read_value

if TYPE_CHECKING:
    import pandas as pd


_YEARS_1_TO_9999 = (-62_135_596_800e6, 253_402_214_400e6)
_NANOSECONDS = (-9.2e15, 9.2e15)  # what 64-bit nanoseconds can hold, in microseconds


@dataclass(frozen=True)
class Datetime(TimedNumbers):
    """Dates and timestamps, as microseconds since 1970 (UTC)."""

    info: ClassVar[KindInfo] = KindInfo(
        title="Datetime", summary="Dates and times.", frame_types=("datetime64[us]",)
    )
    order = Order.DATES
    unit = TIME

    def allows(self, storage: pa.DataType) -> bool:
        """Dates and timestamps, and what has no type."""
        return is_datetime(storage) or bool(pa.types.is_null(storage))

    def suits(self, values: pa.ChunkedArray, clues: Clues) -> bool:
        """What is stored as a date or timestamp, unless the plan lists its labels."""
        return is_datetime(values.type) and not clues.categories

    def step(self, storage: pa.DataType) -> float:
        """A day for dates."""
        return DAY if pa.types.is_date(storage) else 0.0

    def limits(self, storage: pa.DataType) -> Bounds:
        """The years 1 to 9999, or what 64-bit nanoseconds can hold."""
        return _NANOSECONDS if pa.types.is_timestamp(storage) and storage.unit == "ns" else _YEARS_1_TO_9999

    def numbers(self, values: pa.ChunkedArray) -> pa.ChunkedArray:
        """Microseconds since 1970 (UTC)."""
        return super().numbers(in_microseconds(values).cast(pa.int64()))

    def support(self, declared: Bounds | None) -> Bounds | None:
        """1970 is no natural zero."""
        return declared or (-np.inf, np.inf)

    def groups(self, values: pa.ChunkedArray) -> bool:
        """A moment is nobody's group."""
        return False

    def meant(self, text: str) -> float | str | None:
        """An ISO date or time."""
        value = read_value(text)
        return as_number(value) if isinstance(value, datetime) else None

    def bound_text(self, bound: float) -> str:
        """In ISO form, UTC, without a time where that is midnight."""
        return str(self.framed_bound(bound)).removesuffix("T00:00:00")

    def stored(self, values: Floats | Labels, storage: pa.DataType) -> pa.Array:
        """Rounded to microseconds, then to what the storage holds."""
        if pa.types.is_null(storage):
            return pa.nulls(len(values))
        numbers = np.asarray(values, dtype=np.float64)
        zone = storage.tz if pa.types.is_timestamp(storage) else None
        whole = rounded(numbers, np.isnan(numbers)).cast(pa.timestamp("us", tz=zone))
        return whole.cast(storage, safe=False)

    def framed(self, values: pa.ChunkedArray) -> "pd.Series[Any]":
        """As datetime64 in UTC; by way of whole microseconds, which strips a zone and moves no instant."""
        import pandas as pd

        return pd.Series(in_microseconds(values).cast(pa.int64()).cast(pa.timestamp("us")).to_pandas())

    def framed_bound(self, bound: float) -> float | str:
        """In ISO form, UTC."""
        return (datetime(1970, 1, 1) + timedelta(microseconds=bound)).isoformat()
