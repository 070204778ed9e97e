"""What GANs of row vectors share: activations, gradient penalty, and labels that are asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from synth_audit.arrays import Floats, Floats32, Positions
from synth_audit.generators._deep.lazily import functional, networks, torch
from synth_audit.generators._deep.transforms import RowLayout

_TEMPERATURE = 0.2
"""Of the Gumbel softmax of slices."""

PENALTY = 10.0
"""Weight of the squared distance of the critic's gradient norm from 1."""

REACH = 1.25
"""Of numbers that have a range and no modes: many of a column can then lie at its end, as zeros often do."""


def activated(
    scores: torch.Tensor, layout: RowLayout, draws: torch.Generator, reach: float = 1.0
) -> torch.Tensor:
    """``reach · tanh`` of numbers, cut off at ±1, and the Gumbel softmax of slices; each row by itself.

    Args:
        reach: above 1, so many numbers can lie at an end of their range; the cut is not differentiated.
    """
    made = scores.clone()
    where = list(layout.numbers)
    numbers = reach * torch.tanh(scores[:, where])
    made[:, where] = numbers + (numbers.clamp(-1, 1) - numbers).detach()
    gumbel = networks.gumbel(scores, draws)
    for start, stop in layout.slices:
        noisy = (scores[:, start:stop] + gumbel[:, start:stop]) / _TEMPERATURE
        made[:, start:stop] = functional.softmax(noisy, dim=1)
    return made


def steepness(
    judged: Callable[[torch.Tensor], torch.Tensor],
    real: torch.Tensor,
    made: torch.Tensor,
    draws: torch.Generator,
    pack: int = 1,
) -> torch.Tensor:
    """``E[(‖∇ critic‖ − 1)²]`` at points between real and made packs.

    Args:
        judged: scores of packs from rows. pack: rows that follow one another and are judged together.

    Source: Gulrajani et al. 2017.
    """
    share = torch.rand((len(real) // pack, 1, 1), generator=draws).to(real.device)
    share = share.expand(-1, pack, real.shape[1]).reshape(real.shape)
    between = (share * real + (1 - share) * made).requires_grad_()
    [slope] = torch.autograd.grad(judged(between).sum(), between, create_graph=True)
    norms: torch.Tensor = slope.reshape(len(slope) // pack, -1).norm(dim=1)
    return (norms - 1).square().mean()


def settled(scores: Floats32, layout: RowLayout, rng: np.random.Generator, reach: float = 1.0) -> Floats32:
    """``reach · tanh`` of numbers, and of each slice scores of which the largest is drawn by its chance.

    What lies beyond ±1 is cut off where it is read, if it is: the order of such numbers tells their ranks.
    """
    made = scores.copy()
    where = list(layout.numbers)
    made[:, where] = reach * np.tanh(scores[:, where])
    for start, stop in layout.slices:
        made[:, start:stop] += rng.gumbel(size=(len(scores), stop - start))
    return made


@dataclass(frozen=True, eq=False)
class Conditions:
    """How often each label of each column occurs, for training by sampling.

    Attributes:
        starts: first position of each column of labels in the condition vector, and its end, length c + 1.
        counts: of each label, shape (width,).
    """

    starts: tuple[int, ...]
    counts: Floats

    @classmethod
    def of(cls, rows: Floats32, layout: RowLayout) -> Conditions:
        """Counted in train."""
        spans = [layout.slices[i] for i in layout.choices]
        starts = tuple(np.cumsum([0, *(stop - start for start, stop in spans)]).tolist())
        counts = [rows[:, start:stop].sum(axis=0, dtype=np.float64) for start, stop in spans]
        return cls(starts, np.concatenate([np.zeros(0), *counts]))

    @classmethod
    def kept(cls, counts: Floats32, layout: RowLayout) -> Conditions:
        """With counts that were kept among the weights of a model."""
        nobody = np.zeros((0, layout.width), dtype=np.float32)
        return cls(cls.of(nobody, layout).starts, counts.astype(np.float64))

    @property
    def width(self) -> int:
        """Labels of all columns."""
        return self.starts[-1]

    def chosen(self, n: int, rng: np.random.Generator, *, logs: bool) -> tuple[Positions, Positions]:
        """A column for each of ``n`` rows, all alike, and one of its labels, by their counts or the logarithm
        of these, so that rare labels are learnt; shapes (n,)."""
        column = rng.integers(0, len(self.starts) - 1, n)
        label = np.empty(n, dtype=np.intp)
        for j, (start, stop) in enumerate(pairwise(self.starts)):
            here = column == j
            weights = self.counts[start:stop]
            weights = np.log1p(weights) if logs else weights
            label[here] = rng.choice(stop - start, int(here.sum()), p=weights / weights.sum())
        return column, label

    def vectors(self, column: Positions, label: Positions) -> Floats32:
        """One-hot conditions, shape (n, width)."""
        made = np.zeros((len(column), self.width), dtype=np.float32)
        made[np.arange(len(column)), np.array(self.starts)[column] + label] = 1
        return made

    def asked(self, n: int, rng: np.random.Generator) -> Floats32 | None:
        """Vectors for rows that are to be drawn, by the counts; None where there is nothing to ask for."""
        return self.vectors(*self.chosen(n, rng, logs=False)) if self.width else None
