"""What models are trained on and tested on: features and target of all tables in one encoding.

And the models by name, and how well their predictions fit the truth in all bootstrap resamples at once.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from synth_audit.arrays import Codes, Counts8, Floats, Integers, Positions, Target
from synth_audit.column_kinds import number_kind
from synth_audit.encode.codes import by_frequency, codes, split_rows
from synth_audit.encode.encoded import Encoded
from synth_audit.errors import NotApplicable
from synth_audit.execution.executor import single_threaded
from synth_audit.execution.seeds import as_int_seed
from synth_audit.findings.measurement import Estimate, Interval, Measurement, Quantity, Reference
from synth_audit.plugins.audit import Subject
from synth_audit.stats.attack_success import worst_estimate
from synth_audit.stats.regression import Scaling
from synth_audit.stats.resampling import critical_value
from synth_audit.stats.roc import resampled_auroc
from synth_audit.table.people import persons
from synth_audit.table.schema import Column, nominal
from synth_audit.table.table import Table

ARMS = ("synthetic", "train")

FEWEST_TESTED = 30
"""Control rows below which a score is insufficient evidence: one of them moves it by some hundredths."""

LEAST_AUROC, LEAST_R2 = 0.6, 0.1
"""What models trained on real rows must reach, lower bound included, for a loss to say anything."""

NOTHING_LOST = Reference(0.0, "as many real rows of other people, on average")

MOST_CLASSES = 10
"""Classes of a target, those that are rarer in train being one together, or boosting would take minutes."""

MOST_INDICATORS = 1_000
"""Indicators of all columns of labels together, so that memory does not grow with columns times labels."""

MOST_ONE_HOT = 64
"""Indicators that a column of labels gets at most."""

FEWEST_INDICATORS = 8
"""Indicators that a column of labels gets in any case."""

FAR = 100.0
"""Standard deviations of train beyond which a feature counts as that far: no model learns more from there."""

FAR_TARGET = 1e6
"""The same for a target, where it only keeps squares finite."""

ModelName = Literal["random_forest", "logistic", "gradient_boosting", "knn"]

TREES = 100
"""Trees of a forest, as scikit-learn's default."""

NEIGHBOURS = 20
"""Neighbours of kNN: enough different shares of votes for a ranking, few enough to be near."""

SEEDED: frozenset[ModelName] = frozenset({"random_forest"})
"""The models that draw at random; the others give the same for every seed."""

_TRIED = 1 / 3
"""Share of the features tried at each split of a regression tree: half the time of all of them, and better
where no single column says it all. Source: Breiman 2001."""

_BOOSTING = {"max_iter": 50, "max_leaf_nodes": 15, "early_stopping": False, "random_state": 0}
"""Small trees, and few: on 5,000 rows of Adult as good as the library's own in half of the time."""

Score = Callable[[Floats, npt.NDArray[Any], Floats], Floats]
"""Predictions, truths, shape (m,), and how often each row counts, shape (d, m), to scores, shape (d,)."""

_BLOCK = 2**21
"""Weights held at a time: 16 MiB."""

_FLAT = 1e-12
"""A resample that varies by less than this part of the sample's variance holds one value and rounding."""


@dataclass(frozen=True, eq=False)
class Predictor:
    """A fitted model.

    Attributes:
        n_classes: classes 0 … n_classes − 1 of the target, or 0 for a number.
        present: the classes that the model was trained on.
        model: None where there was a single one, which is then always predicted.
    """

    n_classes: int
    present: Integers
    model: Any

    def predict(self, x: Floats) -> Floats:
        """What the model says of rows, shape (m, d).

        Returns:
            Probability of every class, shape (m, n_classes), 0 for a class that nobody was trained on; of a
            number its value, shape (m,).
        """
        if not self.n_classes:
            with single_threaded():
                return np.asarray(self.model.predict(x), dtype=np.float64)
        scores = np.zeros((len(x), self.n_classes))
        with single_threaded():
            scores[:, self.present] = 1.0 if self.model is None else self.model.predict_proba(x)
        return scores


