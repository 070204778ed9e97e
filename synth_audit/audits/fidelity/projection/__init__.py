"""Do the directions in which real rows vary most look the same in the release?"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from synth_audit.arrays import Counts, Floats
from synth_audit.audits._declarations import at_least, distance
from synth_audit.audits.fidelity._reference import Compare, Found, measured, sampled, sampling_note
from synth_audit.audits.fidelity.projection import components as pca
from synth_audit.audits.fidelity.projection.components import StandardisedCoordinates
from synth_audit.errors import NotApplicable
from synth_audit.execution.context import RunContext
from synth_audit.findings.measurement import Estimate, Findings, Interval, MeasurementId, Series
from synth_audit.plugins.audit import AuditInfo, Subject
from synth_audit.stats.resampling import normal_interval
from synth_audit.table.table import Table

EIGENVALUE_DIFFERENCE = distance(
    "eigenvalue_difference",
    "Difference of the principal components' variances",
    help="How differently the variance is spread over the principal components: 0 alike; 1 if one "
    "component carries all of it in one table and no more than any other in the other.",
)

ANGLE = distance(
    "angle",
    "Angle between the first principal components",
    help="As a share of the right angle: 0 the same direction, 1 nothing in common. Where train's first two "
    "components carry nearly equal variance, real rows turn as much: read it beside its reference.",
)

NUMERIC = "numeric columns, each table on its own scale"
"""Setting of the principal components of the correlation matrix of the numeric columns."""

_MEASURES = {EIGENVALUE_DIFFERENCE.name: pca.eigenvalue_difference, ANGLE.name: pca.first_angle}

_FEWEST_CELLS, _MOST_CELLS = 4, 24
"""Of the picture along each axis; fewer where train has few rows."""

_CUT = 0.005
"""Share of train's rows beyond either edge of a picture: extremes would leave all others in one cell."""
_MOST_CUT = 0.1
"""Where more would have to lie beyond an edge, so that no few are told of, there is no picture."""

_ROWS_PER_CELL = 2
"""Train has as many times the suppression limit of rows per cell, or the picture would be empty."""

_NAMED = 3
"""Columns named as what a component is made of."""

_ORDINALS = ("first", "second")


@dataclass(frozen=True, kw_only=True)
class Projection:
    """Compares the principal components of the release with those of train, and shows rows on two of them.

    Every column that varies in train adds the same variance there, see
    `components.StandardisedCoordinates`. With λ the shares of the variance along d components, and u, v the
    first component of train and of the table compared:
    ``eigenvalue_difference = d / (2 (d − 1)) · Σ |λ_i − λ′_i|``, ``angle = 2/π · arccos |u · v|``, both in
    [0, 1]. The setting ``numeric columns, each table on its own scale`` is of the correlation matrices of the
    numeric columns, missing values read as train's mean. Intervals: standard deviation over bootstrap samples
    of random groups of rows of both tables. Pictures: shares of rows over train's first two components, cut
    at train's 0.5 % and 99.5 % quantiles.

    Fields:
        n_bootstrap: resamples behind an interval, at least 50.
        most_coordinates: rarer labels are counted together to keep to so many, at least 10.
        most_rows: rows that are read of a table, at random where it has more, at least 1,000.

    Source: Disjoint Generative Models, section 3; Rajabinasab, Lautrup & Zimek 2025; TableDiffusion thesis,
    section 7.4.
    """

    n_bootstrap: int = 100
    most_coordinates: int = 300
    most_rows: int = 100_000

    info: ClassVar[AuditInfo] = AuditInfo(
        title="Principal components",
        question="Do rows of the release spread in the same directions as real rows?",
        threat_model="Someone who looks for the main patterns of all columns together would see others.",
        not_covered="Patterns that carry little of the variance, and relations that no straight line shows.",
        quantities=(EIGENVALUE_DIFFERENCE, ANGLE),
        risk="fidelity",
        cost="seconds",
        source="Disjoint Generative Models, section 3; Rajabinasab, Lautrup & Zimek 2025; TableDiffusion "
        "thesis, section 7.4",
    )

    def __post_init__(self) -> None:
        at_least(self, n_bootstrap=50, most_coordinates=10, most_rows=1_000)

    def run(self, subject: Subject, context: RunContext) -> Findings:
        """Compare the release, and control as its reference, with train.

        Raises:
            NotApplicable: fewer than two columns vary in train.
        """
        rng, n = context.rng, subject.synthetic.n_rows
        read = sampling_note(subject, self.most_rows)
        subject = sampled(subject, self.most_rows, rng)
        tables = [subject.train, subject.synthetic, *subject.real[1:]]
        frame = StandardisedCoordinates.of(tables, subject.features, self.most_coordinates)
        if len(frame.parts) < 2:
            raise NotApplicable("fewer than two columns vary in train, so no directions can be told apart")
        train = pca.Moments.of(frame.read(subject.train), rng)
        compare = _compared(frame, train, self.n_bootstrap, subject.level, rng)
        found = measured(subject, compare, self.info.quantities, rng)
        series, notes = _Pictures(subject, frame, train).drawn()
        return Findings(tuple(replace(m, n_requested=n) for m in found), series, (*notes, *read))


