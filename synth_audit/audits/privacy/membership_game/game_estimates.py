"""Gain, area and rate of played membership games, each with an interval over their iterations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from synth_audit.audits.privacy.membership_game.shadow_game import Scores
from synth_audit.core.arrays import Bools, Floats, Positions
from synth_audit.core.measurement import Interval
from synth_audit.kernels import membership
from synth_audit.kernels.games import mean_interval
from synth_audit.kernels.intervals import critical_value
from synth_audit.kernels.proportion_interval import proportion_difference, proportion_interval
from synth_audit.kernels.roc import auroc
from synth_audit.kernels.shadow_features import FeatureSet

SURE = 0.5
"""The attacker says *learnt* above this probability."""


@dataclass(frozen=True, eq=False)
class Played:
    """Scores of all games about targets of one kind with one feature set, shape (M, T, E) each.

    Attributes:
        inside, outside: of sets whose models had and had not learnt the target; M iterations, T targets, E
            sets.
    """

    kind: str
    features: FeatureSet
    inside: Floats
    outside: Floats

    @property
    def setting(self) -> str:
        """Kind of target and feature set."""
        return f"{self.kind}, {self.features}"

    @property
    def gains(self) -> Floats:
        """``PG = 1 − (TPR − FPR)`` of every iteration and target, shape (M, T)."""
        return 1.0 - (self._named(self.inside) - self._named(self.outside))

    def apart(self) -> list[Played]:
        """The games about each target for itself."""
        targets = range(self.inside.shape[1])
        return [
            replace(self, inside=self.inside[:, i : i + 1], outside=self.outside[:, i : i + 1])
            for i in targets
        ]

    @property
    def n_sets(self) -> int:
        """Sets with the target that were judged."""
        return int(self.inside.size)

    def _named(self, scores: Floats) -> Floats:
        share: Floats = np.mean(scores > SURE, axis=2)
        return share


@dataclass(frozen=True)
class GameEstimate:
    """A value with its interval."""

    value: float
    interval: Interval


def played(games: Sequence[Scores], kinds: Mapping[str, Positions]) -> list[Played]:
    """The games of each kind of target and feature set.

    Args:
        kinds: for each kind, which of the games' targets are of it.
    """
    return [
        Played(
            kind,
            name,
            np.stack([g.inside[name][rows] for g in games]),
            np.stack([g.outside[name][rows] for g in games]),
        )
        for kind, rows in kinds.items()
        for name in games[0].inside
    ]


def gain(game: Played, level: float) -> GameEstimate:
    """Mean privacy gain, ``1 − (TPR − FPR)``.

    All sets of one model, and all targets of one iteration, share reference rows: iterations are the units.
    """
    per_iteration = game.gains.mean(axis=1)
    hits, alarms = np.sum(game.inside > SURE), np.sum(game.outside > SURE)
    n = game.n_sets
    apart = proportion_difference(float(alarms), n, float(hits), n, level)
    counted = Interval(1 + apart.low, 1 + apart.high, level, apart.method)
    return GameEstimate(
        float(per_iteration.mean()), _widest(mean_interval(per_iteration, level), counted, level)
    )


def area(game: Played, level: float) -> GameEstimate:
    """Mean over games of ``AUC = P(with > without) + ½ P(tie)``, each among the sets of one classifier.

    Were all sets independent, its variance would be at most ``AUC (1 − AUC) / n`` (Birnbaum & Klose 1957),
    that of a share: the interval is at least as wide.
    """
    pairs = [
        [auroc(i, o) for i, o in zip(with_target, without, strict=True)]
        for with_target, without in zip(game.inside, game.outside, strict=True)
    ]
    per_iteration = np.mean(pairs, axis=1)
    value = float(per_iteration.mean())
    counted = proportion_interval(value * game.n_sets, game.n_sets, level)
    return GameEstimate(value, _widest(mean_interval(per_iteration, level), counted, level))


def rate(game: Played, false_alarms: float, level: float) -> GameEstimate:
    """True-positive rate where one threshold over all games passes this share of sets without the target.

    A share's interval for as many independent sets as would be as certain, ``n = θ (1 − θ) / v · (z / t)²``,
    but no more than there are; v by the jackknife over the M iterations, ``v = s²(M θ − (M − 1) θ₍₋ₘ₎) / M``,
    which knows of the uncertain threshold too, and t for M − 1 degrees of freedom. Sources: Tukey 1958; Korn
    & Graubard 1998.
    """
    from scipy.special import stdtrit  # here, since a code location must not load it

    def found(kept: Bools) -> float:
        inside, outside = game.inside[kept].ravel(), game.outside[kept].ravel()
        return float(np.mean(membership.alarm(inside, outside, false_alarms)))

    m = len(game.inside)
    value = found(np.ones(m, dtype=bool))
    pseudo = np.array([m * value - (m - 1) * found(np.arange(m) != i) for i in range(m)])
    variance = float(np.var(pseudo, ddof=1)) / m
    certain = value * (1 - value) / variance if variance > 0 else math.inf
    slack = critical_value(level) / float(stdtrit(m - 1, 0.5 + level / 2))
    n = min(float(game.n_sets), certain * slack**2)
    if n <= 0:  # no set, or every set, in every iteration
        n = float(game.n_sets)
    ends = proportion_interval(value * n, n, level)
    return GameEstimate(
        value, Interval(ends.low, ends.high, level, f"{ends.method}, jackknife over iterations")
    )


def _widest(over_iterations: Interval, counted: Interval, level: float) -> Interval:
    """The wider at each end: iterations that happen to agree are no surer than independent sets."""
    return Interval(
        min(over_iterations.low, counted.low),
        max(over_iterations.high, counted.high),
        level,
        f"{over_iterations.method}, at least {counted.method}",
    )
