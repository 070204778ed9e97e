"""Train on synthetic, test on real: does a model learnt from the release predict as well?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, get_args

import numpy as np

from synth_audit.arrays import Floats
from synth_audit.audits._declarations import at_least, some_of
from synth_audit.audits.utility._prediction_task import ARMS, PredictionTask, prepare
from synth_audit.audits.utility.prediction import numbers
from synth_audit.audits.utility.prediction.groups import importances, worst_losses
from synth_audit.execution.context import RunContext
from synth_audit.execution.seeds import as_int_seed
from synth_audit.findings.measurement import Findings
from synth_audit.plugins.audit import AuditInfo, Need, Subject
from synth_audit.stats.prediction import SEEDED, ModelName
from synth_audit.stats.resampling import enough_draws


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """Scores models trained on synthetic (TSTR) and on real rows (TRTR), both tested on control rows.

    ``loss = TRTR − TSTR``. A categorical or boolean target gives AUROC from scores and, as papers often
    have it, from hard labels (``(TPR + TNR) / 2``), accuracy and macro F1; a numeric target gives R².
    Values are means over ``repeats`` trainings, and over models where none is named. Intervals are for
    these two tables to learn from: each draw resamples the control rows, the same ones for both arms, and
    ``repeats − 1`` of the repeats with replacement, whose mean varies as the mean of all repeats does
    (Rao & Wu 1988). A repeat has its own model seed and, where there are more rows than ``most_rows``,
    its own training rows. ``worst_subgroup_loss`` tells on whom the loss falls, ``importance_agreement``
    whether the first model leans on the same columns. Train scores at its reference, and so do, on
    average, real rows of other people; not control, which would be tested on its own rows. ``loss`` is
    left out where the lower end of the real-trained score is below 0.6 (AUROC) or 0.1 (R²), so that no
    gate passes where nothing could be lost.

    ``accuracy_cross_validated_loss``, and the same of F1 or R², compare on train rows instead: train is dealt
    to ``folds`` parts, and each part is tested by a model of the other parts and by one of as large a share
    of the release. The release has seen these rows: a loss below 0 may be what it repeats of them.

    Fields:
        models: which models to train; ``logistic`` is ridge regression for a numeric target.
        repeats: trainings of each model on each arm.
        n_bootstrap: resamples of the control rows, or more where the level asks for it.
        most_rows: training rows of one model, and control rows to test on.
        folds: parts of the cross-validation, 2 or more; it is left out with 0.

    Raises:
        NotApplicable: no column beside the target; a target that is missing throughout a table, has a single
            value in control, or too few control rows in a class that no other can be joined with.

    Source: TVineSynth, section 2.4; Disjoint Generative Models.
    """

    models: tuple[ModelName, ...] = ("random_forest", "logistic", "gradient_boosting", "knn")
    repeats: int = 3
    n_bootstrap: int = 200
    most_rows: int = 5_000
    folds: int = 0

    info: ClassVar[AuditInfo] = AuditInfo(
        title="Prediction",
        question="Does a model trained on the release predict the target on real people as well as one "
        "trained on the real data?",
        threat_model="An analyst who trains on the release would be let down by what it lost.",
        not_covered="Other targets and other models than the ones tried.",
        quantities=(*numbers.QUANTITIES, *numbers.CROSS_VALIDATED.values()),
        risk="utility",
        needs=(Need.CONTROL, Need.TARGET),
        cost="seconds",
        source="TVineSynth, section 2.4; Disjoint Generative Models",
    )

    def __post_init__(self) -> None:
        some_of(self, "models", get_args(ModelName))
        at_least(self, repeats=1, n_bootstrap=100, most_rows=100)
        if self.folds == 1 or self.folds < 0:
            raise ValueError("folds must be 0 or at least 2")

    def run(self, subject: Subject, context: RunContext) -> Findings:
        """Train every model on both arms and score it on the control rows that have a target."""
        rng = context.rng
        task = prepare(subject, self.most_rows, self.repeats, rng)
        n, n_draws = len(task.y_test), enough_draws(self.n_bootstrap, subject.level)
        resampled = numbers.Resampled.of(n, self.repeats, n_draws, subject.level, rng)
        predicted: dict[str, list[list[Floats]]] = {arm: [] for arm in ARMS}
        for name in self.models:
            seeds = [as_int_seed(rng) for _ in range(self.repeats)]
            for arm in ARMS:
                predicted[arm].append(_predictions(task, arm, name, seeds))
        per_model = [
            numbers.score_all(task, {arm: predicted[arm][i] for arm in ARMS}, resampled.counts)
            for i in range(len(self.models))
        ]
        overall = {key: np.mean([s[key] for s in per_model], axis=0) for key in per_model[0]}
        main = "auroc" if task.n_classes else "r2"  # stands for all where there is room for one
        found = resampled.measured(overall)
        whole = {m.id.quantity: m for m in found}
        little = numbers.little_to_lose(whole[f"{main}_trtr"])
        if not little:
            found = [*resampled.measured({numbers.LOSS.name: overall[f"{main}_loss"]}), *found]
        if len(self.models) > 1:
            for name, of_model in zip(self.models, per_model, strict=True):
                found += resampled.measured(of_model, name)
        found += numbers.subgroups(worst_losses(task, predicted, subject), whole[f"{main}_loss"].value, n)
        weighed = importances(task, self.models[0], numbers.SCORES[main], self.repeats, n_draws, rng)
        if weighed is not None:
            found.append(resampled.agreement(weighed))
        if self.folds:
            parts = numbers.CrossValidation.of(task, subject, self.folds, n_draws, rng)
            found += parts.measured(self.models, rng)
        pictures = (
            numbers.score_bars(self.models, per_model, main),
            *numbers.importance_bars(weighed, main, self.models[0]),
        )
        return Findings(tuple(found), pictures, (*numbers.notes(task, subject), *little))


def _predictions(task: PredictionTask, arm: str, name: ModelName, seeds: Sequence[int]) -> list[Floats]:
    """What each repeat predicts for the tested rows; one object for all where nothing differs."""
    alike = name not in SEEDED and len(task.target[arm]) <= task.most_rows
    found = [
        task.fit(name, arm, task.pick(arm, repeat), seed).predict(task.x_test)
        for repeat, seed in enumerate(seeds[:1] if alike else seeds)
    ]
    return found * len(seeds) if alike else found
