"""Train on synthetic, test on real: does a model learnt from the release predict as well?"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self, get_args

import numpy as np

from synth_audit.arrays import Counts8, Floats, Integers, Positions, Target
from synth_audit.audits._shared import at_least, merit, score_loss, some_of
from synth_audit.audits.utility import _prediction_task as tasks
from synth_audit.audits.utility._prediction_task import ModelName
from synth_audit.audits.utility.prediction.groups import Importances, importances, worst_losses
from synth_audit.execution.context import RunContext
from synth_audit.execution.seeds import as_int_seed
from synth_audit.findings.measurement import (
    Estimate,
    Findings,
    Interval,
    Measurement,
    MeasurementId,
    Quantity,
    Reference,
    Series,
)
from synth_audit.plugins.audit import AuditInfo, Need, Subject
from synth_audit.stats.resampling import enough_draws, normal_interval, percentile_interval

TITLES = {
    "auroc": "AUROC",
    "auroc_labels": "AUROC from hard labels",
    "accuracy": "Accuracy",
    "f1": "F1 score",
    "r2": "R²",
}

SCORES: dict[str, tasks.Score] = {
    "auroc": tasks.one_against_rest_auroc,
    "auroc_labels": tasks.hard_label_auroc,
    "accuracy": tasks.accuracy,
    "f1": tasks.f1,
    "r2": tasks.r_squared,
}

LOSS = score_loss(
    "loss",
    "Main score lost by training on synthetic rows",
    help="AUROC for a target of labels, R² for a number: one name for a gate on either. Left out where "
    "models trained on real rows may hardly predict, as there is little to lose.",
)

WORST_SUBGROUP_LOSS = score_loss(
    "worst_subgroup_loss",
    "Score lost in the category that loses most",
    help="The loss of AUROC within each category of a column, or the part of the loss of R² that falls on "
    "it; the worst one, with an interval corrected for their number.",
)

IMPORTANCE_AGREEMENT = merit(
    "importance_agreement",
    "Agreement on which columns matter",
    range=(-1.0, 1.0),
    help="Cosine between the importances of the columns to models learnt from the release and from real "
    "rows; 1 is the same in the same proportions, 0 nothing in common.",
)

CROSS_VALIDATED = {
    key: score_loss(
        f"{key}_cross_validated_loss",
        f"{TITLES[key]} lost on train rows left out",
        help="Cross-validated score of models learnt from real rows, less that of models learnt from the "
        "release, on the same train rows. The release has seen those rows: below 0 it may repeat them.",
    )
    for key in ("accuracy", "f1", "r2")
}
"""By score, what is lost of it."""

MOST_BARS = 10
"""Columns in the picture of importances."""

_MODEL_TITLES: dict[ModelName, str] = {
    "random_forest": "random forest",
    "logistic": "logistic or linear",
    "gradient_boosting": "gradient boosting",
    "knn": "nearest neighbours",
}


def _quantities() -> Iterator[Quantity]:
    for key, title in TITLES.items():
        ends = (float("-inf") if key == "r2" else 0.0, 1.0)
        yield merit(f"{key}_tstr", f"{title}, trained on synthetic, tested on real", range=ends)
        yield merit(f"{key}_trtr", f"{title}, trained on real, tested on real", range=ends)
        yield score_loss(
            f"{key}_loss",
            f"{title} lost by training on synthetic rows",
            help="Real-trained less synthetic-trained score on the same control rows.",
        )


QUANTITIES = (LOSS, *_quantities(), WORST_SUBGROUP_LOSS, IMPORTANCE_AGREEMENT)

_BY_NAME = {q.name: q for q in QUANTITIES}


def score_all(
    task: tasks.PredictionTask, arms: Mapping[str, Sequence[Floats]], counts: Counts8
) -> dict[str, Floats]:
    """Each quantity for every repeat and every resample of the tested rows, shape (repeats, 1 + draws).

    Args:
        arms: by arm the predictions of each repeat, one object where they are alike.
    """
    found: dict[str, Floats] = {}
    for key in ("auroc", "auroc_labels", "accuracy", "f1") if task.n_classes else ("r2",):
        tstr, trtr = (_score_repeats(SCORES[key], arms[arm], task, counts) for arm in tasks.ARMS)
        found |= {f"{key}_tstr": tstr, f"{key}_trtr": trtr, f"{key}_loss": trtr - tstr}
    return found


def _score_repeats(
    score: tasks.Score, repeats: Sequence[Floats], task: tasks.PredictionTask, counts: Counts8
) -> Floats:
    alike = all(p is repeats[0] for p in repeats)
    each = [tasks.scored(score, p, task.y_test, counts) for p in (repeats[:1] if alike else repeats)]
    return np.stack(each * len(repeats) if alike else each)


@dataclass(frozen=True, eq=False)
class Resampled:
    """The draws behind every interval.

    Attributes:
        counts: how often each tested row counts, shape (1 + draws, m), once in the first line.
        picks: the repeats that count in each draw, shape (draws, repeats − 1), or the only one.
    """

    counts: Counts8
    picks: Integers
    level: float

    @classmethod
    def of(cls, m: int, repeats: int, n_draws: int, level: float, rng: np.random.Generator) -> Self:
        """Draw for m tested rows."""
        counts = tasks.resampled_counts(m, n_draws, rng)
        return cls(counts, rng.integers(0, repeats, (n_draws, max(repeats - 1, 1))), level)

    def draws(self, values: Floats) -> Floats:
        """Means of the picked repeats in each draw, shape (draws,), from shape (repeats, 1 + draws)."""
        drawn: Floats = values[self.picks, 1 + np.arange(len(self.picks))[:, None]].mean(axis=1)
        return drawn[np.isfinite(drawn)]

    def interval(self, values: Floats) -> Interval | None:
        """Of the mean over repeats; holds it in any case."""
        draws = self.draws(values)
        if not len(draws):
            return None
        return _holding(float(values[:, 0].mean()), draws, self.level, "control rows and repeats")

    def measured(self, found: Mapping[str, Floats], model: str = "") -> list[Measurement]:
        """Every quantity of :func:`score_all`, TSTR beside its TRTR and a loss beside none."""
        n = self.counts.shape[1]
        return [
            tasks.on_control(
                _BY_NAME[key],
                Estimate(float(values[:, 0].mean()), self.interval(values)),
                n,
                self._reference(key, found),
                setting=model,
            )
            for key, values in found.items()
        ]

    def _reference(self, key: str, found: Mapping[str, Floats]) -> Reference | None:
        """Nothing lost of a loss; of a score of synthetic rows the one that real rows reach."""
        if key.endswith("loss"):
            return tasks.NOTHING_LOST
        if not key.endswith("_tstr"):
            return None
        best = found[key.replace("_tstr", "_trtr")]
        return Reference(
            float(best[:, 0].mean()), "the same models trained on real rows", self.interval(best)
        )

    def agreement(self, found: Importances) -> Measurement:
        """How far models of the release lean on the same columns, beside models of another half of train."""
        own, best = found.agreement, found.best
        reference = Reference(float(best[:, 0].mean()), "another half of train", self._around(best))
        agreed = Estimate(float(own[:, 0].mean()), self._around(own))
        return tasks.on_control(IMPORTANCE_AGREEMENT, agreed, found.n_tested, reference)

    def _around(self, values: Floats) -> Interval | None:
        """Of a mean that resampling pulls to one side."""
        draws = self.draws(values)
        return None if len(draws) < 2 else normal_interval(float(values[:, 0].mean()), draws, self.level)


def subgroups(worst: Mapping[str, Estimate], overall: float, n: int) -> list[Measurement]:
    """The worst loss by column beside the loss over all ``n`` tested rows.

    All of them count as asked and answered: less would tell how many are in the categories left out.
    """
    reference = Reference(overall, "the loss over all control rows")
    return [
        tasks.on_control(WORST_SUBGROUP_LOSS, loss, n, reference, column=name) for name, loss in worst.items()
    ]


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
        cls, task: tasks.PredictionTask, subject: Subject, folds: int, n_draws: int, rng: np.random.Generator
    ) -> Self:
        """Deal people to ``folds`` parts, each class evenly; rows of one person fall into one part.

        Raises:
            NotApplicable: of the classes too few have enough rows.
        """
        rows = {arm: task.pick(arm, 0) for arm in tasks.ARMS}
        rows["train"] = tasks.untold(rows["train"], subject.train.n_rows, subject.suppression, rng)
        each = [*(task.target[arm] for arm in tasks.ARMS), task.target["train"][rows["train"]]]
        y, n_classes, _ = tasks.joined(each, task.n_classes, subject.suppression)
        person = np.unique(task.people[rows["train"]], return_inverse=True)[1]
        fold = {
            "synthetic": rng.permutation(len(rows["synthetic"])) % folds,
            "train": _dealt(person, y[-1] if n_classes else np.zeros(len(person)), folds, rng),
        }
        counts = tasks.resampled_counts(int(person.max()) + 1, n_draws, rng)[:, person]
        target = dict(zip(tasks.ARMS, y, strict=False))
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
            key: tasks.scored(SCORES[key], real, y, self.counts)
            - tasks.scored(SCORES[key], made, y, self.counts)
            for key in (("accuracy", "f1") if self.n_classes else ("r2",))
        }

    def _predicted(self, name: ModelName, arm: str, seed: int) -> Floats:
        """What models of an arm say of the tested rows, each part's by the model that left this part out."""
        tested, n_classes = self.rows["train"], self.n_classes
        found = np.empty((len(tested), n_classes) if n_classes else len(tested))
        for k in np.unique(self.fold["train"]):
            learnt, asked = self.rows[arm][self.fold[arm] != k], self.fold["train"] == k
            model = tasks.fit(name, self.features[arm][learnt], self.target[arm][learnt], n_classes, seed)
            found[asked] = model.predict(self.features["train"][tested[asked]])
        return found

    def _as(self, key: str, values: Floats, setting: str) -> Measurement:
        interval = _holding(float(values[0]), values[1:], self.level, "people")
        found, n = Estimate(float(values[0]), interval), self.counts.shape[1]
        return tasks.on_control(CROSS_VALIDATED[key], found, n, tasks.NOTHING_LOST, setting=setting)


