"""What the attribute game came to: its quantities, each from the rounds about one secret."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from synth_audit.audits.privacy._attribute_quantities import (
    MAB,
    MR2,
    MSE,
    REAL_MAB,
    REAL_MR2,
    RETAINED,
    WCAB,
)
from synth_audit.audits.privacy._attribute_release import Read, Released
from synth_audit.audits.privacy._attribute_rounds import FEWEST_SCORED, TARGETS, Guesses, Round
from synth_audit.core.arrays import Floats
from synth_audit.core.measurement import Interval, Measurement, Quantity, Reference, Series
from synth_audit.kernels.attacks import corrected_level, worst_interval
from synth_audit.kernels.games import box_lines, mean_interval, ratio_interval

THIS_RELEASE, RARE_LABELS = "this release", "this release, rare labels"
"""Settings in which the release at hand is attacked, instead of others that its generator makes."""

FEWEST_ITERATIONS = 5
"""Fewer iterations say too little of how much games differ."""

_NONE_RETAINED = Reference(0.0, "a release that tells nothing of the secret")
_NONE_EXPLAINED = Reference(0.0, "other columns that tell nothing of the secret")


ROWS_EACH = 4
"""With fewer reference rows, or rows of a set, than this for each number that predicts a secret nothing is
said of R²: sets drawn with replacement repeat rows, and would soon be explained wholly, by chance."""


@dataclass(frozen=True)
class Tally:
    """All rounds about one secret.

    Attributes:
        released: what the release itself teaches.
        associated: a line through other columns tells of it in train. explained: there were rows enough for
            an R².
        unseen: no line does, but groups of rows differ in it.
    """

    name: str
    rounds: tuple[Round, ...]
    released: Released
    associated: bool
    explained: bool
    unseen: bool
    level: float
    suppression: int

    def of(self, pick: Callable[[Round], float]) -> Floats:
        return np.array([pick(r) for r in self.rounds])

    @property
    def played(self) -> bool:
        """What the reference rows teach helps with other real rows, so that there is something to retain."""
        return self.associated and mean_interval(self.of(lambda r: r.real_skill), self.level).low > 0

    @property
    def tied(self) -> bool:
        """Train ties the secret to other columns, by a line or by groups."""
        return self.associated or self.released.grouped

    @property
    def read(self) -> bool:
        """What train teaches helps with other real rows, and the release can be held against it."""
        return self.tied and self.released.told.measurable(self.level)

    @property
    def repeated(self) -> bool:
        """Fits of the game were to the rows of the release, and it shows no line.

        Then the game's many sets say more of the line than that one release can.
        """
        line_alone = not self.released.grouped and bool(self.released.told.overlooked)
        return self.played and self.rounds[0].whole and line_alone

    @property
    def bent(self) -> bool:
        """Something ties the secret to other columns that no attack here can measure."""
        told, rare = self.released.told, self.released.rare
        lost = self.unseen if not self.released.grouped else not told.measurable(self.level)
        return lost or (rare is not None and not rare.measurable(self.level))

    @property
    def open(self) -> bool:
        """The attack cannot say whether the secret is handed on: no gate may pass on the others alone."""
        tied = self.tied and not (self.explained and self.read)
        return self.bent or tied or (self.associated and not self.played)

    def mab(self, level: float) -> Measurement:
        found, chance = self.of(lambda r: r.mab), self.of(lambda r: r.chance)
        null = Reference(
            float(chance.mean()),
            "the same tables with the secret shuffled",
            mean_interval(chance, self.level),
        )
        return self._mean(MAB, found, level, null)

    def mr2(self, level: float) -> Measurement:
        return self._mean(MR2, self.of(lambda r: r.r_squared), level, _NONE_EXPLAINED)

    def retained(self, level: float) -> Iterator[Measurement]:
        """Of the game and of the release itself, each where real rows teach anything."""
        if not self.explained:
            return
        if self.played:
            found, real = self.of(lambda r: r.skill), self.of(lambda r: r.real_skill)
            turned = math.copysign(1.0, found.mean())  # who knows one secret can turn such guesses round
            interval = ratio_interval(turned * found, real, level)
            yield self._at(RETAINED, abs(found.mean()) / real.mean(), interval, _NONE_RETAINED)
        if self.read and not self.repeated:
            yield _of_release(self.released.told, self.name, THIS_RELEASE, level)
        rare = self.released.rare
        if rare is not None and rare.measurable(self.level):
            yield _of_release(rare, self.name, RARE_LABELS, level)

    def others(self) -> Iterator[Measurement]:
        """What describes the attack and is not judged."""
        yield self._mean(REAL_MAB, self.of(lambda r: r.real_mab), self.level)
        if self.explained:
            yield self._mean(REAL_MR2, self.of(lambda r: r.real_r_squared), self.level)
        yield self._at(WCAB, float(self.of(lambda r: r.worst).max()))
        for targets, guesses in self.guesses().items():
            if _many(guesses, self.suppression):
                yield _error(self.name, targets, guesses, len(self.rounds), self.level)

    def guesses(self) -> dict[str, list[Guesses]]:
        """Guesses of the iterations that had targets, by kind of target."""
        return {
            "outlying targets": [r.outlying for r in self.rounds if r.outlying],
            "random targets": [r.usual for r in self.rounds if r.usual],
        }

    def boxes(self) -> Series:
        """Iterations beside their nulls: the release, the same shuffled, and the real rows."""
        groups = [self.of(lambda r: r.mab), self.of(lambda r: r.chance), self.of(lambda r: r.real_mab)]
        return Series(
            id=MAB.id(column=self.name),
            title=f"What other columns tell of {self.name}",
            kind="box",
            x_label="",
            y_label="mean absolute coefficient",
            x=("synthetic sets", "secret shuffled", "real rows"),
            lines=box_lines(groups),
        )

    def _mean(
        self, quantity: Quantity, values: Floats, level: float, reference: Reference | None = None
    ) -> Measurement:
        return self._at(quantity, float(values.mean()), mean_interval(values, level), reference)

    def _at(
        self,
        quantity: Quantity,
        value: float,
        interval: Interval | None = None,
        reference: Reference | None = None,
    ) -> Measurement:
        return quantity.at(
            value,
            column=self.name,
            interval=interval,
            n_requested=len(self.rounds),
            n_achieved=len(self.rounds),
            n_minimum=FEWEST_ITERATIONS,
            reference=reference,
        )


def measured(tallies: Sequence[Tally], level: float, *, complete: bool) -> Iterator[Measurement]:
    """Everything that is reported: the worst secret first, then each secret, then what describes the attack.

    Args:
        complete: every secret that the table has was attacked, or never varies.
    """
    yield from _retained(tallies, level, complete=complete)
    corrected = corrected_level(level, len(tallies))
    for measure in (Tally.mab, Tally.mr2):
        # One secret that cannot be judged must not leave a headline that looks safe without it.
        if measure is Tally.mab or all(t.explained for t in tallies):
            yield _worst([measure(t, corrected) for t in tallies], level)
            yield from (measure(t, level) for t in tallies)
    for tally in tallies:
        yield from tally.others()


def _retained(tallies: Sequence[Tally], level: float, *, complete: bool) -> Iterator[Measurement]:
    each = [m for t in tallies for m in t.retained(level)]
    if each and complete and not any(t.open for t in tallies):
        corrected = corrected_level(level, len(each))
        worst = _worst([m for t in tallies for m in t.retained(corrected)], level)
        n = len(tallies[0].rounds)
        # An honest release may hand on what the population has in common, so that no null is known.
        yield replace(worst, reference=None, n_requested=n, n_achieved=n, n_minimum=FEWEST_ITERATIONS)
    yield from each


def remarks(tallies: Sequence[Tally], n_sets: int) -> Iterator[str]:
    """What a reader must know of secrets that were not judged, and of sets that gave no unique answer."""
    for tally in tallies:
        if tally.bent:
            yield (
                f"{tally.name} hangs on other columns in a way that is not linear, or by labels of few rows, "
                "and that the attack could not measure, so the whole is not judged"
            )
        elif not tally.tied:
            yield f"no linear association of {tally.name} is beyond chance, so nothing of it can be retained"
        elif tally.explained and tally.open:
            yield (
                f"{tally.name}: real rows are too few for the attack to succeed at others, so the whole is "
                "not judged"
            )
    for tally in tallies:
        if not tally.explained:
            yield (
                f"nothing is said of R² of {tally.name}: {ROWS_EACH} rows are needed for each number that "
                "predicts it, so raise `reference` and `rows` as far as train allows"
            )
        for targets, guesses in tally.guesses().items():
            if not _many(guesses, tally.suppression):
                which = f"{targets} of {tally.name}"
                yield f"errors of guesses at {which} are withheld: too few rows are such targets"
        if singular := sum(r.singular for r in tally.rounds):
            yield (
                f"{tally.name}: in {singular} of {n_sets} sets other columns were collinear or constant; "
                "coefficients are those of smallest norm"
            )


def _worst(found: Sequence[Measurement], level: float) -> Measurement:
    """The largest value, the measurements being at the level at which they hold together."""
    worst = max(found, key=lambda m: m.value)
    if len(found) == 1:
        return replace(worst, id=worst.id.whole)
    intervals = [m.interval for m in found if m.interval]
    interval = worst_interval(intervals, level, f"{len(found)} numbers")
    return replace(worst, id=worst.id.whole, interval=interval)


def _of_release(read: Read, secret: str, setting: str, level: float) -> Measurement:
    return RETAINED.at(
        read.retained,
        setting=setting,
        column=secret,
        interval=read.interval(level),
        n_requested=read.rows,
        n_achieved=read.rows,
        n_minimum=FEWEST_SCORED,
    )


def _many(guesses: Sequence[Guesses], suppression: int) -> bool:
    """True when enough people stand behind the errors: a mean over few would give their values away."""
    return len(guesses) > 1 and len({row for g in guesses for row in g.rows}) >= suppression


def _error(
    secret: str, setting: str, guesses: Sequence[Guesses], iterations: int, level: float
) -> Measurement:
    """The mean squared error over iterations that had targets, beside that of guessing the mean."""
    errors, unaided = (np.array([getattr(g, part) for g in guesses]) for part in ("error", "unaided"))
    return MSE.at(
        float(errors.mean()),
        setting=setting,
        column=secret,
        interval=mean_interval(errors, level),
        n_requested=TARGETS * iterations,
        n_achieved=sum(len(g.rows) for g in guesses),
        reference=Reference(
            float(unaided.mean()), "guesses of the mean alone", mean_interval(unaided, level)
        ),
    )
