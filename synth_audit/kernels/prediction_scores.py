"""How well predictions fit the truth, for all bootstrap resamples of the test rows at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from synth_audit.core.arrays import Bools, Codes, Counts8, Floats
from synth_audit.kernels.roc import resampled_auroc

Score = Callable[[Floats, npt.NDArray[Any], Floats], Floats]
"""Predictions, truths, shape (m,), and how often each row counts, shape (d, m), to scores, shape (d,)."""

_BLOCK = 2**21
"""Weights held at a time: 16 MiB."""


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
    return np.asarray(_total(weights, scores.argmax(axis=1) == y) / weights.sum(axis=1))


def hard_label_auroc(scores: Floats, y: Codes, weights: Floats) -> Floats:
    """Area under the ROC curve from the most probable class alone: ``(TPR + TNR) / 2`` against the rest.

    Its curve has one corner; of two classes it is the balanced accuracy. Several classes: the mean, as of
    :func:`one_against_rest_auroc`; a class without members, or without others, has no curve.
    """
    guess, every = scores.argmax(axis=1), weights.sum(axis=1)
    total, known = np.zeros(len(weights)), np.zeros(len(weights))
    for k in sides(scores.shape[1]):
        members = _total(weights, y == k)
        there = (members > 0) & (members < every)
        found = _total(weights, (guess == k) & (y == k)) / np.where(there, members, 1.0)
        spared = _total(weights, (guess != k) & (y != k)) / np.where(there, every - members, 1.0)
        total += np.where(there, (found + spared) / 2, 0.0)
        known += there
    return np.asarray(np.where(known, total / np.maximum(known, 1), np.nan))


def f1(scores: Floats, y: Codes, weights: Floats) -> Floats:
    """``F1 = 2·TP / (2·TP + FP + FN)``, mean over the classes that occur in ``y`` (macro average)."""
    guess = scores.argmax(axis=1)
    total, occurring = np.zeros(len(weights)), np.zeros(len(weights))
    for k in np.unique(y):
        there = _total(weights, y == k) > 0
        hit = _total(weights, (guess == k) & (y == k))
        wrong = _total(weights, (guess == k) != (y == k))
        total += np.where(there, 2 * hit / np.maximum(2 * hit + wrong, 1.0), 0.0)
        occurring += there
    return np.asarray(total / occurring)


def r_squared(predicted: Floats, y: Floats, weights: Floats) -> Floats:
    """``R² = 1 − Σ(y − ŷ)² / Σ(y − ȳ)²``, at most 1; NaN where ``y`` does not vary."""
    n = weights.sum(axis=1)
    means = np.einsum("dm,m->d", weights, y) / n
    around = np.einsum("dm,dm->d", weights, (y - means[:, None]) ** 2)
    missed = np.einsum("dm,m->d", weights, (y - predicted) ** 2)
    varies = around > _FLAT * n * np.var(y)
    return np.where(varies, 1.0 - missed / np.where(varies, around, 1.0), np.nan)


_FLAT = 1e-12
"""A resample that varies by less than this part of the sample's variance holds one value and rounding."""


def _total(weights: Floats, chosen: Bools) -> Floats:
    """Weight of the chosen rows, shape (d,)."""
    return np.asarray(weights @ chosen.astype(np.float64))
