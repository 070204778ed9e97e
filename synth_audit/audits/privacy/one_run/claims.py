"""Lower bounds on epsilon from claims about a split."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from synth_audit.arrays import Bools, Floats, Positions

LARGEST = 32.0
"""No ε above this is told: more claims would be needed than there are people."""

_STEPS, _ROUNDS = 32, 4
"""Steps of a search for ε, each round between two of the last: to five decimals of 32."""

_FINENESS = 1.25
"""Numbers of claims that are tried grow by this factor. With smaller steps the best one reaches beyond those
whom the release knows, to the first who happens not to be a member."""


@dataclass(frozen=True)
class Claims:
    """How many claims were made, and how many were right.

    Attributes:
        members, others: claims that an entity is in train, and that it is not.
        right: of both together.

    Raises:
        ValueError: a number is negative, or more were right than made.
    """

    members: int
    others: int
    right: int

    def __post_init__(self) -> None:
        if min(self.members, self.others, self.right) < 0 or self.right > self.made:
            raise ValueError("claims need 0 <= right <= members + others")

    @property
    def made(self) -> int:
        """All claims."""
        return self.members + self.others

    @property
    def perfect(self) -> "Claims":
        """As many claims, all of them right."""
        return Claims(self.members, self.others, self.made)


@dataclass(frozen=True)
class Coins:
    """Each entity's side was an independent coin.

    Given the release and all other coins a claim of membership is right with probability at most
    ``q₊ = p e^ε / (1 − p + p e^ε)``, one of the contrary with ``q₋ = (1 − p) e^ε / (p + (1 − p) e^ε)``: the
    number right is dominated by ``Bin(g₊, q₊) + Bin(g₋, q₋)``. δ adds ``m δ p (1 − p) / (1 − p + p e^ε)`` at
    most, and ``m δ p (1 − p) / (p + (1 − p) e^ε)`` where claims of the contrary are made: under (ε, δ)-DP an
    output may be likelier beyond e^ε by δ in all, for each of the m entities that could have been claimed.

    Attributes:
        p: probability of train, in (0, 1).
        delta: of the guarantee that is tested; 0 where none is.
        pool: m, the entities that could be claimed, not those that were; counts only beside δ.

    Raises:
        ValueError: a number is out of range.
    """

    p: float
    delta: float = 0.0
    pool: int = 0

    def __post_init__(self) -> None:
        if not (0 < self.p < 1 and 0 <= self.delta < 1 and self.pool >= 0):
            raise ValueError("coins need 0 < p < 1, 0 <= delta < 1 and a pool that is not negative")

    def tail(self, claims: Claims, epsilon: Floats) -> Floats:
        """``P[Bin(g₊, q₊) + Bin(g₋, q₋) ≥ right]``."""
        member, other = _odds_to_rate(self.p, epsilon), _odds_to_rate(1 - self.p, epsilon)
        return _sum_tail(claims, member, other)

    def slack(self, claims: Claims, epsilon: Floats) -> Floats:
        """For claims of membership, and as much again for those of the contrary where there are any."""
        grown, q = np.exp(epsilon), 1 - self.p
        each = (claims.members > 0) / (q + self.p * grown) + (claims.others > 0) / (self.p + q * grown)
        found: Floats = self.pool * self.delta * self.p * q * each
        return found


@dataclass(frozen=True)
class FixedSizes:
    """Sizes of train and control were fixed, and every division of these sizes was equally likely.

    Under ε-DP for replacing one entity by another, of k' entities of train and c' of control left the next
    claimed one is a member with odds of at most ``e^ε k' / c'``, whatever the sides of those claimed before:
    the number right is dominated by Wallenius' noncentral hypergeometric distribution with odds e^ε. Claims
    are all of membership, or all of the contrary. δ adds at most ``δ k c / min(c' + e^ε k')``, the least over
    the claims: an output may be likelier by δ in all for each pair whose sides are exchanged.

    Attributes:
        members, others: k and c, entities in train and in control of which a claim could be made.
        delta: of the guarantee that is tested; 0 where none is.

    Raises:
        ValueError: a number is out of range, or claims of both kinds are asked about.
    """

    members: int
    others: int
    delta: float = 0.0

    def __post_init__(self) -> None:
        if min(self.members, self.others) < 0 or not 0 <= self.delta < 1:
            raise ValueError("sizes must not be negative, and 0 <= delta < 1")

    def tail(self, claims: Claims, epsilon: Floats) -> Floats:
        """``P[X ≥ right]`` for X of Wallenius' distribution."""
        claimed, rest = self._sides(claims)
        return wallenius_tail(claims.right, claims.made, claimed, rest, epsilon)

    def slack(self, claims: Claims, epsilon: Floats) -> Floats:
        """At the composition that the last claim meets if all before were right."""
        claimed, rest = self._sides(claims)
        before = max(claims.made - 1, 0)
        least = (claimed + rest - before) + np.expm1(epsilon) * max(claimed - before, 0)
        found: Floats = self.delta * claimed * rest / np.maximum(least, 1.0)
        return found

    def _sides(self, claims: Claims) -> tuple[int, int]:
        if (claims.members and claims.others) or claims.made > self.members + self.others:
            raise ValueError("of a split of fixed sizes claims are of one kind, and no more than entities")
        return (self.others, self.members) if claims.others else (self.members, self.others)