def fit(name: ModelName, x: Floats, y: Target, n_classes: int, seed: int) -> Predictor:
    """Fit a model.

    Linear algebra and boosting are held to one thread, since their sums depend on how many there are.

    Args:
        name: ``logistic`` is ridge regression where the target is a number.
        x: training features of about unit scale, shape (n, d), n ≥ 1.
        y: classes 0 … n_classes − 1, or numbers of about unit scale if ``n_classes`` is 0; shape (n,).
        seed: used by the models of :data:`SEEDED` only.
    """
    present = np.unique(y).astype(np.int64) if n_classes else np.empty(0, dtype=np.int64)
    if len(present) == 1:
        return Predictor(n_classes, present, None)
    model = _model(name, seed, len(x), classes=bool(n_classes))
    from sklearn.exceptions import ConvergenceWarning

    with single_threaded(), warnings.catch_warnings():
        # A fit that would gain another digit by more steps is good enough to be scored.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(x, y)
    if name == "random_forest":
        # A forest's trees are the same for any number of threads, but threads add their votes in the order
        # in which they finish, and so the last digits of a prediction would differ from run to run.
        model.n_jobs = 1
    return Predictor(n_classes, present, model)


def _model(name: ModelName, seed: int, n: int, *, classes: bool) -> Any:
    """An untrained model of n rows, of classes or of numbers."""
    from sklearn import ensemble, neighbors
    from sklearn.linear_model import LogisticRegression, Ridge

    match name:
        case "random_forest":
            forest = ensemble.RandomForestClassifier if classes else ensemble.RandomForestRegressor
            tried = {} if classes else {"max_features": _TRIED}
            return forest(n_estimators=TREES, min_samples_leaf=2, n_jobs=-1, random_state=seed, **tried)
        case "gradient_boosting":
            boosted = (
                ensemble.HistGradientBoostingClassifier if classes else ensemble.HistGradientBoostingRegressor
            )
            return boosted(**_BOOSTING)
        case "logistic":
            return LogisticRegression(max_iter=500) if classes else Ridge(alpha=1.0)
        case "knn":
            near = neighbors.KNeighborsClassifier if classes else neighbors.KNeighborsRegressor
            return near(min(NEIGHBOURS, n), algorithm="brute")


@dataclass(frozen=True, eq=False)
class PredictionTask:
    """Rows to train on and rows to test on.

    Attributes:
        features, target: by arm, the rows that any repeat trains on; shape (pool, d) and (pool,).
        people: whose each row of train's pool is, shape (pool,).
        x_test, y_test: of the control rows.
        tested: the control rows themselves.
        n_classes: classes of the target, 0 for a number in standard deviations of train.
        blocks: for each feature column its coordinates.
        most_rows: rows that one model is trained or tested on.
        joined: classes count as one since few control rows are in them.
    """

    features: dict[str, Floats]
    target: dict[str, Target]
    people: Integers
    x_test: Floats
    y_test: Target
    tested: Table
    n_classes: int
    blocks: dict[str, slice]
    most_rows: int
    joined: bool = False

    def pick(self, arm: str, repeat: int) -> Positions:
        """Rows of the pool that a repeat trains on: others each time, as long as there are."""
        n = len(self.target[arm])
        first = repeat * self.most_rows
        return np.sort((first + np.arange(min(self.most_rows, n))) % n)

    def fit(self, name: ModelName, arm: str, rows: Positions, seed: int) -> Predictor:
        """Train a model on these rows of an arm."""
        return fit(name, self.features[arm][rows], self.target[arm][rows], self.n_classes, seed)


