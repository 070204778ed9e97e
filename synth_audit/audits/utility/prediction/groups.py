"""Who pays: what is lost within each category of a column, and where it is most."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from synth_audit.audits.utility._prediction_task import PredictionTask
from synth_audit.core.arrays import Bools, Floats, Integers
from synth_audit.core.measurement import Estimate, Interval
from synth_audit.core.schema import Column, Role, nominal
from synth_audit.core.subject import Subject
from synth_audit.encoding.codes import codes
from synth_audit.kernels.intervals import critical_value
from synth_audit.kernels.prediction_scores import sides
from synth_audit.kernels.roc import auroc_influence

Predicted = Mapping[str, Sequence[Sequence[Floats]]]
"""By arm, for each model and each repeat the predictions for the tested rows."""

MOST_COLUMNS = 10
"""Columns of labels that are looked into: the sensitive ones and the first of the others."""

MOST_CATEGORIES = 20
"""Categories of a column that are looked into: the most frequent ones."""

FEWEST = 10
"""Rows of a category, and of a class within it, that a loss must rest on at least."""


@dataclass(frozen=True)
class Worst:
    """The category that loses most; never said which, nor how many rows the categories hold.

    Attributes:
        loss: with an interval that is corrected for the number of categories.
        n_categories: that were looked into.
    """

    loss: Estimate
    n_categories: int


@dataclass(frozen=True)
class _Loss:
    value: float
    error: float


def worst_losses(task: PredictionTask, predicted: Predicted, subject: Subject) -> dict[str, Worst]:
    """The worst loss by column, and under an empty name over all columns; none where nothing can be told.

    The loss within a category is that of the AUROC among its rows; of a number the part of R² that its rows
    lose, ``mean(squared error trained on synthetic − trained on real) / variance of all tested rows``, whose
    mean over rows is the loss of R². Categories count that have at least ``max(suppression, FEWEST)`` tested
    rows, of a class and of others each; a column counts that has two of them.

    The standard error joins that of the tested rows (DeLong's, or of the mean) with that of the repeats.
    With z at the level ``1 − (1 − level)/K`` for K categories, the worst of the true losses is between the
    largest of the lower ends and the largest of the upper ends.
    """
    fewest = max(subject.suppression, FEWEST)
    found = {}
    for column in _columns(subject):
        losses = [
            loss
            for rows in _categories(task, column, fewest)
            if (loss := _loss(task, predicted, rows, fewest)) is not None
        ]
        if len(losses) > 1:
            found[column.name] = losses
    if found:
        found[""] = [loss for losses in found.values() for loss in losses]
    return {name: Worst(_worst(losses, subject.level), len(losses)) for name, losses in found.items()}


def _columns(subject: Subject) -> list[Column]:
    target = subject.schema.target
    labelled = [c for c in nominal(subject.features) if c != target]
    return sorted(labelled, key=lambda c: Role.SENSITIVE not in c.roles)[:MOST_COLUMNS]


def _categories(task: PredictionTask, column: Column, fewest: int) -> Iterator[Bools]:
    """Rows of each category that is large enough, the largest first; missing is a category."""
    [found] = codes([task.tested], column)
    values, counts = np.unique(found, return_counts=True)
    for i in np.argsort(-counts, kind="stable")[:MOST_CATEGORIES]:
        if counts[i] >= fewest:
            yield found == values[i]


def _loss(task: PredictionTask, predicted: Predicted, rows: Bools, fewest: int) -> _Loss | None:
    """Loss among these rows, mean over models and repeats; None where there is too little contrast."""
    y = task.y_test[rows]
    classes: list[int] = []
    if task.n_classes:
        classes = [k for k in sides(task.n_classes) if fewest <= np.sum(y == k) <= len(y) - fewest]
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
    return _Loss(float(by_repeat.mean()), float(error))


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


def _worst(losses: Sequence[_Loss], level: float) -> Estimate:
    k = len(losses)
    z = critical_value(1 - (1 - level) / k)
    interval = Interval(
        max(x.value - z * x.error for x in losses),
        max(x.value + z * x.error for x in losses),
        level,
        f"standard error over control rows and repeats, Bonferroni over {k} categories",
    )
    return Estimate(max(x.value for x in losses), interval)
