"""The usual sorts of numbers: what they measure, between which ends, and which way is safer."""

from __future__ import annotations

import math
from functools import partial

from synth_audit.findings.measurement import Direction, Quantity

descriptive = partial(Quantity, direction=Direction.NEUTRAL)
"""Describes an attack or a release; no gate rests on it."""

risk_over_control = partial(Quantity, range=(-math.inf, 1.0))
"""Part of the targets that only the release puts at risk; unclipped, so that chance shows below 0."""

excess_over_control = partial(Quantity, range=(-1.0, 1.0))
"""A share less the same share of control."""

distance = partial(Quantity, unit="distance")
"""0 for what is the same."""

gain = partial(Quantity, unit="score", direction=Direction.HIGHER)
"""The more, the better."""

score_loss = partial(Quantity, unit="score", range=(-math.inf, math.inf))
"""A score learnt from real rows, less that learnt from the release."""