def prepare(
    subject: Subject,
    most_rows: int,
    repeats: int,
    rng: np.random.Generator,
    target: Column | None = None,
) -> PredictionTask:
    """Draw the rows and encode them.

    The target is the one that the plan names, unless another column is given.

    Rows without a target are left out. A class that train lacks is a class like any other; classes beyond the
    :data:`MOST_CLASSES` most frequent are one together, and so are those that fewer tested rows hold than may
    be told of, since a score tells the sizes of its classes. Both arms draw the same positions, so that a
    copy of train is trained on the same rows as train.

    Raises:
        NotApplicable: no other column; the target is missing everywhere in a table, or the same in all
            control rows; of the classes too few have enough control rows.
    """
    target, control = target or subject.schema.target, subject.control
    assert target is not None
    assert control is not None
    others = [c for c in subject.features if c.name != target.name]
    if not others:
        raise NotApplicable("there is no column beside the target to predict from")
    seed = as_int_seed(rng)
    whole = _with_target(subject.train, target, "train")
    parts = [
        _drawn(known, repeats * most_rows, most_rows, np.random.default_rng(seed))
        for known in (_with_target(subject.synthetic, target, "synthetic"), whole)
    ]
    known = _with_target(control, target, "control")
    told = untold(np.arange(known.n_rows), control.n_rows, subject.suppression, rng)
    tested = _drawn(known if len(told) == known.n_rows else known.take(told), most_rows, most_rows, rng)
    tables = [*parts, tested]
    y, n_classes = as_target(tables, whole, target)
    if len(np.unique(y[2])) < 2:
        raise NotApplicable("the target has a single value among the control rows")
    y, n_classes, few = joined(y, n_classes, subject.suppression)
    x, blocks = _encoded(tables, whole, others)
    arms = [dict(zip(ARMS, values, strict=False)) for values in (x, y)]
    people = persons(parts[1])
    return PredictionTask(arms[0], arms[1], people, x[2], y[2], tested, n_classes, blocks, most_rows, few)


def _with_target(table: Table, target: Column, name: str) -> Table:
    present = ~table.missing(target.name)
    if not present.any():
        raise NotApplicable(f"the target is missing in every row of {name}")
    return table if present.all() else table.take(present)


def untold(known: Positions, n_rows: int, suppression: int, rng: np.random.Generator) -> Positions:
    """Without further random rows where fewer lack a target than may be told of, for n is told."""
    left = n_rows - suppression
    if not 0 < n_rows - len(known) < suppression or left < 1:
        return known
    return known[np.sort(rng.permutation(len(known))[:left])]


def _drawn(table: Table, most: int, at_once: int, rng: np.random.Generator) -> Table:
    """At most ``most`` random rows in random order; all in their order where one model takes them at once."""
    if table.n_rows <= at_once:
        return table
    return table.take(rng.permutation(table.n_rows)[:most])


def joined(y: list[Target], n_classes: int, suppression: int) -> tuple[list[Target], int, bool]:
    """Classes that some tested rows hold, but fewer than may be told of, as one: the last.

    With them goes the class of those beyond the most frequent, where there is one, and as long as they are
    too few the rarest of the others among the tested rows. A number has no classes and stays.
    """
    held = np.bincount(y[-1], minlength=n_classes) if n_classes else np.zeros(0, dtype=np.int64)
    few = (held > 0) & (held < suppression)
    if not few.any():
        return y, n_classes, False
    if n_classes == MOST_CLASSES:
        few[-1] = True
    for k in np.lexsort((-np.arange(n_classes), held)):
        if held[few].sum() < suppression and held[k]:
            few[k] = True
    if not (held[~few] > 0).any():
        raise NotApplicable("a class of the target has too few control rows to be scored")
    place = np.where(few, np.sum(~few), np.cumsum(~few) - 1)
    return [place[part] for part in y], int(np.sum(~few)) + 1, True


