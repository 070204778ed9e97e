"""Sets numbers of the source that lie outside their declared bounds to the nearest bound, and counts them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from synth_audit.core.arrow_values import numbers_of
from synth_audit.core.column_spec import ColumnSpec
from synth_audit.core.kind import Bounds

_INWARDS = ROUND_CEILING, ROUND_FLOOR

_MOST_DIGITS = 400
"""Of a bound, before and after the point: a float64 has up to 309, and a decimal up to 76 after it."""


@dataclass(frozen=True)
class BoundClipping:
    """What becomes of the columns for which a plan says ``outside: clip``.

    Attributes:
        specs: the plan's declarations of columns.
        counts: by column, values that were set to a bound so far.
    """

    specs: Mapping[str, ColumnSpec]
    counts: Counter[str] = field(default_factory=Counter)

    def applied(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The batches, each column in the type it had; missing values and what is no number stay."""
        bounds = {
            name: spec.numeric_bounds
            for name, spec in self.specs.items()
            if spec.outside == "clip" and spec.numeric_bounds
        }
        for batch in batches:
            yield self._within(batch, bounds) if bounds else batch

    def _within(self, batch: pa.RecordBatch, bounds: Mapping[str, Bounds]) -> pa.RecordBatch:
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        for name in [n for n in bounds if n in columns]:
            ends = _stored(bounds[name], columns[name].type)
            if ends is None:
                continue
            numbers = columns[name]
            if pa.types.is_float16(numbers.type):  # which Arrow does not compare
                numbers = numbers.cast(pa.float32())
            low, high = (end.cast(numbers.type) for end in ends)
            below, above = pc.less(numbers, low), pc.greater(numbers, high)
            count = sum(pc.sum(side).as_py() or 0 for side in (below, above))
            if count:
                self.counts[name] += count
                columns[name] = pc.if_else(below, ends[0], pc.if_else(above, ends[1], columns[name]))
        return pa.RecordBatch.from_arrays(list(columns.values()), schema=batch.schema)


def _stored(bounds: Bounds, storage: pa.DataType) -> tuple[pa.Scalar, pa.Scalar] | None:
    """The outermost values of a type within the bounds; None of a type that has none there."""
    ends = _ends(bounds, storage)
    if ends is None or ends[0] > ends[1]:
        return None
    low, high = (pa.scalar(end, storage) for end in ends)
    return low, high


def _ends(bounds: Bounds, storage: pa.DataType) -> tuple[Any, Any] | None:
    """The bounds, drawn in to what the type holds and to its steps; None of a type that holds no numbers."""
    low, high = bounds
    if pa.types.is_integer(storage):
        held = np.iinfo(storage.to_pandas_dtype())
        return max(math.ceil(low), int(held.min)), min(math.floor(high), int(held.max))
    if pa.types.is_floating(storage):
        return _floats(bounds, storage)
    if pa.types.is_decimal(storage):
        with localcontext(prec=_MOST_DIGITS):
            step = Decimal(1).scaleb(-storage.scale)
            most = (10**storage.precision - 1) * step
            up, down = (Decimal(repr(x)).quantize(step, how) for x, how in zip(bounds, _INWARDS, strict=True))
            return max(up, -most), min(down, most)
    return None


def _floats(bounds: Bounds, storage: pa.DataType) -> tuple[Any, Any]:
    """The nearest floats to the bounds; the next ones where these are read as numbers outside."""
    kind, (low, high) = storage.to_pandas_dtype(), bounds
    widest = float(np.finfo(kind).max)
    with np.errstate(over="ignore"):  # bounds of which both lie beyond the type
        first, last = kind(max(low, -widest)), kind(min(high, widest))
    read = numbers_of(pa.chunked_array([pa.array([first, last], storage)])).to_pylist()
    return (
        np.nextafter(first, kind(np.inf)) if read[0] < low else first,
        np.nextafter(last, kind(-np.inf)) if read[1] > high else last,
    )
