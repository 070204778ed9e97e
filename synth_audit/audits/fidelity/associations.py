"""Associations of column pairs: are they the same in the release as in the real table?"""

import math
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from synth_audit.arrays import Bools, Floats
from synth_audit.audits._shared import at_least, descriptive, distance
from synth_audit.audits.fidelity._reference import measured, sampling_note
from synth_audit.encode.cells import ColumnCells, readable_pairs, told_pairs
from synth_audit.errors import NotApplicable
from synth_audit.execution.context import RunContext
from synth_audit.findings.measurement import Estimate, Findings, Interval, MeasurementId, Quantity, Series
from synth_audit.plugins.audit import AuditInfo, Subject
from synth_audit.stats import association as kernel
from synth_audit.table.table import Table

N_GROUPS = 20
"""Jackknife groups of rows, each left out once: their spread is known to 16 %, by ``1 / √(2 · 19)``."""

_LABELS = 10
"""A number column with at most this many values in train is a label, as in the paper's tool (SynthEval)."""

_DECIMALS = 2
"""The paper prints two. No small count follows from the difference of a few pairs rounded so."""

MOST_COLUMNS = 40
"""Columns of a picture at most: the names of more cannot be read beside its rows."""

DIGITS = 2
"""Decimals of a picture: enough to see, too few to work values out from."""

DIFFERENCE = distance(
    "difference",
    "Mean difference of associations",
    range=(0.0, 2.0),
    help="Over all pairs of columns, or those of one column: Spearman's correlation of numbers, Cramér's V "
    "of labels, correlation ratio of a label and a number; 0 is identical.",
)

LOST = Quantity(
    "lost",
    "Share of the real associations that is lost",
    unit="share",
    range=(0.0, float("inf")),
    help="Norm of the difference by the norm of the real associations: 0 is nothing lost, about 1 what a "
    "release of independent columns loses. Fresh rows lose as much where the real ones are but chance.",
)

FROBENIUS = distance(
    "frobenius",
    "Frobenius norm of the difference of associations",
    range=(0.0, float("inf")),
    help="Root of the summed squares over both halves of the matrix; grows with the number of columns.",
)

PUBLISHED = distance(
    "published_difference",
    "Correlation difference as published",
    range=(0.0, float("inf")),
    help="Frobenius norm over all pairs of Pearson's r, V² and η², none corrected, as in table 3 of "
    "Disjoint Generative Models; grows with the number of columns.",
)

PEARSON = distance(
    "pearson_difference",
    "Mean difference of Pearson correlations",
    range=(0.0, 2.0),
    help="Over pairs of numbers; one extreme value can move it.",
)

SPEARMAN = distance(
    "spearman_difference",
    "Mean difference of Spearman correlations",
    range=(0.0, 2.0),
    help="Over pairs of numbers; ranks, so no extreme value moves it much.",
)

CRAMERS_V = distance(
    "cramers_v_difference",
    "Mean difference of Cramér's V",
    help="Over pairs of labels, corrected for what chance adds.",
)

ETA = distance(
    "eta_difference",
    "Mean difference of correlation ratios",
    help="Over pairs of a label and a number, corrected for what chance adds.",
)

MUTUAL_INFORMATION = distance(
    "mutual_information_difference",
    "Mean difference of normalised mutual information",
    help="Over all pairs; sees relations of any shape, and those of missing values, which are a cell.",
)

NO_ASSOCIATION = descriptive(
    "no_association",
    "Mean difference of a release whose columns are independent",
    unit="distance",
    help="Mean strength of the real associations. A release with such a difference has kept none of them.",
)


