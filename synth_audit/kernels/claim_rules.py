"""Finds, on some runs of a mechanism, the score and the rule of claiming that should refute most on others.

What is found here decides nothing: it is tested on runs that were not looked at, so that any search is
allowed, and a poor one costs power only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from synth_audit.core.arrays import Bools, Floats
from synth_audit.kernels.distinguishing import Rule, RuleCounts, epsilon_at_least

_EDGES = 24
"""Thresholds of either tail that are tried together."""

_CAUTION, _TEST = 2.0, 3.1
"""Standard deviations by which a share seen here is lowered: for the search, and as the test will."""

_SHARES = (0.03, 0.015, 0.0075, 0.004, 0.002, 0.001)
"""Of the runs, claimed by rules that are tested beside the chosen one."""

_OF_CHOSEN = 0.3
"""Of α, for the chosen rule where others are tested too."""

_ENOUGH = 100
"""Claims to be expected of a rule that is worth a share of α."""

_RIDGE = 1e-2
_FAR = 6.0


@dataclass(frozen=True, eq=False)
class LinearScore:
    """A weighted sum of standardised features and of their squares, cut off far out.

    Attributes:
        middle, spread: of each feature, shape (k,). weights: shape (2 k,).
    """

    middle: Floats
    spread: Floats
    weights: Floats

    @classmethod
    def learnt(cls, features: Floats, having: Bools) -> LinearScore:
        """Ridge regression of the side on the features, shape (n, k)."""
        middle = np.median(features, axis=0)
        spread = features.std(axis=0)
        spread = np.where(spread > 0, spread, 1.0)
        x = _expanded(features, middle, spread)
        side = having - having.mean()
        gram = x.T @ x + _RIDGE * len(x) * np.eye(x.shape[1])
        return cls(middle, spread, np.linalg.solve(gram, x.T @ side))

    def of(self, features: Floats) -> Floats:
        """Scores of runs, shape (n,)."""
        scores: Floats = _expanded(features, self.middle, self.spread) @ self.weights
        return scores


@dataclass(frozen=True, eq=False)
class Scorer:
    """Which score is looked at.

    Attributes:
        feature: position of the one feature; None for the learnt sum.
        centre: where not None, the score is the distance of the feature from it.
    """

    feature: int | None = None
    centre: float | None = None
    learnt: LinearScore | None = None

    def of(self, features: Floats) -> Floats:
        """Scores of runs with these features, shape (n,)."""
        if self.feature is None:
            assert self.learnt is not None
            return self.learnt.of(features)
        column = features[:, self.feature]
        return column if self.centre is None else np.abs(column - self.centre)

    def named(self, names: tuple[str, ...]) -> str:
        """What is looked at, for a reader."""
        if self.feature is None:
            return "a weighted sum of all scores, learnt on other runs"
        name = names[self.feature]
        return name if self.centre is None else f"how far from its middle: {name}"


@dataclass(frozen=True, eq=False)
class Chosen:
    """A score and a rule, and the ε that the search hopes for."""

    scorer: Scorer
    rule: Rule
    hoped: float


def choose(features: Floats, having: Bools, *, tested: int, delta: float) -> Chosen:
    """The score and rule that promise the largest bound on ``tested`` further runs.

    Each feature is tried as it is and by its distance from its middle; the learnt sum is fitted on every
    other run and tried on the rest.

    Args:
        features: shape (n, k), finite. having: shape (n,).
    """
    found: list[Chosen] = []
    for j in range(features.shape[1]):
        column = features[:, j]
        for scorer in (Scorer(j), Scorer(j, float(np.median(column)))):
            found.append(_best_rule(scorer, scorer.of(features), having, tested, delta))
    if features.shape[1] > 1 and len(features) >= 8:
        learnt = Scorer(learnt=LinearScore.learnt(features[::2], having[::2]))
        found.append(_best_rule(learnt, learnt.of(features[1::2]), having[1::2], tested, delta))
    return max(found, key=lambda chosen: chosen.hoped)


def rules_to_test(chosen: Chosen, features: Floats, *, tested: int) -> tuple[tuple[Rule, float], ...]:
    """The chosen rule, and with many runs others that claim ever rarer, each with its share of α.

    How far out a bound is largest, a pilot tells badly: few of its runs are there. So several rules are
    tested at once, and α is divided among them (Bonferroni).

    Args:
        features: of the pilot, shape (n, k), whose quantiles the other rules are set by.
    """
    scores = chosen.rule.sign * chosen.scorer.of(features)
    found = []
    for share in _SHARES:
        if share * tested >= _ENOUGH:
            low, high = (float(x) for x in np.quantile(scores, [share / 2, 1 - share / 2]))
            if low < high:
                found.append(Rule(high, low, chosen.rule.sign))
    if not found:
        return ((chosen.rule, 1.0),)
    rest = (1 - _OF_CHOSEN) / len(found)
    return ((chosen.rule, _OF_CHOSEN), *((rule, rest) for rule in found))


def best_bound(
    counts: Sequence[tuple[RuleCounts, float]], delta: float, alpha: float
) -> tuple[float, RuleCounts, int]:
    """The largest bound of rules that were tested at once, how that rule did, and its position.

    Args:
        counts: of each rule, with its share of α.
    """
    bounds = [epsilon_at_least(done, delta, alpha * share) for done, share in counts]
    best = int(np.argmax(bounds))
    return bounds[best], counts[best][0], best


def _best_rule(scorer: Scorer, scores: Floats, having: Bools, tested: int, delta: float) -> Chosen:
    best = [_best_signed(scorer, sign, sign * scores, having, tested, delta) for sign in (1, -1)]
    return max(best, key=lambda chosen: chosen.hoped)


def _best_signed(
    scorer: Scorer, sign: int, scores: Floats, having: Bools, tested: int, delta: float
) -> Chosen:
    """The best rule that claims *with* above and *without* below."""
    n = len(scores)
    high, made_high, right_high = _tails(-scores, having)
    low, made_low, right_low = _tails(scores, ~having)
    high = -high
    alone_high = _hope(right_high, made_high, n, tested, delta, 1)
    alone_low = _hope(right_low, made_low, n, tested, delta, 1)
    both = _hope(right_high[:, None] + right_low, made_high[:, None] + made_low, n, tested, delta, 2)
    both[high[:, None] <= low] = -np.inf  # one run cannot be claimed for both
    i, j = int(np.argmax(alone_high)), int(np.argmax(alone_low))
    a, b = np.unravel_index(int(np.argmax(both)), both.shape)
    options = (
        Chosen(scorer, Rule(float(high[i]), None, sign), float(alone_high[i])),
        Chosen(scorer, Rule(None, float(low[j]), sign), float(alone_low[j])),
        Chosen(scorer, Rule(float(high[a]), float(low[b]), sign), float(both[a, b])),
    )
    return max(options, key=lambda chosen: chosen.hoped)


def _tails(scores: Floats, right: Bools) -> tuple[Floats, Floats, Floats]:
    """Thresholds of the lower tail, runs at or below each, and those of them on the right side."""
    order = np.argsort(scores, kind="stable")
    ordered = scores[order]
    ends = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True))  # last run of each distinct value
    if len(ends) > _EDGES:
        sizes = np.unique(np.geomspace(1, len(ordered), _EDGES).astype(np.intp)) - 1
        ends = np.unique(ends[np.minimum(np.searchsorted(ends, sizes), len(ends) - 1)])
    return ordered[ends], (ends + 1).astype(np.float64), np.cumsum(right[order])[ends].astype(np.float64)


def _hope(right: Floats, made: Floats, n: int, tested: int, delta: float, sides: int) -> Floats:
    """Roughly the bound to expect: the share lowered by Wilson's formula for the search and for the test."""
    share = right / made
    squared = _CAUTION**2 + _TEST**2 * n / max(1, tested)  # in units of the runs here
    centre = share + squared / (2 * made)
    half = np.sqrt(squared * share * (1 - share) / made + (squared / (2 * made)) ** 2)
    least = (centre - half) / (1 + squared / made)
    extra = sides * delta * n / (2 * made)
    hoped: Floats = np.log(np.maximum(least - extra, 1e-12) / np.maximum(1 - least, 1e-12))
    return hoped


def _expanded(features: Floats, middle: Floats, spread: Floats) -> Floats:
    z = np.clip((features - middle) / spread, -_FAR, _FAR)
    return np.hstack([z, z * z - 1])
