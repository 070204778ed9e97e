"""Rows of several parts joined where a validator finds that they belong together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from synth_audit.core.arrays import Floats, Positions

_PROGRESS = 0.01
"""Share of the rows still wanted from which on a round counts as progress."""


@dataclass(frozen=True)
class JoinRules:
    """When a join is taken.

    Attributes:
        threshold: score from which on a row is admitted; None for that of the best ``share`` of the first
            round.
        decay: share that the threshold loses after a round that admits hardly anything.
        patience: such rounds in a row after which the join ends. rounds: at most.
    """

    threshold: float | None
    share: float
    decay: float
    patience: int
    rounds: int


@dataclass(frozen=True)
class JoinRound:
    """One round: rows that were put together, the threshold, and how many of them were taken."""

    candidates: int
    threshold: float
    admitted: int


@dataclass(frozen=True, eq=False)
class ValidatedJoin:
    """What came of a join.

    Attributes:
        rows: for each part the positions of its rows in the joined table, each once, shape (joined, parts).
        rounds: in order. first: scores of the first round, of all that could be joined.
    """

    rows: Positions
    rounds: tuple[JoinRound, ...]
    first: Floats


def validated_join(
    n: int,
    pool: int,
    n_parts: int,
    score: Callable[[Positions], Floats],
    rules: JoinRules,
    rng: np.random.Generator,
) -> ValidatedJoin:
    """Join rows of parts in rounds: shuffle each part's pool, score, take rows at the threshold and above.

    What is taken leaves the pools, so that no row of a part is used twice. It ends with ``n`` rows, or
    without them once the rounds or the patience are used up. A round counts as progress that admits a
    hundredth of the rows still wanted: the paper lowers its threshold only after a round that admits none,
    by which a trickle of single rows would use up all rounds.

    Args:
        pool: rows of each part, at least n.
        score: of rows put together, given by positions in the pools, shape (candidates, parts).

    Source: Disjoint Generative Models (Lautrup et al. 2025), algorithm 1 and section 3.1.
    """
    left = np.tile(np.arange(pool)[:, None], (1, n_parts))
    threshold, idle = rules.threshold, 0
    taken: list[Positions] = []
    rounds: list[JoinRound] = []
    first = np.zeros(0)
    wanted = n
    while wanted and idle < rules.patience and len(rounds) < rules.rounds:
        left = np.column_stack([rng.permutation(column) for column in left.T])
        scores = score(left)
        if not rounds:
            first = scores
        if threshold is None:
            threshold = float(np.quantile(scores, 1 - rules.share))
        able = np.flatnonzero(scores >= threshold)[:wanted]
        rounds.append(JoinRound(len(left), threshold, len(able)))
        if len(able) < max(1, _PROGRESS * wanted):
            idle += 1
            threshold *= 1 - rules.decay
        else:
            idle = 0
        taken.append(left[able])
        left = np.delete(left, able, axis=0)
        wanted -= len(able)
    rows = np.concatenate([*taken, np.empty((0, n_parts), dtype=np.intp)])
    return ValidatedJoin(rows[rng.permutation(len(rows))], tuple(rounds), first)


def shares_above(scores: Sequence[Floats], thresholds: Floats) -> list[Floats]:
    """Share of each group of scores at each threshold or above, shape (thresholds,) each."""
    return [1 - np.searchsorted(np.sort(s), thresholds, side="left") / max(len(s), 1) for s in scores]
