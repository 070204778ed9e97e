"""Cuts the rows of each entity down to a public number, so that a guarantee can be made to entities."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from synth_audit.core.arrays import Positions
from synth_audit.core.errors import PlanError


def bound_contributions(keys: Sequence[str], most: int, rng: np.random.Generator) -> Positions:
    """Positions of at most ``most`` rows per entity, chosen at random, in ascending order.

    An entity's rows are chosen without regard to any other entity's, so adding or removing an entity adds or
    removes at most ``most`` rows of what is kept: group privacy of that size then covers it.

    Args:
        keys: the entity of each row, shape (n,).
        most: declared publicly, never read off the table.
        rng: drawn from a secret; a reader who could repeat it would know which rows were kept.

    Raises:
        PlanError: ``most`` is below 1.
    """
    if most < 1:
        raise PlanError("an entity must be allowed rows", where="most rows per entity", expected="1 or more")
    from pandas import factorize  # here, so that looking around stays light

    entity, _ = factorize(np.asarray(keys, dtype=object))
    order = np.lexsort((rng.random(len(entity)), entity))
    grouped = entity[order]
    first = (
        np.flatnonzero(np.r_[True, grouped[1:] != grouped[:-1]])
        if len(grouped)
        else np.zeros(0, dtype=np.intp)
    )
    rank = np.arange(len(grouped)) - np.repeat(first, np.diff(np.r_[first, len(grouped)]))
    return np.sort(order[rank < most])
