"""The pictures of a prediction audit, and what to say beside its numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from synth_audit.audits.utility._prediction_task import MOST_CLASSES, PredictionTask
from synth_audit.audits.utility.prediction.importance import Importances
from synth_audit.audits.utility.prediction.numbers import TITLES
from synth_audit.core.arrays import Floats
from synth_audit.core.identity import MeasurementId
from synth_audit.core.measurement import Measurement
from synth_audit.core.series import Series
from synth_audit.core.subject import Subject
from synth_audit.kernels.prediction import ModelName

MOST_BARS = 10
"""Columns in the picture of importances."""

_MODEL_TITLES: dict[ModelName, str] = {
    "random_forest": "random forest",
    "logistic": "logistic or linear",
    "gradient_boosting": "gradient boosting",
    "knn": "nearest neighbours",
}


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


def notes(task: PredictionTask, subject: Subject) -> tuple[str, ...]:
    """What a reader must know of the rows and classes that were used."""
    notes = []
    if subject.train.n_rows > task.most_rows or subject.synthetic.n_rows > task.most_rows:
        notes.append(f"Each model was trained on at most {task.most_rows:,} rows, others in each repeat.")
    if task.n_classes == MOST_CLASSES:
        notes.append(f"Classes beyond the {MOST_CLASSES - 1} most frequent in train count as one.")
    if task.joined:
        notes.append(
            f"Classes of fewer than {subject.suppression} control rows count as one, with others where these "
            "are fewer together."
        )
    return tuple(notes)


def little_to_lose(real: Measurement) -> tuple[str, ...]:
    """A note where models trained on real rows may hardly predict the target either."""
    least = {"auroc_trtr": 0.6, "r2_trtr": 0.1}[real.id.quantity]
    if real.interval is not None and real.interval.low >= least:
        return ()
    return (
        "Models trained on real rows may hardly predict the target either: a small loss says little and is "
        "not judged.",
    )