Chances: TypeAlias = Coins | FixedSizes
"""How sides were decided, and what that makes of an ε.

To either belong the largest P[that many right, or more] under (ε, 0)-DP, which rises with ε (``tail``), and
what δ adds to it at most (``slack``); for each ε, shape (n,).
"""


def epsilon_at_least(chances: Chances, claims: Claims, alpha: float) -> float:
    """The largest ε that so many right claims refute at level α; 0 where they refute none.

    ``ε̂ = max {ε : P[W ≥ right] + slack(ε) ≤ α}``: where the truth is ε, ε̂ exceeds it with probability α at
    most. 0 says that these claims prove nothing, not that the release costs nothing.

    Args:
        alpha: in (0, 1).
    """
    highest = _largest(lambda e: chances.tail(claims, e), alpha, LARGEST)
    if highest == 0 or not chances.slack(claims, np.zeros(1))[0]:
        return highest
    return _largest(lambda e: chances.tail(claims, e) + chances.slack(claims, e), alpha, highest)


def epsilon_usual(chances: Chances, claims: Claims, chance: float) -> float:
    """The ε under which at least so many are right with this probability, whatever δ; 0 at least.

    ``chance = ½`` gives the ε that explains the claims best, ``1 − α`` one that would explain more of them.
    """
    return _largest(lambda e: chances.tail(claims, e), chance, LARGEST)


def refuted_by(p: float, made: Floats, right: Floats, alpha: float) -> Floats:
    """:func:`epsilon_at_least` of many numbers of claims of membership at once, δ = 0 and not cut at 0.

    ``log(q / (1 − q)) − log(p / (1 − p))`` with q the lower end of Clopper and Pearson's interval, the
    α-quantile of Beta(right, made − right + 1); −∞ where none was right. Shape as the arguments.
    """
    from scipy.special import betaincinv  # here, since a code location must not load it

    least = np.where(right > 0, betaincinv(np.maximum(right, 1), made - right + 1, alpha), 0.0)
    with np.errstate(divide="ignore"):
        found: Floats = np.log(least) - np.log1p(-least) - np.log(p / (1 - p))
    return found


def wallenius_tail(right: int, made: int, members: int, others: int, epsilon: Floats) -> Floats:
    """P[X ≥ right] of ``made`` draws without replacement, a member being e^ε times as likely as another.

    Draw by draw over the number that were wrong, so that no difference of nearly equal numbers is taken:
    O(made · (made − right)) for each ε. Source: Wallenius 1963.

    Returns:
        Shape of ``epsilon``, (n,).
    """
    if right > made:
        return np.zeros(len(epsilon))
    wrong = np.arange(made - right + 1)
    weight = np.exp(epsilon)[:, None]
    chance = np.zeros((len(epsilon), len(wrong)))
    chance[:, 0] = 1.0
    for drawn in range(made):
        told = weight * np.maximum(members - (drawn - wrong), 0)
        left = np.maximum(others - wrong, 0)
        hit = chance * (told / np.maximum(told + left, 1e-300))
        missed = chance - hit
        chance = hit
        chance[:, 1:] += missed[:, :-1]
    found: Floats = np.minimum(chance.sum(axis=1), 1.0)
    return found


def _odds_to_rate(p: float, epsilon: Floats) -> Floats:
    """``p e^ε / (1 − p + p e^ε)``."""
    rate: Floats = p / (p + (1 - p) * np.exp(-epsilon))
    return rate


