"""Column by column: does the release have the same values in the same proportions?"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, NamedTuple, Self

import numpy as np

from synth_audit.arrays import Floats
from synth_audit.audits._shared import at_least, descriptive, distance
from synth_audit.audits.fidelity import _shared_cells as dist
from synth_audit.audits.fidelity._reference import Found, measured_together, sampled, sampling_note
from synth_audit.audits.fidelity._shared_cells import SharedCells, SortedPair, shared_cells, tellable
from synth_audit.execution.context import RunContext
from synth_audit.findings.measurement import Estimate, Findings, Interval, MeasurementId, Quantity, Series
from synth_audit.plugins.audit import AuditInfo, Subject
from synth_audit.stats.attack_success import worst_estimate
from synth_audit.stats.distributions import SortedNumbers, cell_codes, tellable_cells
from synth_audit.stats.proportions import proportion_difference, unseen_share
from synth_audit.table.schema import Column, nominal, quantitative
from synth_audit.table.table import Table

MOST_CELLS = 1024
"""Labels beyond so many share cells where resamples are drawn, so that memory does not grow with them."""

_NOTHING_TOLD = 2
"""New cells where all real rows are joined: theirs, and the one of the release alone."""

_MOST_BARS = 20
"""Categories of a picture; more bars cannot be read."""
_REAL, _SYNTHETIC, _CONTROL = "real", "synthetic", "control rows"

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

HELLINGER = distance("hellinger", "Hellinger distance", help="0 identical, 1 disjoint.")

KOLMOGOROV_SMIRNOV = distance(
    "ks",
    "Kolmogorov–Smirnov distance",
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

CHI_SQUARE = descriptive(
    "chi_square",
    "Inverted χ² test",
    unit="probability",
    help="1 − p of the test that labels have the real frequencies. It grows with the number of rows, and "
    "fresh real rows do not get 0 either: no measure of distance.",
)

MARGINAL_DISTANCE = descriptive(
    "marginal_distance",
    "Marginal distance",
    unit="distance",
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
        most_rows: of larger tables so many rows are read, drawn at random: shares are then known to ± 0.001.

    Source: Disjoint Generative Models, section 3; TableDiffusion thesis, section 6.8.2.
    """

    cells: int = 10
    n_bootstrap: int = 200
    most_rows: int = 1_000_000

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
        at_least(self, cells=2, n_bootstrap=100, most_rows=1)

    def run(self, subject: Subject, context: RunContext) -> Findings:
        """Measure every released column against train, with control against train as reference."""
        notes, n = sampling_note(subject, self.most_rows), subject.synthetic.n_rows
        subject = sampled(subject, self.most_rows, context.rng)
        pictures: dict[str, Series] = {}
        still: list[str] = []

        def compare(tables: Sequence[Table], seed: int) -> list[Found]:
            """The release first; one column after the other, each read and sorted once for all tables."""
            beside = ResampledTables.of(subject, tables, self.n_bootstrap, seed)
            by_column = {}
            for column in subject.features:
                by_column[column.name], cells, varies = beside.compared(column, self.cells)
                pictures[column.name] = picture(column, subject, cells)
                still.extend([column.name] * (not varies))
            return [
                _estimates(subject, table, {name: d[i] for name, d in by_column.items()})
                for i, table in enumerate(tables)
            ]

        measurements = measured_together(subject, compare, self.info.quantities, context.rng)
        apart = {m.id.column: m.value for m in measurements if m.id.quantity == TOTAL_VARIATION.name}
        worst_first = sorted(subject.features, key=lambda c: -apart.get(c.name, 0.0))
        notes += _left_out(subject, apart, len(still))
        measurements = [replace(m, n_requested=n) for m in measurements]
        return Findings(tuple(measurements), tuple(pictures[c.name] for c in worst_first), notes)


class Distance(NamedTuple):
    """A distance and its bootstrap draws, shape (n_draws,); None where they would say nothing."""

    value: float
    draws: Floats | None


