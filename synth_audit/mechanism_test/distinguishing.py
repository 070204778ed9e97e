"""Tells two neighbouring tables apart from many runs of a mechanism."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from synth_audit.arrays import Bools, Floats, Integers

COIN_SHARE = 0.1
"""Part of α that is spent, where δ > 0, on how often anything is claimed at all."""

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
"""Ridge of the scorer for each row, so that features that always agree can be solved for."""

_FAR = 6.0
"""Standard deviations beyond which a feature counts no more, so that one odd run does not rule the scorer."""


@dataclass(frozen=True)
class RuleCounts:
    """How a rule of claiming did.

    Attributes:
        runs: all runs. claimed: runs with a claim. right: claims that were right.
        sides: 1 for a rule that only ever claims one neighbour, else 2.
    """

    runs: int
    claimed: int
    right: int
    sides: int


@dataclass(frozen=True)
class ThresholdRule:
    """Claims *with* where a score is ``high`` or more, *without* where it is ``low`` or less.

    Attributes:
        high: None where *with* is never claimed. low: None where *without* is never claimed.
        sign: −1 where the score is turned round first.
    """

    high: float | None
    low: float | None
    sign: int = 1

    def counts(self, scores: Floats, having: Bools) -> RuleCounts:
        """How the rule does on these runs.

        Args:
            scores: shape (n,). having: runs on the neighbour with the canary, shape (n,).
        """
        turned = self.sign * scores
        nothing = np.zeros(len(turned), dtype=bool)
        claims_with = nothing if self.high is None else turned >= self.high
        claims_without = nothing if self.low is None else (turned <= self.low) & ~claims_with
        right = int((claims_with & having).sum() + (claims_without & ~having).sum())
        sides = (self.high is not None) + (self.low is not None)
        return RuleCounts(len(turned), int((claims_with | claims_without).sum()), right, sides)


def epsilon_at_least(counts: RuleCounts, delta: float, alpha: float) -> float:
    """The largest ε that a rule's claims refute at level α; 0 where they refute none.

    With q the probability that a claim is right, C that one is made and k the sides that are claimed,
    (ε, δ)-DP gives ``q (1 + e^ε) ≤ e^ε + d``, ``d = k δ / 2C``: hence ``ε̂ = log((q − d) / (1 − q))`` at the
    lower ends of q and, where δ > 0, of C.

    Args:
        delta: of the claim. alpha: in (0, 1): under a true claim ε̂ exceeds ε with probability α at most.
    """
    if counts.claimed == 0:
        return 0.0
    least_right = _least_share(counts.right, counts.claimed, alpha * (1 - COIN_SHARE if delta else 1))
    extra = 0.0
    if delta:
        extra = counts.sides * delta / (2 * _least_share(counts.claimed, counts.runs, alpha * COIN_SHARE))
    if least_right <= extra:
        return 0.0
    return max(0.0, math.log((least_right - extra) / (1 - least_right)))


def largest_epsilon(runs: int, delta: float, alpha: float) -> float:
    """What :func:`epsilon_at_least` says when every run has a claim and every claim is right; 0 without."""
    return epsilon_at_least(RuleCounts(runs, runs, runs, 2), delta, alpha) if runs else 0.0


def runs_to_refute(epsilon: float, alpha: float) -> int:
    """The fewest runs, all of them claimed rightly, that refute ε at δ = 0: ``log α / log q(ε)``."""
    return math.floor(math.log(alpha) / -math.log1p(math.exp(-epsilon))) + 1


def repeats_by_chance(values: Integers) -> float:
    """Probability, under independent draws, that the second half of a sequence repeats the first.

    Given which values occur how often, all orders are equally likely: of ``(2m)! / Π (2 a_v)!`` sequences
    ``m! / Π a_v!`` repeat, ``a_v`` being how often value v stands in a half.

    Args:
        values: codes of the first half's draws, shape (m,); the second half is the same.
    """
    counts = np.unique(values, return_counts=True)[1]
    m = int(counts.sum())
    repeating = math.lgamma(m + 1) - sum(math.lgamma(a + 1) for a in counts)
    every = math.lgamma(2 * m + 1) - sum(math.lgamma(2 * a + 1) for a in counts)
    return math.exp(repeating - every)


@dataclass(frozen=True)
class CurvePoint:
    """One point of a trade-off curve with the ends of both rates, valid for all points together.

    Attributes:
        fpr: P[claim of *with* | without], between ``fpr_low`` and ``fpr_high``. tpr: P[… | with], alike.
    """

    fpr: float
    fpr_low: float
    fpr_high: float
    tpr: float
    tpr_low: float
    tpr_high: float


def trade_off(scores: Floats, having: Bools, thresholds: Floats, level: float) -> tuple[CurvePoint, ...]:
    """Rates at thresholds that were fixed on other runs, each interval Clopper and Pearson's.

    The error is divided among the 2 k intervals of k thresholds (Bonferroni), so that all hold together.

    Args:
        level: of all intervals together.
    """
    each = (1 - level) / (2 * max(1, len(thresholds)))
    points = []
    for threshold in thresholds:
        claimed = scores >= threshold
        rates = []
        for side in (~having, having):
            n, k = int(side.sum()), int((claimed & side).sum())
            share = k / n if n else math.nan
            rates.append(
                (share, _least_share(k, n, each / 2), 1 - _least_share(n - k, n, each / 2))
                if n
                else (0.5, 0.0, 1.0)
            )
        points.append(CurvePoint(*rates[0], *rates[1]))
    return tuple(points)


def _least_share(successes: int, n: int, alpha: float) -> float:
    """One-sided lower end of a share after Clopper and Pearson: B(α; s, n − s + 1)."""
    from scipy.special import betaincinv  # here, since a code location must not load it

    return 0.0 if successes == 0 else float(betaincinv(successes, n - successes + 1, alpha))


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
    def learnt(cls, features: Floats, having: Bools) -> "LinearScore":
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
        return _expanded(features, self.middle, self.spread) @ self.weights


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
    rule: ThresholdRule
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
            found += _best_rules(scorer, scorer.of(features), having, tested, delta)
    if features.shape[1] > 1 and len(features) >= 8:
        learnt = Scorer(learnt=LinearScore.learnt(features[::2], having[::2]))
        found += _best_rules(learnt, learnt.of(features[1::2]), having[1::2], tested, delta)
    return max(found, key=lambda chosen: chosen.hoped)


def rules_to_test(
    chosen: Chosen, features: Floats, *, tested: int
) -> tuple[tuple[ThresholdRule, float], ...]:
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
                found.append(ThresholdRule(high, low, chosen.rule.sign))
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


def _best_rules(
    scorer: Scorer, values: Floats, having: Bools, tested: int, delta: float, sign: int = 1
) -> list[Chosen]:
    """The best rules that claim *with* above, *without* below, and both, of the score and of its opposite."""
    n, scores = len(values), sign * values
    high, made_high, right_high = _tails(-scores, having)
    low, made_low, right_low = _tails(scores, ~having)
    high = -high
    alone_high = _hope(right_high, made_high, n, tested, delta, 1)
    alone_low = _hope(right_low, made_low, n, tested, delta, 1)
    both = _hope(right_high[:, None] + right_low, made_high[:, None] + made_low, n, tested, delta, 2)
    both[high[:, None] <= low] = -np.inf  # one run cannot be claimed for both
    i, j = int(np.argmax(alone_high)), int(np.argmax(alone_low))
    a, b = np.unravel_index(int(np.argmax(both)), both.shape)
    found = [
        Chosen(scorer, ThresholdRule(float(high[i]), None, sign), float(alone_high[i])),
        Chosen(scorer, ThresholdRule(None, float(low[j]), sign), float(alone_low[j])),
        Chosen(scorer, ThresholdRule(float(high[a]), float(low[b]), sign), float(both[a, b])),
    ]
    return found if sign < 0 else found + _best_rules(scorer, values, having, tested, delta, -1)


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
    return np.log(np.maximum(least - extra, 1e-12) / np.maximum(1 - least, 1e-12))


def _expanded(features: Floats, middle: Floats, spread: Floats) -> Floats:
    z = np.clip((features - middle) / spread, -_FAR, _FAR)
    return np.hstack([z, z * z - 1])
