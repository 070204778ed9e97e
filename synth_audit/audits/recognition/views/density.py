"""Density: is the release denser where the person is than the population is?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from synth_audit.audits.recognition.classifier import cross_fitted_odds
from synth_audit.audits.recognition.people import PooledPeople
from synth_audit.audits.recognition.view import Score, ViewInfo

_LEAVES = 15
"""Leaves of a tree: what an overfitted generator repeats are interactions of some columns."""


@dataclass(frozen=True, kw_only=True)
class Density:
    """Log density of the release over that of the population, by a classifier.

    Boosted trees tell release rows from people of the other half. Their log odds for a person estimate
    ``log p_release(x) / p_population(x)``, which an overfitted generator raises at its training people.

    Source: van Breugel et al. 2023 (DOMIAS), with a classifier's ratio in place of two densities.
    """

    info: ClassVar[ViewInfo] = ViewInfo(
        title="Density of the release over that of the population",
        finds="rows that crowd where few other people are",
        source="van Breugel et al. 2023",
    )

    def scores(self, pool: PooledPeople, rng: np.random.Generator) -> Iterator[Score]:
        """Score by the log odds of a classifier."""
        half = rng.permutation(pool.people) < pool.people // 2
        yield Score("boosted trees", cross_fitted_odds(pool, half, rng, leaves=_LEAVES))
