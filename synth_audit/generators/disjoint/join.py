"""Joins rows of parts by a validator, which tells whether parts belong together; it has seen real rows."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
from pydantic import ConfigDict

from synth_audit.arrays import Bools, Codes, Floats, Positions
from synth_audit.encode.codes import Vocabulary
from synth_audit.errors import DataError
from synth_audit.execution.executor import single_threaded
from synth_audit.execution.seeds import as_int_seed
from synth_audit.findings.measurement import MeasurementId, Series
from synth_audit.generators.disjoint.partition import WHERE, Groups
from synth_audit.plugins.generator import CheckedSettings, Count, Rate, SettingRange, Share, TrainingCourse
from synth_audit.stats.distributions import tellable_cells
from synth_audit.stats.roc import auroc
from synth_audit.table.kind import NumberPart
from synth_audit.table.schema import Column
from synth_audit.table.table import Table

ValidatorName: TypeAlias = Literal[
    "random_forest",
    "gradient_boosting",
    "k_nearest",
    "svm",
    "mlp",
    "one_class_svm",
    "isolation_forest",
]

FEWEST = 40
"""Real rows without which nothing can be held out."""

_TUNED, _CALIBRATED, _TOLD = 0.12, 0.12, 0.12
"""Shares of the rows on which settings are chosen, scores calibrated, and the result is told."""

_SHUFFLES = 4
"""Random joins of each held-out row."""

_MOST_KERNEL = 3000
"""Rows that a support vector machine learns from, since its time grows with their square."""

_FAR = 1e-6
"""From 0 and 1, so that every probability has a logit."""

Parts: TypeAlias = Sequence[Floats]
"""Coordinates of the same rows, part by part, shape (n, width) each."""

_ONE_CLASS = ("one_class_svm", "isolation_forest")
"""Validators that learn from real rows alone."""

_PROGRESS = 0.01
"""Share of the rows still wanted from which on a round counts as progress."""

_BINS, _STEPS, _BARS = 10, 21, 12
"""Of the pictures: bins of probabilities, thresholds, and groups of rounds at most."""

_MOST_ROWS = 20_000
"""Real rows that a validator learns from."""

_AT_ONCE = 50_000
"""Joined rows that are scored at a time."""

_FARTHEST = 10.0
"""Standard deviations beyond which a number counts no more."""

_MOST_LABELS = 30
"""Indicators of a column: rarer labels are met too seldom to learn from."""


@dataclass(frozen=True, eq=False)
class FixedDesign:
    """Coordinates that train alone fixes: a row has the same beside whatever other rows.

    A number is standardised on train, at most ten standard deviations from its mean, with an indicator where
    train has gaps; a label is an indicator among the most frequent ones of train, and rarer, unknown and
    missing ones share one.
    """

    columns: tuple[Callable[[Table], Floats], ...]

    @classmethod
    def of(cls, train: Table, names: Sequence[str]) -> Self:
        """The coordinates of some columns."""
        return cls(tuple(_fixed(train, train.schema[name]) for name in names))

    def rows(self, table: Table) -> Floats:
        """Rows of a table that has these columns, shape (n, width)."""
        return np.hstack([column(table) for column in self.columns])


def _fixed(train: Table, column: Column) -> Callable[[Table], Floats]:
    """The coordinates of one column, shape (n, k)."""
    part, name = column.kind.part, column.name
    if not isinstance(part, NumberPart):
        vocabulary = Vocabulary.of(name, train).by_frequency(train)
        frequent = np.arange(min(_MOST_LABELS, len(vocabulary.labels)))

        def indicators(table: Table) -> Floats:
            hot = vocabulary.places(table)[:, None] == frequent
            return np.column_stack([hot, ~hot.any(axis=1)]).astype(np.float64)

        return indicators
    known = part.read(train.column(name))
    there = known[~np.isnan(known)]
    centre, scale = (float(there.mean()), float(there.std()) or 1.0) if len(there) else (0.0, 1.0)

    def standardised(table: Table) -> Floats:
        values = part.read(table.column(name))
        gaps = np.isnan(values)
        numbers = np.clip(np.where(gaps, 0.0, (values - centre) / scale), -_FARTHEST, _FARTHEST)
        return np.column_stack([numbers, gaps] if len(there) < len(known) else [numbers]).astype(np.float64)

    return standardised


@dataclass(frozen=True, eq=False)
class JoinValidator:
    """A fitted validator.

    Attributes:
        model: from scikit-learn. slope, centre: of the calibration, ``1 / (1 + exp(−slope (s − centre)))``.
        real, joined: what held-out rows got, of which nothing was learnt: real ones, and the same joined at
            random.
        settings: those that were chosen.
    """

    model: Any
    slope: float
    centre: float
    real: Floats
    joined: Floats
    settings: Mapping[str, Any]

    def probability(self, rows: Floats) -> Floats:
        """That parts of a row belong together, if half of all rows' did; in (0, 1), shape (n,)."""
        return _sigmoid(self.slope * (_scores(self.model, rows) - self.centre))

    @property
    def auc(self) -> float:
        """Area under the ROC curve on held-out rows."""
        return auroc(self.real, self.joined)