@dataclass(frozen=True, kw_only=True)
class Associations:
    """Differences between the real and the synthetic association of every pair of columns.

    Two numbers: Spearman's correlation ρ (and Pearson's r on its own) over the rows where both are present.
    Two labels: Cramér's V. A label and a number: the correlation ratio η over the rows where the number is
    present. V, η and mutual information are corrected for what chance adds to them, so that samples of
    different sizes can be compared. Missing labels are a label; missing numbers are a cell of the mutual
    information ``(I(A; B) − E) / ((H(A) + H(B)) / 2 − E)``, E being its expectation for independent columns,
    for which numbers are cut into cells on train.

    With R the real and S the synthetic matrix, ``difference = mean |R_ij − S_ij|`` over all pairs i < j (no
    column) or those of one column, ``frobenius = ‖R − S‖_F`` and ``lost = ‖R − S‖_F / ‖R‖_F``, R being taken
    as given. A pair counts if in each column at least as many training rows as the suppression limit differ
    from the most frequent cell. Other pairs rest on a few people. Two columns of two levels each do not
    count if fewer training or control rows share two levels: their association would reveal that count.

    Intervals come from a jackknife over 20 random groups of rows of either table, see :func:`mean_gap`.

    Fields:
        cells: cells of a numeric column, at least 2.
        most_labels: labels of a column, the most frequent in train, that are told apart; others are one.
        most_rows: rows that are read of a table, at random where it has more.
        published: measure the paper's own correlation difference too, for its table 3.

    Source: Disjoint Generative Models (norm of the difference matrix); Bergsma 2013 (V), Kelley 1935 (η),
    Vinh, Epps & Bailey 2010 (mutual information); Efron & Stein 1981 (jackknife).
    """

    cells: int = 10
    most_labels: int = 50
    most_rows: int = 50_000
    published: bool = False

    info: ClassVar[AuditInfo] = AuditInfo(
        title="Associations between columns",
        question="Do the columns of the release depend on each other as the real ones do?",
        threat_model="Someone who looks for relations between two columns would miss or invent some.",
        not_covered=(
            "Relations of three or more columns at a time, and of the shape of a relation only what mutual "
            "information of ten cells a number tells."
        ),
        quantities=(
            DIFFERENCE,
            LOST,
            FROBENIUS,
            PUBLISHED,
            PEARSON,
            SPEARMAN,
            CRAMERS_V,
            ETA,
            MUTUAL_INFORMATION,
            NO_ASSOCIATION,
        ),
        risk="fidelity",
        source="Disjoint Generative Models, section 3; Bergsma 2013; Kelley 1935; Vinh et al. 2010",
    )

    def __post_init__(self) -> None:
        at_least(self, cells=2, most_labels=2, most_rows=100)

    def run(self, subject: Subject, context: RunContext) -> Findings:
        """Measure every pair of released columns against train, with control against train as reference."""
        rng = context.rng
        if len(subject.features) < 2:
            raise NotApplicable("a table of one column has no pairs of columns")
        scale = ColumnCells.of(subject.train, subject.features, self.cells, self.most_labels)
        part = subject.train.sample(self.most_rows, rng)
        rows = scale.rows(part, N_GROUPS, rng)
        pairs = told_pairs(rows, scale, subject.suppression)
        if not pairs.any():
            raise NotApplicable(
                "in no two columns do enough training rows differ from the most frequent value",
                expected=f"{subject.suppression} rows or more in either column",
            )
        cell_pairs = told_pairs(rows, scale, subject.suppression, missing_counts=True)
        varied = np.asarray(pairs.any(axis=1))
        pairs, withheld = _withheld(subject, part, scale, pairs)
        cell_pairs, _ = _withheld(subject, part, scale, cell_pairs, missing_counts=True)
        if not pairs.any():
            raise NotApplicable("every pair of columns that could be compared would reveal a few rows")
        train = AssociationMatrices.of(rows, scale.numeric)

        def compare(table: Table, draws: np.random.Generator) -> dict[MeasurementId, Estimate]:
            part = scale.rows(table.sample(self.most_rows, draws), N_GROUPS, draws)
            other = AssociationMatrices.of(part, scale.numeric)
            return _compared(train, other, pairs, cell_pairs, scale, subject.level)

        found = measured(subject, compare, self.info.quantities, rng)
        found.append(NO_ASSOCIATION.at(float(np.abs(train.mixed.values[pairs]).mean())))
        if self.published:
            found.append(PUBLISHED.at(published_difference(part, subject.synthetic, scale)))
        series = matrices(subject, scale, train.mixed.values, pairs, self.most_rows, rng)
        return Findings(tuple(found), series, _notes(subject, varied, withheld, self.most_rows))


