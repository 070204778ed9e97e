"""Can a model tell the release's rows from real ones?"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from synth_audit.arrays import Bools, Codes, Floats, Positions
from synth_audit.audits._shared import at_least, descriptive
from synth_audit.audits.fidelity._reference import Found, measured, sampling_note
from synth_audit.encode.codes import by_frequency, codes, labels_that_fit
from synth_audit.errors import NotApplicable
from synth_audit.execution.context import RunContext
from synth_audit.execution.executor import single_threaded, single_threaded_algebra
from synth_audit.execution.seeds import as_int_seed
from synth_audit.findings.measurement import Estimate, Findings, Interval, MeasurementId, Quantity, Series
from synth_audit.plugins.audit import AuditInfo, Subject
from synth_audit.stats import roc
from synth_audit.stats.regression import SMALLEST, Scaling
from synth_audit.stats.resampling import critical_value
from synth_audit.stats.roc import PlacementValues
from synth_audit.table.kind import NumberPart
from synth_audit.table.schema import Column
from synth_audit.table.table import Table

ROWS_PER_TERM, MOST_TERMS, MOST_LABELS = 10, 400, 64
"""Labels get terms of their own, the frequent ones first, as long as there are so many rows for each term, no
more terms than that in all, and no more labels than that of one column; the others of a column are joined."""

_RIDGE = 1e-6
"""Penalty on squared coefficients, per row, so that a maximum exists where a term tells without fail."""

_MOST_STEPS, _CLOSE = 200, 1e-12
"""Steps of Newton's method, and the gradient at which it ends."""

SMALLEST_LEAF, LEAVES, MOST_BINS = 20, 15, 255
"""Rows in a leaf, leaves of a tree, and values it tells apart; fewer where no leaf could hold so few rows."""

SHUFFLED_ROWS = 10_000
"""Rows scored in each fold to learn what its columns give away, whatever their number."""

