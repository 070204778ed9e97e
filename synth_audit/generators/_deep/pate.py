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
from synth_audit.generators._deep.gan import REACH, Critic, activated
from synth_audit.generators._deep.training import (
    Loop,
    Part,
    Weights,
    as_arrays,
    built,
    generator_from,
    one_thread,
    refuse_lost,
)
from synth_audit.generators._deep.transforms import RowLayout

_MOMENTS = 0.5, 0.9
"""Of all Adams."""

_LEAK = 0.2

_HEARD = 10
"""Rounds whose answers the student learns from: older ones are about rows that are made no more."""


@dataclass(frozen=True)
class PateSettings:
    """Teachers, student and generator, and how they take turns.

    Attributes:
        teachers: parts of the rows. votes: rows that are voted on in a round.
        teacher_steps, student_steps, generator_steps: of a round.
        batch: rows of a step of teachers, student and generator.
        noise: dimensions of the generator's input. hidden: width of the layers of teachers and student.
        dropout: of the student. learning_rate, generator_rate: of their Adams.
    """

    teachers: int
    votes: int
    teacher_steps: int
    student_steps: int
    generator_steps: int
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


def answered(votes: Floats, teachers: int, laplace: Callable[[int], Floats] | None) -> Floats32:
    """What part of so many teachers hold each row for real, after noise on the sum of their votes."""
    noisy = votes if laplace is None else votes + laplace(len(votes))
    return np.clip(noisy / teachers, 0, 1).astype(np.float32)


def fitted(
    rows: Floats32,
    layout: RowLayout,
    settings: PateSettings,
    network: nn.Module,
    laplace: Callable[[int], Floats] | None,
    loop: Loop,
    rng: np.random.Generator,
    device: str,
) -> Weights:
    """Train on rows of shape (n, width); the generator's weights.

    Args:
        laplace: the noise of so many votes; None for training without protection.
        loop: of rounds; teachers draw their own rows.

    Raises:
        PluginError: a loss is not a number any more.

    Source: Jordon, Yoon & van der Schaar 2019.
    """
    with one_thread():
        training = _PateTraining(rows, layout, settings, network, laplace, rng, device)
        for done in loop.taken("pate", training.moved, settings, layout, training.rows):
            lost = training.round()
            refuse_lost(lost, done + 1)
            loop.told(done + 1, lost)
        return as_arrays(training.generator)


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
        self.heard = _Heard(device)

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
        self.teaching.zero_grad()
        lost.sum().backward()
        self.teaching.step()

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