def _sum_tail(claims: Claims, member: Floats, other: Floats) -> Floats:
    """P[Bin(g₊, q₊) + Bin(g₋, q₋) ≥ right], summed over the rarer kind of claims."""
    from scipy.special import bdtrc, gammaln, xlog1py, xlogy

    few, many = (claims.others, claims.members), (other, member)
    if claims.others > claims.members:
        few, many = few[::-1], many[::-1]
    (n, rest), (q_few, q_rest) = few, many
    j = np.arange(n + 1)[:, None]
    choose = gammaln(n + 1) - gammaln(j + 1) - gammaln(n - j + 1)
    mass = choose + xlogy(j, q_few) + xlog1py(n - j, -q_few)
    short = claims.right - j  # so many of the others must be right
    beyond = np.where(short <= 0, 1.0, bdtrc(np.clip(short - 1, 0, max(rest, 1)), max(rest, 1), q_rest))
    beyond = np.where(short > rest, 0.0, beyond)
    found: Floats = np.minimum(np.sum(np.exp(mass) * beyond, axis=0), 1.0)
    return found


def _largest(chance: Callable[[Floats], Floats], alpha: float, most: float) -> float:
    """The largest ε in [0, most] at which the chance is at most α, to five decimals; 0 if there is none.

    It is looked for among evenly spaced values, and then between the last that is and the next: where the
    chance falls and rises again a narrow stretch may be missed, and a smaller ε told, never a larger one.
    """
    low, high = 0.0, most
    for _ in range(_ROUNDS + 1):
        tried = np.linspace(low, high, _STEPS + 1)
        within = np.flatnonzero(chance(tried) <= alpha)
        if not len(within):
            return 0.0
        last = int(within[-1])
        if last == _STEPS:
            return float(tried[-1])
        low, high = float(tried[last]), float(tried[last + 1])
    return low


@dataclass(frozen=True)
class ClaimThreshold:
    """A score, by its position, and the value from which on it is claimed (up to which, of low scores).

    Attributes:
        refuted: the ε that it refutes where it was chosen, not cut at 0.
    """

    score: int
    value: float
    refuted: float = field(default=-math.inf, compare=False)


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
    outside = replace(outside, value=-outside.value)
    one = ClaimRule(members=inside) if inside.refuted >= outside.refuted else ClaimRule(others=outside)
    two, alone = ClaimRule(inside, outside), max(inside.refuted, outside.refuted)
    if not both or alone <= 0:
        return one
    return two if epsilon_at_least(Coins(p), two.counted(scores, members), alpha) > alone else one


def _best(scores: Floats, wanted: Bools, p: float, alpha: float, fewest: int) -> ClaimThreshold | None:
    """A threshold for high scores; of two that refute as much that of the first score, with fewer claims."""
    found = []
    for i, score in enumerate(scores):
        order = np.argsort(-score, kind="stable")
        ranked, right = score[order], np.cumsum(wanted[order])
        last = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True)[: len(ranked)])
        if len(last):
            tried = _spaced(last, fewest)
            refuted = refuted_by(p, (tried + 1).astype(np.float64), right[tried].astype(np.float64), alpha)
            at = int(np.argmax(refuted))
            found.append(ClaimThreshold(i, float(ranked[tried[at]]), float(refuted[at])))
    return max(found, key=lambda threshold: threshold.refuted, default=None)


def _spaced(last: Positions, fewest: int) -> Positions:
    """Ends of runs of ties at about geometric distances, from the first that holds ``fewest`` people on."""
    n = int(last[-1]) + 1
    start = min(max(fewest, 1), n)
    steps = math.ceil(math.log(n / start) / math.log(_FINENESS)) + 1
    sizes = np.minimum(np.ceil(start * _FINENESS ** np.arange(steps)), n)
    found: Positions = np.unique(last[np.searchsorted(last, sizes - 1)])
    return found


def allowed_pool(p: float, epsilon: float, delta: float, most: float) -> int:
    """The most people of whom claims of either kind take no more than ``most`` of a probability.

    ``most · min(1 − p + p e^ε, p + (1 − p) e^ε) / (δ p (1 − p))``; see :class:`Coins`.

    Args:
        epsilon, delta: of the guarantee that is tested, δ above 0.
    """
    grown = math.exp(min(epsilon, 50.0))
    least = min(1 - p + p * grown, p + (1 - p) * grown)
    return math.floor(min(most * least / (delta * p * (1 - p)), 1e12))


def beyond_most(isolation: Floats, among: Floats, most: int) -> Bools:
    """Who stands so far apart that of ``among`` no more than ``most`` do; everybody where they are few.

    Whom a release betrays stands apart more often than not, and how far does not depend on the release.

    Args:
        isolation: shape (n,). among: of those who are counted, shape (m,).

    Returns:
        shape (n,); of ``among`` fewer than ``most`` where several stand equally far apart.
    """
    if len(among) <= most:
        return np.ones(len(isolation), dtype=bool)
    found: Bools = isolation > np.sort(among)[len(among) - 1 - most]
    return found
