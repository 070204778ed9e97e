"""What audits declare alike: the usual sorts of quantities, and checks of their settings."""

import math
from collections.abc import Sequence
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

merit = partial(Quantity, unit="score", direction=Direction.HIGHER)
"""The more, the better."""

score_loss = partial(Quantity, unit="score", range=(-math.inf, math.inf))
"""A score learnt from real rows, less that learnt from the release."""


def at_least(audit: object, **least: float) -> None:
    """Check settings against the smallest values that they may have.

    Raises:
        ValueError: one is smaller.
    """
    for name, minimum in least.items():
        if (value := getattr(audit, name)) < minimum:
            raise ValueError(f"{name} must be at least {minimum}, got {value}")


def different(audit: object, *names: str) -> None:
    """Check that settings, together, do not list anything twice.

    Raises:
        ValueError: one of them repeats something, or two of them share it.
    """
    listed = [x for name in names for x in getattr(audit, name)]
    if len(set(listed)) < len(listed):
        raise ValueError(f"{' and '.join(names)} must not repeat anything")


def some_of(audit: object, name: str, known: Sequence[str]) -> None:
    """Check that a setting lists some of the known names, each once.

    Raises:
        ValueError: it is empty, repeats a name or holds another.
    """
    found = getattr(audit, name)
    if not found or not set(found) <= set(known) or len(set(found)) < len(found):
        raise ValueError(f"{name} must be some of {', '.join(known)}, each once")


def share(audit: object, name: str, most: float = 1.0) -> None:
    """Check that a setting lies above 0, and below 1 or at a smaller bound at most.

    Raises:
        ValueError: it does not.
    """
    value = getattr(audit, name)
    if not 0 < value <= most or value >= 1:
        end = ")" if most >= 1 else "]"
        raise ValueError(f"{name} must be in (0, {most:g}{end}, got {value}")
