"""Do models learnt from the release lean on the same columns as models learnt from real rows?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from synth_audit.audits.utility._prediction_task import PredictionTask
from synth_audit.core.arrays import Counts8, Floats, Positions
from synth_audit.core.seeds import as_int_seed
from synth_audit.kernels.prediction import ModelName, Predictor
from synth_audit.kernels.prediction_scores import Score, resampled_counts, scored

MOST_TESTED = 1_500
"""Tested rows that the columns are shuffled among."""

MOST_PREDICTIONS = 20_000
"""Rows times columns that one model is asked about, so that wide tables take no longer than narrow ones."""

FEWEST_TESTED = 100
"""Tested rows, if there are as many, however wide the table."""

SYNTHETIC, REAL, OTHER_REAL = "synthetic", "real", "other real"


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
    task: PredictionTask, name: ModelName, score: Score, repeats: int, n_draws: int, rng: np.random.Generator
) -> Importances | None:
    """Permutation importances of one model; None where there are too few rows to halve, or no contrast.

    A column's importance is the score lost when its values are shuffled among the tested rows. In each repeat
    train falls into two halves, and models are fitted on both and on as many rows of the release: a release
    of real rows of the same people agrees with either half as the halves agree with each other. All
    models see the same rows, shuffled in the same way.
    """
    sizes = [len(task.target[arm]) for arm in ("train", "synthetic")]
    half = min(task.most_rows // 2, sizes[0] // 2, sizes[1])
    asked = _asked(task, rng)
    if half < 2 or len(np.unique(task.y_test[asked])) < 2:
        return None
    counts = resampled_counts(len(asked), n_draws, rng)
    found: dict[str, list[Floats]] = {SYNTHETIC: [], REAL: [], OTHER_REAL: []}
    for _ in range(repeats):
        seed = as_int_seed(rng)
        order = rng.permutation(len(asked))
        real, made = rng.permutation(sizes[0]), rng.permutation(sizes[1])
        for key, arm, rows in (
            (SYNTHETIC, "synthetic", made[:half]),
            (REAL, "train", real[:half]),
            (OTHER_REAL, "train", real[half : 2 * half]),
        ):
            model = task.fit(name, arm, np.sort(rows), seed)
            found[key].append(_lost(task, model, score, asked, order, counts))
    stacked = [np.stack(found[key]) for key in (SYNTHETIC, REAL, OTHER_REAL)]
    return Importances(tuple(task.blocks), len(asked), *stacked)


def _asked(task: PredictionTask, rng: np.random.Generator) -> Positions:
    n = len(task.y_test)
    affordable = max(FEWEST_TESTED, MOST_PREDICTIONS // len(task.blocks))
    most = min(n, MOST_TESTED, affordable)
    return np.sort(rng.choice(n, most, replace=False))


def _lost(
    task: PredictionTask, model: Predictor, score: Score, asked: Positions, order: Positions, counts: Counts8
) -> Floats:
    """Score lost by shuffling each column, for every resample, shape (1 + d, p); NaN where there is none."""
    x, y = task.x_test[asked], task.y_test[asked]
    whole = scored(score, model.predict(x), y, counts)
    shuffled = _shuffled(model.predict, x, order, task.blocks)
    return np.stack([whole - scored(score, predicted, y, counts) for predicted in shuffled], axis=1)


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


_MOST_NUMBERS = 2**22
"""Features of rows asked about at a time: 32 MiB."""
