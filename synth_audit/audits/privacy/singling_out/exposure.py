"""What the trial of a singling-out attack shows: the records it exposed, and a picture of its rates."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from synth_audit.core.identity import MeasurementId
from synth_audit.core.measurement import Exposure
from synth_audit.core.series import Series
from synth_audit.kernels.predicates import ColumnCodebook
from synth_audit.kernels.singling_out import PredicateTrial

_MOST_COLUMNS = 5
"""An exposure names at most this many columns."""


def exposure_of(
    measurement: MeasurementId, trial: PredicateTrial, lexicon: ColumnCodebook, n_train: int
) -> Exposure:
    """The records singled out, and the columns most used for it.

    No trial on control: as fewer rows leave more of them alone, the same guesses would single out another
    share of control than of as many strangers as train has rows.
    """
    none = np.empty(0, dtype=np.intp)
    return Exposure(
        measurement=measurement,
        columns=tuple(lexicon.names[j] for j in trial.most_used()[:_MOST_COLUMNS]),
        train_tried=np.arange(n_train),
        train_hit=np.unique(trial.in_train.rows[trial.in_train.single]),
        control_tried=none,
        control_hit=none,
    )


def pictured(made: Mapping[str, PredicateTrial]) -> Series:
    """Success rates of all settings side by side."""
    return Series(
        id=MeasurementId("", "success_rates"),
        title="Guesses that single out one person",
        kind="bar",
        x_label="attack",
        y_label="share of guesses",
        x=tuple(made),
        lines={
            "training rows": tuple(trial.train.share for trial in made.values()),
            "strangers": tuple(trial.control.share for trial in made.values()),
            "without the release": tuple(float(trial.naive.mean()) for trial in made.values()),
        },
    )
