"""Of how many people claims may be made when each may cost the δ of a guarantee."""

from __future__ import annotations

import math

import numpy as np

from synth_audit.core.arrays import Bools, Floats


def allowed_pool(p: float, epsilon: float, delta: float, most: float) -> int:
    """The most people of whom claims of either kind take no more than ``most`` of a probability.

    ``most · min(1 − p + p e^ε, p + (1 − p) e^ε) / (δ p (1 − p))``; see :class:`.one_run_bound.Coins`.

    Args:
        epsilon, delta: of the guarantee that is tested, δ above 0.
    """
    grown = math.exp(min(epsilon, 50.0))
    least = min(1 - p + p * grown, p + (1 - p) * grown)
    return math.floor(min(most * least / (delta * p * (1 - p)), 1e12))


def beyond_most(isolation: Floats, among: Floats, most: int) -> Bools:
    """Who stands so far apart that of ``among`` no more than ``most`` do; everybody where they are few.

    Whom a release betrays stands apart more often than not, and how far does not depend on the release.

    Args:
        isolation: shape (n,). among: of those who are counted, shape (m,).

    Returns:
        shape (n,); of ``among`` fewer than ``most`` where several stand equally far apart.
    """
    if len(among) <= most:
        return np.ones(len(isolation), dtype=bool)
    found: Bools = isolation > np.sort(among)[len(among) - 1 - most]
    return found
