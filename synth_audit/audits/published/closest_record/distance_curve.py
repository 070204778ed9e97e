"""How far rows of the release and of control are from train, as a picture."""

from __future__ import annotations

import numpy as np

from synth_audit.core.arrays import Floats
from synth_audit.core.identity import MeasurementId
from synth_audit.core.series import Series
from synth_audit.kernels.neighbours import Nearest


def distance_curve(to_train: Nearest, real: Nearest, suppression: int) -> Series:
    """Cumulative distribution of both distances, in steps of the smallest count that may be shown."""
    grid = np.linspace(0.0, float(np.quantile(np.concatenate([to_train.first, real.first]), 0.99)), 61)

    def cumulative(values: Floats) -> tuple[float, ...]:
        counts = np.searchsorted(np.sort(values), grid, side="right")
        return tuple((counts // suppression * suppression / len(values)).tolist())

    return Series(
        id=MeasurementId("", "distance_to_train"),
        title="Distance to the closest training row",
        kind="line",
        x_label="distance (standard deviations)",
        y_label="share of rows at most this far",
        x=tuple(grid.tolist()),
        lines={"synthetic rows": cumulative(to_train.first), "control rows": cumulative(real.first)},
    )
