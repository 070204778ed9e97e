"""Train on synthetic, test on real: does a model learnt from the release predict as well?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from synth_audit.core.errors import NotApplicable
from synth_audit.core.measurement import Direction, Findings, Measurement, Quantity, Reference
from synth_audit.core.plugin import AuditInfo, Need
from synth_audit.core.schema import Column
from synth_audit.core.seeds import as_int_seed
from synth_audit.core.subject import Subject
from synth_audit.core.table import Table
from synth_audit.kernels import prediction as learners
from synth_audit.kernels.encode import EuclideanEncoder, codes
from synth_audit.kernels.intervals import enough_draws, percentile_interval

Floats = npt.NDArray[np.float64]
Target = npt.NDArray[Any]
Metric = Callable[[Floats, Target, Floats | None], float]

_TITLES = {"auroc": "AUROC", "accuracy": "Accuracy", "f1": "F1 score", "r2": "R²"}
_METRICS: dict[str, Metric] = {
    "auroc": learners.auroc,
    "accuracy": learners.accuracy,
    "f1": learners.f1,
    "r2": learners.r_squared,
}


def _quantities() -> tuple[Quantity, ...]:
    found = []
    for key, title in _TITLES.items():
        low = float("-inf") if key == "r2" else 0.0
        for arm, words in (("tstr", "trained on synthetic"), ("trtr", "trained on real")):
            found.append(
                Quantity(
                    f"{key}_{arm}",
                    f"{title}, {words}, tested on real",
                    unit="score",
                    direction=Direction.HIGHER,
                    range=(low, 1.0),
                )
            )
        found.append(
            Quantity(
                f"{key}_loss",
                f"{title} lost by training on synthetic rows",
                unit="score",
                range=(-np.inf, np.inf),
                help="Real-trained less synthetic-trained score on the same control rows.",
            )
        )
    return tuple(found)


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """Scores models trained on synthetic (TSTR) and on real rows (TRTR), both tested on control rows.

    ``loss = TRTR − TSTR``. A categorical or boolean target gives AUROC from scores, accuracy and macro F1; a
    numeric target gives R². Values are means over ``repeats`` model seeds; an empty scope is the mean over
    models. Intervals resample the control rows, the same ones for both arms.

    Fields:
        models: which models to train; ``logistic`` is ridge regression for a numeric target.
        repeats: model seeds.
        n_bootstrap: resamples of the control rows, or more where the level asks for it.

    Source: TVineSynth, section 2.4; Disjoint Generative Models.
    """

    models: tuple[learners.ModelName, ...] = ("random_forest",)
    repeats: int = 3
    n_bootstrap: int = 200

    info: ClassVar[AuditInfo] = AuditInfo(
        title="Prediction",
        question="Does a model trained on the release predict the target on real people as well as one "
        "trained on the real data?",
        threat_model="An analyst who trains on the release would be let down by what it lost.",
        not_covered="Other targets and other models than the ones tried.",
        quantities=_quantities(),
        risk="utility",
        needs=(Need.CONTROL, Need.TARGET),
        cost="seconds",
        source="TVineSynth, section 2.4; Disjoint Generative Models",
    )

    def __post_init__(self) -> None:
        if not self.models or len(set(self.models)) != len(self.models):
            raise ValueError("models must name at least one model, each once")
        if self.repeats < 1 or self.n_bootstrap < 100:
            raise ValueError("repeats must be positive and n_bootstrap at least 100")

    def run(self, subject: Subject, rng: np.random.Generator) -> Findings:
        """Train every model on both arms and score it on the control rows that have a target."""
        task = _Task.of(subject)
        n, draws = len(task.y_test), enough_draws(self.n_bootstrap, subject.level)
        weights = rng.multinomial(n, np.full(n, 1 / n), draws).astype(np.float64)
        found: list[Measurement] = []
        per_model = []
        for name in self.models:
            seeds = [as_int_seed(rng) for _ in range(self.repeats)]
            arms = {arm: [task.predict(arm, name, seed) for seed in seeds] for arm in ("synthetic", "train")}
            per_model.append(_scored(task, arms, weights))
            if len(self.models) > 1:
                found += _measured(per_model[-1], name, subject.level, n)
        overall = {key: np.mean([s[key] for s in per_model], axis=0) for key in per_model[0]}
        return Findings((*_measured(overall, "", subject.level, n), *found))


@dataclass(frozen=True, eq=False)
class _Task:
    """Features and target of both arms and of the test rows, in one encoding."""

    features: dict[str, Floats]
    target: dict[str, Target]
    x_test: Floats
    y_test: Target
    n_classes: int

    @classmethod
    def of(cls, subject: Subject) -> _Task:
        target, control = subject.schema.target, subject.control
        assert target is not None
        assert control is not None
        known = [
            _with_target(t, target, name)
            for name, t in (
                ("synthetic", subject.synthetic),
                ("train", subject.train),
                ("control", control),
            )
        ]
        others = [c for c in subject.features if c.name != target.name]
        if not others:
            raise NotApplicable("there is no column beside the target to predict from")
        encoder = EuclideanEncoder.anchored_on(subject.train, others)
        x = [c.as_features() for c in encoder.encode(known)]
        if target.kind.numeric:
            y: list[Target] = [t.numbers(target.name) for t in known]
            n_classes = 0
        else:
            y = list(codes(known, target))
            n_classes = 1 + max(int(a.max()) for a in y)
        if len(np.unique(y[2])) < 2:
            raise NotApplicable("the target has a single value among the control rows")
        arms = ("synthetic", "train")
        return cls(dict(zip(arms, x, strict=False)), dict(zip(arms, y, strict=False)), x[2], y[2], n_classes)

    @property
    def metrics(self) -> tuple[str, ...]:
        return ("auroc", "accuracy", "f1") if self.n_classes else ("r2",)

    def predict(self, arm: str, name: learners.ModelName, seed: int) -> Floats:
        """Scores of the test rows by a model trained on one arm."""
        x, y = self.features[arm], self.target[arm]
        if self.n_classes:
            return learners.class_scores(name, x, y.astype(np.int64), self.x_test, self.n_classes, seed)
        return learners.predicted_values(name, x, y.astype(np.float64), self.x_test, seed)


def _with_target(table: Table, target: Column, name: str) -> Table:
    present = ~table.missing(target.name)
    if not present.any():
        raise NotApplicable(f"the target is missing in every row of {name}")
    return table.take(present)


def _scored(task: _Task, arms: dict[str, list[Floats]], weights: Floats) -> dict[str, Floats]:
    """Per quantity the value, then its bootstrap draws, means over model seeds, shape (1 + draws,)."""
    all_weights = [None, *weights]
    scored: dict[str, Floats] = {}
    for key in task.metrics:
        metric = _METRICS[key]
        tstr, trtr = (
            np.mean([[metric(p, task.y_test, w) for w in all_weights] for p in arms[arm]], axis=0)
            for arm in ("synthetic", "train")
        )
        scored |= {f"{key}_tstr": tstr, f"{key}_trtr": trtr, f"{key}_loss": trtr - tstr}
    return scored


def _measured(scored: dict[str, Floats], scope: str, level: float, n: int) -> list[Measurement]:
    quantities = {q.name: q for q in Prediction.info.quantities}
    found = []
    for key, values in scored.items():
        draws = values[1:][np.isfinite(values[1:])]
        interval = percentile_interval(draws, level) if len(draws) else None
        reference = None
        if key.endswith("_tstr"):
            best = float(scored[key.replace("_tstr", "_trtr")][0])
            reference = Reference(best, "the same model trained on real rows")
        found.append(
            quantities[key].at(
                float(values[0]),
                scope=scope,
                interval=interval,
                n_requested=n,
                n_achieved=n,
                reference=reference,
            )
        )
    return found
