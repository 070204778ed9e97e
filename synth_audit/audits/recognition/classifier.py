"""One classifier for all questions about two groups of records."""

from __future__ import annotations

import numpy as np

from synth_audit.core.arrays import Bools, Floats
from synth_audit.kernels.parallel import single_threaded

ROUNDS, LEAVES, RATE = 40, 8, 0.1
"""Boosting rounds, leaves of a tree and learning rate: interactions of few columns in some hundred people."""


def log_odds(cells: Floats, second: Bools, asked: Floats, rng: np.random.Generator) -> Floats:
    """Learn to tell two groups of records apart by boosted trees, and say to which others belong.

    Args:
        cells: records of both groups, NaN where missing, shape (records, columns).
        second: which are of the second group, shape (records,).
        asked: records to judge, shape (asked, columns).

    Returns:
        Log odds of the second group, shape (asked,).
    """
    from sklearn.ensemble import HistGradientBoostingClassifier  # lazy import: keeps the CLI's start fast

    model = HistGradientBoostingClassifier(
        max_iter=ROUNDS,
        max_leaf_nodes=LEAVES,
        learning_rate=RATE,
        early_stopping=False,
        random_state=int(rng.integers(2**31)),
    )
    with single_threaded():
        found: Floats = model.fit(cells, second).decision_function(asked)
    return found
