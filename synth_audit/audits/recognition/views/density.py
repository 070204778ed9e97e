"""Density: is the release denser where the person is than the population is?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from synth_audit.audits.recognition.people import PooledColumn, PooledPeople
from synth_audit.audits.recognition.view import Score, ViewInfo
from synth_audit.core.arrays import Floats
from synth_audit.kernels.parallel import single_threaded

_ROUNDS, _LEAVES, _RATE = 60, 15, 0.1
"""Boosting rounds, leaves of a tree and learning rate: enough to fit interactions of some columns."""

_FOLDS = 2
"""Folds: a person is scored by trees that have not seen the person's own records."""


@dataclass(frozen=True, kw_only=True)
class Density:
    """Log density of the release over that of the population, by a classifier.

    Boosted trees tell release rows from people of the other fold. Their log odds for a person estimate
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
        from sklearn.ensemble import HistGradientBoostingClassifier  # lazy import: keeps the CLI's start fast

        people, release = (
            np.column_stack([_values(c, side) for c in pool.columns]) for side in ("people", "release")
        )
        fold = rng.integers(_FOLDS, size=pool.people)[pool.person]
        odds = np.full(pool.records, -np.inf)
        for k in range(_FOLDS):
            other = people[fold != k]
            if len(other) and (fold == k).any():
                model = HistGradientBoostingClassifier(
                    max_iter=_ROUNDS,
                    max_leaf_nodes=_LEAVES,
                    learning_rate=_RATE,
                    early_stopping=False,
                    random_state=int(rng.integers(2**31)),
                )
                with single_threaded():
                    model.fit(np.vstack([other, release]), np.arange(len(other) + len(release)) >= len(other))
                    odds[fold == k] = model.decision_function(people[fold == k])
        yield Score("boosted trees", odds)


def _values(column: PooledColumn, side: str) -> Floats:
    values: Floats = getattr(column, side)
    return np.where(values < 0, np.nan, values) if not column.numeric else values
