"""Do training and control people differ by themselves? One classifier for all questions about two groups."""

import math
from dataclasses import dataclass

import numpy as np

from synth_audit.arrays import Bools, Floats
from synth_audit.audits.recognition.people import PooledColumn, PooledPeople
from synth_audit.execution.executor import single_threaded
from synth_audit.stats.roc import auroc

ROUNDS, LEAVES = 40, 8
"""Boosting rounds and leaves of a tree: interactions of few columns in some hundred people."""

NAMED = 5
"""Columns that are named at most."""


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
        early_stopping=False,
        random_state=int(rng.integers(2**31)),
    )
    with single_threaded():
        found: Floats = model.fit(cells, second).decision_function(asked)
    return found


@dataclass(frozen=True)
class SideTest:
    """Outcome of the test.

    Attributes:
        p: probability of so large a difference, or a larger one, under exchangeable sides.
        columns: names of the columns that differ most by themselves, the clearest first.
    """

    p: float
    columns: tuple[str, ...]


def side_test(pool: PooledPeople, member: Bools, rng: np.random.Generator) -> SideTest:
    """Test whether the sides differ, by the people's own records.

    Args:
        member: who is in the training set, shape (people,).
    """
    cells = np.column_stack([c.cells("people") for c in pool.columns])
    half = rng.permutation(pool.people) < pool.people // 2
    found = []
    for test in (half, ~half):
        learn, asked = ~test[pool.person], test[pool.person]
        odds = np.full(pool.records, -np.inf)
        odds[asked] = log_odds(cells[learn], member[pool.person][learn], cells[asked], rng)
        found.append(_p(pool.of_people(odds)[test], member[test]))
    names = [c.name for c in pool.columns]
    alone = [_p_of_column(c, pool, member) for c in pool.columns]
    order = sorted(range(len(names)), key=lambda j: alone[j])
    return SideTest(min(1.0, 2 * min(found)), tuple(dict.fromkeys(names[j] for j in order[:NAMED])))


def _p(scores: Floats, member: Bools, *, both_ways: bool = False) -> float:
    """Probability that exchangeable sides give so large a rank sum; 1 where one side is missing."""
    n, k = int(member.sum()), int((~member).sum())
    if not n or not k:
        return 1.0
    counts = np.unique(scores, return_counts=True)[1].astype(np.float64)
    tied = float((counts**3 - counts).sum()) / ((n + k) * max(1, n + k - 1))
    error = math.sqrt(max(0.0, n + k + 1 - tied) / (12 * n * k))
    if not error:
        return 1.0
    z = (auroc(scores[member], scores[~member]) - 0.5) / error
    return math.erfc(abs(z) / math.sqrt(2)) if both_ways else math.erfc(z / math.sqrt(2)) / 2


def _p_of_column(column: PooledColumn, pool: PooledPeople, member: Bools) -> float:
    """Smallest p of a number, of whether it is missing, or of any one label."""
    scores = [np.nan_to_num(column.people, nan=-np.inf), np.isnan(column.people) * 1.0]
    if not column.numeric:
        labels, counts = np.unique(column.people, return_counts=True)
        scores = [(column.people == x) * 1.0 for x in labels[np.argsort(-counts)][: 8 * NAMED]]
    return len(scores) * min(_p(pool.of_people(s), member, both_ways=True) for s in scores)
