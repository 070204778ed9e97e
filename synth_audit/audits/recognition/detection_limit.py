"""Detection limits: the smallest leak that the whole procedure would have found on this table.

For each class of leak, rows of the release are replaced by what a share of the training people would leave.
All views are computed again and the test is repeated. With S the strength of the attack and c its 99 %
quantile over permuted sides,

    z = (mean(S) - c) / sd(S),

over sides that are drawn again for everybody but the people planted. The draw of these people adds the
variance ``S^2 (1 - r) / (r n)`` for n people of whom a share r is recognised. A leak is found with
probability ``Phi(z)``. The limit is the share at which z reaches :data:`WANTED`, between the shares planted.
Fragments of some columns are found far more easily than of others: a share of them is planted in several
draws of columns, and the smallest z counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from synth_audit.arrays import Bools
from synth_audit.audits.recognition.engine import CLEAR, FAMILY, ViewScores, recognise
from synth_audit.audits.recognition.leak_classes import CLASSES, LeakClass, planted
from synth_audit.audits.recognition.people import PooledPeople
from synth_audit.audits.recognition.view import scored
from synth_audit.execution.context import RunContext
from synth_audit.execution.seeds import child_rng

FIRST_SHARE = 0.03
"""Share of the people planted first, in every class."""

LARGEST_SHARE = 0.25
"""Share that is planted at most: a larger limit is not established."""

PLANTINGS = 3, 6
"""Plantings of each class: three, the later ones where the limit is expected by those before, and further
ones until one is found."""

WANTED = 2.0
"""z at the limit. The normal's 95 % quantile is 1.64; the rest allows for the error of z."""

SIDES = 8
"""Times that sides are drawn again for one planting: the mean of S is known to a third of its deviation."""

HALVINGS = 3
"""Halvings for each evaluation, as many as the test has draws of the views with one halving each."""


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
        draw: number of the planting among those of this share.
        seed: of the planting and of the views, which draw as they did for the release.
        critical: strength from which on an attack is found.
    """

    pool: PooledPeople = field(repr=False)
    member: Bools = field(repr=False)
    leak: LeakClass
    share: float
    draw: int
    seed: int
    critical: float


def view_rng(seed: int, name: str, draw: int) -> np.random.Generator:
    """Randomness of a view in a draw: the same for the release and for every planting."""
    return child_rng(seed, "view", name, str(draw))


def detection_limits(
    pool: PooledPeople, member: Bools, views: ViewScores, seed: int, context: RunContext
) -> list[DetectionLimit]:
    """The limit of every class of leak that the table can have.

    Args:
        member: who is in the training set. views: of the release as it is, in one draw.
        seed: of all randomness.
    """
    rng = child_rng(seed, "without a leak")
    permuted = [
        recognise([views], rng.permutation(member), rng, halvings=HALVINGS).strength for _ in range(CLEAR)
    ]
    critical = sorted(permuted)[-round(FAMILY * (CLEAR + 1))]
    without = float((np.mean(permuted) - critical) / max(float(np.std(permuted)), 1e-9))
    classes = classes_of(pool)
    points = {c.name: {0.0: without} for c in classes}
    for _ in range(PLANTINGS[1]):
        asked = [(c, share) for c in classes if (share := next_share(points[c.name])) is not None]
        plantings = [
            Planting(pool, member, c, share, draw, seed, critical)
            for c, share in asked
            for draw in range(c.draws)
        ]
        found = context.map("planted leak", planted_strength, plantings)
        for planting, z in zip(plantings, found, strict=True):
            of_class = points[planting.leak.name]
            of_class[planting.share] = min(z, of_class.get(planting.share, math.inf))
    return [DetectionLimit(c, reached(points[c.name]), tuple(sorted(points[c.name])[1:])) for c in classes]


def classes_of(pool: PooledPeople) -> list[LeakClass]:
    """The classes of which the table has the columns."""
    return [c for c in CLASSES if len(pool.columns) >= c.columns]


def planted_strength(planting: Planting) -> float:
    """Plant a leak, compute the views again, and measure z, see above."""
    p = planting
    rng = child_rng(p.seed, "plant", p.leak.name, str(p.share), *([str(p.draw)] if p.draw else []))
    pool, people = planted(p.pool, p.member, p.leak, p.share, rng)
    [scores] = scored(pool, 1, lambda name, draw: view_rng(p.seed, name, draw))
    others = np.ones(len(p.member), dtype=np.bool_)
    others[people] = False
    strengths, excesses = np.empty(SIDES), np.empty(SIDES)
    for k in range(SIDES):
        sides = p.member.copy()
        sides[others] = rng.permutation(p.member[others])
        found = recognise([scores.views], sides, rng, halvings=HALVINGS)
        strengths[k], excesses[k] = found.strength, found.excess
    recognised = float(np.clip(excesses.mean() * p.member.sum() / len(people), 0.05, 1))
    of_people = strengths.mean() ** 2 * (1 - recognised) / (recognised * len(people))
    return float((strengths.mean() - p.critical) / math.sqrt(strengths.var(ddof=1) + of_people + 1e-9))


def next_share(points: dict[float, float]) -> float | None:
    """The share to plant next: where the limit is expected by the strengths so far, or none."""
    shares = sorted(points)
    if len(shares) == 1:
        return FIRST_SHARE
    if (share := reached(points)) is not None and len(shares) > PLANTINGS[0]:
        return None
    if share is None:
        before, last = shares[-2:]
        if last == LARGEST_SHARE:
            return None
        slope = (points[last] - points[before]) / (last - before)
        needed = last + (WANTED - points[last]) / max(slope, 1e-9)
        share = min(max(needed, 1.25 * last), 2.5 * last, LARGEST_SHARE)
    share = round(share, 4)
    while share in points:
        share = round(share * 0.85, 4)
    return share


def reached(points: dict[float, float]) -> float | None:
    """The smallest share from which on every strength reaches what is wanted, between the shares planted.

    >>> reached({0.0: -3.0, 0.04: 1.0, 0.06: 3.0, 0.1: 9.0})
    0.05
    """
    shares = np.array(sorted(points))
    strengths = np.minimum.accumulate(np.array([points[s] for s in shares])[::-1])[::-1]
    if strengths[-1] < WANTED:
        return None
    k = int(np.argmax(strengths >= WANTED))
    if k == 0:
        return float(shares[1]) if len(shares) > 1 else None
    part = (WANTED - strengths[k - 1]) / (strengths[k] - strengths[k - 1])
    return float(round(shares[k - 1] + part * (shares[k] - shares[k - 1]), 6))