@dataclass(frozen=True, eq=False)
class ResampledTables:
    """Tables beside train, with resamples of the rows of all of them. One column is in memory at a time.

    Attributes:
        tables: to be compared with train. drawn: resamples of each. of_train: those of train.
    """

    subject: Subject
    tables: tuple[Table, ...]
    of_train: dist.Resamples
    drawn: tuple[dist.Resamples, ...]

    @classmethod
    def of(cls, subject: Subject, tables: Sequence[Table], n_draws: int, seed: int) -> Self:
        """Draw the resamples: of train and one table after the other, each from the same seed."""
        drawn = []
        for table in tables:
            rng = np.random.default_rng(seed)
            of_train = dist.Resamples.of(subject.train.n_rows, n_draws, rng)
            drawn.append(dist.Resamples.of(table.n_rows, n_draws, rng))
        return cls(subject, tuple(tables), of_train, tuple(drawn))

    def compared(
        self, column: Column, most_cells: int
    ) -> tuple[tuple[dict[str, Distance], ...], SharedCells, bool]:
        """Compare one column of every table with train.

        Cells are joined until enough real rows lie in each; where that leaves one, they are not compared.

        Returns:
            Distances of each table from train, by quantity; ``marginal_distance`` is the column's part of
            that mean. Those that would tell of somebody are left out. Then the cells of train, of control
            where it is there, and of the tables; and whether numbers vary enough to be told.
        """
        real, fewest = self.subject.real, self.subject.suppression
        tables = [*real, *self.tables]
        cells = shared_cells(tables, real, column, most=most_cells, fewest=fewest)
        found = self._of_cells(column, cells, len(real))
        if not quantitative([column]):
            return found, cells, True
        numbers = [SortedNumbers.of(t.numbers(column.name)) for t in real]
        if not varies_enough(numbers, fewest):
            return found, cells, False
        own = (self._of_numbers(column.name, i, numbers[0], most_cells) for i in range(len(found)))
        return tuple(known | more for known, more in zip(found, own, strict=True)), cells, True

    def _of_cells(self, column: Column, cells: SharedCells, n_real: int) -> tuple[dict[str, Distance], ...]:
        fewest = self.subject.suppression
        counts = [np.bincount(c, minlength=cells.size) for c in cells.codes[:n_real]]
        numbers, k = dist.joined_cells(counts, fewest, ordered=cells.ordered)
        if k == _NOTHING_TOLD:
            return tuple({} for _ in self.tables)
        fold = MOST_CELLS if k > MOST_CELLS and not cells.ordered else k
        train = numbers[cells.codes[0]]
        p, of_p = dist.shares(train, k), self.of_train.shares(train % fold, fold)
        found = []
        for table, codes, drawn in zip(self.tables, cells.codes[n_real:], self.drawn, strict=True):
            rows = numbers[codes]
            q, of_q = dist.shares(rows, k), drawn.shares(rows % fold, fold)
            apart = {TOTAL_VARIATION.name: dist.total_variation, HELLINGER.name: dist.hellinger}
            found.append({k: Distance(float(of(p, q)), of(of_p, of_q)) for k, of in apart.items()})
            if nominal([column]):
                tested = Distance(float(dist.inverted_chi_square(q, p, table.n_rows)), None)
                found[-1] |= {"chi_square": tested, "marginal_distance": tested}
        return tuple(found)

    def _of_numbers(self, name: str, i: int, train: SortedNumbers, most_cells: int) -> dict[str, Distance]:
        """Distances of the present values themselves."""
        table = self.tables[i].numbers(name)
        own = SortedNumbers.of(table)
        if not len(own.values):
            return {"marginal_distance": Distance(1.0, None)}  # nothing on one side is as far as can be
        pair = SortedPair.of(train, own)
        edges = pair.fine_cells(train.quantile_cells(most_cells))
        k = len(edges) + 2
        drawn = (
            self.of_train.shares(cell_codes(self.subject.train.numbers(name), edges), k),
            self.drawn[i].shares(cell_codes(table, edges), k),
        )
        gaps = np.abs(np.subtract(*map(dist.distribution_functions, drawn)))
        fewest, in_cells = self.subject.suppression, train.cell_counts(edges)[:-1]
        told = tellable(np.cumsum(in_cells), fewest)
        ks = Distance(pair.kolmogorov_smirnov(fewest), gaps[:, told].max(axis=1, initial=0.0))
        found = {"ks": ks, "marginal_distance": Distance(ks.value, None)}
        scaled = dist.in_deviations(np.concatenate([pair.values, edges]), train.values)
        if scaled is not None:
            scaled, beside = scaled[: len(pair.values)], scaled[len(pair.values) :]
            places = pair.cell_places(edges, scaled, beside)
            # The unit is train's deviation, which is a matter of chance as well.
            whole = dist.spread(train.cell_counts(edges) / self.subject.train.n_rows, places)
            unit = dist.spread(drawn[0], places) / whole
            moved = gaps[:, :-1] @ np.diff(places)
            moved = np.divide(moved, unit, out=moved, where=unit > 0)
            found["wasserstein"] = Distance(pair.wasserstein(scaled), moved)
        return found


