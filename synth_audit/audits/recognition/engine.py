"""The engine: chooses an attack on one half of the people and evaluates it on the other half.

A view gives every person a score. The engine knows which person is in the training set; no view does.

**Bits.** View v gives person i the score ``s_iv``. Its tail share is ``p_iv = #{k: s_kv >= s_iv} / n``, and
its information ``b_iv = -log2 p_iv`` bits.

**Rule.** A rule claims the people with the largest ``sum_v w_v b_iv`` as training people:

    excess = claimed training people / training people - claimed control people / control people.

**Choice.** The strength ``z_v`` of a view is its excess in standard errors, at the claim size where that is
largest. The 12 strongest views weigh ``w_v = z_v - z_(13)``, all others 0. The rule's own claim size is the
one with the largest excess minus its error.

**Cross-fitting.** A rule is chosen on one half of the people and evaluated on the other. Both halves evaluate
in turn, over several random halvings and several draws of the views' own randomness. Claims are averaged, so
every person is claimed only by rules that were chosen without that person.

**Strength.** A permutation test decides whether there is a leak. Its statistic is half the mean largest
excess of the evaluations, in standard errors, plus ``log mean exp z_v`` over the 12 strongest views among all
people. The first finds what many views show a little, and is halved since it varies twice as much. The second
finds leaks of so few people that halves hold too few, and leaks that one view alone shows clearly.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from synth_audit.arrays import Bools, Floats, Floats32, Positions
from synth_audit.findings.measurement import Interval
from synth_audit.stats.cross_fitting import halved
from synth_audit.stats.proportions import joined, proportion_interval
from synth_audit.stats.resampling import critical_value

VIEW_SIZES = (0.01, 0.02, 0.03, 0.05, 0.08)
"""Shares of the people at which views are compared: few people must be claimed for a weak leak to show."""

RULE_SIZES = (*VIEW_SIZES, 0.16, 0.32, 0.64)
"""Shares of the people that a rule may claim: large ones measure large leaks."""

STRONGEST = 12
"""Views of a rule, and of the strength. With 10 to 40 a rule recognised about as many people, in 25 releases
of two tables."""

CAUTION = 4.0
"""Standard errors deducted from an excess before claim sizes are compared. A leak of 4 standard errors is
found at 99 % confidence with 95 % power: the normal's quantiles are 2.33 and 1.64."""

HALVINGS = 6
"""Halvings for each draw of the views' own randomness: more make the interval hardly narrower."""

FAMILY = 0.01
"""Probability of a wrong finding, of each of the bounds and of the permutation test."""

PERMUTATIONS = 999
"""Permutations of the test at most."""

REACHED = round(FAMILY * (PERMUTATIONS + 1))
"""Permutations that reach the observed strength and end the test; p is above 0.01 then."""

CLEAR = 299
"""Permutations after which the test ends if none is as strong: p is 0.0033 then, and the chance that 999
would have given more than 0.01 is below 1e-4."""


@dataclass(frozen=True, eq=False)
class ViewScores:
    """The views, in one draw of their own randomness.

    Attributes:
        bits: information of each view about each person, at least 0, shape (views, people).
    """

    bits: Floats32 = field(repr=False)

    @cached_property
    def top(self) -> Positions:
        """People about whom each view says most, the first one first, shape (views, people claimed)."""
        return leading(self.bits, VIEW_SIZES)


@dataclass(frozen=True)
class AttackRule:
    """An attack: the views whose bits are added, their weights, and the share of the people it claims."""

    views: tuple[int, ...]
    weights: tuple[float, ...]
    size: float

    def of(self, views: ViewScores) -> Floats32:
        """Weighted bits of each person, shape (people,)."""
        found: Floats32 = np.asarray(self.weights, np.float32) @ views.bits[list(self.views)]
        return found


