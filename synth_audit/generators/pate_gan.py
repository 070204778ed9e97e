"""A GAN whose discriminator learns from the noisy votes of teachers, each of which saw other rows."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from synth_audit.arrays import Floats, Floats32, Positions
from synth_audit.errors import BudgetSpent
from synth_audit.generators._deep import functional, networks, nn, torch
from synth_audit.generators._deep.gan import BLOCKS, REACH, activated, settled
from synth_audit.generators._deep.network_model import ProtectedNetwork, RowsToLearn
from synth_audit.generators._deep.training import Part, Training, changing_parts
from synth_audit.generators._deep.transforms import RowLayout, Weights
from synth_audit.plugins.generator import Count, FitContext, GeneratorInfo, Share, Size

UNPAID = "the plan declares no privacy budget, so the teachers voted without noise"

_HEARD = 10
"""Rounds whose answers the student learns from: older ones are about rows that are made no more."""

Laplace = Callable[[int], Floats]
"""The noise of so many votes."""


@dataclass(frozen=True, kw_only=True)
class PateGan(ProtectedNetwork):
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

    teachers: Count = 100
    rounds: Count = 200
    votes: Count = 100
    vote_noise: Size = 0.25
    teacher_steps: Count = 5
    student_steps: Count = 20
    generator_steps: Count = 5
    batch: Count = 100
    noise: Count = 64
    hidden: Count = 64
    dropout: Share = 0.2
    learning_rate: Size = 2e-3
    generator_rate: Size = 1e-3
    margins: Share = 0.2
    info: ClassVar[GeneratorInfo] = GeneratorInfo(
        title="PATE-GAN",
        summary="Differentially private GAN taught by noisy votes of teachers on disjoint rows.",
        cost="minutes",
        source="Jordon et al. 2019",
        trial={"teachers": 3, "rounds": 2, "votes": 4, "batch": 8, "hidden": 8, "noise": 4},
    )

    def buy(self, context: FitContext, n_rows: int, layout: RowLayout) -> tuple[int, float | None]:
        """All votes: rounds, and the scale of the noise on each sum of votes; None without a budget."""
        accountant = context.accountant
        if accountant.unpaid(UNPAID):
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

    def teach(self, rows: RowsToLearn, bought: tuple[int, float | None]) -> Weights:
        """Let the teachers learn and vote."""
        rounds, scale = bought
        laplace = None if scale is None else partial(rows.context.noise.laplace, scale)
        nobody = np.zeros(0, dtype=np.intp)  # every teacher draws rows of its own
        return rows.training("train", rounds, lambda: nobody).run(partial(self.learn, laplace=laplace))

    def generator(self, layout: RowLayout) -> nn.Module:
        """From noise to the scores of a row."""
        return networks.ResidualNet(self.noise, layout.width, self.hidden, BLOCKS)

    def learn(self, training: Training, laplace: Laplace | None = None) -> Weights:
        """The generator's weights, after as many rounds as ``training`` has steps.

        Args:
            laplace: None for training without protection.
        """
        run = PateTraining(training, self, laplace)
        for step in training.taken("pate", run.moved, self):
            training.done(step, run.round())
        return networks.as_arrays(run.generator)

    def draw(self, weights: Weights, layout: RowLayout, n: int, rng: np.random.Generator) -> Floats32:
        """``n`` row vectors."""
        network = networks.with_weights(self.generator(layout), weights)
        return settled(networks.drawn_in_blocks(network, n, self.noise, rng), layout, rng, REACH)


def parts(n: int, teachers: int, rng: np.random.Generator) -> list[Positions]:
    """The rows of each teacher, every row by a throw of its own."""
    thrown = rng.integers(0, teachers, n)
    return [np.flatnonzero(thrown == j) for j in range(teachers)]


def answered(votes: Floats, teachers: int, laplace: Laplace | None) -> Floats32:
    """What part of so many teachers hold each row for real, after noise on the sum of their votes."""
    noisy = votes if laplace is None else votes + laplace(len(votes))
    return np.clip(noisy / teachers, 0, 1).astype(np.float32)


class _Heard:
    """Made rows of the last rounds and what part of the votes each got."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.rounds: deque[tuple[torch.Tensor, torch.Tensor]] = deque(maxlen=_HEARD)

    def append(self, asked: torch.Tensor, answers: torch.Tensor) -> None:
        self.rounds.append((asked, answers))

    def all(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Rows, shape (n, width), and answers, shape (n,)."""
        asked, answers = zip(*self.rounds, strict=True)
        return torch.cat(asked), torch.cat(answers)

    def state(self) -> dict[str, Any]:
        """By number of the round."""
        return {
            f"{name} {i}": x.cpu().numpy()
            for i, pair in enumerate(self.rounds)
            for name, x in zip(("asked", "answers"), pair, strict=True)
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Be as when ``state`` was taken."""
        self.rounds.clear()
        for i in range(len(state) // 2):
            asked, answers = (
                torch.as_tensor(state[f"{name} {i}"], device=self.device) for name in ("asked", "answers")
            )
            self.append(asked, answers)


class PateTraining:
    """One run of training.

    One row is in one teacher's part, and moves nothing but that teacher: each draws its batches by a
    generator of its own, and what all share is drawn in amounts that no row decides.
    """

    def __init__(self, training: Training, settings: PateGan, laplace: Laplace | None) -> None:
        self.layout, self.settings, self.laplace = training.layout, settings, laplace
        self.device, self.rows = training.device, training.rows
        self.generator = training.built(lambda: settings.generator(self.layout))
        thrown, *self.of_teacher = training.rng.spawn(1 + settings.teachers)
        self.parts = parts(len(self.rows), settings.teachers, thrown)
        self.draws = networks.generator_from(training.rng)
        width, hidden = self.layout.width, settings.hidden
        self.teachers = training.built(lambda: networks.Teachers(settings.teachers, width, hidden))
        self.student = training.built(lambda: networks.Critic(width, hidden, settings.dropout))
        self.teaching, self.studying, self.making = (
            networks.adam(network, rate)
            for network, rate in (
                (self.teachers, settings.learning_rate),
                (self.student, settings.learning_rate),
                (self.generator, settings.generator_rate),
            )
        )
        self.heard = _Heard(self.device)

    @property
    def moved(self) -> dict[str, Part]:
        """All that a round changes."""
        return {**changing_parts(self), **{f"draws {j}": rng for j, rng in enumerate(self.of_teacher)}}

    def round(self) -> float:
        """Teachers learn and vote; the student learns from the last answers, the generator from it."""
        for _ in range(self.settings.teacher_steps):
            self._teach()
        self._vote()
        lost = [self._study() for _ in range(self.settings.student_steps)]
        made = [self._make() for _ in range(self.settings.generator_steps)]
        return lost[-1] + made[-1]

    def _teach(self) -> None:
        """A step of every teacher; one without rows sees made ones alone."""
        size = self.settings.batch
        found = [
            part[rng.integers(0, len(part), size)] if len(part) else np.zeros(size, dtype=np.intp)
            for part, rng in zip(self.parts, self.of_teacher, strict=True)
        ]
        has_rows = torch.tensor([float(len(part) > 0) for part in self.parts], device=self.device)
        with torch.no_grad():
            made = self._made(size).expand(self.settings.teachers, -1, -1)
        real = self.teachers(self.rows[torch.as_tensor(np.stack(found), device=self.device)])
        lost = functional.softplus(-real).mean(dim=1) * has_rows
        lost = lost + functional.softplus(self.teachers(made)).mean(dim=1)
        networks.follow(self.teaching, lost.sum())

    def _vote(self) -> None:
        """Ask all teachers about made rows, and keep what part of them votes for each, with noise.

        A teacher votes by its chance that the row is real, 0 to 1, and one that diverged by 0: a row moves
        the sum by 1 at most.
        """
        with torch.no_grad():
            asked = self._made(self.settings.votes)
            scores = self.teachers(asked.expand(self.settings.teachers, -1, -1))
        votes = torch.sigmoid(scores.double()).nan_to_num(0).sum(dim=0).cpu().numpy()
        answer = answered(votes, self.settings.teachers, self.laplace)
        self.heard.append(asked, torch.as_tensor(answer, device=self.device))

    def _study(self) -> float:
        asked, answers = self.heard.all()
        chosen = torch.randint(len(asked), (self.settings.batch,), generator=self.draws).to(self.device)
        scores = self._judged(asked[chosen])
        lost = functional.binary_cross_entropy_with_logits(scores, answers[chosen])
        return networks.follow(self.studying, lost)

    def _make(self) -> float:
        lost = functional.softplus(-self._judged(self._made(self.settings.batch))).mean()
        return networks.follow(self.making, lost)

    def _judged(self, rows: torch.Tensor) -> torch.Tensor:
        return self.student.judged(rows, self.draws)[:, 0]

    def _made(self, n: int) -> torch.Tensor:
        noise = networks.normal((n, self.settings.noise), self.draws, self.device)
        return activated(self.generator(noise), self.layout, self.draws, REACH)
