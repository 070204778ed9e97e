"""Each column in turn as a target: does the release keep what the other columns say of it?"""

from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from synth_audit.audits._shared import at_least
from synth_audit.audits.utility import _prediction_task as tasks
from synth_audit.errors import NotApplicable
from synth_audit.execution.context import RunContext
from synth_audit.execution.seeds import as_int_seed
from synth_audit.findings.measurement import Findings, Measurement, Quantity
from synth_audit.plugins.audit import AuditInfo, Need, Subject
from synth_audit.stats.resampling import critical_value, enough_draws
from synth_audit.table.schema import Column

_RANGE = (-np.inf, np.inf)

_SCORE = "AUROC for labels and R² for numbers, trained on real rows less trained on synthetic rows."
LOSS = Quantity("loss", "Score lost in predicting a column", unit="score", range=_RANGE, help=_SCORE)

LOST = Quantity(
    "lost",
    "Share of what columns say of each other that is lost",
    range=_RANGE,
    help="Mean loss over columns, as a share of what models trained on real rows gain over chance.",
)

WORST_LOSS = Quantity("worst_loss", "Score lost in the worst column", unit="score", range=_RANGE, help=_SCORE)


@dataclass(frozen=True, kw_only=True)
class EachColumn:
    """Predicts each column from all others, by a random forest trained on synthetic and on real rows.

    ``loss = score trained on real rows − score trained on synthetic rows``, both tested on the same control
    rows; the score is AUROC for labels and R² for numbers. A column counts where the lower bound of the
    real-trained score is at least 0.6 (AUROC) or 0.1 (R²): elsewhere there is little to lose.
    ``worst_loss`` is the largest loss of these columns, and
    ``lost = Σ loss / Σ (score trained on real rows − score by chance)``: 0 for real rows, about 1
    for independent columns. By chance the AUROC is 0.5 and R² 0.

    Intervals are ``± z`` standard errors from resampling the control rows. ``lost`` takes the mean of the
    columns' standard errors, which is too wide unless all columns err together. That of the worst is
    corrected for the number of columns.

    Fields:
        most_rows: rows that one model is trained on, and control rows to test on.
        most_columns: columns to predict, the target and sensitive ones first.
        n_bootstrap: resamples of the control rows.

    Raises:
        NotApplicable: real rows predict no column well enough for it to count.
    """

    most_rows: int = 1_000
    most_columns: int = 20
    n_bootstrap: int = 200

    info: ClassVar[AuditInfo] = AuditInfo(
        title="Prediction of each column",
        question="Does the release keep what the other columns say of each column?",
        threat_model="An analyst whose question nobody knows yet would be let down by what it lost.",
        not_covered="Columns that real rows do not predict either, and other models than random forests.",
        quantities=(LOST, WORST_LOSS, LOSS),
        risk="utility",
        needs=(Need.CONTROL,),
        default=False,
        cost="seconds",
    )

    def __post_init__(self) -> None:
        at_least(self, most_rows=100, n_bootstrap=100, most_columns=1)

    def run(self, subject: Subject, context: RunContext) -> Findings:
        """Train on both arms for each column, and compare on the control rows."""
        columns = subject.schema.leading_features(self.most_columns)
        lost: dict[str, _ColumnLoss] = {}
        for column in columns:
            with suppress(NotApplicable):
                lost[column.name] = self._lost(subject, column, context.rng)
        counted = [x for x in lost.values() if x.counts]
        if not counted:
            raise NotApplicable(
                "real rows predict no column well from the others, so there is little to lose (needed: a "
                f"lower bound of {tasks.LEAST_AUROC:g} for AUROC, {tasks.LEAST_R2:g} for R²)"
            )
        left = len(columns) - len(counted)
        note = f"Columns that real rows hardly predict from the others do not count: {left}."
        return Findings(_measured(lost, counted, subject.level), (), (note,) if left else ())

    def _lost(self, subject: Subject, column: Column, rng: np.random.Generator) -> "_ColumnLoss":
        """What is lost in predicting a column."""
        task = tasks.prepare(subject, self.most_rows, 1, rng, column)
        score = tasks.one_against_rest_auroc if task.n_classes else tasks.r_squared
        counts = tasks.resampled_counts(len(task.y_test), enough_draws(self.n_bootstrap, subject.level), rng)
        seed = as_int_seed(rng)
        made, real = (
            tasks.scored(
                score,
                task.fit("random_forest", arm, task.pick(arm, 0), seed).predict(task.x_test),
                task.y_test,
                counts,
            )
            for arm in tasks.ARMS
        )
        low = real[0] - critical_value(subject.level) * np.nanstd(real[1:], ddof=1)
        least, chance = (tasks.LEAST_AUROC, 0.5) if task.n_classes else (tasks.LEAST_R2, 0.0)
        each = real - made
        if not np.isfinite(each[0]):
            raise NotApplicable("the column has no score among the control rows")
        error = float(np.nanstd(each[1:], ddof=1))
        return _ColumnLoss(
            float(each[0]), error, float(real[0]) - chance, len(task.y_test), bool(low >= least)
        )


@dataclass(frozen=True)
class _ColumnLoss(tasks.Loss):
    """Of one column.

    Attributes:
        gain: of models trained on real rows over chance. n: control rows it rests on.
        counts: there is something to lose.
    """

    gain: float
    n: int
    counts: bool


def _measured(
    lost: dict[str, _ColumnLoss], losses: list[_ColumnLoss], level: float
) -> tuple[Measurement, ...]:
    """The numbers over the columns that count, and the loss of every column."""
    gain = sum(x.gain for x in losses)
    share, error = sum(x.value for x in losses) / gain, sum(x.error for x in losses) / gain
    fewest = min(x.n for x in losses)
    worst = tasks.worst_loss(losses, level, "control rows", "columns")
    return (
        tasks.on_control(LOST, tasks.Loss(share, error).estimate(level), fewest, tasks.NOTHING_LOST),
        tasks.on_control(WORST_LOSS, worst, fewest, tasks.NOTHING_LOST),
        *(
            tasks.on_control(LOSS, x.estimate(level), x.n, tasks.NOTHING_LOST, column=name)
            for name, x in lost.items()
        ),
    )
