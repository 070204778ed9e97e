"""A GAN whose discriminator learns from the noisy votes of teachers, each of which saw other rows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from synth_audit.arrays import Floats, Positions
from synth_audit.errors import BudgetSpent, PlanError
from synth_audit.generators._deep.families import draw_with, load_gan, plain_generator
from synth_audit.generators._deep.network_model import (
    NetworkModel,
    Weights,
    check_positive,
    training_loop,
    transformer_for,
)
from synth_audit.generators._deep.rows import with_margins
from synth_audit.generators._marginal.binning import check_part
from synth_audit.plugins.generator import FitContext, GeneratorInfo
from synth_audit.run.context import torch_device
from synth_audit.table.table import Table

if TYPE_CHECKING:
    from synth_audit.generators._deep.pate import PateSettings

UNPAID = "the plan declares no privacy budget, so the teachers voted without noise"


@dataclass(frozen=True, kw_only=True)
class PateGan:
    """Teachers on disjoint parts of the rows say how real made rows look; a student learns what they say.

    Every row goes to one teacher by a secret throw of its own, so that a row more or less changes one vote
    on each made row. Under a budget Laplace noise is added to the sum of the votes, whose sensitivity is 1.
    As published, questions are asked until ε is spent: before the first, as many rounds are bought as the
    accountant bears with ``vote_noise``. The paper's bound looks at how clear the votes were, which is itself
    private, and is not used. A vote is the teacher's chance that the row is real, and the student hears what
    part of all votes a row got: of yes and no, and of the majority alone, nothing is to be learnt, since
    after few rounds every teacher tells made rows for made. The generator learns from the student.

    Attributes:
        teachers: parts of the rows; as many votes as there are, so much noise they outweigh.
        rounds: of teaching, voting, studying and making, at most.
        votes: rows voted on in a round.
        vote_noise: scale of the noise on the part of the votes that a row got. Fewer rounds are asked where
            the budget bears less; with all ``rounds`` the noise is as small as the budget bears.
        teacher_steps, student_steps, generator_steps: of a round.
        batch: rows of a step.
        noise: dimensions of the generator's input.
        hidden: width of the layers of generator, student and teachers.
        dropout: of the student.
        learning_rate, generator_rate: of the discriminators' and the generator's Adam.
        margins: share of ε that buys how often the values of each column occur; 0 for none, as published.

    Source: Jordon, Yoon & van der Schaar 2019.
    """

    teachers: int = 100
    rounds: int = 200
    votes: int = 100
    vote_noise: float = 0.25
    teacher_steps: int = 5
    student_steps: int = 20
    generator_steps: int = 5
    batch: int = 100
    noise: int = 64
    hidden: int = 64
    dropout: float = 0.2
    learning_rate: float = 2e-3
    generator_rate: float = 1e-3
    margins: float = 0.2
    info: ClassVar[GeneratorInfo] = GeneratorInfo(
        title="PATE-GAN",
        summary="Differentially private GAN taught by noisy votes of teachers on disjoint rows.",
        cost="minutes",
        source="Jordon et al. 2019",
        trial={"teachers": 3, "rounds": 2, "votes": 4, "batch": 8, "hidden": 8, "noise": 4},
    )

    def __post_init__(self) -> None:
        steps = ("teacher_steps", "student_steps", "generator_steps")
        counts = ("teachers", "rounds", "votes", *steps, "batch", "noise", "hidden")
        sizes = ("vote_noise", "learning_rate", "generator_rate")
        check_positive({n: getattr(self, n) for n in counts}, {n: getattr(self, n) for n in sizes})
        if not 0 <= self.dropout < 1:
            raise PlanError("the dropout is no probability", where="dropout", expected="0 to below 1")
        check_part(self.margins)

    def fit(self, train: Table, context: FitContext) -> NetworkModel:
        """Buy all votes, then let the teachers learn and vote."""
        device = torch_device(context.device, "this generator")
        from synth_audit.generators._deep import pate
        from synth_audit.generators._deep.training import built

        train = train.released_only()
        transformer = with_margins(transformer_for(train, context), train, context, self.margins)
        layout, (rounds, scale) = transformer.layout, self._bought(context)
        draws = context.rng if scale is None else np.random.default_rng(context.noise.bits(256))

        def laplace(count: int) -> Floats:
            assert scale is not None
            return context.noise.laplace(scale, count)

        weights: Weights = {}
        if layout.width:
            loop = training_loop(context, "train", rounds, _no_rows)
            rows = transformer.encode(train, draws)
            network = built(lambda: plain_generator(self, layout, None), draws)
            noise = None if scale is None else laplace
            weights = pate.fitted(rows, layout, self._settings, network, noise, loop, draws, device)
        draw = draw_with(self, plain_generator)
        return NetworkModel.calibrated(transformer, weights, draw, context.rng)

    def load(self, folder: Path) -> NetworkModel:
        """The model that was saved there."""
        return load_gan(self, folder)

    def _bought(self, context: FitContext) -> tuple[int, float | None]:
        """Rounds, and the scale of the noise on each sum of votes; None without a budget."""
        accountant = context.accountant
        if accountant.budget is None:
            accountant.void(UNPAID)
            return self.rounds, None

        def least(rounds: int) -> float:
            return accountant.least_laplace_noise(rounds * self.votes)

        def loud(rounds: int) -> bool:
            try:
                return least(rounds) > self.vote_noise * self.teachers
            except BudgetSpent:  # no noise is enough for so many, but may be for fewer
                return True

        rounds, beyond = 1, self.rounds + 1
        while beyond - rounds > 1:
            middle = (rounds + beyond) // 2
            rounds, beyond = (rounds, middle) if loud(middle) else (middle, beyond)
        scale = least(rounds)
        accountant.laplace(scale, what="votes of the teachers", count=rounds * self.votes)
        return rounds, scale

    @property
    def _settings(self) -> PateSettings:
        from synth_audit.generators._deep.pate import PateSettings

        return PateSettings(
            teachers=self.teachers,
            votes=self.votes,
            teacher_steps=self.teacher_steps,
            student_steps=self.student_steps,
            generator_steps=self.generator_steps,
            batch=self.batch,
            noise=self.noise,
            hidden=self.hidden,
            dropout=self.dropout,
            learning_rate=self.learning_rate,
            generator_rate=self.generator_rate,
        )


def _no_rows() -> Positions:
    """Of the loop: every teacher draws rows of its own."""
    return np.zeros(0, dtype=np.intp)
