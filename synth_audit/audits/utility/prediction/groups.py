"""What is lost within each category of a column, and on which columns models lean."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from synth_audit.arrays import Bools, Counts8, Floats, Integers, Positions
from synth_audit.audits.utility import _prediction_task as tasks
from synth_audit.audits.utility._prediction_task import Loss, ModelName, PredictionTask, Predictor, Score
from synth_audit.encode.codes import by_frequency, codes
from synth_audit.execution.seeds import as_int_seed
from synth_audit.findings.measurement import Estimate
from synth_audit.plugins.audit import Subject
from synth_audit.stats.roc import auroc_influence
from synth_audit.table.schema import Column, Role, nominal

Predicted = Mapping[str, Sequence[Sequence[Floats]]]
"""By arm, for each model and each repeat the predictions for the tested rows."""

MOST_COLUMNS = 10
"""Columns of labels that are looked into: the sensitive ones and the first of the others."""

MOST_CATEGORIES = 20
"""Categories of a column that are looked into: the most frequent ones."""

FEWEST = 10
"""Rows of a category, and of a class within it, that a loss must rest on at least."""

MOST_TESTED = 1_500
"""Tested rows that the columns are shuffled among."""

MOST_PREDICTIONS = 20_000
"""Rows times columns that one model is asked about, so that wide tables take no longer than narrow ones."""

FEWEST_TESTED = 100
"""Tested rows, if there are as many, however wide the table."""

_MOST_NUMBERS = 2**22
"""Features of rows asked about at a time: 32 MiB."""


def worst_losses(task: PredictionTask, predicted: Predicted, subject: Subject) -> dict[str, Estimate]:
    """The worst loss by column, and under an empty name over all columns; none where nothing can be told.

    The loss within a category is that of the AUROC among its rows; of a number the part of R² that its rows
    lose, ``mean(squared error trained on synthetic − trained on real) / variance of all tested rows``, whose
    mean over rows is the loss of R². Categories count that have at least ``max(suppression, FEWEST)`` tested
    rows, of a class and of others each; a column counts that has two of them.

    The standard error joins that of the tested rows (DeLong's, or of the mean) with that of the repeats. The
    interval is corrected for the number of categories. It is never said which one is the worst, nor how many
    rows the categories hold.
    """
    fewest = max(subject.suppression, FEWEST)
    found = {}
    labelled = [c for c in nominal(subject.features) if c != subject.schema.target]
    for column in sorted(labelled, key=lambda c: Role.SENSITIVE not in c.roles)[:MOST_COLUMNS]:
        losses = [
            loss
            for rows in _categories(task, column, fewest)
            if (loss := _loss(task, predicted, rows, fewest)) is not None
        ]
        if len(losses) > 1:
            found[column.name] = losses
    if found:
        found[""] = [loss for losses in found.values() for loss in losses]
    over = "control rows and repeats"
    return {
        name: tasks.worst_loss(losses, subject.level, over, "categories") for name, losses in found.items()
    }


def _categories(task: PredictionTask, column: Column, fewest: int) -> Iterator[Bools]:
    """Rows of each category that is large enough, the largest first; missing is a category."""
    [found] = codes([task.tested], column)
    [ranked] = by_frequency([found], found)
    largest = (ranked == i for i in range(MOST_CATEGORIES))
    return (rows for rows in largest if rows.sum() >= fewest)


def _loss(task: PredictionTask, predicted: Predicted, rows: Bools, fewest: int) -> Loss | None:
    """Loss among these rows, mean over models and repeats; None where there is too little contrast."""
    y = task.y_test[rows]
    classes: list[int] = []
    if task.n_classes:
        classes = [k for k in tasks.sides(task.n_classes) if fewest <= np.sum(y == k) <= len(y) - fewest]
        if not classes:
            return None
    values, influences = [], []
    for tstr, trtr in zip(predicted["synthetic"], predicted["train"], strict=True):
        pairs = [(s[rows], t[rows]) for s, t in zip(tstr, trtr, strict=True)]
        if task.n_classes:
            each = [_area_lost(s, t, y, classes) for s, t in pairs]
        else:
            each = [_squares_gained(s, t, y, float(np.var(task.y_test))) for s, t in pairs]
        values.append([value for value, _ in each])
        influences += [influence for _, influence in each]
    by_repeat = np.mean(values, axis=0)
    repeats = float(np.var(by_repeat, ddof=1)) / len(by_repeat) if len(by_repeat) > 1 else 0.0
    error = np.sqrt(np.sum(np.mean(influences, axis=0) ** 2) + repeats)
    return Loss(float(by_repeat.mean()), float(error))


def _area_lost(tstr: Floats, trtr: Floats, y: Integers, classes: Sequence[int]) -> tuple[float, Floats]:
    value, influence = 0.0, np.zeros(len(y))
    for k in classes:
        (low, of_low), (high, of_high) = (auroc_influence(p[:, k], y == k) for p in (tstr, trtr))
        value += (high - low) / len(classes)
        influence += (of_high - of_low) / len(classes)
    return value, influence


def _squares_gained(tstr: Floats, trtr: Floats, y: Floats, variance: float) -> tuple[float, Floats]:
    each = ((y - tstr) ** 2 - (y - trtr) ** 2) / variance
    n = len(y)
    return float(each.mean()), (each - each.mean()) / np.sqrt(n * (n - 1))


@dataclass(frozen=True, eq=False)
class Importances:
    """Importances of p columns, for each repeat and each resample of the tested rows, shape (r, 1 + d, p).

    Attributes:
        columns: their names.
        synthetic: of models learnt from the release; real, other_real: from two halves of train that share no
            row, all on as many rows.
        n_tested: control rows that the columns were shuffled among.
    """

    columns: tuple[str, ...]
    n_tested: int
    synthetic: Floats
    real: Floats
    other_real: Floats

    @property
    def agreement(self) -> Floats:
        """Of the release with a half of train, shape (r, 1 + d)."""
        return cosine(self.synthetic, self.real)

    @property
    def best(self) -> Floats:
        """Of the other half with it: what real rows of the same people reach."""
        return cosine(self.other_real, self.real)

    def top(self, most: int) -> tuple[tuple[str, ...], Mapping[str, tuple[float, ...]]]:
        """Mean importances of the columns that matter most to models of real rows, falling."""
        real, made = ((a[:, 0].mean(axis=0)) for a in (self.real, self.synthetic))
        order = np.argsort(-real, kind="stable")[:most]
        names = tuple(self.columns[i] for i in order)
        return names, {
            "trained on synthetic": tuple(float(made[i]) for i in order),
            "trained on real": tuple(float(real[i]) for i in order),
        }


def cosine(a: Floats, b: Floats) -> Floats:
    """``Σ a b / (|a| |b|)`` over the last axis, in [−1, 1]; 0 where none matters to either."""
    sizes = np.sqrt((a * a).sum(axis=-1) * (b * b).sum(axis=-1))
    found: Floats = np.clip((a * b).sum(axis=-1) / np.where(sizes == 0, 1.0, sizes), -1.0, 1.0)
    return found


def importances(
    task: PredictionTask,
    name: ModelName,
    score: Score,
    repeats: int,
    n_draws: int,
    rng: np.random.Generator,
) -> Importances | None:
    """Permutation importances of one model; None where there are too few rows to halve, or no contrast.

    A column's importance is the score lost when its values are shuffled among the tested rows. In each repeat
    train falls into two halves, and models are fitted on both and on as many rows of the release: a release
    of real rows of the same people agrees with either half as the halves agree with each other. All
    models see the same rows, shuffled in the same way.
    """
    sizes = [len(task.target[arm]) for arm in ("train", "synthetic")]
    half = min(task.most_rows // 2, sizes[0] // 2, sizes[1])
    affordable = max(FEWEST_TESTED, MOST_PREDICTIONS // len(task.blocks))
    n = len(task.y_test)
    asked = np.sort(rng.choice(n, min(n, MOST_TESTED, affordable), replace=False))
    if half < 2 or len(np.unique(task.y_test[asked])) < 2:
        return None
    counts = tasks.resampled_counts(len(asked), n_draws, rng)
    found = []
    for _ in range(repeats):
        seed = as_int_seed(rng)
        order = rng.permutation(len(asked))
        real, made = rng.permutation(sizes[0]), rng.permutation(sizes[1])
        learnt = ("synthetic", made[:half]), ("train", real[:half]), ("train", real[half : 2 * half])
        models = [task.fit(name, arm, np.sort(rows), seed) for arm, rows in learnt]
        found.append([_lost(task, model, score, asked, order, counts) for model in models])
    return Importances(tuple(task.blocks), len(asked), *np.stack(found, axis=1))


def _lost(
    task: PredictionTask,
    model: Predictor,
    score: Score,
    asked: Positions,
    order: Positions,
    counts: Counts8,
) -> Floats:
    """Score lost by shuffling each column, for every resample, shape (1 + d, p); NaN where there is none."""
    x, y = task.x_test[asked], task.y_test[asked]
    whole = tasks.scored(score, model.predict(x), y, counts)
    shuffled = _shuffled(model.predict, x, order, task.blocks)
    return np.stack([whole - tasks.scored(score, predicted, y, counts) for predicted in shuffled], axis=1)


def _shuffled(
    predict: Callable[[Floats], Floats], x: Floats, order: Positions, blocks: Mapping[str, slice]
) -> list[Floats]:
    """Predictions with each column shuffled in turn, a few columns at a time in one question."""
    names = list(blocks)
    at_once = max(1, _MOST_NUMBERS // x.size)
    found: list[Floats] = []
    for start in range(0, len(names), at_once):
        some = names[start : start + at_once]
        rows = np.tile(x, (len(some), 1))
        for i, name in enumerate(some):
            rows[i * len(x) : (i + 1) * len(x), blocks[name]] = x[order, blocks[name]]
        found += np.split(predict(rows), len(some))
    return found
