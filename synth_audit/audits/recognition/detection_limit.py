"""Detection limits: the smallest leak that the whole procedure would have found on this table.

For each class of leak, rows of the release are replaced by what a share g of the training people would
leave. All views are computed again and the test is repeated. To spare time, a person is compared with the new
rows and with those that stood out before (:class:`~synth_audit.audits.recognition.people.ReleaseMemory`). The
margin

    x = mean(S) - c

is the strength S of the attack beyond its 99 % quantile c over permuted sides. A leak moves mean and
deviation of S over permuted sides as well; c is as many deviations above the mean as without one. S is
averaged over sides that are drawn again for everybody whose side the planting leaves open; sigma is its
deviation over these.
The leak is found where ``x + sigma e > 0`` with a normal e. How large x is depends on the people and the
columns drawn, so each share is planted with several draws. Without a leak x is x_0. Near the limit it
rises as

    log(x - x_0) = m + p log g + s e,

with m, p and s from the least squares line through k plantings. A new draw is found with 95 % probability
from the share g on at which

    m + p log g = log(-x_0) + sqrt(t^2 + (1 + 1 / k) (q s)^2),   t = log((q sigma - x_0) / -x_0).

With q = 1.64 either term under the root is exact where the other is 0.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from synth_audit.arrays import Bools, Floats
from synth_audit.audits.recognition.engine import CLEAR, FAMILY, ViewScores, recognise
from synth_audit.audits.recognition.leak_classes import CLASSES, LeakClass, planted
from synth_audit.audits.recognition.people import PooledPeople
from synth_audit.audits.recognition.view import scored
from synth_audit.execution.context import RunContext
from synth_audit.execution.executor import single_threaded_algebra
from synth_audit.execution.seeds import child_rng

FIRST_SHARE = 0.03
"""Share of the people planted first, in every class."""

LARGEST_SHARE = 0.25
"""Share that is planted at most: a larger limit is not established."""

TOGETHER = 2
"""Plantings of a class at one share, before the next share is chosen: two processes work side by side."""

PLANTINGS = 6, 10
"""Plantings of a class at least, at three shares, and at most."""

PRECISE = 0.1
"""Relative standard error of the limit at which no more is planted."""

NEAR = 2.5
"""Largest ratio of a share that counts to the limit, and of a share to the one planted before it: the line
bends where shares are far apart."""

POWERS = (0.5, 4.0)
"""Least and largest p: a leak that shows only where many people share it rises steeply."""

WANTED = 1.8
"""The quantile q. The normal's 95 % quantile is 1.64. The rest is for searches that stop where a few
plantings happen to agree: 1.64 found 93 % in simulations."""

_LEAST = 1e-9
"""Least deviation: strengths may all be equal where little varies, and 0 has no logarithm."""

SIDES = 8
"""Times that sides are drawn again for one planting: the mean of S is known to a third of its deviation."""

PERMUTED = 99
"""Permutations of the sides in one planting: the deviation of S is known to a fourteenth. Their own 99 %
quantile would vary as much as the limits of small tables."""


@dataclass(frozen=True)
class DetectionLimit:
    """The limit of one class.

    Attributes:
        share: of the training people; None where no planted share reached the strength wanted.
        planted: the shares planted.
    """

    leak: LeakClass
    share: float | None
    planted: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Planting:
    """A leak to plant, in a form that another process can do.

    Attributes:
        draw: number of the planting among those of its class.
        seed: of the planting and of the views, which draw as they did for the release.
        halvings: for each evaluation, as many as the test has draws of the views with one halving each.
        deviations: by which c is above the mean.
    """

    pool: PooledPeople = field(repr=False)
    member: Bools = field(repr=False)
    leak: LeakClass
    share: float
    draw: int
    seed: int
    halvings: int
    deviations: float


def detection_limits(
    pool: PooledPeople, member: Bools, views: ViewScores, draws: int, seed: int, context: RunContext
) -> list[DetectionLimit]:
    """The limit of every class of leak that the table can have.

    Args:
        pool: with a memory of the release as it is, so that each planting costs little.
        member: who is in the training set. views: of the release as it is, in one draw.
        draws: of the views in the test whose power is measured.
        seed: of all randomness.
    """
    rng = child_rng(seed, "without a leak")
    permuted = _permuted(views, member, CLEAR, draws, rng)
    beyond = float(np.sort(permuted)[-round(FAMILY * (CLEAR + 1))] - permuted.mean())
    deviations = beyond / max(float(permuted.std(ddof=1)), _LEAST)
    searches = [Search(leak, -beyond, int(member.sum())) for leak in classes_of(pool)]
    done, most = 0, PLANTINGS[1] * len(searches)
    while still := [search for search in searches if not search.done]:
        plantings = [
            Planting(pool, member, search.leak, search.next_share(), draw, seed, draws, deviations)
            for search in still
            for draw in range(len(search.points), len(search.points) + TOGETHER)
        ]
        found = context.map("planted leak", planted_strength, plantings, before=done, total=most)
        done += len(plantings)
        for search in still:
            search.points += [
                (p.share, *of) for p, of in zip(plantings, found, strict=True) if p.leak is search.leak
            ]
    return [
        DetectionLimit(s.leak, s.limit(), tuple(sorted({share for share, _, _ in s.points})))
        for s in searches
    ]


def classes_of(pool: PooledPeople) -> list[LeakClass]:
    """The classes of which the table has the columns."""
    return [c for c in CLASSES if len(pool.columns) >= c.columns]


def planted_strength(planting: Planting) -> tuple[float, float]:
    """Plant a leak and compute the views again: the margin x and the deviation sigma, see above."""
    p = planting
    rng = child_rng(p.seed, "plant", p.leak.name, str(p.draw))
    pool, _, settled = planted(p.pool, p.member, p.leak, p.share, rng)
    [scores] = scored(pool, 1, p.seed)
    others = ~settled
    strengths = np.empty(SIDES)
    with single_threaded_algebra():  # as in a view: the same, whoever plants
        for k in range(SIDES):
            sides = p.member.copy()
            sides[others] = rng.permutation(p.member[others])
            strengths[k] = recognise([scores.views], sides, rng, halvings=p.halvings).strength
        permuted = _permuted(scores.views, p.member, PERMUTED, p.halvings, rng)
    critical = permuted.mean() + p.deviations * permuted.std(ddof=1)
    return float(strengths.mean() - critical), float(strengths.std(ddof=1))


def _permuted(
    views: ViewScores, member: Bools, times: int, halvings: int, rng: np.random.Generator
) -> Floats:
    """The strength S for sides that are permuted so many times."""
    return np.array(
        [recognise([views], rng.permutation(member), rng, halvings=halvings).strength for _ in range(times)]
    )


@dataclass
class Search:
    """The search for the limit of one class.

    Attributes:
        without: x without a leak, below 0.
        people: training people.
        points: share, x and sigma of each planting so far.
    """

    leak: LeakClass
    without: float
    people: int
    points: list[tuple[float, float, float]] = field(default_factory=list)

    @property
    def done(self) -> bool:
        """Whether enough was planted near the limit to know it."""
        if len(self.points) < PLANTINGS[0]:
            return False
        _, error, near = self._fitted()
        return len(self.points) >= PLANTINGS[1] or (near >= PLANTINGS[0] and error < PRECISE)

    def next_share(self) -> float:
        """The share to plant next: the limit by the plantings so far, not too far from the last one."""
        share = FIRST_SHARE
        if self.points:
            last = self.points[-1][0]
            share = min(max(self._fitted()[0], last / NEAR), last * NEAR, LARGEST_SHARE)
        return max(1, round(share * self.people)) / self.people

    def limit(self) -> float | None:
        """The smallest share found with 95 % probability, one person at least; None above the largest.

        >>> search = Search(CLASSES[0], -3.0, 500, 4 * [(0.05, 2.0, 1.0)])
        >>> search.limit()
        0.048
        """
        limit = self._fitted()[0]
        return max(round(limit, 6), 1 / self.people) if limit <= LARGEST_SHARE else None

    def _fitted(self) -> tuple[float, float, int]:
        """The limit, its relative standard error, and how many plantings are near."""
        shares, margins, deviations = np.array(self.points).T
        used = np.arange(len(shares)) >= len(shares) - PLANTINGS[0]
        for _ in range(3):  # from the last plantings to those near the limit
            limit, error = _limit(shares[used], margins[used], deviations[used], self.without)
            apart = np.abs(np.log(shares / min(limit, LARGEST_SHARE)))
            near = apart <= math.log(NEAR)
            used = near | (apart <= np.sort(apart)[min(PLANTINGS[0], len(shares)) - 1])
        return limit, error, int(near.sum())


def _limit(shares: Floats, margins: Floats, deviations: Floats, without: float) -> tuple[float, float]:
    """Solve the equation above: the limit, and its relative standard error."""
    sigma, k = max(math.sqrt(float((deviations**2).mean())), _LEAST), len(shares)
    if without >= 0:  # all strengths are equal, so that no leak would stand out
        return math.inf, math.inf
    log_share = np.log(shares)
    gain = np.log(np.maximum(margins - without, sigma))  # what shows less is within the error of x
    at, high = log_share - log_share.mean(), gain - gain.mean()
    power = float(np.clip(at @ high / max(float(at @ at), 1e-9), *POWERS)) if np.ptp(at) else 1.0
    rest = high - power * at
    spread = math.sqrt(float(rest @ rest) / max(1, k - 2))
    enough = math.log(1 + WANTED * sigma / -without)
    needed = math.log(-without) + math.hypot(enough, WANTED * spread * math.sqrt(1 + 1 / k))
    return math.exp(log_share.mean() + (needed - gain.mean()) / power), spread / math.sqrt(k) / power
