"""The numbers of a prediction audit: what they are, and how the draws behind their intervals are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from synth_audit.audits.utility._prediction_task import ARMS, PredictionTask
from synth_audit.audits.utility.prediction.groups import Worst
from synth_audit.audits.utility.prediction.importance import Importances
from synth_audit.core.arrays import Counts8, Floats, Integers
from synth_audit.core.measurement import Direction, Interval, Measurement, Quantity, Reference
from synth_audit.kernels import prediction_scores as scores
from synth_audit.kernels.intervals import normal_interval, percentile_interval

FEWEST_TESTED = 30
"""Control rows below which a score is insufficient evidence: one of them moves it by some hundredths."""

TITLES = {
    "auroc": "AUROC",
    "auroc_labels": "AUROC from hard labels",
    "accuracy": "Accuracy",
    "f1": "F1 score",
    "r2": "R²",
}
SCORES: dict[str, scores.Score] = {
    "auroc": scores.one_against_rest_auroc,
    "auroc_labels": scores.hard_label_auroc,
    "accuracy": scores.accuracy,
    "f1": scores.f1,
    "r2": scores.r_squared,
}


def _quantities() -> tuple[Quantity, ...]:
    found = []
    for key, title in TITLES.items():
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


LOSS = Quantity(
    "loss",
    "Main score lost by training on synthetic rows",
    unit="score",
    range=(-np.inf, np.inf),
    help="AUROC for a target of labels, R² for a number: one name for a gate on either. Left out where "
    "models trained on real rows may hardly predict, as there is little to lose.",
)
WORST_SUBGROUP_LOSS = Quantity(
    "worst_subgroup_loss",
    "Score lost in the category that loses most",
    unit="score",
    range=(-np.inf, np.inf),
    help="The loss of AUROC within each category of a column, or the part of the loss of R² that falls on "
    "it; the worst one, with an interval corrected for their number.",
)
IMPORTANCE_AGREEMENT = Quantity(
    "importance_agreement",
    "Agreement on which columns matter",
    unit="score",
    direction=Direction.HIGHER,
    range=(-1.0, 1.0),
    help="Cosine between the importances of the columns to models learnt from the release and from real "
    "rows; 1 is the same in the same proportions, 0 nothing in common.",
)


QUANTITIES = (LOSS, *_quantities(), WORST_SUBGROUP_LOSS, IMPORTANCE_AGREEMENT)

_BY_NAME = {q.name: q for q in QUANTITIES}
_LOSSES = {LOSS.name, *(f"{key}_loss" for key in TITLES)}
_BEST = {f"{key}_tstr": f"{key}_trtr" for key in TITLES}
"""The score that real rows reach, by that of synthetic ones."""


def main_score(task: PredictionTask) -> str:
    """The score that stands for all where there is room for one."""
    return "auroc" if task.n_classes else "r2"


def score_all(
    task: PredictionTask, arms: Mapping[str, Sequence[Floats]], counts: Counts8
) -> dict[str, Floats]:
    """Each quantity for every repeat and every resample of the tested rows, shape (repeats, 1 + draws).

    Args:
        arms: by arm the predictions of each repeat, one object where they are alike.
    """
    found: dict[str, Floats] = {}
    for key in ("auroc", "auroc_labels", "accuracy", "f1") if task.n_classes else ("r2",):
        tstr, trtr = (_score_repeats(SCORES[key], arms[arm], task, counts) for arm in ARMS)
        found |= {f"{key}_tstr": tstr, f"{key}_trtr": trtr, f"{key}_loss": trtr - tstr}
    return found


def _score_repeats(
    score: scores.Score, repeats: Sequence[Floats], task: PredictionTask, counts: Counts8
) -> Floats:
    alike = all(p is repeats[0] for p in repeats)
    each = [scores.scored(score, p, task.y_test, counts) for p in (repeats[:1] if alike else repeats)]
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
    def of(cls, m: int, repeats: int, n_draws: int, level: float, rng: np.random.Generator) -> Resampled:
        """Draw for m tested rows."""
        counts = scores.resampled_counts(m, n_draws, rng)
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
        value = float(values[:, 0].mean())
        found = percentile_interval(draws, self.level, "bootstrap percentile over control rows and repeats")
        return Interval(min(found.low, value), max(found.high, value), found.level, found.method)

    def measured(self, found: Mapping[str, Floats], model: str = "") -> list[Measurement]:
        """Every quantity of :func:`score_all`, TSTR beside its TRTR and a loss beside none."""
        n = self.counts.shape[1]
        return [
            _BY_NAME[key].at(
                float(values[:, 0].mean()),
                setting=model,
                interval=self.interval(values),
                n_requested=n,
                n_achieved=n,
                n_minimum=FEWEST_TESTED,
                reference=self._reference(key, found),
            )
            for key, values in found.items()
        ]

    def _reference(self, key: str, found: Mapping[str, Floats]) -> Reference | None:
        if key in _LOSSES:
            return Reference(0.0, "as many real rows of other people, on average")
        if key not in _BEST:
            return None
        best = found[_BEST[key]]
        return Reference(
            float(best[:, 0].mean()), "the same models trained on real rows", self.interval(best)
        )

    def agreement(self, found: Importances) -> Measurement:
        """How far models of the release lean on the same columns, beside models of another half of train."""
        own, best = found.agreement, found.best
        meaning = "another half of train"
        return IMPORTANCE_AGREEMENT.at(
            float(own[:, 0].mean()),
            interval=self._around(own),
            n_requested=found.n_tested,
            n_achieved=found.n_tested,
            n_minimum=FEWEST_TESTED,
            reference=Reference(float(best[:, 0].mean()), meaning, self._around(best)),
        )

    def _around(self, values: Floats) -> Interval | None:
        """Of a mean that resampling pulls to one side."""
        draws = self.draws(values)
        return None if len(draws) < 2 else normal_interval(float(values[:, 0].mean()), draws, self.level)


def subgroups(worst: Mapping[str, Worst], overall: float, n: int) -> list[Measurement]:
    """The worst loss by column beside the loss over all ``n`` tested rows.

    All of them count as asked and answered: less would tell how many are in the categories left out.
    """
    return [
        WORST_SUBGROUP_LOSS.at(
            found.loss.value,
            column=name,
            interval=found.loss.interval,
            n_requested=n,
            n_achieved=n,
            n_minimum=FEWEST_TESTED,
            reference=Reference(overall, "the loss over all control rows"),
        )
        for name, found in worst.items()
    ]
