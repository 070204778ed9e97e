"""A classifier's log odds for people it was not grown on: the likelihood ratio of two groups of records."""

from __future__ import annotations

import numpy as np

from synth_audit.audits.recognition.people import PooledColumn, PooledPeople
from synth_audit.core.arrays import Bools, Floats
from synth_audit.kernels.parallel import single_threaded

_ROUNDS = 60
"""Boosting rounds: by a learning rate of 0.1, nearly all of what single columns tell."""


def cross_fitted_odds(
    pool: PooledPeople,
    half: Bools,
    rng: np.random.Generator,
    *,
    leaves: int,
    member: Bools | None = None,
) -> Floats:
    """Score each half of the people by boosted trees that were grown on the other half.

    Args:
        half: who belongs to the first half, shape (people,).
        leaves: of a tree at most.
        member: the side of each person, shape (people,). Without it people are told from release rows.

    Returns:
        Log odds of a member, or of a release row, shape (records,).

    Source: density ratios by classification, Sugiyama et al. 2012; gradient boosting, Friedman 2001.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier  # lazy import: keeps the CLI's start fast

    people = np.column_stack([_values(c, c.people) for c in pool.columns])
    release = np.column_stack([_values(c, c.release) for c in pool.columns])
    odds = np.empty(pool.records)
    for asked in (half[pool.person], ~half[pool.person]):
        if member is None:
            known = np.vstack([people[~asked], release])
            label = np.arange(len(known)) >= np.count_nonzero(~asked)
        else:
            known, label = people[~asked], member[pool.person][~asked]
        model = HistGradientBoostingClassifier(
            max_iter=_ROUNDS,
            max_leaf_nodes=leaves,
            early_stopping=False,
            random_state=int(rng.integers(2**31)),
        )
        with single_threaded():
            odds[asked] = model.fit(known, label).decision_function(people[asked])
    return odds


def _values(column: PooledColumn, cells: Floats) -> Floats:
    return cells if column.numeric else np.where(cells < 0, np.nan, cells)
