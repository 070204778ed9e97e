"""What the attack on a release came to for one secret, and whether that can be judged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from synth_audit.audits.privacy._attribute_design import Secret
from synth_audit.audits.privacy._attribute_secrets import FEWEST_SCORED, RETAINED, ROWS_EACH
from synth_audit.audits.privacy.attribute_attack.release import ReleaseAttack, SkillEstimate
from synth_audit.core.measurement import Measurement

RARE_LABELS = "rare labels"
"""Setting in which the labels of a secret that share one number are attacked apart."""


@dataclass(frozen=True)
class SecretFinding:
    """One secret.

    Attributes:
        attack: what the release teaches of it.
        associated: a line through other columns tells of it in train.
        unseen: no line does, but groups of rows differ in it.
        rows: of train.
    """

    secret: Secret
    attack: ReleaseAttack
    associated: bool
    unseen: bool
    rows: int
    level: float

    @property
    def tied(self) -> bool:
        """Train ties the secret to other columns, by a line or by groups."""
        return self.associated or self.attack.grouped

    @property
    def explained(self) -> bool:
        """There are rows enough for what predicts the secret."""
        return ROWS_EACH * len(self.secret.predictors) <= self.rows

    @property
    def measured(self) -> bool:
        """What train teaches helps with other real rows, and the release can be held against it."""
        return self.tied and self.explained and self.attack.told.measurable(self.level)

    @property
    def bent(self) -> bool:
        """Something ties the secret to other columns that no attack here can measure."""
        told, rare = self.attack.told, self.attack.rare
        lost = self.unseen if not self.attack.grouped else not told.measurable(self.level)
        return lost or (rare is not None and not rare.measurable(self.level))

    @property
    def open(self) -> bool:
        """It cannot be said whether the secret is handed on: no gate may pass on the others alone."""
        return self.bent or (self.tied and not self.measured)

    def retained(self, level: float) -> Iterator[Measurement]:
        """Of the secret as a whole, and of its rare labels, each where real rows teach anything."""
        if self.measured:
            yield self._at(self.attack.told, "", level)
        rare = self.attack.rare
        if rare is not None and self.explained and rare.measurable(self.level):
            yield self._at(rare, RARE_LABELS, level)

    def remarks(self) -> Iterator[str]:
        """What a reader must know of a secret that was not judged."""
        name = self.secret.name
        if self.bent:
            yield (
                f"{name} hangs on other columns in a way that is not linear, or by labels of few rows, "
                "and that the attack could not measure, so the whole is not judged"
            )
        elif not self.tied:
            yield f"no linear association of {name} is beyond chance, so nothing of it can be retained"
        elif not self.explained:
            yield (
                f"{name}: {ROWS_EACH} training rows are needed for each number that predicts it, so the "
                "whole is not judged"
            )
        elif self.open:
            yield (
                f"{name}: real rows are too few for the attack to succeed at others, so the whole is not "
                "judged"
            )

    def _at(self, skill: SkillEstimate, setting: str, level: float) -> Measurement:
        return RETAINED.at(
            skill.retained,
            setting=setting,
            column=self.secret.name,
            interval=skill.interval(level),
            n_requested=skill.rows,
            n_achieved=skill.rows,
            n_minimum=FEWEST_SCORED,
        )
