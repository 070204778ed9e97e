"""The margin of a column of numbers: what storage and declared bounds mean for its distribution."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from synth_audit.core.arrays import Floats
from synth_audit.core.kind import Bounds
from synth_audit.core.kind_distribution import MarginMethod
from synth_audit.core.storage_types import MOST_EXACT
from synth_audit.kernels.margins import Margin, empirical_margin, kde_margin

DAY = 86_400e6
"""In microseconds."""

_YEARS_1_TO_9999 = (-62_135_596_800e6, 253_402_214_400e6)
_NANOSECONDS = (-9.2e15, 9.2e15)  # what 64-bit nanoseconds can hold, in microseconds


def number_margin(
    values: Floats, storage: pa.DataType, method: MarginMethod, *, step: float, bounds: Bounds | None
) -> Margin:
    """Fit a margin; values drawn from it fit the bounds and the storage.

    Args:
        values: shape (n,), NaN where missing; datetimes in microseconds.
        step: spacing of the values that can occur; 0 when all can.

    Raises:
        ValueError: no value is present.
    """
    limits = storage_limits(storage)
    if method == "empirical":
        return empirical_margin(values, step=step, limits=limits)
    return kde_margin(values, step=step, bounds=bounds, limits=limits)


def storage_limits(storage: pa.DataType) -> Bounds:
    """What the storage type can hold."""
    if pa.types.is_timestamp(storage) and storage.unit == "ns":
        return _NANOSECONDS
    if pa.types.is_time(storage):
        return 0.0, DAY - 1
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
        return max(float(whole.min), -MOST_EXACT), min(float(whole.max), MOST_EXACT)
    return -np.inf, np.inf
