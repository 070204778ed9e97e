"""The margin of a numeric column: what its kind, storage and declared bounds mean for its distribution."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pyarrow as pa

from synth_audit.core.arrays import Floats
from synth_audit.core.kind import Bounds
from synth_audit.core.schema import Column
from synth_audit.kernels.margins import Margin, empirical_margin, kde_margin

MarginMethod = Literal["kde", "empirical"]

_DAY = 86_400e6
_LAST_INT64 = float(2**63 - 1024)  # the largest double below 2**63
_YEARS_1_TO_9999 = (-62_135_596_800e6, 253_402_214_400e6)
_NANOSECONDS = (-9.2e15, 9.2e15)  # what 64-bit nanoseconds can hold, in microseconds


def numeric_margin(column: Column, values: Floats, method: MarginMethod) -> Margin:
    """Fit the margin of a numeric column; values drawn from it fit the column's bounds and storage.

    Args:
        values: shape (n,), NaN where missing; datetimes in microseconds.

    Raises:
        ValueError: no value is present.
    """
    step, limits = _step(column), _limits(column)
    if method == "empirical":
        return empirical_margin(values, step=step, limits=limits)
    bounds = column.declared_bounds
    if bounds is None and column.kind.instants:
        bounds = (-np.inf, np.inf)  # 1970 is no natural zero
    return kde_margin(values, step=step, bounds=bounds, limits=limits)


def _step(column: Column) -> float:
    if pa.types.is_date(column.storage):
        return _DAY
    return float(column.kind.whole or pa.types.is_integer(column.storage))


def _limits(column: Column) -> Bounds:
    """What the storage type can hold."""
    storage = column.storage
    if pa.types.is_timestamp(storage) and storage.unit == "ns":
        return _NANOSECONDS
    if pa.types.is_temporal(storage):
        return _YEARS_1_TO_9999
    if pa.types.is_decimal(storage):
        most = 10.0 ** (storage.precision - storage.scale) - 10.0**-storage.scale
        most = float(np.nextafter(most, 0))
        return -most, most
    if pa.types.is_floating(storage):
        info = np.finfo(storage.to_pandas_dtype())
        return float(info.min), float(info.max)
    if pa.types.is_integer(storage):
        whole = np.iinfo(storage.to_pandas_dtype())
        return max(float(whole.min), -_LAST_INT64), min(float(whole.max), _LAST_INT64)
    return -np.inf, np.inf