@dataclass(frozen=True, eq=False)
class Jackknifed:
    """A symmetric matrix of associations with what leaving out rows does to it.

    Attributes:
        values: shape (d, d).
        deviations: ``sqrt((g − 1)/g) (value without a group − mean of those)``, whose squares sum to the
            variance; of the measure corrected for chance and of the plain one; shape (variants, g, d, d).
    """

    values: Floats
    deviations: Floats

    @classmethod
    def of(cls, *variants: Floats) -> Self:
        """From the replicates of a measure, shape (1 + g, d, d), the first variant being the measure.

        A corrected measure stands still at 0 while noise moves the plain one, so the plain one's noise counts
        where it is larger.
        """
        made = np.stack([v[1:] for v in variants])
        groups = made.shape[1]
        if groups:
            made = (made - made.mean(axis=1, keepdims=True)) * math.sqrt((groups - 1) / groups)
        return cls(variants[0][0], made)


@dataclass(frozen=True, eq=False)
class AssociationMatrices:
    """Associations between the columns of one table.

    Attributes:
        mixed: Spearman's correlation of two numbers, Cramér's V of two labels, η of a label and a number.
        pearson: Pearson's correlation of two numbers, 0 for other pairs.
        information: normalised mutual information of the cells, missing values being a cell.
    """

    mixed: Jackknifed
    pearson: Jackknifed
    information: Jackknifed

    @classmethod
    def of(cls, rows: kernel.JackknifeRows, numeric: Bools) -> Self:
        """Measure all pairs of columns."""
        counts = kernel.contingency(rows)
        shares = kernel.variance_shares(rows, np.flatnonzero(~numeric))
        ranked = kernel.between_numbers(kernel.spearman(rows), numeric)
        mixed, information = [], []
        for corrected in (True, False):
            ratios = kernel.correlation_ratio(shares, corrected=corrected)
            between_labels = kernel.cramers_v(counts, corrected=corrected)
            mixed.append(kernel.mixed(ranked, ratios, between_labels, numeric))
            information.append(kernel.normalised_information(counts, corrected=corrected))
        pearson = kernel.between_numbers(kernel.pearson(rows), numeric)
        return cls(Jackknifed.of(*mixed), Jackknifed.of(pearson), Jackknifed.of(*information))


def mean_gap(train: Jackknifed, other: Jackknifed, pairs: Bools, level: float) -> Estimate:
    """``mean |a − b|`` over the pairs, with its interval ``value ± t · se``, which stops at 0.

    se is the jackknife's standard error of the differences, each with its sign, and t is Student's for the
    groups. The interval is for the number that two samples of these sizes give on average. Noise makes that
    larger than the distance of the populations, so the high end holds for that too and the low end does not.
    """
    return _mean_gaps(train, other, pairs, [slice(None)], level)[0]


def norm_gap(train: Jackknifed, other: Jackknifed, pairs: Bools, level: float) -> Estimate:
    """``sqrt(Σ (a − b)²)`` over the pairs, each counted both ways round; interval as of :func:`mean_gap`."""
    gap = np.where(pairs, other.values - train.values, 0.0)
    value = float(np.linalg.norm(gap))
    slope = gap / value if value > 0 else pairs / math.sqrt(pairs.sum())
    moved = [(side.deviations * slope).sum(axis=(-2, -1)) for side in (train, other)]
    return _estimate(value, moved, level)


def lost_share(train: Jackknifed, gap: Estimate, pairs: Bools) -> Estimate | None:
    """The gap of :func:`norm_gap` by the norm of the real matrix, taken as given; None where that is 0."""
    norm = float(np.linalg.norm(np.where(pairs, train.values, 0.0)))
    if norm == 0:
        return None
    ends = gap.interval
    if ends is not None:
        ends = Interval(ends.low / norm, ends.high / norm, ends.level, ends.method)
    return Estimate(gap.value / norm, ends)


