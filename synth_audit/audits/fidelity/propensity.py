"""Can a model tell the release's rows from real ones?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from synth_audit.arrays import Floats
from synth_audit.audits._declarations import at_least, descriptive
from synth_audit.audits.fidelity._propensity import (
    PropensityFit,
    discriminate,
    propensity_terms,
    tree_features,
)
from synth_audit.audits.fidelity._reference import measured, sampling_note
from synth_audit.errors import NotApplicable
from synth_audit.execution.context import RunContext
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
from synth_audit.stats import roc
from synth_audit.stats.resampling import critical_value
from synth_audit.table.table import Table

C2ST_AUROC = Quantity(
    "c2st_auroc",
    "How well trees tell the release from real rows (AUROC)",
    unit="score",
    direction=Direction.NEUTRAL,  # less is better down to ½, and worse from there on: the copies of train
    help="0.5 cannot be told apart, 1 can always be. Well below 0.5 the release repeats training rows.",
)

GIVEAWAY = descriptive(
    "giveaway",
    "What a column gives away",
    unit="score",
    range=(-1.0, 1.0),
    help="AUROC that the trees lose when the column is shuffled. Columns that say the same share it.",
)

PMSE = Quantity(
    "pmse",
    "Propensity mean squared error",
    unit="score",
    range=(0.0, 0.25),
    help="How far the probabilities of a logistic model move from the tables' shares; 0 not at all.",
)

PMSE_RATIO = Quantity(
    "pmse_ratio",
    "pMSE over its expectation for new rows of the same people",
    unit="ratio",
    range=(0.0, math.inf),
    help="Expected: c (1 − c) d / N. About 1 for fresh real rows; grows with N where the tables differ.",
)

PMSE_RATIO_RESAMPLED = Quantity(
    "pmse_ratio_resampled",
    "pMSE over its expectation for rows drawn from train",
    unit="ratio",
    range=(0.0, math.inf),
    help="Expected: d (1 − c)² c / N, after Snoke et al. 2018. About 1 for training rows drawn at random.",
)

FEWEST_ROWS = 10
"""Of either table, fewer than which no model is fitted."""

_POINTS = 20
"""Steps of the pictured curves, fewer where train is small."""
_RELEASE, _CONTROL = "the release", "control rows"
Found = dict[MeasurementId, Estimate]


@dataclass(frozen=True, kw_only=True)
class Propensity:
    """Fits two models that are to tell rows of the release from training rows, and asks how well they can.

    ``c2st_auroc``: gradient-boosted trees on values as they are, each row scored by trees that were grown on
    other rows, ``AUROC = P(score of a synthetic row > score of a real row) + ½ P(tie)``, the mean over folds
    with DeLong's interval. ``giveaway``: what it loses when one column is shuffled among the scored rows.
    ``pmse = mean (ŝ − c)²`` with ŝ from a logistic model fitted to all rows (standardised numbers, indicators
    of labels and of missing values, no interactions), c the share of synthetic rows, N rows and d the rank of
    the terms; two ratios to what chance alone would give, ``c (1 − c) d / N`` for an independent sample of
    the same people and ``d (1 − c)² c / N`` for rows drawn from train. The logistic model sees what moves a
    mean or a frequency; how columns depend on each other is seen by the trees alone.

    Fields:
        most_rows: rows taken of either table, at random.
        folds: parts of the rows, each scored by trees grown on the others.
        trees: grown in each fold.

    Source: Lopez-Paz & Oquab 2017 (c2st), DeLong et al. 1988 (interval), Snoke et al. 2018 and
    TableDiffusion thesis, section 6.8.1 (pMSE).
    """

    most_rows: int = 8_000
    folds: int = 5
    trees: int = 100

    info: ClassVar[AuditInfo] = AuditInfo(
        title="Telling real from synthetic",
        question="Can a model tell the rows of the release from real ones, and by which columns?",
        threat_model="Someone whose analysis uses many columns at once would be misled.",
        not_covered="A model that cannot tell them apart proves nothing about a better one; and a copy of "
        "train cannot be told from it at all.",
        quantities=(C2ST_AUROC, GIVEAWAY, PMSE, PMSE_RATIO, PMSE_RATIO_RESAMPLED),
        risk="fidelity",
        cost="seconds",
        source="Lopez-Paz & Oquab 2017; Snoke et al. 2018; TableDiffusion thesis, section 6.8.1",
    )

    def __post_init__(self) -> None:
        at_least(self, most_rows=100, folds=2, trees=1)

    def run(self, subject: Subject, context: RunContext) -> Findings:
        """Tell the release, and control rows as its reference, from training rows."""
        if min(subject.train.n_rows, subject.synthetic.n_rows) < FEWEST_ROWS:
            raise NotApplicable(f"a model needs at least {FEWEST_ROWS} rows of train and of the release")
        curves: list[_Curve] = []

        def compare(table: Table, rng: np.random.Generator) -> Found:
            """Both models on a table and train; nothing where the table has too few rows for one."""
            if table.n_rows < FEWEST_ROWS:
                return {}
            tables = [t.sample(self.most_rows, rng) for t in (subject.train, table)]
            found = self._by_trees(tables, subject, rng, curves)
            return found | _by_logistic(tables, subject)

        taken = min(subject.synthetic.n_rows, self.most_rows)
        found = [
            replace(m, n_achieved=taken)
            for m in measured(subject, compare, self.info.quantities, context.rng)
        ]
        if not any(m.id.quantity == PMSE_RATIO.name for m in found):
            raise NotApplicable("no column has two different values, so that nothing could tell rows apart")
        pictured = dict(zip((_RELEASE, _CONTROL), curves, strict=False))  # in the order of the comparisons
        notes = sampling_note(subject, self.most_rows, "Models were fitted to")
        return Findings(tuple(found), (_picture(pictured, subject),), notes)

    def _by_trees(
        self, tables: Sequence[Table], subject: Subject, rng: np.random.Generator, curves: list[_Curve]
    ) -> Found:
        """Area, what each column gives away, and the curve for the picture, added to ``curves``."""
        first, second = (t.n_rows for t in tables)
        features = tree_features(tables, subject.features)
        folds = min(self.folds, first // 2, second // 2)
        told = discriminate(features, first, folds, self.trees, rng)
        placed = told.folds
        curves.append(_Curve(1 - np.concatenate([f.members for f in placed]), first))
        found = {C2ST_AUROC.id(): _area(placed, subject.level)}
        lost = {c.name: _area(x, subject.level) for c, x in zip(subject.features, told.lost, strict=True)}
        worst_first = sorted(lost.items(), key=lambda item: -item[1].value)
        return found | {GIVEAWAY.id(column=name): estimate for name, estimate in worst_first}


def _area(folds: Sequence[roc.PlacementValues], level: float) -> Estimate:
    return Estimate(roc.mean_auroc(folds), roc.cross_fitted_interval(folds, level))


def _by_logistic(tables: Sequence[Table], subject: Subject) -> Found:
    """pMSE and its ratios; pMSE alone where no term varies."""
    first, second = (t.n_rows for t in tables)
    fitted = PropensityFit.of(propensity_terms(tables, subject.features), np.arange(first + second) >= first)
    units = {PMSE: 1.0, PMSE_RATIO: fitted.expected, PMSE_RATIO_RESAMPLED: fitted.expected_resampled}
    value, half = fitted.squared_error, critical_value(subject.level) * fitted.standard_error()
    return {
        quantity.id(): Estimate(
            value / unit,
            Interval((value - half) / unit, (value + half) / unit, subject.level, "delta method or null"),
        )
        for quantity, unit in units.items()
        if unit > 0
    }


@dataclass(frozen=True, eq=False)
class _Curve:
    """Share of ``n_real`` real rows that score at least as high as each row of a table, shape (m,)."""

    reached: Floats
    n_real: int


def _picture(curves: Mapping[str, _Curve], subject: Subject) -> Series:
    """ROC curves, in steps of at least as many real rows as may be told of, control rows counted so too."""
    n_real = min(c.n_real for c in curves.values())
    steps = max(1, min(_POINTS, n_real // subject.suppression))
    grid = np.arange(steps + 1) / steps
    lines = {}
    for label, curve in curves.items():
        counts = np.searchsorted(np.sort(curve.reached), grid, side="right")
        unit = subject.suppression if label == _CONTROL else 1
        told = counts[:-1] // unit * unit / len(curve.reached)
        lines[label] = (*told.tolist(), 1.0)
    return Series(
        id=MeasurementId("", "roc"),
        title="Telling rows from training rows",
        kind="line",
        x_label="share of training rows taken for foreign",
        y_label="share of foreign rows found",
        x=tuple(grid.tolist()),
        lines=lines,
    )
