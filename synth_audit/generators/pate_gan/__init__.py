"""A GAN whose discriminator learns from the noisy votes of teachers, each of which saw other rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from synth_audit.arrays import Floats, Positions
from synth_audit.errors import BudgetSpent
from synth_audit.generators._deep.families import check_dropout
from synth_audit.generators._deep.network_model import (
    Learn,
    NetworkGenerator,
    NetworkModel,
    RowsToLearn,
    check_positive,
    fit_protected,
)
from synth_audit.generators._deep.transforms import RowLayout
from synth_audit.generators._marginal.binning import check_part
from synth_audit.plugins.generator import FitContext, GeneratorInfo
from synth_audit.table.table import Table

if TYPE_CHECKING:
    from synth_audit.generators._deep.training import Weights
    from synth_audit.generators.pate_gan.network import PateNetwork

UNPAID = "the plan declares no privacy budget, so the teachers voted without noise"


@dataclass(frozen=True, kw_only=True)
class PateGan(NetworkGenerator):
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
        check_positive(self, counts, ("vote_noise", "learning_rate", "generator_rate"))
        check_dropout(self.dropout)
        check_part(self.margins)

    def network(self) -> PateNetwork:
        """Teachers, student and generator."""
        from synth_audit.generators.pate_gan.network import PateNetwork

        return PateNetwork(self)

    def fit(self, train: Table, context: FitContext) -> NetworkModel:
        """Buy all votes, then let the teachers learn and vote."""

        def buy(n_rows: int, layout: RowLayout) -> Learn:
            rounds, scale = self._bought(context)

            def laplace(count: int) -> Floats:
                assert scale is not None
                return context.noise.laplace(scale, count)

            def learn(rows: RowsToLearn) -> Weights:
                network = replace(self.network(), laplace=None if scale is None else laplace)
                return rows.training("train", rounds, _no_rows).run(network.learn)

            return learn

        return fit_protected(self, train, context, self.margins, buy)

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


def _no_rows() -> Positions:
    """Of the loop: every teacher draws rows of its own."""
    return np.zeros(0, dtype=np.intp)
