"""A margin as plain JSON values, and back to the last bit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from synth_audit.core.kind_distribution import DistributionFunction
from synth_audit.core.schema_json import range_to_plain
from synth_audit.kernels.margins import Margin


def margin_to_plain(margin: DistributionFunction) -> dict[str, Any]:
    """Knots, levels, step and limits."""
    return {
        "knots": margin.knots.tolist(),
        "levels": margin.levels.tolist(),
        "step": margin.step,
        "limits": range_to_plain(margin.limits),
    }


def margin_from_plain(plain: Mapping[str, Any]) -> Margin:
    """The margin that :func:`margin_to_plain` wrote."""
    low, high = plain["limits"]
    return Margin(
        np.array(plain["knots"], dtype=np.float64),
        np.array(plain["levels"], dtype=np.float64),
        plain["step"],
        (float(low), float(high)),
    )
