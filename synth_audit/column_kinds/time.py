"""Times of day."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from synth_audit.arrays import Floats, Labels
from synth_audit.column_kinds._bases import DAY, TimedNumbers, rounded
from synth_audit.table.kind import Bounds, Clues, Domain, KindInfo

_MICROSECONDS = {"s": 1e6, "ms": 1e3, "us": 1.0, "ns": 1e-3}


@dataclass(frozen=True)
class Time(TimedNumbers):
    """Times of day without a date, as microseconds since midnight."""

    info: ClassVar[KindInfo] = KindInfo(title="Time", summary="Times of day.", frame_types=("float64",))
    order = None
    unit = "time of day"
    domain_terms = frozenset()
    fixed_domain = Domain(bounds=(0.0, DAY - 1))

    def allows(self, storage: pa.DataType) -> bool:
        """Times of day, and what has no type."""
        return bool(pa.types.is_time(storage) or pa.types.is_null(storage))

    def suits(self, values: pa.ChunkedArray, clues: Clues) -> bool:
        """What is stored as a time of day, unless it names rows or the plan lists its labels."""
        return bool(pa.types.is_time(values.type)) and clues.released and not clues.categories

    def step(self, storage: pa.DataType) -> float:
        """The unit of the storage."""
        return max(1.0, _MICROSECONDS[storage.unit]) if pa.types.is_time(storage) else 0.0

    def limits(self, storage: pa.DataType) -> Bounds:
        """A day, which ends before the next begins."""
        return 0.0, DAY - 1

    def numbers(self, values: pa.ChunkedArray) -> pa.ChunkedArray:
        """Microseconds since midnight."""
        return super().numbers(values.cast(pa.time64("us"), safe=False).cast(pa.int64()))

    def support(self, declared: Bounds | None) -> Bounds | None:
        """A day."""
        return self.fixed_domain.bounds

    def stored(self, values: Floats | Labels, storage: pa.DataType) -> pa.Array:
        """Rounded to the unit of the storage; past midnight a day begins anew."""
        numbers = np.asarray(values, dtype=np.float64)
        if pa.types.is_null(storage):
            return pa.nulls(len(numbers))
        unit = _MICROSECONDS[storage.unit]
        whole = rounded(np.rint(numbers / unit) % (DAY / unit), np.isnan(numbers))
        return whole.cast(pa.int32() if storage.bit_width == 32 else pa.int64()).cast(storage)