def _encoded(
    tables: Sequence[Table], train: Table, columns: Sequence[Column]
) -> tuple[list[Floats], dict[str, slice]]:
    """Coordinates of each table, and where each column's are.

    Numbers in standard deviations of train, missing at its mean with an indicator of its own; labels as
    indicators, the rarer ones of a column with many as one together. A column that is constant in train
    teaches nothing and is 0.
    """
    n_labels = len(nominal(columns))
    most = min(MOST_ONE_HOT, max(FEWEST_INDICATORS, MOST_INDICATORS // max(n_labels, 1)))
    parts: list[list[Floats]] = [[] for _ in tables]
    blocks: dict[str, slice] = {}
    width = 0
    for column in columns:
        made = as_predictor(tables, train, column, most_labels=most)
        blocks[column.name] = slice(width, width + made[0].shape[1])
        width = blocks[column.name].stop
        for part, block in zip(parts, made, strict=True):
            part.append(block)
    return [np.hstack(part) for part in parts], blocks


def as_target(
    tables: Sequence[Table],
    train: Table,
    column: Column,
    *,
    most_classes: int = MOST_CLASSES,
    far: float = FAR_TARGET,
) -> tuple[list[Target], int]:
    """A target, missing nowhere: numbers in standard deviations of train, or classes; and how many of these.

    Args:
        most_classes: classes beyond, by falling frequency in train, are one together.
        far: standard deviations of train beyond which a number is no farther away.

    Returns:
        Of each table, shape (n,); 0 classes where the target is a number.
    """
    if not number_kind(column):
        *found, everyone = (np.minimum(y, most_classes - 1) for y in _ranked([*tables, train], column))
        return [*found], 1 + max(int(y.max()) for y in (*found, everyone))
    scaling = Scaling.of(train.numbers(column.name)[:, None])
    scale = scaling.scale[0] if np.isfinite(scaling.scale[0]) else 1.0
    values = ((t.numbers(column.name) - scaling.centre[0]) / scale for t in tables)
    return [np.clip(v, -far, far) for v in values], 0


def as_predictor(
    tables: Sequence[Table], train: Table, column: Column, *, most_labels: int, far: float = FAR
) -> list[Floats]:
    """A predictor, shape (n, k) for each table; a constant of train is 0.

    A number in standard deviations of train, missing ones at the mean with an indicator of their own; an
    indicator for each label.

    Args:
        most_labels: indicators of labels; the rarer ones are one together.
        far: as of :func:`as_target`.
    """
    constant = [np.zeros((t.n_rows, 1)) for t in tables]
    if number_kind(column):
        encoded = Encoded(tables, [column], [train])
        return [np.clip(c.numbers, -far, far) for c in encoded.coordinates()] if encoded.varying else constant
    *found, everyone = _ranked([*tables, train], column)
    if everyone.min() == everyone.max():
        return constant
    used, position = np.unique(np.minimum(np.concatenate(found), most_labels - 1), return_inverse=True)
    joint = np.zeros((len(position), len(used)))
    joint[np.arange(len(position)), position] = 1.0
    return split_rows(joint, tables)


def _ranked(tables: Sequence[Table], column: Column) -> list[Codes]:
    """Labels as place by falling frequency in the last table, ties by their codes; missing is a label."""
    joint = codes(tables, column)
    return by_frequency(joint, joint[-1])


@dataclass(frozen=True)
class Loss:
    """A loss with its standard error."""

    value: float
    error: float

    def estimate(self, level: float, over: str = "control rows") -> Estimate:
        """With its interval, by an error over what is said."""
        half = critical_value(level) * self.error
        interval = Interval(self.value - half, self.value + half, level, f"standard error over {over}")
        return Estimate(self.value, interval)


def worst_loss(losses: Sequence[Loss], level: float, over: str, tried: str) -> Estimate:
    """The largest loss, corrected for their number by Bonferroni.

    Args:
        over: what the errors are over. tried: what the losses are of, for a reader.
    """
    at = [partial(loss.estimate, over=over) for loss in losses]
    found = worst_estimate(at, level, tried).plain
    assert found.interval is not None
    method = f"standard error over {over}, Bonferroni over {len(losses)} {tried}"
    return replace(found, interval=replace(found.interval, method=method))


def on_control(
    quantity: Quantity,
    found: Estimate,
    n: int,
    reference: Reference | None,
    *,
    setting: str = "",
    column: str = "",
) -> Measurement:
    """A measurement that rests on ``n`` tested rows."""
    return quantity.at(
        found, setting=setting, column=column, n=n, n_minimum=FEWEST_TESTED, reference=reference
    )


def resampled_counts(m: int, n_draws: int, rng: np.random.Generator) -> Counts8:
    """How often each of m rows counts: once in the first line, then in ``n_draws`` bootstrap resamples.

    Returns:
        shape (1 + n_draws, m). A byte is enough: a count beyond 255 has probability 1e-500.
    """
    counts = np.ones((1 + n_draws, m), dtype=np.uint8)
    step = max(1, _BLOCK // m)
    for start in range(1, 1 + n_draws, step):
        size = min(step, 1 + n_draws - start)
        counts[start : start + size] = rng.multinomial(m, np.full(m, 1 / m), size)
    return counts


def scored(score: Score, predicted: Floats, y: npt.NDArray[Any], counts: Counts8) -> Floats:
    """The score of every resample, shape (d,); NaN where it is not defined."""
    step = max(1, _BLOCK // max(1, counts.shape[1]))
    blocks = [counts[i : i + step].astype(np.float64) for i in range(0, len(counts), step)]
    return np.concatenate([score(predicted, y, block) for block in blocks])


def one_against_rest_auroc(scores: Floats, y: Codes, weights: Floats) -> Floats:
    """Area under the ROC curve from scores; several classes: mean over one-against-rest curves.

    ``AUROC = P(score of a member > score of a non-member) + ½ P(tie)``. A class without members, or without
    others, has no curve; NaN where no class has one.

    Args:
        scores: shape (m, n_classes). y: shape (m,). weights: how often each row counts, shape (d, m).

    Returns:
        shape (d,), each in [0, 1].
    """
    areas = np.stack([resampled_auroc(scores[:, k], y == k, weights) for k in sides(scores.shape[1])])
    known = np.isfinite(areas)
    counts = known.sum(axis=0)
    return np.asarray(
        np.where(counts, np.where(known, areas, 0.0).sum(axis=0) / np.maximum(counts, 1), np.nan)
    )


def sides(n_classes: int) -> range:
    """The classes whose curves count: of two, whose curves are each other's mirror, the second."""
    return range(1, 2) if n_classes == 2 else range(n_classes)


def accuracy(scores: Floats, y: Codes, weights: Floats) -> Floats:
    """Share of rows whose most probable class is the true one, shape (d,)."""
    table = _confusion(scores, y, weights)
    return np.asarray(np.einsum("dkk->d", table) / weights.sum(axis=1))


def hard_label_auroc(scores: Floats, y: Codes, weights: Floats) -> Floats:
    """Area under the ROC curve from the most probable class alone: ``(TPR + TNR) / 2`` against the rest.

    Its curve has one corner; of two classes it is the balanced accuracy. Several classes: the mean, as of
    :func:`one_against_rest_auroc`; a class without members, or without others, has no curve.
    """
    table, every = _confusion(scores, y, weights), weights.sum(axis=1)[:, None]
    hit, members, named = np.einsum("dkk->dk", table), table.sum(axis=2), table.sum(axis=1)
    others = every - members
    there = (members > 0) & (others > 0)
    spared = every - members - named + hit
    areas = (hit / np.where(there, members, 1.0) + spared / np.where(there, others, 1.0)) / 2
    counted = there[:, sides(scores.shape[1])]
    known = counted.sum(axis=1)
    total = np.where(counted, areas[:, sides(scores.shape[1])], 0.0).sum(axis=1)
    return np.asarray(np.where(known, total / np.maximum(known, 1), np.nan))


def f1(scores: Floats, y: Codes, weights: Floats) -> Floats:
    """``F1 = 2·TP / (2·TP + FP + FN)``, mean over the classes that occur in ``y`` (macro average)."""
    table = _confusion(scores, y, weights)
    hit, members, named = np.einsum("dkk->dk", table), table.sum(axis=2), table.sum(axis=1)
    there = members > 0
    each = np.where(there, 2 * hit / np.maximum(members + named, 1.0), 0.0)
    return np.asarray(each.sum(axis=1) / there.sum(axis=1))


def _confusion(scores: Floats, y: Codes, weights: Floats) -> Floats:
    """Weight of the rows of each class, and among them of each most probable class, shape (d, k, k)."""
    k = max(scores.shape[1], int(y.max(initial=0)) + 1)
    cells = np.eye(k * k)[y * k + scores.argmax(axis=1)]
    return np.asarray((weights @ cells).reshape(len(weights), k, k))


def r_squared(predicted: Floats, y: Floats, weights: Floats) -> Floats:
    """``R² = 1 − Σ(y − ŷ)² / Σ(y − ȳ)²``, at most 1; NaN where ``y`` does not vary."""
    n = weights.sum(axis=1)
    means = np.einsum("dm,m->d", weights, y) / n
    around = np.einsum("dm,dm->d", weights, (y - means[:, None]) ** 2)
    missed = np.einsum("dm,m->d", weights, (y - predicted) ** 2)
    varies = around > _FLAT * n * np.var(y)
    return np.where(varies, 1.0 - missed / np.where(varies, around, 1.0), np.nan)
