"""What an attacker reads off synthetic tables to tell whether a target was learnt: features of whole sets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from synth_audit.core.arrays import Bools, Floats, Integers
from synth_audit.kernels._reference_scaler import ReferenceScaler
from synth_audit.kernels.parallel import single_threaded_algebra

FeatureSet = Literal["naive", "histogram", "correlations", "target_distance", "all"]
Classifier = Literal["random_forest", "logistic", "nearest_neighbours"]

__all__ = [
    "CLASSIFIERS",
    "FEATURE_SETS",
    "Classifier",
    "FeatureSet",
    "ReferenceScaler",
    "gathered",
    "guesses",
    "parts_of",
]

PARTS: tuple[FeatureSet, ...] = ("naive", "histogram", "correlations", "target_distance")
FEATURE_SETS: tuple[FeatureSet, ...] = (*PARTS, "all")
CLASSIFIERS: tuple[Classifier, ...] = ("random_forest", "logistic", "nearest_neighbours")

BINS = 10
"""Bins of equal width between the least and the largest value of the reference; two more lie beyond."""

NEIGHBOURS = (1, 2, 5, 10)
"""Which of the nearest synthetic rows of a target are measured."""

_DECIMALS = 9


def naive(sets: Floats, scaler: ReferenceScaler) -> Floats:
    """Summaries of every column, shape (S, F), of S sets in the attacker's units, shape (S, n, C).

    Numbers: mean, median, variance; labels: how many there are, the code of the most frequent and that of the
    least frequent one present; both: share missing. Source: Stadler et al. 2022.
    """
    found = [np.isnan(sets).mean(axis=1)]
    numbers = sets[:, :, scaler.numeric]
    known = ~np.isnan(numbers)
    n = np.maximum(known.sum(axis=1), 1)
    mean = np.sum(numbers, axis=1, where=known) / n
    spread = np.sum((numbers - mean[:, None]) ** 2, axis=1, where=known) / n
    found += [mean, _medians(numbers, n), spread]
    for j, bins in scaler.ranked.items():
        counts = _counted(sets[:, :, j], len(bins))
        present = np.where(counts > 0, counts, np.iinfo(np.int64).max)
        found.append(
            np.column_stack([(counts > 0).sum(axis=1), counts.argmax(axis=1), present.argmin(axis=1)])
        )
    return _rounded(found)


def histogram(sets: Floats, scaler: ReferenceScaler) -> Floats:
    """Share of rows in each bin of each numeric column and with each label, shape (S, F).

    Missing values are in no bin. Source: Stadler et al. 2022; the bins beyond the reference's range are ours.
    """
    found = []
    for j in range(len(scaler.numeric)):
        values = sets[:, :, j]
        bins = scaler.ranked.get(j)
        if bins is None:
            width = max(scaler.high[j] - scaler.low[j], np.finfo(np.float64).tiny)
            with np.errstate(over="ignore"):
                place = np.clip(np.floor((values - scaler.low[j]) / width * BINS), -1, BINS)
            place = np.where(values == scaler.high[j], BINS - 1, place) + 1
            found.append(_counted(place, BINS + 2) / values.shape[1])
        else:
            place = np.where(np.isnan(values), np.nan, bins[np.nan_to_num(values).astype(np.int64)])
            found.append(_counted(place, int(bins.max()) + 1) / values.shape[1])
    return _rounded(found)


def correlations(sets: Floats, scaler: ReferenceScaler) -> Floats:
    """Pearson's correlation of every pair of columns, labels by their codes, shape (S, C (C − 1) / 2).

    A missing value counts as the mean of its set; a column without spread correlates with none.
    """
    known = ~np.isnan(sets)
    mean = np.sum(sets, axis=1, where=known) / np.maximum(known.sum(axis=1), 1)
    apart = np.where(known, sets - mean[:, None], 0.0)
    size = np.sqrt(np.sum(apart**2, axis=1))
    flat = size <= 1e-9 * np.sqrt(sets.shape[1])
    unit = np.where(flat[:, None], 0.0, apart / np.where(flat, 1.0, size)[:, None])
    with single_threaded_algebra():
        together = np.matmul(unit.transpose(0, 2, 1), unit)
    row, column = np.triu_indices(sets.shape[2], 1)
    return _rounded([together[:, row, column]])


def target_distance(sets: Floats, scaler: ReferenceScaler, target: Floats) -> Floats:
    """How near the rows of each set come to a target, shape (S, 6): **ours**.

    Distances to the nearest rows (:data:`NEIGHBOURS`; the farthest where a set has fewer), the most columns
    in which a row agrees, and the share of rows that agree in all. The distance is Euclidean in standard
    deviations; labels that differ, and numbers that are constant in the reference, are at squared distance 2,
    a missing value from a present one at 1.

    Args:
        target: in the attacker's units, shape (C,).
    """
    squared = np.zeros(sets.shape[:2])
    agreeing = np.zeros(sets.shape[:2], dtype=np.int64)
    for j, value in enumerate(target.tolist()):
        values = sets[:, :, j]
        missing, gone = np.isnan(values), bool(np.isnan(value))
        same = missing if gone else values == value
        agreeing += same
        if scaler.graded[j]:
            apart = np.zeros_like(values) if gone else np.where(missing, 0.0, values - value)
            squared += apart**2 + (missing != gone)
        else:
            squared += np.where(same, 0.0, np.where(missing == gone, 2.0, 1.0))
    n = sets.shape[1]
    most = min(max(NEIGHBOURS), n)
    least = np.sort(np.partition(squared, most - 1, axis=1)[:, :most], axis=1)
    ranks = [min(k, n) - 1 for k in NEIGHBOURS]
    whole = (agreeing == len(target)).mean(axis=1)
    return _rounded([np.sqrt(least[:, ranks]), agreeing.max(axis=1)[:, None], whole[:, None]])


_COMMON: Mapping[FeatureSet, Callable[[Floats, ReferenceScaler], Floats]] = {
    "naive": naive,
    "histogram": histogram,
    "correlations": correlations,
}


def needed(names: Sequence[FeatureSet]) -> tuple[FeatureSet, ...]:
    """The parts that these feature sets are made of."""
    return tuple(part for part in PARTS if part in names or "all" in names)


def parts_of(
    sets: Floats, scaler: ReferenceScaler, targets: Floats, names: Sequence[FeatureSet]
) -> dict[FeatureSet, Floats]:
    """Every part of the named feature sets, shape (T, S, F) each, towards each of T targets.

    Args:
        sets: coded rows of S sets, shape (S, n, C). targets: coded rows, shape (T, C).
    """
    inside, towards = scaler.measured(sets), scaler.measured(targets)
    found: dict[FeatureSet, Floats] = {}
    for part in needed(names):
        if part in _COMMON:
            common = _COMMON[part](inside, scaler)
            found[part] = np.broadcast_to(common, (len(targets), *common.shape))
        else:
            found[part] = np.stack([target_distance(inside, scaler, t) for t in towards])
    return found


def gathered(parts: Mapping[FeatureSet, Floats], name: FeatureSet) -> Floats:
    """One feature set out of its parts, the last axis joined."""
    return np.concatenate([parts[p] for p in PARTS], axis=-1) if name == "all" else parts[name]


def guesses(classifier: Classifier, known: Floats, learnt: Bools, asked: Floats, seed: int) -> Floats:
    """Probability that the target was learnt, for each set asked about, shape (m,), in [0, 1].

    Args:
        known, learnt: features of the attacker's own sets, shape (n, F), and whether the target was among the
            rows behind each, shape (n,); both answers must occur.
        asked: features of the sets to be judged, shape (m, F).
    """
    with single_threaded_algebra():
        model = _classifier(classifier, seed).fit(known, learnt)
        found: Floats = np.round(model.predict_proba(asked)[:, 1], _DECIMALS_OF_GUESSES)
    return found


_DECIMALS_OF_GUESSES = 6
"""An iterative fit is no more exact than this."""


def _classifier(name: Classifier, seed: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    match name:
        case "random_forest":  # on resampled rows such leaves bring the gain from 0.50 to the best, 0.38
            return RandomForestClassifier(50, min_samples_leaf=0.05, n_jobs=1, random_state=seed)
        case "logistic":
            return make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=5000))
        case "nearest_neighbours":  # a tree, since distances by products of matrices break ties by rounding
            return make_pipeline(StandardScaler(), KNeighborsClassifier(5, algorithm="kd_tree"))


def _medians(numbers: Floats, n: Integers) -> Floats:
    """Medians of the present values along the second axis, 0 where there is none; NaN sorts last."""
    ordered = np.sort(numbers, axis=1)
    middle = [np.take_along_axis(ordered, k[:, None, :], axis=1)[:, 0] for k in ((n - 1) // 2, n // 2)]
    return np.nan_to_num((middle[0] + middle[1]) / 2)


def _counted(places: Floats, n_bins: int) -> Integers:
    """How many rows of each set are in each bin, shape (S, n_bins), from bins with NaN, shape (S, n)."""
    known = ~np.isnan(places)
    shifted = places + n_bins * np.arange(len(places))[:, None]
    flat = shifted[known].astype(np.int64)
    return np.bincount(flat, minlength=n_bins * len(places)).reshape(len(places), n_bins)


def _rounded(parts: Sequence[npt.NDArray[np.generic]]) -> Floats:
    """The parts side by side, rounded, so that no last bit of a product decides a split of a classifier."""
    joined = np.concatenate(parts, axis=1).astype(np.float64)
    return np.asarray(np.round(joined, _DECIMALS), dtype=np.float64)
