"""How a training went, for a reader: its loss without protection, or what it spent with it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from synth_audit.core.accounting.accountant import Accountant
from synth_audit.core.accounting.composition import by_basic, by_rdp
from synth_audit.core.accounting.guarantee import MechanismRecord, PrivacyGuarantee
from synth_audit.core.identity import MeasurementId
from synth_audit.core.series import Series

LOSS, EPSILON = MeasurementId("generator", "loss"), MeasurementId("generator", "epsilon")

_POINTS = 100
"""Points of a curve of losses at most; each is the mean of as many steps as the others."""

_CURVES = 8
"""Trainings that are kept; a generator may fit others many times over."""

_SPENDINGS = 12
"""Points of a curve of ε, beside the ends of what was bought."""

_DIGITS = 4
"""Significant digits of a loss: of the last ones another machine would make others."""


@dataclass(eq=False)
class _Run:
    """The losses of one training, by step."""

    steps: int
    done: list[int] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)


@dataclass(eq=False)
class TrainingCourse:
    """Collects the loss of every step of a fit. What comes of it is told by :func:`training_series` alone.

    A loss is a number about real rows that nobody paid for: it leaves only where no protection is claimed.

    Attributes:
        suppression: the fewest rows that a picture may tell of.
    """

    suppression: int = 10
    _runs: list[tuple[str, _Run]] = field(default_factory=list)
    _pictures: dict[MeasurementId, Series] = field(default_factory=dict)

    def step(self, what: str, done: int, steps: int, loss: float) -> None:
        """Note the loss of step ``done`` of ``steps``; one before the last begins a new training."""
        found = [run for name, run in self._runs if name == what]
        if not found or (found[-1].done and found[-1].done[-1] >= done):
            found = [_Run(steps)]
            self._runs.append((what, found[0]))
        if math.isfinite(loss) and len(self._runs) <= _CURVES:
            found[-1].done.append(done)
            found[-1].losses.append(loss)

    def show(self, series: Series) -> None:
        """Have a picture of the fit or of its draws stand with the curves; of several of an id the last."""
        self._pictures[series.id] = series

    @property
    def pictures(self) -> tuple[Series, ...]:
        """What was shown, in order."""
        return tuple(self._pictures.values())

    def follow(self, other: TrainingCourse) -> None:
        """Add the trainings that another course noted, behind its own."""
        self._runs += other._runs

    def state(self) -> dict[str, NDArray[np.str_]]:
        """All that was noted, as a text in an array, for a training that is taken up again."""
        return {"runs": np.array(json.dumps([(what, r.steps, r.done, r.losses) for what, r in self._runs]))}

    def restore(self, state: Mapping[str, NDArray[np.str_]]) -> None:
        """Be as when ``state`` was taken."""
        runs = json.loads(str(state["runs"]))
        self._runs[:] = [(what, _Run(steps, done, losses)) for what, steps, done, losses in runs]

    def of_losses(self) -> tuple[Series, ...]:
        """A curve for each training, in order: the mean loss of stretches of equal length, by their ends."""
        kept = [(what, run) for what, run in self._runs[:_CURVES] if len(run.done) > 1]
        return tuple(_losses(what, i, len(kept), run) for i, (what, run) in enumerate(kept, 1))


def training_series(course: TrainingCourse, accountant: Accountant) -> tuple[Series, ...]:
    """The curves that may be shown of a fit: of ε where it is guaranteed, of losses where nothing was spent,
    and with these the pictures that it shows itself.

    A fit that spent and has no guarantee shows neither.
    """
    guarantee = accountant.guarantee()
    if guarantee is not None:
        return (epsilon_series(guarantee),)
    return () if accountant.mechanisms else (*course.of_losses(), *course.pictures)


def epsilon_series(guarantee: PrivacyGuarantee) -> Series:
    """ε at the guarantee's δ after so many runs of its mechanisms, in the order in which they were bought.

    At each point it is the least of basic composition, Rényi differential privacy, and the ε of the whole
    fit, which no part exceeds and which the costlier sum may have made smaller; at the end it is the latter.
    """
    records = guarantee.mechanisms
    ends = np.cumsum([r.count for r in records]).tolist()
    between = np.linspace(0, ends[-1], _SPENDINGS + 1).round().astype(int).tolist()
    # Of many small spendings not every end is worth a sum.
    points = sorted({0, *between, *(ends if len(ends) <= _SPENDINGS else ())})
    return Series(
        id=EPSILON,
        title="Privacy spent by the fit: an upper bound at each step, at the end what is claimed",
        kind="line",
        x_label="mechanisms run (steps)",
        y_label=f"ε at δ = {guarantee.delta:g}",
        x=tuple(map(float, points)),
        lines={"spent at most": tuple(_spent_after(n, records, guarantee) for n in points)},
    )


def _spent_after(runs: int, records: Sequence[MechanismRecord], guarantee: PrivacyGuarantee) -> float:
    """The ε of the first ``runs`` runs."""
    taken, left = [], runs
    for record in records:
        if left:
            taken.append(replace(record, count=min(left, record.count)))
            left -= taken[-1].count
    if not taken:
        return 0.0
    if taken == list(records):
        return guarantee.epsilon
    sums = [by_basic(taken, guarantee.delta, guarantee.neighbouring)]
    if guarantee.delta:
        sums.append(by_rdp(taken, guarantee.delta, guarantee.neighbouring))
    return min(guarantee.epsilon, *(s.epsilon for s in sums))


def _losses(what: str, i: int, of: int, run: _Run) -> Series:
    stretch = -(-run.steps // _POINTS)
    numbers = (np.array(run.done) - 1) // stretch
    places = np.unique(numbers).tolist()
    losses = np.array(run.losses)
    means = [float(f"{losses[numbers == place].mean():.{_DIGITS}g}") for place in places]
    return Series(
        id=replace(LOSS, setting=what if of == 1 else f"{what} {i}"),
        title="Loss in training",
        kind="line",
        x_label="step" if stretch == 1 else f"step (means of {stretch:,})",
        y_label="loss",
        x=tuple(float(min((place + 1) * stretch, run.steps)) for place in places),
        lines={what: tuple(means)},
    )