def learnt(parts: Parts, name: ValidatorName, rng: np.random.Generator, *, tuned: bool) -> JoinValidator:
    """Fit a validator to real rows and to the same rows with each part in an order of its own.

    Settings with the largest area under the ROC curve on held-out rows are taken, and scores are calibrated
    by a logistic curve on others (Platt 1999), which keeps their order. One-class models and isolation
    forests learn from the real rows alone.

    Args:
        parts: at least :data:`FEWEST` rows.
        tuned: choose settings and calibrate; else scikit-learn's defaults and probabilities as they come.
    """
    n = len(parts[0])
    order = rng.permutation(n)
    ends = np.cumsum([round(n * share) for share in (_TUNED, _CALIBRATED, _TOLD)])
    choice, calibration, told, fit = np.split(order, ends)
    # Drawn with replacement: margins that are exactly equal leave boosted trees without a first split.
    joins = np.hstack([part[rng.choice(fit, len(fit))] for part in parts])
    rows = np.vstack([np.hstack([part[fit] for part in parts]), joins])
    real = np.arange(len(rows)) < len(fit)
    seed = as_int_seed(rng)
    held, held_real = _with_joins(parts, choice, rng)
    learnt_from = np.arange(len(rows))
    if name in _ONE_CLASS:
        learnt_from = np.flatnonzero(real)[:_MOST_KERNEL]
    elif name == "svm":  # both kinds of row
        halves = (np.flatnonzero(kind)[: _MOST_KERNEL // 2] for kind in (real, ~real))
        learnt_from = np.concatenate([*halves])
    best: tuple[float, Any, Mapping[str, Any]] | None = None
    plain, *choices = _candidates(name, seed)
    for model, settings in choices if tuned else [plain]:
        with single_threaded():
            model.fit(rows[learnt_from], None if name in _ONE_CLASS else real[learnt_from])
        auc = 0.5
        if tuned:
            scores = _scores(model, held)
            auc = auroc(scores[held_real], scores[~held_real])
        if best is None or auc > best[0]:
            best = auc, model, settings
    assert best is not None
    model = best[1]
    slope, centre = 1.0, 0.0
    if tuned:
        others, which = _with_joins(parts, calibration, rng)
        slope, centre = _platt(_scores(model, others), which)
    others, which = _with_joins(parts, told, rng)
    scores = _scores(model, others)
    probability = _sigmoid(slope * (scores - centre))
    return JoinValidator(model, slope, centre, probability[which], probability[~which], best[2])


def _with_joins(parts: Parts, rows: Positions, rng: np.random.Generator) -> tuple[Floats, Bools]:
    """Held-out rows, then the same with every part shuffled on its own, some times; and which are real."""
    made = [np.hstack([part[rows] for part in parts])]
    made += [np.hstack([part[rng.permutation(rows)] for part in parts]) for _ in range(_SHUFFLES)]
    return np.vstack(made), np.arange(len(rows) * (_SHUFFLES + 1)) < len(rows)


def _scores(model: Any, rows: Floats) -> Floats:
    """Larger for rows that are likelier real; logits where the model has probabilities."""
    with single_threaded():
        if hasattr(model, "predict_proba"):
            p = np.clip(model.predict_proba(rows)[:, 1], _FAR, 1 - _FAR)
            return np.asarray(np.log(p / (1 - p)))
        return np.asarray(model.decision_function(rows), dtype=np.float64)


def _platt(scores: Floats, real: Bools) -> tuple[float, float]:
    """Slope and centre of the logistic curve, both kinds of row weighing the same; a slope above 0."""
    from sklearn.linear_model import LogisticRegression

    scale = float(scores.std()) or 1.0
    curve = LogisticRegression(class_weight="balanced").fit((scores / scale)[:, None], real)
    slope = max(float(curve.coef_[0, 0]), 1e-3) / scale  # a falling one would turn the order round
    return slope, -float(curve.intercept_[0]) / slope


def _sigmoid(x: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-np.clip(x, -500, 500))))


