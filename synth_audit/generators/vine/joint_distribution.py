"""The joint distribution of a vine's variables, of all rows or of one class, and its fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from synth_audit.core.arrays import Bools, Floats
from synth_audit.core.kind_distribution import DistributionFunction, MarginMethod
from synth_audit.generators.vine.column_codec import Variable
from synth_audit.kernels.cvine import CVine, fit_cvine
from synth_audit.kernels.imputation import fill_scores
from synth_audit.kernels.margins import stepwise_margin
from synth_audit.kernels.rvine import Choice, RVine, fit_rvine

Topology = Literal["c_vine", "r_vine", "r_vine_star1"]

FINE_STEP = 0.02
"""A variable whose values each have no more than this probability is fitted as a continuous one."""


@dataclass(frozen=True, eq=False)
class Joint:
    """Margins and what links them.

    Attributes:
        margins: one per variable that is drawn, in the vine's order.
        linked: which of these the copula joins; the others are constant here.
        copula: of the linked variables, in their order.
        known: values of the variables that follow in the vine's order: those of the target in a class.
        share: probability of the class.
    """

    margins: tuple[DistributionFunction, ...]
    linked: tuple[int, ...]
    copula: CVine | RVine
    known: tuple[float, ...] = ()
    share: float = 1.0

    def draw(self, n: int, rng: np.random.Generator) -> Floats:
        """Values of all variables, shape (n, number of variables)."""
        return self.values(self.copula.draw(n, rng))

    def values(self, levels: Floats) -> Floats:
        """Values of all variables from the levels of the linked ones, shape (n, number of these)."""
        values = np.empty((len(levels), len(self.margins) + len(self.known)))
        values[:, len(self.margins) :] = self.known
        place = {variable: i for i, variable in enumerate(self.linked)}
        middle = np.full(len(levels), 0.5)
        for v, margin in enumerate(self.margins):
            values[:, v] = margin.quantile(levels[:, place[v]] if v in place else middle)
        return values

    def truncated(self, level: int) -> Joint:
        """With the first ``level`` trees of its copula."""
        return replace(self, copula=self.copula.truncated(level))


@dataclass(frozen=True)
class Fitting:
    """How a joint distribution is fitted; the fields are those of the vine.

    Attributes:
        choice: the pair copulas and the number of trees; None for margins alone.
    """

    topology: Topology
    margins: MarginMethod
    choice: Choice | None

    def fit(self, variables: Sequence[Variable], rng: np.random.Generator) -> Joint:
        """Fit margins and copula to variables that have a value each in some row."""
        margins = tuple(self._margin(v) for v in variables)
        linked = tuple(i for i, v in enumerate(variables) if np.nanmax(v.values) > np.nanmin(v.values))
        joined = [margins[i] for i in linked]
        values = _filled(joined, [variables[i].values for i in linked], rng)
        return Joint(margins, linked, self._copula(joined, values))

    def _margin(self, variable: Variable) -> DistributionFunction:
        if variable.gap:
            return stepwise_margin(variable.values)
        return variable.column.kind.margin(variable.column, variable.values, self.margins)

    def _copula(self, margins: Sequence[DistributionFunction], values: Sequence[Floats]) -> CVine | RVine:
        if len(margins) < 2 or self.choice is None:
            return CVine(len(margins), ())
        below, at, discrete = _levels_of(margins, values)
        if self.topology == "c_vine":
            return fit_cvine(below, at, discrete, self.choice)
        # The library lays out a truncated fit differently, so that the same noise would give other rows.
        whole = replace(self.choice, level=None)
        vine = fit_rvine(below, at, discrete, whole, star=self.topology == "r_vine_star1")
        return vine if self.choice.level is None else vine.truncated(self.choice.level)


def _filled(
    margins: Sequence[DistributionFunction], values: Sequence[Floats], rng: np.random.Generator
) -> Sequence[Floats]:
    """Values with stand-ins for missing ones, one array of shape (n,) each.

    Left to itself the library drops a missing value in continuous pairs, but reads it as an extreme one
    once it has conditioned on a discrete variable.
    """
    if not any(np.isnan(v).any() for v in values):
        return values
    from scipy.special import ndtr, ndtri

    levels = np.column_stack([sum(m.interval(v)) / 2 for m, v in zip(margins, values, strict=True)])
    floor = 0.25 / len(levels)
    scores = fill_scores(ndtri(np.clip(levels, floor, 1 - floor)), rng)
    drawn = [m.quantile(ndtr(column)) for m, column in zip(margins, scores.T, strict=True)]
    return [np.where(np.isnan(v), stand_in, v) for v, stand_in in zip(values, drawn, strict=True)]


def _levels_of(
    margins: Sequence[DistributionFunction], values: Sequence[Floats]
) -> tuple[Floats, Floats, Bools]:
    """F just below and at every value, shapes (n, d), and which variables count as discrete.

    A variable of which no value has more than ``FINE_STEP`` of the mass is as good as continuous: it takes
    the middle of its steps, which spares the slow fit of discrete pairs.
    """
    intervals = [m.interval(v) for m, v in zip(margins, values, strict=True)]
    below, at = (np.column_stack(side) for side in zip(*intervals, strict=True))
    floor = 1 / len(at)
    discrete = np.max(at - below, axis=0) > FINE_STEP
    middle = np.clip((below + at) / 2, floor / 4, 1 - floor / 4)
    point = ~discrete | (at - below < floor / 100)
    return np.where(point, middle, below), np.where(point, middle, at), discrete