C2ST_AUROC = descriptive(  # less is better down to ½, and worse from there on: the copies of train
    "c2st_auroc",
    "How well trees tell the release from real rows (AUROC)",
    unit="score",
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

Curve = tuple[Floats, int]
"""Share of so many real rows that score at least as high as each row of a table, shape (m,)."""


@dataclass(frozen=True, eq=False)
class PropensityFit:
    """Fitted probabilities that a row is of the second table.

    Attributes:
        scores: ŝ in (0, 1), shape (N,). second: whether a row is of the second table, shape (N,).
        axes: uncorrelated directions of the design with variance 1, shape (N, d); d is its rank.
    """

    scores: Floats
    second: Bools
    axes: Floats

    @classmethod
    def of(cls, design: Floats, second: Bools) -> Self:
        """Fit ``logit P(second) = β₀ + βᵀx`` by maximum likelihood.

        Directions in which the design does not vary are left out, so that collinear terms count once. With
        one thread, since sums in parts would depend on how many.

        Args:
            design: standardised terms, shape (N, p). second: shape (N,), of both kinds.
        """
        from sklearn.linear_model import LogisticRegression  # here, since a code location must not load it

        with single_threaded_algebra():
            sizes, directions = np.linalg.eigh(design.T @ design / max(len(design), 1))
            kept = sizes > SMALLEST * max(float(sizes[-1]), 1.0)
            axes = np.asarray(design @ (directions[:, kept] / np.sqrt(sizes[kept])))
            scores, n = np.full(len(second), second.mean()), len(second)
            if axes.shape[1]:
                model = LogisticRegression(
                    C=1 / (_RIDGE * n), solver="newton-cholesky", tol=_CLOSE, max_iter=_MOST_STEPS
                )
                # Of all libraries, not only numpy's: the solver brings one of its own.
                with single_threaded():
                    scores = np.asarray(model.fit(axes, second).predict_proba(axes)[:, 1])
        return cls(scores, second, axes)

    @property
    def rank(self) -> int:
        """d: terms that say something of their own, the constant not among them."""
        return int(self.axes.shape[1])

    @property
    def share(self) -> float:
        """c: share of rows of the second table."""
        return float(self.second.mean())

    @property
    def squared_error(self) -> float:
        """``pMSE = mean (ŝ − c)²``: 0 where nothing tells the tables apart, at most c (1 − c)."""
        return float(np.mean((self.scores - self.share) ** 2))

    @property
    def expected(self) -> float:
        """``c (1 − c) d / N``: pMSE in expectation for two samples of one population.

        Source: TableDiffusion thesis, equation 6.3.
        """
        return self.share * (1 - self.share) * self.rank / len(self.second)

    @property
    def expected_resampled(self) -> float:
        """``d (1 − c)² c / N``: pMSE in expectation where the second table is drawn from rows of the first.

        Less than :attr:`expected` by the factor 1 − c, for only one of the tables varies.
        Source: Snoke et al. 2018, with their k − 1 for d.
        """
        return self.expected * (1 - self.share)

    def standard_error(self) -> float:
        """Of pMSE: by the delta method for fitted coefficients and rows, or under the null if that is more.

        With ``g = mean 2 (ŝ − c) ŝ (1 − ŝ) x`` and H the information of one row, a row counts
        ``(ŝ − c)² + (y − ŝ) gᵀH⁻¹x``. Under the null ``N pMSE / (c (1 − c))`` is χ² with d degrees of freedom
        and variance 2d, where the delta method finds about 4d, and next to nothing if pMSE came out small.
        """
        n, c = len(self.scores), self.share
        with single_threaded_algebra():
            x = np.column_stack([np.ones(n), self.axes])
            moving = self.scores * (1 - self.scores)
            information = (x.T * moving) @ x / n + _RIDGE * np.eye(x.shape[1])
            slope = 2 * ((self.scores - c) * moving) @ x / n
            effect = x @ np.linalg.solve(information, slope)
        rows = (self.scores - c) ** 2 + (self.second - self.scores) * effect
        null = 2 * self.rank * (c * (1 - c) / n) ** 2
        return float(np.sqrt(max(np.var(rows) / n, null)))


def propensity_terms(tables: Sequence[Table], columns: Sequence[Column]) -> Floats:
    """What the model may use: numbers, indicators of labels and of missing values, shape (rows of all, p).

    Numbers are standardised on all rows, missing read as the mean; columns without spread are 0.
    """
    values, labelled = [], []
    for column in columns:
        part = column.kind.part
        if isinstance(part, NumberPart):
            values.append(np.concatenate([part.read(t.column(column.name)) for t in tables]))
        else:
            labelled.append(_by_frequency(tables, column))
    n = sum(t.n_rows for t in tables)
    gaps = [np.isnan(v) for v in values if np.isnan(v).any()]
    room = min(MOST_TERMS, n // ROWS_PER_TERM) - len(values) - len(gaps)
    # Of each column one label has no term, since it follows from the others.
    most = labels_that_fit([int(c.max(initial=0)) for c in labelled], room, MOST_LABELS)
    blocks = [np.column_stack(values)] if values else []
    blocks += [np.column_stack(gaps).astype(np.float64)] if gaps else []
    for ranked in labelled:  # 1 where a row holds the k-th most frequent label
        kept = np.arange(min(most, int(ranked.max(initial=0)) + 1))
        blocks.append((ranked[:, None] == kept).astype(np.float64))
    design = np.hstack(blocks)
    return Scaling.of(design).apply(design)


def _by_frequency(tables: Sequence[Table], column: Column) -> Codes:
    """Labels of all rows numbered from 0, the most frequent first, missing among them; shape (n,)."""
    joint = np.concatenate(codes(tables, column))
    return by_frequency([joint], joint)[0]


def tree_features(tables: Sequence[Table], columns: Sequence[Column]) -> "TreeFeatures":
    """Numbers by their rank, since trees see nothing else; labels by their frequency."""
    bins = min(MOST_BINS, max(2 * SMALLEST_LEAF, sum(t.n_rows for t in tables) // SMALLEST_LEAF))
    values, discrete = [], []
    for column in columns:
        part = column.kind.part
        discrete.append(not isinstance(part, NumberPart))
        if isinstance(part, NumberPart):
            values.append(_ranks(np.concatenate([part.read(t.column(column.name)) for t in tables])))
        else:
            ranked = _by_frequency(tables, column)
            values.append(np.minimum(ranked, bins - 1).astype(np.float64))
    return TreeFeatures(np.column_stack(values), np.array(discrete), bins)


def _ranks(values: Floats) -> Floats:
    """0 … from low to high, and −1 for missing: trees refuse a column that has nothing else."""
    known = ~np.isnan(values)
    ranks = np.full(len(values), -1.0)
    ranks[known] = np.unique(values[known], return_inverse=True)[1]
    return ranks


@dataclass(frozen=True, eq=False)
class TreeFeatures:
    """What trees may use: order numbers of values and of labels, a missing one among them.

    Attributes:
        values: shape (rows of all tables, d). discrete: which columns have no order, shape (d,).
        bins: values of a column that trees tell apart; labels beyond so many are joined.
    """

    values: Floats
    discrete: Bools
    bins: int


Folds = Sequence[PlacementValues]
"""Placement values of held-out rows, fold by fold, the second table's being the members."""


def discriminate(
    features: TreeFeatures, n_first: int, n_folds: int, n_trees: int, rng: np.random.Generator
) -> tuple[Folds, list[Folds]]:
    """Cross-fit gradient-boosted trees on the rows of two tables, of which ``n_first`` are the first's.

    Folds hold equal parts of either table. Twins of a held-out row may be among the rows that its trees were
    grown on: copies of the first table then score below ½, since each row's twin has the other answer.

    Args:
        n_folds: at least 2, and at most half of the rows of the smaller table.

    Returns:
        What they told, and for each column what they lose of it when its values are shuffled, in a part of
        the held-out rows.
    """
    second = np.arange(len(features.values)) >= n_first
    sizes = n_first, len(second) - n_first
    fold = np.concatenate([rng.permutation(n) % n_folds for n in sizes])
    found, lost = [], []
    for k in range(n_folds):
        model = _grown(features, second, fold != k, n_trees, as_int_seed(rng))
        held_out = [np.flatnonzero((fold == k) & side) for side in (~second, second)]
        [whole] = _placement_values(model, features.values[np.concatenate(held_out)][None], len(held_out[0]))
        found.append(whole)
        lost.append(_lost(model, features.values, held_out, rng))
    return found, list(zip(*lost, strict=True))


def _grown(features: TreeFeatures, second: Bools, rows: Bools, n_trees: int, seed: int) -> Any:
    """Boosted trees grown on some of the rows, with one thread: sums in parts would depend on how many."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    model = HistGradientBoostingClassifier(
        max_iter=n_trees,
        max_leaf_nodes=LEAVES,
        min_samples_leaf=SMALLEST_LEAF,
        max_bins=features.bins,
        categorical_features=features.discrete,
        early_stopping=False,
        random_state=seed,
    )
    with single_threaded():
        return model.fit(features.values[rows], second[rows])


def _placement_values(model: Any, versions: Floats, n_first: int) -> tuple[PlacementValues, ...]:
    """Of held-out rows, ``n_first`` of the first table first, in each version; shape (versions, rows, d)."""
    with single_threaded():
        scores = model.decision_function(versions.reshape(-1, versions.shape[2]))
    by_version = scores.reshape(len(versions), -1)
    return tuple(PlacementValues.of(s[n_first:], s[:n_first]) for s in by_version)


def _lost(
    model: Any, values: Floats, held_out: Sequence[Positions], rng: np.random.Generator
) -> tuple[PlacementValues, ...]:
    """For each column, what the placement values of some held-out rows lose when it is shuffled."""
    n, d = sum(map(len, held_out)), values.shape[1]
    part = min(1.0, SHUFFLED_ROWS / (n * d))
    drawn = [rng.permutation(rows)[: max(2, round(part * len(rows)))] for rows in held_out]
    test = values[np.concatenate(drawn)]
    versions = np.repeat(test[None], 1 + d, axis=0)
    for j in range(d):
        versions[1 + j, :, j] = rng.permutation(test[:, j])
    whole, *shuffled = _placement_values(model, versions, len(drawn[0]))
    return tuple(whole.less(one) for one in shuffled)


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
        curves: list[Curve] = []

        def compare(table: Table, rng: np.random.Generator) -> Found:
            """Both models on a table and train; nothing where the table has too few rows for one."""
            if table.n_rows < FEWEST_ROWS:
                return {}
            tables = [t.sample(self.most_rows, rng) for t in (subject.train, table)]
            return {**self._by_trees(tables, subject, rng, curves), **_by_logistic(tables, subject)}

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
        self, tables: Sequence[Table], subject: Subject, rng: np.random.Generator, curves: list[Curve]
    ) -> Found:
        """Area, what each column gives away, and the curve for the picture, added to ``curves``."""
        first, second = (t.n_rows for t in tables)
        features = tree_features(tables, subject.features)
        folds = min(self.folds, first // 2, second // 2)
        placed, columns = discriminate(features, first, folds, self.trees, rng)
        curves.append((1 - np.concatenate([f.members for f in placed]), first))
        found = {C2ST_AUROC.id(): _area(placed, subject.level)}
        lost = {c.name: _area(x, subject.level) for c, x in zip(subject.features, columns, strict=True)}
        worst_first = sorted(lost.items(), key=lambda item: -item[1].value)
        return found | {GIVEAWAY.id(column=name): estimate for name, estimate in worst_first}


def _area(folds: Folds, level: float) -> Estimate:
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


def _picture(curves: Mapping[str, Curve], subject: Subject) -> Series:
    """ROC curves, in steps of at least as many real rows as may be told of, control rows counted so too."""
    n_real = min(n for _, n in curves.values())
    steps = max(1, min(_POINTS, n_real // subject.suppression))
    grid = np.arange(steps + 1) / steps
    lines = {}
    for label, (reached, _) in curves.items():
        counts = np.searchsorted(np.sort(reached), grid, side="right")
        unit = subject.suppression if label == _CONTROL else 1
        told = counts[:-1] // unit * unit / len(reached)
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