def _candidates(name: ValidatorName, seed: int) -> list[tuple[Any, Mapping[str, Any]]]:
    """Models of scikit-learn, each with the settings that it does not have by default: first of all none."""
    from sklearn import ensemble, neighbors, neural_network, svm

    leaves = {"min_samples_leaf": 1}, {"min_samples_leaf": 5}, {"min_samples_leaf": 20, "max_features": 0.5}
    boosts = {"max_leaf_nodes": 7}, {"max_leaf_nodes": 31}, {"max_leaf_nodes": 7, "learning_rate": 0.03}
    seeded, alone = {"random_state": seed}, {"random_state": seed, "n_jobs": 1}
    kind, fixed, choices = {
        "random_forest": (ensemble.RandomForestClassifier, alone | {"n_estimators": 100}, leaves),
        "gradient_boosting": (
            ensemble.HistGradientBoostingClassifier,
            seeded | {"early_stopping": False},
            boosts,
        ),
        "k_nearest": (neighbors.KNeighborsClassifier, {}, [{"n_neighbors": k} for k in (5, 15, 45)]),
        "svm": (svm.SVC, {}, [{"C": c} for c in (1.0, 10.0)]),
        "mlp": (
            neural_network.MLPClassifier,
            seeded | {"early_stopping": True},
            [{"alpha": alpha} for alpha in (1e-4, 1.0)],
        ),
        "one_class_svm": (svm.OneClassSVM, {}, [{"nu": nu} for nu in (0.1, 0.5)]),
        "isolation_forest": (ensemble.IsolationForest, alone, [{"max_samples": s} for s in ("auto", 1.0)]),
    }[name]
    return [(kind(**fixed, **settings), settings) for settings in ({}, *choices)]