def _compared(
    frame: StandardisedCoordinates, train: pca.Moments, n_draws: int, level: float, rng: np.random.Generator
) -> Compare:
    """A comparison of both quantities in every view; all share train's components and its resamples."""
    n = frame.n_numeric
    views: dict[str, pca.CovarianceView] = {"": lambda c: c}
    if n >= 2:
        views[NUMERIC] = lambda c: pca.correlation(c[:n, :n])
    seen = tuple(views.values())
    known, known_draws = pca.components(train, seen), pca.resampled(train, seen, n_draws, rng)

    def compare(table: Table, rng: np.random.Generator) -> Found:
        moments = pca.Moments.of(frame.read(table), rng)
        own, draws = pca.components(moments, seen), pca.resampled(moments, seen, n_draws, rng)
        found = {}
        for i, setting in enumerate(views):
            for quantity, measure in _MEASURES.items():
                value = measure(known[i], own[i])
                drawn = [measure(a[i], b[i]) for a, b in zip(known_draws, draws, strict=True)]
                interval = _interval(value, np.array(drawn), level)
                found[MeasurementId("", quantity, setting)] = Estimate(value, interval)
        return found

    return compare


def _interval(value: float, draws: Floats, level: float) -> Interval:
    """No distance is below 0 or above 1. Anything is possible where no resample differs, as in one row."""
    if np.ptp(draws) == 0:
        return Interval(0.0, 1.0, level, "whole range, since resampling moves nothing")
    drawn = normal_interval(value, draws, level)
    return replace(drawn, low=max(0.0, drawn.low), high=min(1.0, drawn.high))


@dataclass(frozen=True, eq=False)
class _Pictures:
    """Shares of rows over train's first two components."""

    subject: Subject
    frame: StandardisedCoordinates
    train: pca.Moments

    def drawn(self) -> tuple[tuple[Series, ...], tuple[str, ...]]:
        """One density for each table on the same cells, and what is to be known of them."""
        axes, carried = pca.plane(self.train)
        notes = [_made_of(self.frame, axes[:, i], float(carried[i]), i) for i in range(2)]
        n, fewest = self.subject.train.n_rows, self.subject.suppression
        n_cells = min(_MOST_CELLS, math.isqrt(n // (_ROWS_PER_CELL * max(fewest, 1))))
        cut = max(_CUT, fewest / n)
        if n_cells < _FEWEST_CELLS or cut > _MOST_CUT:
            return (), (*notes, "Train has too few rows for a picture of where they lie.")
        where = self._positions(self.subject.train, axes)
        across, up = (pca.edges(where[:, i], n_cells, cut) for i in range(2))
        if across is None or up is None:
            return (), (*notes, "Nearly all rows of train lie on one line, so there is no picture of them.")
        places = {"train": where}
        if self.subject.control is not None:
            places["control"] = self._positions(self.subject.control, axes)
        places["synthetic"] = self._positions(self.subject.synthetic, axes)
        counts = {name: pca.cell_counts(p, across, up) for name, p in places.items()}
        outside = {name: len(p) - int(counts[name].sum()) for name, p in places.items()}
        series = tuple(
            self._density(name, counts[name], len(places[name]), (across, up), carried) for name in places
        )
        return series, (*notes, _outside(outside, {k: len(p) for k, p in places.items()}, fewest))

    def _positions(self, table: Table, axes: Floats) -> Floats:
        return pca.positions(self.frame.read(table), axes, self.train.mean)

    def _density(
        self, name: str, counts: Counts, n: int, edges: tuple[Floats, Floats], carried: Floats
    ) -> Series:
        told = pca.cells_shown(counts, self.subject.suppression)
        shares = np.where(told, counts / n, math.nan)
        across, up = (_centres(e) for e in edges)
        first, second = (f"{_ORDINALS[i]} component ({_percent(carried[i])} of variance)" for i in (0, 1))
        return Series(
            id=MeasurementId("", "projection", name),
            title="Where rows lie on train's first two components",
            kind="density",
            x_label=first,
            y_label=second,
            x=tuple(across),
            lines={f"{y:g}": tuple(row.tolist()) for y, row in zip(up, shares, strict=True)},
        )


def _centres(edges: Floats) -> list[float]:
    """Middle of each cell, with as many decimals as tell neighbours apart."""
    width = float(edges[1] - edges[0])
    return [round(float(c), max(0, 2 - math.floor(math.log10(width)))) for c in (edges[1:] + edges[:-1]) / 2]


def _made_of(frame: StandardisedCoordinates, axis: Floats, carried: float, i: int) -> str:
    """The columns that make up most of a component."""
    parts: dict[str, float] = {}
    for owner, loading in zip(frame.owners, axis.tolist(), strict=True):
        parts[owner] = parts.get(owner, 0.0) + loading**2
    largest = sorted(parts, key=lambda name: (-round(parts[name], 6), name))[:_NAMED]
    listed = ", ".join(f"{name} ({_percent(parts[name])})" for name in largest)
    return (
        f"Train's {_ORDINALS[i]} component carries {_percent(carried)} of the variance, mostly from {listed}."
    )


def _outside(outside: dict[str, int], rows: dict[str, int], fewest: int) -> str:
    """How many rows the picture leaves out; a few real ones are not counted out."""
    shares = [
        f"{_percent(n / rows[name])} of {name}" if n >= fewest else f"fewer than {fewest} rows of {name}"
        for name, n in outside.items()
    ]
    return f"Outside the picture lie {', '.join(shares)}."


def _percent(share: float) -> str:
    return f"{100 * share:.0f}\u00a0%"
