"""Sets numbers of the source that lie outside their declared bounds to the nearest bound, and counts them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from synth_audit.core.column_spec import ColumnSpec
from synth_audit.core.kind import Bounds


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
            below, above = pc.less(columns[name], ends[0]), pc.greater(columns[name], ends[1])
            count = sum(pc.sum(side).as_py() or 0 for side in (below, above))
            if count:
                self.counts[name] += count
                columns[name] = pc.if_else(below, ends[0], pc.if_else(above, ends[1], columns[name]))
        return pa.RecordBatch.from_arrays(list(columns.values()), schema=batch.schema)


def _stored(bounds: Bounds, storage: pa.DataType) -> tuple[pa.Scalar, pa.Scalar] | None:
    """The outermost values of a type within the bounds; None of a type that holds no numbers."""
    low, high = bounds
    if pa.types.is_integer(storage):
        kept = pa.scalar(math.ceil(low)), pa.scalar(math.floor(high))
    elif pa.types.is_floating(storage):
        kept = pa.scalar(low), pa.scalar(high)
    elif pa.types.is_decimal(storage):
        kept = pa.scalar(Decimal(str(low))), pa.scalar(Decimal(str(high)))
    else:
        return None
    first, last = (end.cast(storage) for end in kept)
    return first, last