def _holding(value: float, draws: Floats, level: float, over: str) -> Interval:
    """The central interval of bootstrap draws over what is said; holds the value in any case."""
    found = percentile_interval(draws, level, f"bootstrap percentile over {over}")
    return replace(found, low=min(found.low, value), high=max(found.high, value))


def _dealt(person: Positions, y: Target, folds: int, rng: np.random.Generator) -> Positions:
    """The part of each row: people in random order within the class of their first row, dealt in turn."""
    first = np.unique(person, return_index=True)[1]
    order = np.lexsort((rng.permutation(len(first)), y[first]))
    part = np.empty(len(first), dtype=np.int64)
    part[order] = np.arange(len(first)) % folds
    return part[person]


def score_bars(models: Sequence[ModelName], per_model: Sequence[Mapping[str, Floats]], main: str) -> Series:
    """The main score of each model on both arms."""
    words = {"tstr": "trained on synthetic", "trtr": "trained on real"}
    return Series(
        id=MeasurementId("", "prediction"),
        title=f"{TITLES[main]} on control rows, by model",
        kind="bar",
        x_label="model",
        y_label=TITLES[main],
        x=tuple(_MODEL_TITLES[name] for name in models),
        lines={
            label: tuple(float(found[f"{main}_{arm}"][:, 0].mean()) for found in per_model)
            for arm, label in words.items()
        },
    )