@dataclass(frozen=True, eq=False)
class Recognised:
    """What the engine found.

    Attributes:
        member: who is in the training set, shape (people,).
        claims: share of the evaluations in which each person was claimed, shape (people,).
        strength: statistic of the permutation test, see above.
        standing: mean standing of each person among those evaluated, in [0, 1], 1 for the first; (people,).
        evaluations: how often each person was evaluated.
        spread: standard error of the excess from the views' own draws.
        rules: every rule that was evaluated, with the draw it belongs to.
    """

    member: Bools = field(repr=False)
    claims: Floats = field(repr=False)
    strength: float
    standing: Floats = field(repr=False)
    evaluations: int
    spread: float
    rules: tuple[tuple[int, AttackRule], ...] = field(repr=False)

    @property
    def excess(self) -> float:
        """Share of training people claimed minus that of control people, in [-1, 1]."""
        return float(self.claims[self.member].mean() - self.claims[~self.member].mean())

    def interval(self, level: float, among: Bools | None = None) -> Interval:
        """Interval of the excess, of all people or among some, from the intervals of either side (MOVER).

        Averaged claims vary less than claims of yes or no. So either side counts as ``n p (1 - p) / var``
        people, with var the variance of its averaged claims, and as no more than all its evaluations. The
        error of the views' own draws is added. Without a leak, rules chosen on the same people agree by
        luck, so that a bound above 0 is a finding only together with a small :func:`p_value`.
        Source: Newcombe 1998, method 10; Zou & Donner 2008; effective numbers as in Korn & Graubard 1998.
        """
        people = np.ones(len(self.member), dtype=np.bool_) if among is None else among
        a, low_a, high_a = self._share(self.claims[people & self.member], level)
        b, low_b, high_b = self._share(self.claims[people & ~self.member], level)
        drawn = critical_value(level) * self.spread
        low = a - b - math.hypot(a - low_a, high_b - b, drawn)
        high = a - b + math.hypot(high_a - a, b - low_b, drawn)
        return Interval(low, high, level, f"{joined()}, cross-fitted")

    def _share(self, claims: Floats, level: float) -> tuple[float, float, float]:
        share = float(claims.mean())
        whole = share * (1 - share)
        part = float(claims.var()) / whole if whole > 0 else 1.0
        n = len(claims) / min(1.0, max(part, 1 / self.evaluations))
        ends = proportion_interval(min(share * n, n), n, level)
        return share, ends.low, ends.high


def information(scores: Floats | Floats32) -> Floats32:
    """Bits that each score tells: ``-log2`` of the share of people who score as high.

    Args:
        scores: higher for people who are more likely in the training set, not finite where a view says
            nothing, shape (views, people).

    >>> information(np.array([[3.0, 1.0, 2.0, np.nan]]))
    array([[2.       , 0.4150375, 1.       , 0.       ]], dtype=float32)
    """
    n = scores.shape[1]
    bits = np.zeros(scores.shape, np.float32)
    for row, score in zip(bits, scores, strict=True):
        known = np.where(np.isfinite(score), score, -np.inf)
        tail = 1 - np.searchsorted(np.sort(known), known, "left") / n
        row[:] = np.log2(1 / tail)
    return bits


def recognise(
    draws: Sequence[ViewScores], member: Bools, rng: np.random.Generator, *, halvings: int = HALVINGS
) -> Recognised:
    """Measure how many training people are recognised beyond control people.

    Args:
        draws: the views, once for each draw of their own randomness; of people in a random order, the same
            in all, since equal scores are claimed in that order.
        member: who is in the training set, shape (people,); either side has four people or more.
    """
    n, times = len(member), halvings * len(draws)
    claims, standing, rules = np.zeros((len(draws), n)), np.zeros(n), []
    strength = 0.0
    for draw, views in enumerate(draws):
        strongest = strengths(views, member, ~member)[1][:STRONGEST]
        strength += float(np.logaddexp.reduce(strongest) - math.log(len(strongest))) / len(draws)
        for second in halved(member, halvings, rng):
            for half in (second, ~second):
                rule = chosen(views, member, ~half)
                order = np.argsort(-rule.of(views), kind="stable")
                excess, error = excesses(order[None], member & half, ~member & half, RULE_SIZES)
                strength += float((excess / error).max()) / 2 / (2 * times)
                order = order[half[order]]
                claims[draw, order[: claim_count(rule.size, len(order))]] += 1 / halvings
                standing[order] += np.linspace(1, 0, len(order)) / times
                rules.append((draw, rule))
    by_draw = claims[:, member].mean(axis=1) - claims[:, ~member].mean(axis=1)
    spread = float(np.std(by_draw, ddof=1)) / math.sqrt(len(draws)) if len(draws) > 1 else 0.0
    return Recognised(member, claims.mean(axis=0), strength, standing, times, spread, tuple(rules))


