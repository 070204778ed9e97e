"""People whose nearest release row is unusually near, counted in subgroups: arrays only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from synth_audit.core.arrays import Bools, Floats, Integers
from synth_audit.core.measurement import Interval
from synth_audit.kernels import dcr
from synth_audit.kernels.attack_success import corrected_level, worst_interval
from synth_audit.kernels.proportion_interval import proportion_difference


def nearness(to_release: Floats, to_others: Floats) -> Floats:
    """Distance of each real row to the release over that to its nearest fellow, shape (n,).

    0 for a copy; 1 where a twin stands in both; infinite where one stands among the fellows alone.
    """
    ratio = np.full(len(to_release), np.inf)
    np.divide(to_release, to_others, out=ratio, where=to_others > 0)
    ratio[(to_release == 0) & (to_others == 0)] = 1.0
    return ratio


WELL_BELOW = 0.75
"""Part of the quantile of control below which a row is near.

At the quantile itself a share α of control is near, and the interval is mostly that share's: of 300 training
and 100 control rows honest releases are undecided. Near copies lie far below it (at 0.04 to 0.3, where the
quantile of honest releases is 0.5 to 0.8): nearly all of them are counted here too, and hardly a stranger.
"""


def near_parts(train: Floats, control: Floats, alpha: float) -> tuple[Floats, Floats]:
    """Whether each row is well nearer than the α-quantile of control (:data:`WELL_BELOW`); shapes as given.

    Where that has no part (it is 0, or infinite) rows nearer than it are near, those at it in part, so that
    the mean over control is α.
    """
    limit = dcr.threshold(np.sort(control), alpha)
    if 0 < limit.distance < np.inf:
        well_below = WELL_BELOW * limit.distance
        return (train <= well_below).astype(np.float64), (control <= well_below).astype(np.float64)
    near = [np.where(x == limit.distance, limit.tie_part, x < limit.distance) for x in (train, control)]
    return near[0].astype(np.float64), near[1].astype(np.float64)


def nearer_than_most(train: Floats, control: Floats, alpha: float) -> tuple[Floats, Floats]:
    """Whether each row is as near as the nearest α of the control rows without an equal row; shapes as given.

    Rows at that distance count in part, so that ties move nothing; equal rows count as near. Copies that were
    moved a good deal, one band up or down, lie between this and the distance of :func:`near_parts`; so do all
    but exact copies where many strangers have an equal row by nature, which draws that distance to 0.
    """
    apart = np.sort(control[control > 0])
    limit = dcr.threshold(apart, alpha) if len(apart) else dcr.Threshold(0.0, 1.0)
    part = limit.tie_part if limit.distance < np.inf else 0.0  # at infinity nothing is near
    near = [np.where(x == limit.distance, part, x < limit.distance) for x in (train, control)]
    return near[0].astype(np.float64), near[1].astype(np.float64)


@dataclass(frozen=True, eq=False)
class People:
    """Rows of one table as people.

    Attributes:
        near: how near each row is, from 0 to 1, shape (n,).
        person: number of the person that each row belongs to, shape (n,).
    """

    near: Floats
    person: Integers

    def tally(self, inside: Bools) -> tuple[float, int]:
        """Near people and people among the rows of a subgroup; of several rows of one person the nearest."""
        most = np.zeros(int(self.person.max(initial=-1)) + 1)
        np.maximum.at(most, self.person[inside], self.near[inside])
        return float(most.sum()), len(np.unique(self.person[inside]))


class Excess(NamedTuple):
    """Share of near people of train beyond that of control, with its interval."""

    value: float
    interval: Interval


def excess(train: People, control: People, subgroup: tuple[Bools, Bools], level: float) -> Excess:
    """``s_train / n_train − s_control / n_control`` of a subgroup that holds people of both."""
    (s_t, n_t), (s_c, n_c) = train.tally(subgroup[0]), control.tally(subgroup[1])
    return Excess(s_t / n_t - s_c / n_c, proportion_difference(s_t, n_t, s_c, n_c, level))


def worst_excess(
    train: People, control: People, subgroups: Sequence[tuple[Bools, Bools]], level: float
) -> Excess:
    """The largest excess of several subgroups, at least 0, with an interval that allows for their number."""
    each = corrected_level(level, len(subgroups))
    found = [excess(train, control, subgroup, each) for subgroup in subgroups]
    interval = worst_interval([e.interval for e in found], level, f"{len(found)} subgroups")
    return Excess(max(0.0, *(e.value for e in found)), interval)