def importance_bars(found: Importances | None, main: str, name: ModelName) -> list[Series]:
    """The columns that matter most to models of real rows; nothing where none were weighed."""
    if found is None:
        return []
    columns, lines = found.top(MOST_BARS)
    return [
        Series(
            id=MeasurementId("", "importance"),
            title=f"Columns that the {_MODEL_TITLES[name]} leans on",
            kind="bar",
            x_label="column",
            y_label=f"{TITLES[main]} lost when it is shuffled",
            x=columns,
            lines=lines,
        )
    ]


def notes(task: tasks.PredictionTask, subject: Subject) -> tuple[str, ...]:
    """What a reader must know of the rows and classes that were used."""
    notes = []
    if subject.train.n_rows > task.most_rows or subject.synthetic.n_rows > task.most_rows:
        notes.append(f"Each model was trained on at most {task.most_rows:,} rows, others in each repeat.")
    if task.n_classes == tasks.MOST_CLASSES:
        notes.append(f"Classes beyond the {tasks.MOST_CLASSES - 1} most frequent in train count as one.")
    if task.joined:
        notes.append(
            f"Classes of fewer than {subject.suppression} control rows count as one, with others where these "
            "are fewer together."
        )
    return tuple(notes)


def little_to_lose(real: Measurement) -> tuple[str, ...]:
    """A note where models trained on real rows may hardly predict the target either."""
    least = {"auroc_trtr": tasks.LEAST_AUROC, "r2_trtr": tasks.LEAST_R2}[real.id.quantity]
    if real.interval is not None and real.interval.low >= least:
        return ()
    return (
        "Models trained on real rows may hardly predict the target either: a small loss says little and is "
        "not judged.",
    )


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
        quantities=(*QUANTITIES, *CROSS_VALIDATED.values()),
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
        task = tasks.prepare(subject, self.most_rows, self.repeats, rng)
        n, n_draws = len(task.y_test), enough_draws(self.n_bootstrap, subject.level)
        resampled = Resampled.of(n, self.repeats, n_draws, subject.level, rng)
        predicted: dict[str, list[list[Floats]]] = {arm: [] for arm in tasks.ARMS}
        for name in self.models:
            seeds = [as_int_seed(rng) for _ in range(self.repeats)]
            for arm in tasks.ARMS:
                predicted[arm].append(_predictions(task, arm, name, seeds))
        per_model = [
            score_all(task, {arm: predicted[arm][i] for arm in tasks.ARMS}, resampled.counts)
            for i in range(len(self.models))
        ]
        overall = {key: np.mean([s[key] for s in per_model], axis=0) for key in per_model[0]}
        main = "auroc" if task.n_classes else "r2"  # stands for all where there is room for one
        found = resampled.measured(overall)
        whole = {m.id.quantity: m for m in found}
        little = little_to_lose(whole[f"{main}_trtr"])
        if not little:
            found = [*resampled.measured({LOSS.name: overall[f"{main}_loss"]}), *found]
        if len(self.models) > 1:
            for name, of_model in zip(self.models, per_model, strict=True):
                found += resampled.measured(of_model, name)
        found += subgroups(worst_losses(task, predicted, subject), whole[f"{main}_loss"].value, n)
        weighed = importances(task, self.models[0], SCORES[main], self.repeats, n_draws, rng)
        if weighed is not None:
            found.append(resampled.agreement(weighed))
        if self.folds:
            parts = CrossValidation.of(task, subject, self.folds, n_draws, rng)
            found += parts.measured(self.models, rng)
        pictures = (
            score_bars(self.models, per_model, main),
            *importance_bars(weighed, main, self.models[0]),
        )
        return Findings(tuple(found), pictures, (*notes(task, subject), *little))


def _predictions(task: tasks.PredictionTask, arm: str, name: ModelName, seeds: Sequence[int]) -> list[Floats]:
    """What each repeat predicts for the tested rows; one object for all where nothing differs."""
    alike = name not in tasks.SEEDED and len(task.target[arm]) <= task.most_rows
    found = [
        task.fit(name, arm, task.pick(arm, repeat), seed).predict(task.x_test)
        for repeat, seed in enumerate(seeds[:1] if alike else seeds)
    ]
    return found * len(seeds) if alike else found