def _mean_gaps(
    train: Jackknifed, other: Jackknifed, pairs: Bools, sets: list[slice], level: float
) -> list[Estimate]:
    """Mean absolute difference over the pairs of each set of columns."""
    gap = other.values - train.values
    slope = np.where(pairs, np.where(gap < 0, -1.0, 1.0), 0.0)
    sums, counts = (slope * gap).sum(axis=1), pairs.sum(axis=1).astype(np.float64)
    # What leaving out a group of either table adds to the sum of each column, shape (variants, g, d).
    moved = [(side.deviations * slope).sum(axis=-1) for side in (train, other)]
    found = []
    for at in sets:
        n = counts[at].sum()
        value = float(sums[at].sum() / n)
        found.append(_estimate(value, [m[..., at].sum(axis=-1) / n for m in moved], level))
    return found


def _estimate(value: float, moved: list[Floats], level: float) -> Estimate:
    """The value with the interval that its moves in both tables give, shape (variants, g) each.

    Without two groups in either table nothing is known of the precision.
    """
    from scipy.special import stdtrit  # here, since a code location must not load it

    groups = min(m.shape[1] for m in moved)
    if groups < 2:
        return Estimate(value, Interval(0.0, math.inf, level, "one row tells no precision"))
    error = math.sqrt(sum(float((m**2).sum(axis=1).max()) for m in moved))
    half = float(stdtrit(groups - 1, 0.5 + level / 2)) * error
    return Estimate(
        value, Interval(max(0.0, value - half), value + half, level, f"jackknife of {groups} groups")
    )


def published_difference(train: Table, other: Table, scale: ColumnCells) -> float:
    """Return ``‖R − S‖_F`` over all pairs of columns, in [0, number of columns].

    Entries are Pearson's r of two numbers, V² of two labels and η² of a label and a number, none of them
    corrected for chance. Pairs that rest on few rows count too, so that the sum is rounded to two decimals.

    Source: Disjoint Generative Models, appendix A; SynthEval 1.7, ``corr_diff``.
    """
    columns = [c.name for c in scale.columns]
    number = np.array(
        [
            numeric and len(np.unique(train.numbers(name))) > _LABELS
            for name, numeric in zip(columns, scale.numeric, strict=True)
        ]
    )
    difference = _association_matrix(train, scale, number) - _association_matrix(other, scale, number)
    return round(float(np.linalg.norm(difference)), _DECIMALS)


def _association_matrix(table: Table, scale: ColumnCells, number: np.ndarray) -> Floats:
    """r, V² and η² of every pair of columns, 1 on the diagonal, shape (d, d)."""
    cells, sizes, numbers = [], [], [np.empty((table.n_rows, 0))]
    for column, own, numeric, quantity in zip(scale.columns, scale.cells, scale.numeric, number, strict=True):
        codes = own.of(table)
        if numeric and not quantity:
            codes = np.unique(table.numbers(column.name), return_inverse=True)[1]
        if quantity:
            numbers.append(table.numbers(column.name))
        cells.append(codes)
        sizes.append(int(codes.max(initial=0)) + 1)
    rows = kernel.JackknifeRows.of(np.column_stack(cells), np.array(sizes), np.column_stack(numbers))
    found: Floats = kernel.cramers_v(kernel.contingency(rows), corrected=False)[0] ** 2
    shares = kernel.variance_shares(rows, np.flatnonzero(~number))
    ratios = kernel.correlation_ratio(shares, corrected=False)[0] ** 2
    found[np.ix_(number, number)] = kernel.pearson(rows)[0]
    found[np.ix_(~number, number)], found[np.ix_(number, ~number)] = ratios, ratios.T
    np.fill_diagonal(found, 1.0)
    return found


