"""Of whom to claim what, chosen on people whose side is known, for people whose side is not."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from synth_audit.core.arrays import Bools, Floats, Positions
from synth_audit.kernels.one_run_bound import Claims, Coins, epsilon_at_least, refuted_by

_FINENESS = 1.25
"""Numbers of claims that are tried grow by this factor. With smaller steps the best one reaches beyond those
whom the release knows, to the first who happens not to be a member."""


@dataclass(frozen=True)
class ClaimThreshold:
    """A score, by its position, and the value from which on it is claimed (up to which, of low scores)."""

    score: int
    value: float


@dataclass(frozen=True)
class ClaimRule:
    """Who is claimed to be in train, and who not; None where nobody is.

    A rule is a threshold and no number of claims, so that tied people are claimed together or not at all.
    """

    members: ClaimThreshold | None = None
    others: ClaimThreshold | None = None

    def claims(self, scores: Floats) -> tuple[Bools, Bools]:
        """Of whom membership is claimed, and of whom the contrary; of nobody both.

        Args:
            scores: shape (s, n).
        """
        nobody = np.zeros(scores.shape[1], dtype=bool)
        inside = nobody if self.members is None else scores[self.members.score] >= self.members.value
        if self.others is None:
            return inside, nobody
        return inside, (scores[self.others.score] <= self.others.value) & ~inside

    def counted(self, scores: Floats, members: Bools) -> Claims:
        """The claims about these people and how many are right; ``members`` has shape (n,)."""
        inside, outside = self.claims(scores)
        right = int(np.sum(members[inside])) + int(np.sum(~members[outside]))
        return Claims(int(inside.sum()), int(outside.sum()), right)


def choose_rule(
    scores: Floats, members: Bools, p: float, alpha: float, fewest: int, *, both: bool = True
) -> ClaimRule:
    """The rule that would refute the largest ε on these people, among thresholds of all scores.

    Args:
        scores: shape (s, n), higher for likelier members.
        members: their sides, shape (n,). p: probability of train. alpha: level of the bound.
        fewest: no rule claims fewer, of either kind, where there are as many.
        both: claims of both kinds may be made beside each other.

    Returns:
        A rule that claims something, unless there is nobody.
    """
    inside = _best(scores, members, p, alpha, fewest)
    outside = _best(-scores, ~members, 1 - p, alpha, fewest)
    if inside is None or outside is None:
        return ClaimRule()
    high, low = ClaimThreshold(inside.score, inside.value), ClaimThreshold(outside.score, -outside.value)
    one = ClaimRule(members=high) if inside.refuted >= outside.refuted else ClaimRule(others=low)
    two = ClaimRule(high, low)
    if not both or max(inside.refuted, outside.refuted) <= 0:
        return one
    counted = two.counted(scores, members)
    alone = max(inside.refuted, outside.refuted)
    return two if epsilon_at_least(Coins(p), counted, alpha) > alone else one


@dataclass(frozen=True)
class _BestThreshold:
    """A threshold for high scores, and the ε that it refutes, not cut at 0."""

    score: int
    value: float
    refuted: float


def _best(scores: Floats, wanted: Bools, p: float, alpha: float, fewest: int) -> _BestThreshold | None:
    """Of two that refute as much the one of the first score, with the fewer claims."""
    return max(_candidates(scores, wanted, p, alpha, fewest), key=lambda c: c.refuted, default=None)


def _candidates(
    scores: Floats, wanted: Bools, p: float, alpha: float, fewest: int
) -> Iterator[_BestThreshold]:
    for i, score in enumerate(scores):
        order = np.argsort(-score, kind="stable")
        ranked, right = score[order], np.cumsum(wanted[order])
        last = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True)[: len(ranked)])
        if not len(last):
            continue
        tried = _spaced(last, fewest)
        refuted = refuted_by(p, (tried + 1).astype(np.float64), right[tried].astype(np.float64), alpha)
        at = int(np.argmax(refuted))
        yield _BestThreshold(i, float(ranked[tried[at]]), float(refuted[at]))


def _spaced(last: Positions, fewest: int) -> Positions:
    """Ends of runs of ties at about geometric distances, from the first that holds ``fewest`` people on."""
    n = int(last[-1]) + 1
    start = min(max(fewest, 1), n)
    steps = math.ceil(math.log(n / start) / math.log(_FINENESS)) + 1
    sizes = np.minimum(np.ceil(start * _FINENESS ** np.arange(steps)), n)
    found: Positions = np.unique(last[np.searchsorted(last, sizes - 1)])
    return found
