"""Is the nearest real row of a synthetic one in train? The share, and its excess over chance."""

from __future__ import annotations

import math
from statistics import NormalDist

from synth_audit.core.measurement import Direction, Interval, Measurement, Quantity, Reference
from synth_audit.kernels import dcr
from synth_audit.kernels.neighbours import Nearest
from synth_audit.kernels.proportion_interval import proportion_interval

FEWEST_ROWS = 100
"""Fewer synthetic rows than this decide nothing."""

SHARE = Quantity(
    "share",
    "Synthetic rows nearer to train than to control",
    proportional=False,  # its scale depends on the sizes of train and control
)
SHARE_EXCESS = Quantity(
    "share_excess",
    "Closest-record share beyond chance",
    range=(-1.0, 1.0),
    proportional=False,
    help="The share less what a release that is independent of train would show.",
)
SHARE_LEAK = Quantity(
    "share_leak",
    "Copied rows that would explain the closest-record share",
    range=(float("-inf"), 1.0),
    help="0: none; 1: all. The excess over chance as a part of the most that the split allows.",
)
SHARE_P_VALUE = Quantity(
    "share_p_value",
    "p-value of the closest-record share",
    unit="probability",
    direction=Direction.HIGHER,
    help="Chance of so large a share if the release were independent of train.",
)
QUANTITIES = (SHARE, SHARE_EXCESS, SHARE_LEAK, SHARE_P_VALUE)

_INDEPENDENT = "a release that is independent of the split"


def shares(
    to_train: Nearest, to_control: Nearest, n_train: int, n_control: int, level: float, setting: str = ""
) -> list[Measurement]:
    """Share of synthetic rows nearest to train, with its interval on the independent number of rows."""
    share, n_effective = dcr.closest_share(to_train, to_control, n_train)
    null = n_train / (n_train + n_control)
    around = proportion_interval(min(share * n_effective, n_effective), n_effective, level)
    z = (share - null) / math.sqrt(null * (1 - null) / n_effective)
    n = len(to_train.first)

    def restated(quantity: Quantity, origin: float, unit: float) -> Measurement:
        return quantity.at(
            (share - origin) / unit,
            setting=setting,
            interval=Interval(
                (around.low - origin) / unit,
                (around.high - origin) / unit,
                level,
                f"{around.method} on the effective number of rows",
            ),
            n_requested=n,
            n_achieved=n,
            n_minimum=FEWEST_ROWS,
            reference=Reference((null - origin) / unit, _INDEPENDENT),
        )

    return [
        restated(SHARE, 0.0, 1.0),
        restated(SHARE_EXCESS, null, 1.0),
        restated(SHARE_LEAK, null, 1 - null),
        SHARE_P_VALUE.at(NormalDist().cdf(-z), setting=setting, n_requested=n, n_achieved=n),
    ]
