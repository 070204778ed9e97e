"""What dates and times of day have in common."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from synth_audit.core.arrays import Floats
from synth_audit.core.kind_novelty import Precision
from synth_audit.core.resolution import TIME_UNITS, Resolution, ValueGrid, resolution_of, time_grids
from synth_audit.encoding.kinds._numbers import Numbers


class TimedNumbers(Numbers):
    """Numbers of microseconds, rounded to units of time."""

    decimal = False

    def resolution(self, values: pa.ChunkedArray) -> Resolution | None:
        """Years, months, days, hours, minutes, seconds and their parts."""
        return resolution_of(self._floats(values), time_grids(), decimal=False)

    def edge_grids(self, edges: Floats) -> Iterable[ValueGrid]:
        """Units of time and parts of an hour, none too fine to be read."""
        span = float(edges[-1] - edges[0])
        return [grid for grid in reversed(time_grids()) if grid.step >= span / 1000]

    def declared_resolution(self, precision: Precision) -> Resolution:
        """A unit of time."""
        if not isinstance(precision, str):
            raise TypeError(f"a {self.name} column has a unit of time as its precision")
        return Resolution(TIME_UNITS[precision])
