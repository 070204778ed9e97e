"""Models of the release and of real rows, both tested on the train rows that were left out of the latter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from synth_audit.audits.utility._prediction_task import ARMS, PredictionTask, joined, untold
from synth_audit.audits.utility.prediction.numbers import FEWEST_TESTED, SCORES
from synth_audit.core.arrays import Counts8, Floats, Positions, Target
from synth_audit.core.measurement import Interval, Measurement, Quantity, Reference
from synth_audit.core.seeds import as_int_seed
from synth_audit.core.subject import Subject
from synth_audit.kernels import prediction_scores as scores
from synth_audit.kernels.intervals import percentile_interval
from synth_audit.kernels.prediction import ModelName, fit

_TITLES = {"accuracy": "Accuracy", "f1": "F1 score", "r2": "R²"}

QUANTITIES = {
    key: Quantity(
        f"{key}_cross_validated_loss",
        f"{title} lost on train rows left out",
        unit="score",
        range=(-np.inf, np.inf),
        help="Cross-validated score of models learnt from real rows, less that of models learnt from the "
        "release, on the same train rows. The release has seen those rows: below 0 it may repeat them.",
    )
    for key, title in _TITLES.items()
}
"""By score, what is lost of it."""

_NOTHING_LOST = Reference(0.0, "as many real rows of other people, on average")


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """Which rows of each arm are left out of which model.

    Attributes:
        target: by arm, classes that few of the tested rows hold being one; n_classes: 0 for a number.
        rows: by arm, positions in its pool of the rows to learn from; all those of train are tested, too.
        fold: by arm, the part that each of these rows is in.
        counts: how often each tested row counts, once in the first line and then in each resample of people.
    """

    features: dict[str, Floats]
    target: dict[str, Target]
    n_classes: int
    rows: dict[str, Positions]
    fold: dict[str, Positions]
    counts: Counts8
    level: float

    @classmethod
    def of(
        cls, task: PredictionTask, subject: Subject, folds: int, n_draws: int, rng: np.random.Generator
    ) -> CrossValidation:
        """Deal people to ``folds`` parts, each class evenly; rows of one person fall into one part.

        Raises:
            NotApplicable: of the classes too few have enough rows.
        """
        rows = {arm: task.pick(arm, 0) for arm in ARMS}
        rows["train"] = untold(rows["train"], subject.train.n_rows, subject.suppression, rng)
        each = [*(task.target[arm] for arm in ARMS), task.target["train"][rows["train"]]]
        y, n_classes, _ = joined(each, task.n_classes, subject.suppression)
        person = np.unique(task.people[rows["train"]], return_inverse=True)[1]
        fold = {
            "synthetic": rng.permutation(len(rows["synthetic"])) % folds,
            "train": _dealt(person, y[-1] if n_classes else np.zeros(len(person)), folds, rng),
        }
        counts = scores.resampled_counts(int(person.max()) + 1, n_draws, rng)[:, person]
        target = dict(zip(ARMS, y, strict=False))
        return cls(task.features, target, n_classes, rows, fold, counts, subject.level)

    def measured(self, models: Sequence[ModelName], rng: np.random.Generator) -> list[Measurement]:
        """The losses over all models, then each model's own where there are several."""
        lost = [self._losses(name, as_int_seed(rng)) for name in models]
        mean = {key: np.mean([found[key] for found in lost], axis=0) for key in lost[0]}
        every = [("", mean), *(zip(models, lost, strict=True) if len(models) > 1 else ())]
        return [self._as(key, values, name) for name, found in every for key, values in found.items()]

    def _losses(self, name: ModelName, seed: int) -> dict[str, Floats]:
        """What each score loses in every resample, shape (1 + draws,)."""
        y = self.target["train"][self.rows["train"]]
        real, made = (self._predicted(name, arm, seed) for arm in ("train", "synthetic"))
        return {
            key: scores.scored(SCORES[key], real, y, self.counts)
            - scores.scored(SCORES[key], made, y, self.counts)
            for key in (("accuracy", "f1") if self.n_classes else ("r2",))
        }

    def _predicted(self, name: ModelName, arm: str, seed: int) -> Floats:
        """What models of an arm say of the tested rows, each part's by the model that left this part out."""
        tested, n_classes = self.rows["train"], self.n_classes
        found = np.empty((len(tested), n_classes) if n_classes else len(tested))
        for k in np.unique(self.fold["train"]):
            learnt, asked = self.rows[arm][self.fold[arm] != k], self.fold["train"] == k
            model = fit(name, self.features[arm][learnt], self.target[arm][learnt], n_classes, seed)
            found[asked] = model.predict(self.features["train"][tested[asked]])
        return found

    def _as(self, key: str, values: Floats, setting: str) -> Measurement:
        value, draws, n = float(values[0]), values[1:], self.counts.shape[1]
        found = percentile_interval(draws, self.level, "bootstrap percentile over people")
        return QUANTITIES[key].at(
            value,
            setting=setting,
            interval=Interval(min(found.low, value), max(found.high, value), found.level, found.method),
            n_requested=n,
            n_achieved=n,
            n_minimum=FEWEST_TESTED,
            reference=_NOTHING_LOST,
        )


def _dealt(person: Positions, y: Target, folds: int, rng: np.random.Generator) -> Positions:
    """The part of each row: people in random order within the class of their first row, dealt in turn."""
    first = np.unique(person, return_index=True)[1]
    order = np.lexsort((rng.permutation(len(first)), y[first]))
    part = np.empty(len(first), dtype=np.int64)
    part[order] = np.arange(len(first)) % folds
    return part[person]
