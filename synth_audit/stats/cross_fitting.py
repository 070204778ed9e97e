"""The worst of many attacks, chosen on one half of the people and measured on the other half, both ways."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from synth_audit.arrays import Bools, Floats
from synth_audit.findings.measurement import Interval, IntervalEstimate
from synth_audit.stats.proportions import Proportion, proportion_interval

CAUTION = 1.0
"""Standard errors by which an attack must stand out on the half that chooses."""


SECOND_PART = 0.5
"""Share of either side's people in the second part. Each part is evaluated by what the other chose, so halves
use all people best."""


@dataclass(frozen=True)
class ClaimCount:
    """Claims of one attack about people of train and of control.

    Attributes:
        people, claims, right: of train. control_claims, control_right: of control.
    """

    people: int
    claims: float
    right: float
    control_claims: float
    control_right: float

    def excess(self, level: float) -> IntervalEstimate:
        """Share of train people who are claimed rightly beyond luck: ``claims / people · (s_t − s_c)``.

        s_t and s_c are the shares of right claims about train and control people, so that claiming more often
        alone is no excess. The interval is that of the difference, for so many claims. Without a claim it is
        that of a share of which nothing was seen; without one about control, s_c may be anything.
        """
        if not self.claims:
            room = proportion_interval(0, self.people, level)
            return IntervalEstimate(0.0, Interval(-room.high, room.high, level, room.method))
        share = self.claims / self.people
        s_t = Proportion(self.right, self.claims)
        s_c = Proportion(self.control_right, self.control_claims)
        if not s_c.trials:
            own, anything = s_t.interval(level), s_c.interval(level)
            ends = share * (own.low - anything.high), share * (own.high - anything.low)
            return IntervalEstimate(0.0, Interval(*ends, level, own.method))
        apart = s_t.less(s_c, level)
        ends = share * apart.interval.low, share * apart.interval.high
        return IntervalEstimate(share * apart.value, Interval(*ends, level, apart.interval.method))


@dataclass(frozen=True, eq=False)
class ClaimTable:
    """Claims of many attacks, by half of the people; shape (2, attacks) each.

    Attributes:
        people: of train in each half, shape (2,).
    """

    people: Floats
    claims: Floats
    right: Floats
    control_claims: Floats
    control_right: Floats

    @classmethod
    def joined(cls, tables: "Sequence[ClaimTable]") -> "ClaimTable":
        """Attacks of several tables, at least one, on the same people."""
        cells = ((t.claims, t.right, t.control_claims, t.control_right) for t in tables)
        return cls(tables[0].people, *(np.concatenate(x, axis=1) for x in zip(*cells, strict=True)))

    def count(self, half: int, attack: int) -> ClaimCount:
        """One attack on one half."""
        return ClaimCount(
            int(self.people[half]),
            *(
                float(x[half, attack])
                for x in (self.claims, self.right, self.control_claims, self.control_right)
            ),
        )

    def worst(self, half: int, able: Bools, caution: Floats | float = CAUTION) -> int:
        """The attack whose excess on one half stands out most, its error deducted.

        The error is that of two shares to which half a success and half a failure were added.

        Args:
            able: which attacks may be chosen, at least one. caution: errors that are deducted of each.
        """
        n, k = self.claims[half], self.control_claims[half]
        s_t, s_c = (self.right[half] + 0.5) / (n + 1), (self.control_right[half] + 0.5) / (k + 1)
        error = np.sqrt(s_t * (1 - s_t) / (n + 1) + s_c * (1 - s_c) / (k + 1))
        excess = n / self.people[half] * (s_t - s_c - caution * error)
        return int(np.argmax(np.where(able, excess, -np.inf)))


def mean_of_halves(halves: Sequence[IntervalEstimate], level: float) -> IntervalEstimate:
    """Mean of estimates on disjoint people; each end as far off as the ends of all are together (MOVER)."""
    value = float(np.mean([h.value for h in halves]))
    low = math.hypot(*(h.value - h.interval.low for h in halves)) / len(halves)
    high = math.hypot(*(h.interval.high - h.value for h in halves)) / len(halves)
    return IntervalEstimate(
        value, Interval(value - low, value + high, level, f"{halves[0].interval.method}, held out")
    )


def halved(member: Bools, times: int, rng: np.random.Generator) -> Bools:
    """Who is in the second half, either side halved at random so many times; shape (times, people)."""
    second = np.zeros((times, len(member)), dtype=np.bool_)
    for row in second:
        for side in (member, ~member):
            who = rng.permutation(np.flatnonzero(side))
            row[who[: int(SECOND_PART * len(who))]] = True
    return second


def held_out_excess(
    table: ClaimTable, able: Bools, level: float, caution: Floats | float = CAUTION
) -> tuple[IntervalEstimate, tuple[int, int]]:
    """Excess of the worst attack, chosen on one half and measured on the other, both ways.

    Args:
        able: which attacks each half may choose, at least one, shape (2, attacks).
        caution: standard errors that are deducted of each attack where it is chosen.

    Returns:
        The mean of both halves, and the attack measured on each.
    """
    chosen = table.worst(1, able[1], caution), table.worst(0, able[0], caution)
    halves = [table.count(half, attack).excess(level) for half, attack in enumerate(chosen)]
    return mean_of_halves(halves, level), chosen
