"""Anonymity has a size: how many of the n most exposed people are found at few false alarms, at most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from synth_audit.audits.privacy._membership_rates import ONE_PERCENT, Scored, told
from synth_audit.core.arrays import Bools, Floats
from synth_audit.core.measurement import Interval, Measurement, Quantity, Reference
from synth_audit.kernels import membership
from synth_audit.kernels.attack_success import corrected_level, worst_interval
from synth_audit.kernels.membership import Rate

EXPOSED_FOUND = Quantity(
    "exposed_found",
    "Most exposed people found at 1 % false alarms",
    proportional=False,  # copies of isolated people are found before those of others
    help="By the best attack; its upper end holds for all attacks and all sizes of the group at once.",
)

_FEWEST_MEMBERS = 20
"""Of fewer people a share says next to nothing."""


@dataclass(frozen=True, eq=False)
class IsolatedGroup:
    """The people tested who are farthest from all others: one in so many.

    Attributes:
        one_in: 1, 2, 4, … people tested for each of the group.
        members, others: who is of the group, masks over either side.
    """

    one_in: int
    members: Bools
    others: Bools

    @property
    def setting(self) -> str:
        """Names the group in a measurement."""
        return f"one_in_{self.one_in}"


def exposed_found(
    scored: Sequence[Scored], members: Floats, others: Floats, level: float
) -> tuple[list[Measurement], tuple[str, ...]]:
    """The share of each group that the best attack finds at 1 % false alarms, and what that says in words.

    People are ranked by isolation, the mean distance to their five nearest other real rows (Achilles' heels,
    by the distance of the scores), whichever side they are on: under a release that is independent of the
    split members and strangers of a group are alike, and 1 % of either are found. False alarms are those
    among strangers of the same group; a group ends where they are too few to tell 1 %.

    Args:
        scored: the attacks. members, others: isolation of who is tested, shape (m,) and (n,).
        level: of the intervals, for all groups and attacks together.

    Source: Meeus et al. 2023 (Achilles' heels); Carlini et al. 2022 (rates at few false alarms).
    """
    groups = list(_groups(members, others))
    each = corrected_level(level, max(len(groups) * len(scored), 1))
    rates = [[_rate(attack, group, each) for attack in scored] for group in groups]
    method = f"{len(groups)} groups and {len(scored)} scores"
    found = [_measured(g.setting, of, g.members, level, method) for g, of in zip(groups, rates, strict=True)]
    if groups:
        every = [rate for of in rates for rate in of]
        found.insert(0, _measured("", every, groups[-1].members, level, method))
    said = tuple(
        f"of the {int(g.members.sum())} most exposed people (one in {g.one_in} tested) no score finds "
        f"more than {max(r.interval.high for r in of):.1%} at 1 % false alarms, with {level:.0%} confidence "
        "for all such groups at once"
        for g, of in zip(groups, rates, strict=True)
    )
    return found, said


def _groups(members: Floats, others: Floats) -> Iterator[IsolatedGroup]:
    """Everybody, the more exposed half, the most exposed quarter, …; ties are inside."""
    ordered = np.sort(np.concatenate([members, others]))
    one_in, before = 1, len(ordered) + 1
    while len(ordered) // one_in:
        limit = ordered[-(len(ordered) // one_in)]
        group = IsolatedGroup(one_in, members >= limit, others >= limit)
        m, n = int(group.members.sum()), int(group.others.sum())
        if m < _FEWEST_MEMBERS or not told(ONE_PERCENT, n):
            return
        if m + n < before:
            yield group
        before, one_in = m + n, 2 * one_in


def _rate(attack: Scored, group: IsolatedGroup, level: float) -> Rate:
    members, others = attack.members[group.members], attack.others[group.others]
    return membership.detection(members, others, ONE_PERCENT, level)


def _measured(setting: str, rates: Sequence[Rate], people: Bools, level: float, method: str) -> Measurement:
    """The largest share; both ends of its interval are the largest of intervals that hold together."""
    intervals: list[Interval] = [rate.interval for rate in rates]
    n = int(people.sum())
    return EXPOSED_FOUND.at(
        max(rate.value for rate in rates),
        setting=setting,
        interval=worst_interval(intervals, level, method),
        n_requested=n,
        n_achieved=n,
        n_minimum=_FEWEST_MEMBERS,
        reference=Reference(ONE_PERCENT, "naming members no more often than strangers"),
    )
