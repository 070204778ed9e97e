"""A GAN taught by votes: teachers on disjoint parts of the rows, a student that hears noisy sums of votes.

One row is in one teacher's part, and moves nothing but that teacher: each draws its batches by a generator of
its own, and what all share is drawn in amounts that no row decides.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from synth_audit.arrays import Floats, Floats32, Positions
from synth_audit.generators._deep.gan import REACH, Critic, activated, settled
from synth_audit.generators._deep.private_gan import plain_generator
from synth_audit.generators._deep.training import (
    MOMENTS,
    Part,
    Training,
    Weights,
    as_arrays,
    drawn_in_blocks,
    follow,
    generator_from,
    with_weights,
)
from synth_audit.generators._deep.transforms import RowLayout
from synth_audit.generators.pate_gan import PateGan

_LEAK = 0.2

_HEARD = 10
"""Rounds whose answers the student learns from: older ones are about rows that are made no more."""

Laplace = Callable[[int], Floats]
"""The noise of so many votes."""


@dataclass(frozen=True)
class PateNetwork:
    """Teachers, student and generator.

    Attributes:
        laplace: None for training without protection.

    Source: Jordon, Yoon & van der Schaar 2019.
    """

    settings: PateGan
    laplace: Laplace | None = None

    def learn(self, training: Training) -> Weights:
        """The generator's weights, after as many rounds as ``training`` has steps."""
        run = PateTraining(training, self.settings, self.laplace)
        for step in training.taken("pate", run.moved, self.settings):
            training.done(step, run.round())
        return as_arrays(run.generator)

    def draw(self, weights: Weights, layout: RowLayout, n: int, rng: np.random.Generator) -> Floats32:
        """``n`` row vectors."""
        network = with_weights(self.generator(layout), weights)
        return settled(drawn_in_blocks(network, n, self.settings.noise, rng), layout, rng, REACH)

    def generator(self, layout: RowLayout) -> nn.Module:
        """From noise to the scores of a row."""
        return plain_generator(self.settings.noise, self.settings.hidden, layout)


class Teachers(nn.Module):
    """Networks of one hidden layer, side by side, which have nothing in common."""

    def __init__(self, count: int, width: int, hidden: int) -> None:
        super().__init__()
        sizes = ((width, hidden), (hidden, 1))
        self.weights = nn.ParameterList(torch.randn(count, a, b) / a**0.5 for a, b in sizes)
        self.biases = nn.ParameterList(torch.zeros(count, 1, b) for _, b in sizes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Each teacher's rows, shape (teachers, n, width), to how real they look, (teachers, n)."""
        x = functional.leaky_relu(torch.baddbmm(self.biases[0], x, self.weights[0]), _LEAK)
        return torch.baddbmm(self.biases[1], x, self.weights[1])[..., 0]


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
    """One run of training."""

    def __init__(self, training: Training, settings: PateGan, laplace: Laplace | None) -> None:
        self.layout, self.settings, self.laplace = training.layout, settings, laplace
        self.device, self.rows = training.device, training.rows
        network = PateNetwork(settings)
        self.generator = training.built(lambda: network.generator(self.layout))
        thrown, *self.of_teacher = training.rng.spawn(1 + settings.teachers)
        self.parts = parts(len(self.rows), settings.teachers, thrown)
        self.draws = generator_from(training.rng)
        width, hidden = self.layout.width, settings.hidden
        self.teachers = training.built(lambda: Teachers(settings.teachers, width, hidden))
        self.student = training.built(lambda: Critic(width, hidden, settings.dropout))
        self.teaching, self.studying, self.making = (
            torch.optim.Adam(network.parameters(), lr=rate, betas=MOMENTS)
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
        shared = {"teachers": self.teachers, "student": self.student, "generator": self.generator}
        optimisers = {"teaching": self.teaching, "studying": self.studying, "making": self.making}
        draws = {f"draws {j}": rng for j, rng in enumerate(self.of_teacher)}
        return {**shared, **optimisers, **draws, "draws": self.draws, "heard": self.heard}

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
        follow(self.teaching, lost.sum())

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
        return follow(self.studying, lost)

    def _make(self) -> float:
        lost = functional.softplus(-self._judged(self._made(self.settings.batch))).mean()
        return follow(self.making, lost)

    def _judged(self, rows: torch.Tensor) -> torch.Tensor:
        kept = self.student.kept(len(rows), self.draws).to(self.device)
        scores: torch.Tensor = self.student(rows, kept)[:, 0]
        return scores

    def _made(self, n: int) -> torch.Tensor:
        noise = torch.randn((n, self.settings.noise), generator=self.draws).to(self.device)
        return activated(self.generator(noise), self.layout, self.draws, REACH)
