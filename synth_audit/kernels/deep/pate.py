"""A GAN taught by votes: teachers on disjoint parts of the rows, a student that hears noisy majorities.

One row is in one teacher's part, and moves nothing but that teacher: each draws its batches by a generator of
its own, and what all share is drawn in amounts that no row decides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from synth_audit.core.arrays import Floats, Floats32, Positions
from synth_audit.kernels.deep.adversarial import REACH, Critic, activated
from synth_audit.kernels.deep.training import (
    Weights,
    as_arrays,
    built,
    generator_from,
    one_thread,
    refuse_lost,
)
from synth_audit.kernels.row_layout import RowLayout

_MOMENTS = 0.5, 0.9
"""Of all Adams."""

_LEAK = 0.2


@dataclass(frozen=True)
class PateSettings:
    """Teachers, student and generator, and how they take turns.

    Attributes:
        teachers: parts of the rows. rounds: in each the teachers learn, vote, and student and generator
            learn. votes: rows that are voted on in a round.
        teacher_steps, student_steps: of a round; the generator takes as many as the student.
        batch: rows of a step of teachers, student and generator.
        noise: dimensions of the generator's input. hidden: width of the layers of teachers and student.
        dropout: of the student. learning_rate, generator_rate: of their Adams.
    """

    teachers: int
    rounds: int
    votes: int
    teacher_steps: int
    student_steps: int
    batch: int
    noise: int
    hidden: int
    dropout: float
    learning_rate: float
    generator_rate: float


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


def majority(votes: Floats, teachers: int, laplace: Callable[[int], Floats] | None) -> Floats32:
    """1 where more than half the teachers hold a row for real, after noise on their number, else 0."""
    noisy = votes if laplace is None else votes + laplace(len(votes))
    return np.asarray(noisy > teachers / 2, dtype=np.float32)


def fitted(
    rows: Floats32,
    layout: RowLayout,
    settings: PateSettings,
    network: nn.Module,
    laplace: Callable[[int], Floats] | None,
    told: Callable[[int, float], None],
    rng: np.random.Generator,
    device: str,
) -> Weights:
    """Train on rows of shape (n, width); the generator's weights.

    Args:
        laplace: the noise of so many votes; None for training without protection.
        told: called with the number of rounds done and the student's loss.

    Raises:
        PluginError: a loss is not a number any more.

    Source: Jordon, Yoon & van der Schaar 2019.
    """
    with one_thread():
        training = _PateTraining(rows, layout, settings, network, laplace, rng, device)
        for done in range(1, settings.rounds + 1):
            lost = training.round()
            refuse_lost(lost, done)
            told(done, lost)
        return as_arrays(training.generator)


class _PateTraining:
    """One run of training; its state lives no longer than :func:`fitted`."""

    def __init__(
        self,
        rows: Floats32,
        layout: RowLayout,
        settings: PateSettings,
        network: nn.Module,
        laplace: Callable[[int], Floats] | None,
        rng: np.random.Generator,
        device: str,
    ) -> None:
        self.layout, self.settings, self.laplace, self.device = layout, settings, laplace, device
        thrown, *self.of_teacher = rng.spawn(1 + settings.teachers)
        self.parts = parts(len(rows), settings.teachers, thrown)
        self.draws, self.rows = generator_from(rng), torch.as_tensor(rows, device=device)
        width, hidden = layout.width, settings.hidden
        self.teachers = built(lambda: Teachers(settings.teachers, width, hidden), rng).to(device)
        self.student = built(lambda: Critic(width, hidden, settings.dropout), rng).to(device)
        self.generator = network.to(device)
        rate = settings.learning_rate
        self.teaching = torch.optim.Adam(self.teachers.parameters(), lr=rate, betas=_MOMENTS)
        self.studying = torch.optim.Adam(self.student.parameters(), lr=rate, betas=_MOMENTS)
        learnt = self.generator.parameters()
        self.making = torch.optim.Adam(learnt, lr=settings.generator_rate, betas=_MOMENTS)
        self.asked: list[torch.Tensor] = []
        self.answers: list[torch.Tensor] = []

    def round(self) -> float:
        """Teachers learn and vote; the student learns from all answers so far, the generator from it."""
        for _ in range(self.settings.teacher_steps):
            self._teach()
        self._vote()
        lost = 0.0
        for _ in range(self.settings.student_steps):
            lost = self._study() + self._make()
        return lost

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
        self.teaching.zero_grad()
        lost.sum().backward()
        self.teaching.step()

    def _vote(self) -> None:
        """Ask all teachers about made rows, and keep what the noisy majority says."""
        with torch.no_grad():
            asked = self._made(self.settings.votes)
            scores = self.teachers(asked.expand(self.settings.teachers, -1, -1))
        votes = (scores > 0).sum(dim=0).cpu().numpy().astype(np.float64)
        answer = majority(votes, self.settings.teachers, self.laplace)
        self.asked.append(asked)
        self.answers.append(torch.as_tensor(answer, device=self.device))

    def _study(self) -> float:
        asked, answers = torch.cat(self.asked), torch.cat(self.answers)
        chosen = torch.randint(len(asked), (self.settings.batch,), generator=self.draws).to(self.device)
        scores = self._judged(asked[chosen])
        lost = functional.binary_cross_entropy_with_logits(scores, answers[chosen])
        self.studying.zero_grad()
        lost.backward()
        self.studying.step()
        return float(lost.detach())

    def _make(self) -> float:
        lost = functional.softplus(-self._judged(self._made(self.settings.batch))).mean()
        self.making.zero_grad()
        lost.backward()
        self.making.step()
        return float(lost.detach())

    def _judged(self, rows: torch.Tensor) -> torch.Tensor:
        kept = self.student.kept(len(rows), self.draws).to(self.device)
        scores: torch.Tensor = self.student(rows, kept)[:, 0]
        return scores

    def _made(self, n: int) -> torch.Tensor:
        noise = torch.randn((n, self.settings.noise), generator=self.draws).to(self.device)
        return activated(self.generator(noise), self.layout, self.draws, REACH)