def chosen(views: ViewScores, member: Bools, people: Bools) -> AttackRule:
    """The rule that does best on some of the people.

    Args:
        member: who is in the training set. people: who may be looked at; shape (people,) each.
    """
    sides = member & people, ~member & people
    order, strength = strengths(views, *sides)
    strongest, last = order[:STRONGEST], strength[min(STRONGEST, len(order) - 1)]
    weights = strength[:STRONGEST] - last if len(order) > 1 else np.ones(1)
    rule = AttackRule(tuple(strongest.tolist()), tuple(weights.tolist()), 0.0)
    excess, error = excesses(leading(rule.of(views)[None], RULE_SIZES), *sides, RULE_SIZES)
    size = RULE_SIZES[int((excess - CAUTION * error).argmax())]
    return AttackRule(rule.views, rule.weights, size)


def strengths(views: ViewScores, train: Bools, control: Bools) -> tuple[Positions, Floats]:
    """The views by their strength z among some people, the strongest first, and z; shape (views,) each.

    Args:
        train, control: who is counted on either side, shape (people,) each.
    """
    excess, error = excesses(views.top, train, control, VIEW_SIZES)
    strength = (excess / error).max(axis=1)
    order = np.argsort(-strength, kind="stable")
    return order, strength[order]


def leading(bits: Floats32, sizes: Sequence[float]) -> Positions:
    """People with most bits, as many as the largest claim, the first one first, shape (rows, claimed).

    Of equal bits those come first who stand first.
    """
    return np.argsort(-bits, axis=1, kind="stable")[:, : claim_count(max(sizes), bits.shape[1])]


def excesses(top: Positions, train: Bools, control: Bools, sizes: Sequence[float]) -> tuple[Floats, Floats]:
    """Excess at each claim size, and its standard error, shape (rows, sizes) each.

    Args:
        top: people whom each row claims, the first one first, shape (rows, claimed).
        train, control: who is counted on either side, shape (people,) each.
    """
    ends = [claim_count(size, len(train)) - 1 for size in sizes]
    n, k = int(train.sum()), int(control.sum())
    a, b = (np.cumsum(side[top], axis=1)[:, ends] / len_ for side, len_ in ((train, n), (control, k)))
    # One claim is added to either variance, so that no few claims count as certain.
    error = np.sqrt((a * (1 - a) + 1 / n) / n + (b * (1 - b) + 1 / k) / k)
    return a - b, error


def claim_count(size: float, n: int) -> int:
    """People in a claim of this share of n, at least one."""
    return max(1, round(size * n))


def p_value(draws: Sequence[ViewScores], member: Bools, rng: np.random.Generator) -> float:
    """Probability of so strong an attack, or a stronger one, where the release does not depend on the sides.

    Sides are permuted and every choice is repeated, with one halving for each draw of the views. With r of B
    permutations at least as strong as the attack, ``p = (1 + r) / (1 + B)``. Where :data:`REACHED` are, the
    test ends, and ``p = REACHED / B`` is as valid. Where none of the first :data:`CLEAR` is, it ends as well.
    Source: Besag & Clifford 1991.
    """
    strength = recognise(draws, member, rng, halvings=1).strength
    reached = 0
    for done in range(1, PERMUTATIONS + 1):
        reached += recognise(draws, rng.permutation(member), rng, halvings=1).strength >= strength
        if reached == REACHED:
            return REACHED / done
        if done == CLEAR and not reached:
            return 1 / (1 + done)
    return (1 + reached) / (1 + PERMUTATIONS)
