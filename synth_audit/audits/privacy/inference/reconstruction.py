"""Guesses at secrets by a model learnt from the release: what it remembers of train people beyond others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from synth_audit.audits._targets import FEWEST_GUESSES, drawn, rate
from synth_audit.audits.privacy.inference.targets import AttackedSecret, KnownColumns, NearestGuesses
from synth_audit.core.context import RunContext
from synth_audit.core.measurement import Direction, Measurement, Quantity, Reference
from synth_audit.core.schema import Column
from synth_audit.kernels.attack_success import SuccessCount, risk
from synth_audit.kernels.reconstruction import reconstructed

RECONSTRUCTION_RISK = Quantity(
    "reconstruction_risk",
    "Inference risk by a model of the release",
    range=(float("-inf"), 1.0),
    direction=Direction.NEUTRAL,
    help="Part of the people in the training data whose secret is remembered by a model learnt from the "
    "release; 0 is none. A plain number: no gate reads it.",
)
RECONSTRUCTION_RATE = Quantity(
    "reconstruction_rate",
    "Training records guessed by a model of the release",
    direction=Direction.NEUTRAL,
    help="Right guesses of that model, from all known columns.",
)

_TREES, _MOST_LEARNT = 10, 5_000


@dataclass(frozen=True, eq=False)
class Reconstruction:
    """An attacker who learns secrets from release rows.

    Attributes:
        secrets: names of those that are guessed.
    """

    known: KnownColumns
    secrets: frozenset[str]
    rng: np.random.Generator

    @classmethod
    def of(
        cls, known: KnownColumns, secrets: Sequence[Column], most: int, context: RunContext
    ) -> Reconstruction:
        """Choose at most so many of the secrets."""
        [rng] = context.rng.spawn(1)  # a stream of its own: the draws of the other attacks stay what they are
        chosen = drawn(np.arange(len(secrets)), most, rng) if most else ()
        return cls(known, frozenset(secrets[i].name for i in chosen), rng)

    def measured(
        self, target: AttackedSecret, guess: NearestGuesses, requested: int, level: float
    ) -> Iterator[Measurement]:
        """Guesses at the records that the nearest rows guess at; none where the release lacks the secret."""
        present = np.flatnonzero(~np.isnan(target.truth[2]))
        if target.secret.name not in self.secrets or not len(present):
            return
        train, control, release = self.known.rows
        learnt, seed = drawn(present, _MOST_LEARNT, self.rng), int(self.rng.integers(2**31))
        asked = train.take(guess.chosen[0]).followed_by(control.take(guess.chosen[1]))
        rows = (self.known.without(target.secret, r) for r in (release.take(learnt), asked))
        found, _ = reconstructed(target.judge, next(rows), target.truth[2][learnt], next(rows), _TREES, seed)
        secrets = [values[some] for values, some in zip(target.truth[:2], guess.chosen, strict=True)]
        guesses = np.split(found, [len(secrets[0])])
        sides = [SuccessCount.of(target.judge.right(g, s)) for g, s in zip(guesses, secrets, strict=True)]
        left = risk(sides[0], sides[1], level)
        yield RECONSTRUCTION_RISK.at(
            left.value,
            column=target.secret.name,
            interval=left.interval,
            n_requested=requested,
            n_achieved=min(side.guesses for side in sides),
            n_minimum=FEWEST_GUESSES,
            reference=Reference(0.0, "the model knows train people no better than strangers"),
        )
        if sides[0].guesses:
            yield rate(RECONSTRUCTION_RATE, sides[0], requested, level, column=target.secret.name)
