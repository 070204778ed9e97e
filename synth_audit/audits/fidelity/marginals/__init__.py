"""Column by column: does the release have the same values in the same proportions?"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from synth_audit.audits.fidelity._reference import Found, measured_together
from synth_audit.audits.fidelity.marginals.columns import (
    Distance,
    ResampledTables,
    has_gaps,
    missing_difference,
    picture,
)
from synth_audit.findings.measurement import (
    Direction,
    Estimate,
    Findings,
    Interval,
    MeasurementId,
    Quantity,
    Series,
)
from synth_audit.plugins.audit import AuditInfo, Subject
from synth_audit.run.context import RunContext
from synth_audit.stats.attack_success import corrected_level, worst_interval
from synth_audit.stats.distributions import distance_interval
from synth_audit.stats.proportions import unseen_share
from synth_audit.table.table import Table

TOTAL_VARIATION = Quantity(
    "total_variation",
    "Total variation distance",
    help="Share of rows that would have to change to give the real proportions; 0 is identical.",
)
WORST_TOTAL_VARIATION = Quantity(
    "worst_total_variation",
    "Total variation distance of the worst column",
    help="The largest of all columns: one that is constant or empty in the release hides in their mean.",
)
HELLINGER = Quantity("hellinger", "Hellinger distance", unit="distance", help="0 identical, 1 disjoint.")
KOLMOGOROV_SMIRNOV = Quantity(
    "ks",
    "Kolmogorov–Smirnov distance",
    unit="distance",
    help="Largest gap between the cumulative distributions of a numeric column.",
)
WASSERSTEIN = Quantity(
    "wasserstein",
    "Wasserstein distance in standard deviations",
    unit="standard deviations",
    range=(0.0, math.inf),
    help="How far a number would have to move on average, in standard deviations of the training column.",
)
MISSINGNESS = Quantity(
    "missingness",
    "Difference in missing values",
    help="By how much the share of missing values differs, for columns that have more than a few.",
)
CHI_SQUARE = Quantity(
    "chi_square",
    "Inverted χ² test",
    unit="probability",
    direction=Direction.NEUTRAL,
    help="1 − p of the test that labels have the real frequencies. It grows with the number of rows, and "
    "fresh real rows do not get 0 either: no measure of distance.",
)
MARGINAL_DISTANCE = Quantity(
    "marginal_distance",
    "Marginal distance",
    unit="distance",
    direction=Direction.NEUTRAL,
    help="Mean over columns of the Kolmogorov–Smirnov distance (numbers) and 1 − p of χ² (labels). It grows "
    "with the number of rows; kept for comparison with published figures.",
)

_MEANS = (TOTAL_VARIATION, HELLINGER, KOLMOGOROV_SMIRNOV, WASSERSTEIN, CHI_SQUARE, MARGINAL_DISTANCE)


@dataclass(frozen=True, kw_only=True)
class Marginals:
    """Distances between the real and the synthetic distribution of every column.

    Discrete columns: cells are the categories. Numeric columns: cells of about equal real mass, cut on
    train. Missing is a cell of its own. ``total_variation = ½ Σ |p − q|``,
    ``hellinger = sqrt(½ Σ (√p − √q)²)``, ``ks`` = largest gap of the distribution functions and
    ``wasserstein = ∫ |F − G| dx / s`` (numeric, present values; s the standard deviation in train, which
    every column that varies has, whereas a quartile range is 0 for a column of mostly zeros),
    ``chi_square = 1 − p`` of ``Σ (observed − expected)² / expected`` with train's shares as expectation
    (discrete), ``missingness`` = difference of the shares of missing values, and
    ``worst_total_variation = max`` over columns.

    Exact numbers would give away how few rows hold a rare value, or what it is. So cells that fewer than the
    suppression limit hold in train or control are joined into one for the first two and χ², except those in
    which no real row lies; where all are joined, the column has no such number. A numeric column has fewer
    cells where that leaves more to compare. ``ks`` and ``wasserstein`` are left out where fewer rows differ
    from the most frequent value, and ``ks`` does not look where fewer training rows lie beyond: n times (the
    release's share there − ks) was their number. All of that is decided by train and control alone.

    Without a column it is the mean over columns; ``marginal_distance`` is the mean of ``ks`` for numeric and
    ``chi_square`` for discrete columns, 1 for a numeric column that is wholly missing in the table. Intervals
    are ± z standard errors from resampling the rows of both tables, the same rows for all columns; Newcombe's
    for ``missingness``, averaged over columns; none for the two that describe, whose resamples say nothing.
    That of the worst column is corrected for how many there are.

    Fields:
        cells: cells of a numeric column, at least 2.
        n_bootstrap: resamples behind the interval.

    Source: Disjoint Generative Models, section 3; TableDiffusion thesis, section 6.8.2.
    """

    cells: int = 10
    n_bootstrap: int = 200

    info: ClassVar[AuditInfo] = AuditInfo(
        title="Distributions of single columns",
        question="Does each column of the release look like the real one?",
        threat_model="Someone who counts or averages a single column would be misled.",
        not_covered="How columns depend on each other.",
        quantities=(*_MEANS, WORST_TOTAL_VARIATION, MISSINGNESS),
        risk="fidelity",
        cost="instant",
        source="Disjoint Generative Models, section 3; TableDiffusion thesis, section 6.8.2",
    )

    def __post_init__(self) -> None:
        if self.cells < 2 or self.n_bootstrap < 100:
            raise ValueError("cells must be at least 2 and n_bootstrap at least 100")

    def run(self, subject: Subject, context: RunContext) -> Findings:
        """Measure every released column against train, with control against train as reference."""

        pictures: dict[str, Series] = {}
        still: list[str] = []

        def compare(tables: Sequence[Table], seed: int) -> list[Found]:
            """The release first; one column after the other, each read and sorted once for all tables."""
            beside = ResampledTables.of(subject, tables, self.n_bootstrap, seed)
            by_column = {}
            for column in subject.features:
                found = beside.compared(column, self.cells)
                by_column[column.name] = found.distances
                pictures[column.name] = picture(column, subject, found.cells)
                still.extend([column.name] * (not found.varies))
            return [
                _estimates(subject, table, {name: d[i] for name, d in by_column.items()})
                for i, table in enumerate(tables)
            ]

        measurements = measured_together(subject, compare, self.info.quantities, context.rng)
        apart = {m.id.column: m.value for m in measurements if m.id.quantity == TOTAL_VARIATION.name}
        worst_first = sorted(subject.features, key=lambda c: -apart.get(c.name, 0.0))
        notes = _left_out(subject, apart, len(still))
        return Findings(tuple(measurements), tuple(pictures[c.name] for c in worst_first), notes)


def _estimates(
    subject: Subject, table: Table, by_column: Mapping[str, Mapping[str, Distance]]
) -> dict[MeasurementId, Estimate]:
    """Every distance of a table from train, overall and by column."""
    n, level = min(subject.train.n_rows, table.n_rows), subject.level
    found = {
        MeasurementId("", name): _estimate(name, mean, n, level) for name, mean in _means(by_column).items()
    }
    shares = [d[TOTAL_VARIATION.name] for d in by_column.values() if TOTAL_VARIATION.name in d]
    found |= _worst(shares, n, level)
    for column, distances in by_column.items():
        found |= {
            MeasurementId("", name, column=column): _estimate(name, d, n, level)
            for name, d in distances.items()
            if name != MARGINAL_DISTANCE.name
        }
    return found | _missingness(subject, table)


def _estimate(name: str, found: Distance, n: int, level: float) -> Estimate:
    """A distance with its interval, for tables of at least n rows; without one if it has no draws."""
    if found.draws is None:
        return Estimate(found.value)
    room = unseen_share(n, level)
    # A share ε that was never drawn is a total variation of ε, but a larger Hellinger distance.
    unseen = math.sqrt(1 - math.sqrt(1 - room)) if name == HELLINGER.name else room
    return Estimate(found.value, distance_interval(found.value, found.draws, level, unseen))


def _worst(found: Sequence[Distance], n: int, level: float) -> dict[MeasurementId, Estimate]:
    """The largest total variation of all columns that have one."""
    if not found:
        return {}
    each = corrected_level(level, len(found))
    known = [_estimate(TOTAL_VARIATION.name, d, n, each).interval for d in found]
    interval = worst_interval([i for i in known if i is not None], level, f"{len(found)} columns")
    return {WORST_TOTAL_VARIATION.id(): Estimate(max(d.value for d in found), interval)}


def _left_out(subject: Subject, compared: Collection[str], still: int) -> tuple[str, ...]:
    """How many columns lack which numbers, and why; not which columns."""
    fewest, notes = subject.suppression, []
    alike = sum(c.name not in compared for c in subject.features)
    if alike:
        notes.append(
            f"columns compared by their missing values, and numbers where they vary, alone: {alike}; no two "
            f"of their cells hold {fewest} real rows each."
        )
    if still:
        notes.append(
            f"numeric columns without ks and wasserstein: {still}; fewer than {fewest} real rows differ from "
            f"their most frequent value."
        )
    return tuple(notes)


def _means(by_column: Mapping[str, Mapping[str, Distance]]) -> dict[str, Distance]:
    """Mean over the columns that have a distance, with the draws of the mean, since columns share rows."""
    means = {}
    for quantity in _MEANS:
        known = [found[quantity.name] for found in by_column.values() if quantity.name in found]
        if known:
            draws = [d.draws for d in known if d.draws is not None]
            mean = np.mean(draws, axis=0) if draws else None
            means[quantity.name] = Distance(float(np.mean([d.value for d in known])), mean)
    return means


def _missingness(subject: Subject, table: Table) -> dict[MeasurementId, Estimate]:
    """Differences of the columns with gaps, and their mean; over all columns where none has any."""
    names = [c.name for c in subject.features]
    gaps = [name for name in names if has_gaps([subject.train, table], name, subject)]
    found = {name: missing_difference(subject.train, table, name, subject) for name in gaps or names}
    mean = _averaged(list(found.values()))
    return {MISSINGNESS.id(): mean} | {MISSINGNESS.id(column=name): found[name] for name in gaps}


def _averaged(found: Sequence[Estimate]) -> Estimate:
    """Mean of estimates; the mean of both ends covers the mean however dependent the columns are."""
    known = [e.interval for e in found if e.interval is not None]
    ends = (float(np.mean([i.low for i in known])), float(np.mean([i.high for i in known])))
    method = f"{known[0].method}, mean over columns"
    return Estimate(float(np.mean([e.value for e in found])), Interval(*ends, known[0].level, method))