@dataclass(frozen=True, kw_only=True)
class Validation(CheckedSettings):
    """How joins are validated.

    Attributes:
        validator: random forest, gradient boosting, nearest neighbours, support vector machine or network,
            which tell real rows from rows put together at random; or one-class SVM and isolation forest,
            which learn real rows alone.
        tuned: choose settings, and calibrate probabilities, on held-out rows.
        threshold: probability from which on a join is taken; None for that of the best ``share`` of the first
            round.
        share: of the first round.
        decay: what the threshold loses after a round that admits hardly anything.
        patience: such rounds in a row after which the join gives up. rounds: at most.
        oversampling: rows that each part draws for each row wanted.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")
    where: ClassVar[str] = f"{WHERE}.validation"

    validator: ValidatorName = "random_forest"
    tuned: bool = True
    threshold: Annotated[float | None, SettingRange(0, 1, "0 to 1")] = None
    share: Rate = 0.1
    decay: Share = 0.1
    patience: Count = 20
    rounds: Count = 200
    oversampling: Annotated[float, SettingRange(1, 100, "1 to 100")] = 3.0


@dataclass(frozen=True, eq=False)
class ValidatedJoin:
    """What came of a join.

    Attributes:
        rows: for each part the positions of its rows in the joined table, each once, shape (joined, parts).
        rounds: the threshold of each in order, and how many rows it took.
        first: scores of the first round, of all that could be joined.
    """

    rows: Positions
    rounds: tuple[tuple[float, int], ...]
    first: Floats


def validated_join(
    n: int,
    pool: int,
    n_parts: int,
    score: Callable[[Positions], Floats],
    rules: Validation,
    rng: np.random.Generator,
) -> ValidatedJoin:
    """Join rows of parts in rounds: shuffle each part's pool, score, take rows at the threshold and above.

    What is taken leaves the pools, so that no row of a part is used twice. It ends with ``n`` rows, or
    without them once the rounds or the patience are used up. A round counts as progress that admits a
    hundredth of the rows still wanted: the paper lowers its threshold only after a round that admits none,
    by which a trickle of single rows would use up all rounds.

    Args:
        pool: rows of each part, at least n.
        score: of rows put together, given by positions in the pools, shape (candidates, parts).

    Source: Disjoint Generative Models (Lautrup et al. 2025), algorithm 1 and section 3.1.
    """
    left = np.tile(np.arange(pool)[:, None], (1, n_parts))
    threshold, idle = rules.threshold, 0
    taken: list[Positions] = []
    rounds: list[tuple[float, int]] = []
    first = np.zeros(0)
    wanted = n
    while wanted and idle < rules.patience and len(rounds) < rules.rounds:
        left = np.column_stack([rng.permutation(column) for column in left.T])
        scores = score(left)
        if not rounds:
            first = scores
        if threshold is None:
            threshold = float(np.quantile(scores, 1 - rules.share))
        able = np.flatnonzero(scores >= threshold)[:wanted]
        rounds.append((threshold, len(able)))
        if len(able) < max(1, _PROGRESS * wanted):
            idle += 1
            threshold *= 1 - rules.decay
        else:
            idle = 0
        taken.append(left[able])
        left = np.delete(left, able, axis=0)
        wanted -= len(able)
    rows = np.concatenate([*taken, np.empty((0, n_parts), dtype=np.intp)])
    return ValidatedJoin(rows[rng.permutation(len(rows))], tuple(rounds), first)


def shares_above(scores: Sequence[Floats], thresholds: Floats) -> list[Floats]:
    """Share of each group of scores at each threshold or above, shape (thresholds,) each."""
    return [1 - np.searchsorted(np.sort(s), thresholds, side="left") / max(len(s), 1) for s in scores]


def calibration(validator: JoinValidator, least: int) -> Series:
    """Of held-out rows, how many are real among those with about the same probability."""
    edges = np.linspace(0, 1, _BINS + 1)
    real, joined = (np.histogram(p, edges)[0] for p in (validator.real, validator.joined))
    weight = len(validator.joined) / max(len(validator.real), 1)  # as if there were as many of either kind
    told = _tellable_bins(real, least) & _tellable_bins(joined, least)
    share = [
        _rounded(a / (a + b / weight)) if may and a + b else math.nan
        for a, b, may in zip(real.tolist(), joined.tolist(), told.tolist(), strict=True)
    ]
    centres = tuple(((edges[1:] + edges[:-1]) / 2).round(3).tolist())
    return Series(
        id=MeasurementId("generator", "calibration"),
        title=f"Calibration of the validator on held-out rows (AUROC {validator.auc:.2f})",
        kind="line",
        x_label="probability that the parts belong together",
        y_label="share of real rows",
        x=centres,
        lines={
            "held-out rows": tuple(share),
            "calibrated": centres,
            "of all real rows": _shares(real, least),
            "of all rows joined at random": _shares(joined, least),
        },
    )


def acceptance(join: ValidatedJoin, least: int) -> Series:
    """Rows that each round admitted; rounds that admitted few are told together."""
    labels, counts = list[str](), list[int]()
    begun, count = 1, 0
    wide = -(-len(join.rounds) // _BARS)
    for i, (_, admitted) in enumerate(join.rounds, 1):
        count += admitted
        last = i == len(join.rounds)
        if last or (count >= least and i - begun + 1 >= wide):
            if last and 0 < count < least and counts:
                begun, count = int(labels.pop().split("–")[0]), count + counts.pop()
            labels.append(str(i) if begun == i else f"{begun}–{i}")
            counts.append(count)
            begun, count = i + 1, 0
    ends = f"threshold {join.rounds[0][0]:.2f} to {join.rounds[-1][0]:.2f}"
    return Series(
        id=MeasurementId("generator", "admitted"),
        title=f"Synthetic rows admitted by the rounds of the join ({ends})",
        kind="bar",
        x_label="round",
        y_label="rows",
        x=tuple(labels),
        lines={"admitted": tuple(math.nan if 0 < c < least else float(c) for c in counts)},
    )


def sweep(join: ValidatedJoin, validator: JoinValidator, least: int) -> Series:
    """What share of rows every threshold would let through.

    Numbers of rows are rounded to multiples of what may be told of: nothing tells of fewer that lie between
    two thresholds.
    """
    thresholds = np.linspace(0, 1, _STEPS)
    groups = {
        "parts joined at random": join.first,
        "real, held out": validator.real,
        "real, joined at random": validator.joined,
    }
    lines = {}
    for (label, scores), above in zip(
        groups.items(), shares_above([*groups.values()], thresholds), strict=True
    ):
        n = len(scores)
        steps = np.minimum(np.rint(above * n / least) * least / max(n, 1), 1.0)
        lines[label] = tuple(_rounded(x) if n >= least else math.nan for x in steps.tolist())
    return Series(
        id=MeasurementId("generator", "thresholds"),
        title="Share of joined rows that a threshold lets through",
        kind="line",
        x_label="threshold",
        y_label="share of rows",
        x=tuple(thresholds.round(3).tolist()),
        lines=lines,
    )


def _tellable_bins(counts: Codes, least: int) -> Bools:
    """Bins that hold nothing, or enough rows; of those that may not be told all together hold enough too."""
    told: Bools = counts == 0
    told[tellable_cells([np.append(counts, 0)], least, ordered=True)] = True
    return told


def _shares(counts: Codes, least: int) -> tuple[float, ...]:
    shares = np.where(_tellable_bins(counts, least), counts / max(counts.sum(), 1), np.nan)
    return tuple(map(_rounded, shares.tolist()))


def _rounded(x: float) -> float:
    return round(x, 2)


@dataclass(frozen=True, eq=False)
class Joiner:
    """A validator and the coordinates of each part in which it sees rows.

    Attributes:
        train: real rows that it learnt from. seed: of its draws.
        course: where what came of a join is told; None for nowhere.
    """

    settings: Validation
    train: Table = field(repr=False)
    seed: int
    designs: tuple[FixedDesign, ...]
    validator: JoinValidator = field(repr=False)
    course: TrainingCourse | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls,
        settings: Validation,
        train: Table,
        groups: Groups,
        seed: int,
        course: TrainingCourse | None = None,
    ) -> Self:
        """Learn a validator from real rows."""
        rng = np.random.default_rng(seed)
        designs = tuple(FixedDesign.of(train, group) for group in groups)
        rows = train.sample(_MOST_ROWS, rng)
        parts = [design.rows(rows) for design in designs]
        validator = learnt(parts, settings.validator, rng, tuned=settings.tuned)
        if course is not None:
            course.show(calibration(validator, course.suppression))
        return cls(settings, train, seed, designs, validator, course)

    def pool(self, n: int) -> int:
        """Rows that each part draws for ``n``."""
        return int(np.ceil(n * self.settings.oversampling))

    def joined(self, tables: Sequence[Table], n: int, rng: np.random.Generator) -> list[Table]:
        """Rows of the parts that were admitted together, ``n`` of each.

        Raises:
            DataError: fewer were.
        """
        parts = [design.rows(table) for design, table in zip(self.designs, tables, strict=True)]

        def score(rows: Positions) -> Floats:
            found = [
                self.validator.probability(np.hstack([x[i] for x, i in zip(parts, some.T, strict=True)]))
                for some in np.array_split(rows, max(1, -(-len(rows) // _AT_ONCE)))
            ]
            return np.concatenate(found)

        join = validated_join(n, tables[0].n_rows, len(tables), score, self.settings, rng)
        if self.course is not None and join.rounds:
            self.course.show(acceptance(join, self.course.suppression))
            self.course.show(sweep(join, self.validator, self.course.suppression))
        admitted, rounds, pool = len(join.rows), len(join.rounds), tables[0].n_rows
        if admitted < n:
            why = "its rounds" if rounds >= self.settings.rounds else "its patience"
            raise DataError(
                f"the validated join gave {admitted:,} rows instead of {n:,}"
                if admitted
                else f"the validator admitted none of {pool:,} joined rows",
                where=f"{WHERE}.validation",
                expected=f"{n:,} rows before {why} ended ({rounds} rounds, {pool - admitted:,} rows left)",
                fix="lower the threshold or let it decay more, allow more rounds, patience or oversampling, "
                "or take `join: concatenate`",
            )
        return [table.take(join.rows[:, i]) for i, table in enumerate(tables)]
