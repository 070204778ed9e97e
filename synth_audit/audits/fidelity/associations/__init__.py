"""Pair by pair: do the columns of the release say of each other what the real ones do?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from synth_audit.arrays import Bools
from synth_audit.audits.fidelity._reference import measured, sampling_note
from synth_audit.audits.fidelity.associations.gaps import (
    N_GROUPS,
    AssociationMatrices,
    column_gaps,
    lost_share,
    matrices,
    mean_gap,
    norm_gap,
    published_difference,
)
from synth_audit.encode.cells import ColumnCells, readable_pairs, told_pairs
from synth_audit.errors import NotApplicable
from synth_audit.findings.measurement import (
    Direction,
    Estimate,
    Findings,
    Measurement,
    MeasurementId,
    Quantity,
)
from synth_audit.plugins.audit import AuditInfo, Subject
from synth_audit.run.context import RunContext
from synth_audit.table.table import Table

DIFFERENCE = Quantity(
    "difference",
    "Mean difference of associations",
    unit="distance",
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
FROBENIUS = Quantity(
    "frobenius",
    "Frobenius norm of the difference of associations",
    unit="distance",
    range=(0.0, float("inf")),
    help="Root of the summed squares over both halves of the matrix; grows with the number of columns.",
)
PUBLISHED = Quantity(
    "published_difference",
    "Correlation difference as published",
    unit="distance",
    range=(0.0, float("inf")),
    help="Frobenius norm over all pairs of Pearson's r, V² and η², none corrected, as in table 3 of "
    "Disjoint Generative Models; grows with the number of columns.",
)
PEARSON = Quantity(
    "pearson_difference",
    "Mean difference of Pearson correlations",
    unit="distance",
    range=(0.0, 2.0),
    help="Over pairs of numbers; one extreme value can move it.",
)
SPEARMAN = Quantity(
    "spearman_difference",
    "Mean difference of Spearman correlations",
    unit="distance",
    range=(0.0, 2.0),
    help="Over pairs of numbers; ranks, so no extreme value moves it much.",
)
CRAMERS_V = Quantity(
    "cramers_v_difference",
    "Mean difference of Cramér's V",
    unit="distance",
    help="Over pairs of labels, corrected for what chance adds.",
)
ETA = Quantity(
    "eta_difference",
    "Mean difference of correlation ratios",
    unit="distance",
    help="Over pairs of a label and a number, corrected for what chance adds.",
)
MUTUAL_INFORMATION = Quantity(
    "mutual_information_difference",
    "Mean difference of normalised mutual information",
    unit="distance",
    help="Over all pairs; sees relations of any shape, and those of missing values, which are a cell.",
)
NO_ASSOCIATION = Quantity(
    "no_association",
    "Mean difference of a release whose columns are independent",
    unit="distance",
    direction=Direction.NEUTRAL,
    help="Mean strength of the real associations: a release that comes near it has kept none of them.",
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
    as given. Pairs count if in either column at least as many training rows as may be told of differ from its
    fullest cell: others rest on a few people. Nor do pairs of columns of two levels each count where fewer
    training or control rows than that share two levels, for their association tells how many.

    Intervals come from a jackknife over 20 random groups of rows of either table, see ``gaps``.

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
        if self.cells < 2 or self.most_labels < 2 or self.most_rows < 100:
            raise ValueError("cells and most_labels must be at least 2 and most_rows at least 100")

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
            raise NotApplicable("every pair of columns that could be compared tells of a few rows")
        train = AssociationMatrices.of(rows, scale.numeric)

        def compare(table: Table, draws: np.random.Generator) -> dict[MeasurementId, Estimate]:
            part = scale.rows(table.sample(self.most_rows, draws), N_GROUPS, draws)
            other = AssociationMatrices.of(part, scale.numeric)
            return _compared(train, other, pairs, cell_pairs, scale, subject.level)

        found = measured(subject, compare, self.info.quantities, rng)
        found.append(_no_association(train, pairs))
        if self.published:
            found.append(PUBLISHED.at(published_difference(part, subject.synthetic, scale)))
        series = matrices(subject, scale, train.mixed.values, pairs, self.most_rows, rng)
        return Findings(tuple(found), series, _notes(subject, varied, withheld, self.most_rows))


def _withheld(
    subject: Subject, train: Table, scale: ColumnCells, pairs: Bools, *, missing_counts: bool = False
) -> tuple[Bools, int]:
    """The pairs whose association tells no small count of training or control rows, and how many do."""
    told = np.zeros_like(pairs)
    for table in (train, *([] if subject.control is None else [subject.control])):
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
    share = lost_share(train.mixed, norm, pairs)
    if share is not None:
        found[LOST.id()] = share
    found[FROBENIUS.id()] = norm
    if cell_pairs.any():
        information = (train.information, other.information)
        found[MUTUAL_INFORMATION.id()] = mean_gap(*information, cell_pairs, level)
    number = scale.numeric
    both, neither = np.logical_and.outer(number, number), np.logical_and.outer(~number, ~number)
    for quantity, sides, kind in (
        (SPEARMAN, mixed, both),
        (PEARSON, (train.pearson, other.pearson), both),
        (CRAMERS_V, mixed, neither),
        (ETA, mixed, ~both & ~neither),
    ):
        if (pairs & kind).any():
            found[quantity.id()] = mean_gap(*sides, pairs & kind, level)
    for i, estimate in column_gaps(*mixed, pairs, level).items():
        found[DIFFERENCE.id(column=scale.columns[i].name)] = estimate
    return found


def _no_association(train: AssociationMatrices, pairs: Bools) -> Measurement:
    return NO_ASSOCIATION.at(float(np.abs(train.mixed.values[pairs]).mean()))


def _notes(subject: Subject, varied: Bools, withheld: int, most_rows: int) -> tuple[str, ...]:
    notes = []
    left_out = int((~varied).sum())
    if left_out:
        notes.append(
            f"{left_out} columns are left out: fewer training rows than may be told of differ from their "
            "most frequent value."
        )
    if withheld:
        notes.append(
            f"{withheld} pairs of columns are left out: their association would tell how many rows, fewer "
            "than may be told of, hold two of their values."
        )
    return (*notes, *sampling_note(subject, most_rows))
