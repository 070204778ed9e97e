"""What an ε costs whoever must tell two neighbouring tables apart, from many runs of a mechanism.

Before each run a fair coin decides which of two neighbours the mechanism is run on; somebody who sees the
result *claims* one of them, or claims nothing. The rule of claiming is fixed beforehand, on other runs. Under
(ε, δ)-DP claims are right hardly more often than ``e^ε / (1 + e^ε)``; more right claims refute ε. The runs
are independent, so that the number right of those claimed is binomial: nothing is assumed of scores, and no
distribution is fitted.

For a rule that claims one side only, on an event S, the bound is that of ``ε ≥ log((TPR − δ) / FPR)`` with
TPR = P[S | with], FPR = P[S | without]; for the other side, of ``log((1 − δ − FPR) / (1 − TPR))``. The coins
make one binomial share of the two rates, which is exact where an interval for each would be wider.

Sources: Wasserman & Zhou 2010 (the test), Kairouz, Oh & Viswanath 2015 (the region), Clopper & Pearson 1934
(the interval); the coins are those of Steinke, Nasr & Jagielski 2023, one for each run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from synth_audit.core.arrays import Bools, Floats, Integers

COIN_SHARE = 0.1
"""Part of α that is spent, where δ > 0, on how often anything is claimed at all."""


@dataclass(frozen=True)
class RuleCounts:
    """How a rule of claiming did.

    Attributes:
        runs: all runs. claimed: runs with a claim. right: claims that were right.
        sides: 1 for a rule that only ever claims one neighbour, else 2.

    Raises:
        ValueError: the numbers contradict one another.
    """

    runs: int
    claimed: int
    right: int
    sides: int

    def __post_init__(self) -> None:
        if not (0 <= self.right <= self.claimed <= self.runs and self.sides in (1, 2)):
            raise ValueError("a rule needs 0 <= right <= claimed <= runs, and one or two sides")


@dataclass(frozen=True)
class Rule:
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