def varies_enough(real: Sequence[SortedNumbers], fewest: int) -> bool:
    """Whether enough real rows differ from the most frequent number for sums over values to tell of nobody.

    Of a column that is nearly all one value, such a sum is that of the few others.

    Args:
        real: numbers of train, and of control where it is there.
    """
    train, *control = real
    usual, held = train.most_frequent()
    if len(train.values) - held < fewest:
        return False
    # Of equally frequent values, the one that leaves the fewest control rows beside it.
    return not any(0 < len(x.values) - x.held(usual).max(initial=0) < fewest for x in control)


def missing_difference(train: Table, table: Table, name: str, subject: Subject) -> Estimate:
    """``|share missing in the table − share missing in train|`` with Newcombe's interval, folded at 0.

    Where fewer rows are missing than may be told of, none is taken to be, and all where fewer are present:
    against a release that shows its own share, the difference would tell how few they are.
    """
    a, b = (_tellable(t, name, subject.suppression) for t in (table, train))
    signed = proportion_difference(a, table.n_rows, b, train.n_rows, subject.level)
    ends = sorted((abs(signed.low), abs(signed.high)))
    low = 0.0 if signed.low <= 0 <= signed.high else ends[0]
    value = abs(a / table.n_rows - b / train.n_rows)
    return Estimate(value, Interval(low, ends[1], subject.level, f"{signed.method}, folded at 0"))


def _tellable(table: Table, name: str, fewest: int) -> int:
    """Missing values of a column, or the nearest number that tells of nobody."""
    missing, n = table.n_missing(name), table.n_rows
    if missing < fewest:
        return 0
    return n if n - missing < fewest else missing


def picture(column: Column, subject: Subject, cells: SharedCells) -> Series:
    """Bars of the shares of real, synthetic and control rows; small cells are drawn together as one.

    Control rows are left out where a bar would stand for too few of them.

    Args:
        cells: of the real tables, then of the release, and of whatever tables come after it.
    """
    release, size = len(subject.real), len(cells.names)
    places = {_REAL: 0, _SYNTHETIC: release} | ({_CONTROL: 1} if release > 1 else {})
    counts = {label: np.bincount(cells.codes[i], minlength=size) for label, i in places.items()}
    # The numbers join the same cells and more, so that none can be told from the two together.
    shown = tellable_cells([counts[_REAL]], subject.suppression, ordered=cells.ordered)
    if not cells.ordered:
        shown = sorted(shown, key=lambda i: -counts[_REAL][i])[:_MOST_BARS]
    rest = np.setdiff1d(np.arange(size), shown)
    more = any(counts[label][rest].any() for label in (_REAL, _SYNTHETIC))
    bars = {
        label: np.append(n[shown], n[rest].sum()) if more else n[shown]
        for label, n in counts.items()
        if more or not n[rest].any()
    }
    if _CONTROL in bars and np.any(bars[_CONTROL] < subject.suppression):
        del bars[_CONTROL]
    others = ("all others",) if len(bars[_REAL]) > len(shown) else ()
    return Series(
        id=MeasurementId("", "distribution", column=column.name),
        title=f"Distribution of {column.name}",
        kind="bar",
        x_label=cells.axis,
        y_label="share of rows",
        x=(*(cells.names[i] for i in shown), *others),
        lines={label: tuple((counts / counts.sum()).tolist()) for label, counts in bars.items()},
    )


def _estimates(
    subject: Subject, table: Table, by_column: Mapping[str, Mapping[str, Distance]]
) -> dict[MeasurementId, Estimate]:
    """Every distance of a table from train, overall and by column."""
    n, level = min(subject.train.n_rows, table.n_rows), subject.level
    found = {
        MeasurementId("", name): _estimate(name, mean, n, level) for name, mean in _means(by_column).items()
    }
    shares = [d[TOTAL_VARIATION.name] for d in by_column.values() if TOTAL_VARIATION.name in d]
    if shares:
        at = [partial(_estimate, TOTAL_VARIATION.name, d, n) for d in shares]
        found[WORST_TOTAL_VARIATION.id()] = worst_estimate(at, level, f"{len(shares)} columns").plain
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
    return Estimate(found.value, dist.distance_interval(found.value, found.draws, level, unseen))


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
    gaps = [
        name for name in names if any(_tellable(t, name, subject.suppression) for t in (subject.train, table))
    ]
    found = {name: missing_difference(subject.train, table, name, subject) for name in gaps or names}
    known = [e.interval for e in found.values() if e.interval is not None]
    # The mean of both ends covers the mean however dependent the columns are.
    ends = (float(np.mean([i.low for i in known])), float(np.mean([i.high for i in known])))
    interval = Interval(*ends, subject.level, f"{known[0].method}, mean over columns")
    mean = Estimate(float(np.mean([e.value for e in found.values()])), interval)
    return {MISSINGNESS.id(): mean} | {MISSINGNESS.id(column=name): found[name] for name in gaps}