def matrices(
    subject: Subject,
    scale: ColumnCells,
    real: Floats,
    pairs: Bools,
    most_rows: int,
    rng: np.random.Generator,
) -> tuple[Series, ...]:
    """Real, synthetic and difference; withheld where few rows of either table stand apart."""
    shown = [scale.columns.index(c) for c in subject.schema.leading_features(MOST_COLUMNS)]
    names = tuple(scale.columns[i].name for i in shown)
    rows = scale.rows(subject.synthetic.sample(most_rows, rng))
    made = AssociationMatrices.of(rows, scale.numeric).mixed.values
    told = pairs & (told_pairs(rows, scale, subject.suppression) | ~told_pairs(rows, scale, 1))
    # A column that is constant in the release reveals no person, and readers should see that it is constant.
    found = []
    for shows, values, diagonal in (
        ("train", real, 1.0),
        ("synthetic", made, 1.0),
        ("difference", made - real, 0.0),
    ):
        values = np.clip(np.where(told, values, np.nan).round(DIGITS), -1.0, 1.0) + 0.0
        np.fill_diagonal(values, diagonal)
        found.append(
            Series(
                id=MeasurementId("", "associations", shows),
                title="Associations between columns",
                kind="matrix",
                x_label="column",
                y_label="column",
                x=names,
                lines={name: tuple(values[i, shown].tolist()) for name, i in zip(names, shown, strict=True)},
            )
        )
    return tuple(found)


def _withheld(
    subject: Subject, train: Table, scale: ColumnCells, pairs: Bools, *, missing_counts: bool = False
) -> tuple[Bools, int]:
    """Pairs whose association reveals no small count of training or control rows, and how many others do."""
    told = np.zeros_like(pairs)
    for table in (train, *subject.real[1:]):
        columns = scale.values(table, missing_counts=missing_counts)
        told |= readable_pairs(columns, subject.suppression)
    return pairs & ~told, int(np.triu(pairs & told).sum())


def _compared(
    train: AssociationMatrices,
    other: AssociationMatrices,
    pairs: Bools,
    cell_pairs: Bools,
    scale: ColumnCells,
    level: float,
) -> dict[MeasurementId, Estimate]:
    """Every quantity of one table; a measure that no pair has is left out."""
    mixed = (train.mixed, other.mixed)
    norm = norm_gap(*mixed, pairs, level)
    found = {DIFFERENCE.id(): mean_gap(*mixed, pairs, level)}
    if (share := lost_share(train.mixed, norm, pairs)) is not None:
        found[LOST.id()] = share
    found[FROBENIUS.id()], number = norm, scale.numeric
    both, neither = np.logical_and.outer(number, number), np.logical_and.outer(~number, ~number)
    for quantity, sides, told in (
        (MUTUAL_INFORMATION, (train.information, other.information), cell_pairs),
        (SPEARMAN, mixed, pairs & both),
        (PEARSON, (train.pearson, other.pearson), pairs & both),
        (CRAMERS_V, mixed, pairs & neither),
        (ETA, mixed, pairs & ~both & ~neither),
    ):
        if told.any():
            found[quantity.id()] = mean_gap(*sides, told, level)
    columns = np.flatnonzero(pairs.any(axis=1)).tolist()
    gaps = _mean_gaps(*mixed, pairs, [slice(i, i + 1) for i in columns], level)
    names = (scale.columns[i].name for i in columns)
    found |= {DIFFERENCE.id(column=name): gap for name, gap in zip(names, gaps, strict=True)}
    return found


def _notes(subject: Subject, varied: Bools, withheld: int, most_rows: int) -> tuple[str, ...]:
    notes = []
    left_out = int((~varied).sum())
    if left_out:
        notes.append(
            f"{left_out} columns are left out: too few training rows differ from their most frequent value."
        )
    if withheld:
        notes.append(
            f"{withheld} pairs of columns are left out: their association would reveal a count of rows below "
            "the suppression limit."
        )
    return (*notes, *sampling_note(subject, most_rows))
