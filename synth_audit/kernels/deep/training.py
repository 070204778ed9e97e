"""What every training shares: draws, the device, one thread, and the step that goes wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from torch import nn

from synth_audit.core.arrays import Floats32, Positions
from synth_audit.core.errors import PluginError
from synth_audit.kernels.deep.resuming import KeptTraining, Parts

Weights = Mapping[str, Floats32]
"""A trained network as arrays."""

_BLOCK = 2048
"""Rows drawn at a time."""

Built = TypeVar("Built", bound=nn.Module)


@dataclass(frozen=True)
class Resumption:
    """Where a training may be taken up again.

    Attributes:
        folder: private, for its state. parts: what its batches and tellings move.
        said: told why a state that lies there is left alone. known: what batches follow from beside draws.
    """

    folder: Path
    parts: Parts
    said: Callable[[str], None]
    known: tuple[object, ...] = ()


@dataclass(frozen=True)
class Loop:
    """How often, on which rows, and who is told.

    Attributes:
        steps: gradient steps.
        sample: positions of the rows of the next batch.
        told: called with the number of steps done and the loss of the last.
        resumption: where it goes on if it is broken off; None for from the start.
    """

    steps: int
    sample: Callable[[], Positions]
    told: Callable[[int, float], None]
    resumption: Resumption | None = None

    def taken(self, name: str, parts: Parts, *known: object, steps: range | None = None) -> Iterator[int]:
        """The steps to be taken one by one: all, or those that are left of a training that was broken off.

        The state is kept now and then, and after the last step.

        Args:
            name: of the training within the fit, for a file. parts: all that a step changes.
            known: what else a step follows from: settings, layout, rows.
            steps: of the loop's, those of this training; all if left out.
        """
        steps = range(self.steps) if steps is None else steps
        if self.resumption is None or not steps:
            yield from steps
            return
        moved = {f"loop {key}": part for key, part in self.resumption.parts.items()}
        known = (name, steps, *self.resumption.known, *known)
        kept = KeptTraining(self.resumption.folder, name, {**moved, **parts}, known)
        done, why_not = kept.taken_up()
        if why_not:
            self.resumption.said(why_not)
        for step in steps[done:]:
            yield step
            if kept.due or step == steps[-1]:
                kept.keep(step + 1 - steps.start)


def built(make: Callable[[], Built], rng: np.random.Generator) -> Built:
    """A network with first weights from these draws; torch's own state stays as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(rng.integers(2**63)))
        return make()


def generator_from(rng: np.random.Generator) -> torch.Generator:
    """Torch's draws, on the processor whatever the device, so that a GPU moves last digits alone."""
    return torch.Generator().manual_seed(int(rng.integers(2**63)))


def as_arrays(network: nn.Module) -> Weights:
    """The weights by name, single precision."""
    return {name: w.detach().cpu().numpy().copy() for name, w in network.state_dict().items()}


def with_weights(network: Built, weights: Weights) -> Built:
    """The network with these weights, for drawing only."""
    network.load_state_dict({name: torch.as_tensor(w) for name, w in weights.items()})
    network.eval().requires_grad_(False)
    return network


def drawn_in_blocks(
    network: nn.Module, n: int, inputs: int, rng: np.random.Generator, given: Floats32 | None = None
) -> Floats32:
    """What a network makes of standard normal inputs, shape (n, out).

    Always as many rows at a time, so that a row's sums are formed alike wherever it stands.

    Args:
        given: coordinates beside the inputs, shape (n, k).
    """
    parts = []
    for start in range(0, max(n, 1), _BLOCK):
        rows = min(_BLOCK, n - start)
        x = torch.zeros((_BLOCK, inputs + (0 if given is None else given.shape[1])))
        x[:rows, :inputs] = torch.as_tensor(rng.standard_normal((rows, inputs), dtype=np.float32))
        if given is not None:
            x[:rows, inputs:] = torch.as_tensor(given[start : start + rows])
        parts.append(network(x)[:rows].numpy())
    return np.concatenate(parts)


def averaged(mean: nn.Module, network: nn.Module, decay: float, step: int) -> None:
    """Move the mean of weights, and of what layers keep of batches, towards those after a step.

    Args:
        mean: of the same shape, first as the network was. decay: of the mean, less in the first steps; with 0
            it is the network itself. step: from 0 on.
    """
    decay = min(decay, (1 + step) / (10 + step))
    for kept, now in zip(mean.state_dict().values(), network.state_dict().values(), strict=True):
        kept.copy_(torch.lerp(now, kept, decay) if now.is_floating_point() else now)


def refuse_lost(loss: float, step: int) -> None:
    """Raise where a loss is no number any more.

    Raises:
        PluginError: it is NaN or infinite.
    """
    if not np.isfinite(loss):
        raise PluginError(
            "training diverged: its loss is not a number any more, and no model came of it",
            where=f"step {step:,}",
            expected="a finite loss",
            fix="a smaller `learning_rate`, or fewer steps",
        )


def probed(network: nn.Module, width: int) -> float:
    """The sum of what a network makes of a row of ones: no number where its weights have run away.

    A training under a budget looks at this instead of its loss: that one is of real rows and not paid for,
    and whether the training ends would tell of them. Weights follow from noised gradients alone.
    """
    with torch.no_grad():
        ones = torch.ones((1, width), device=next(network.parameters()).device)
        return float(network(ones).sum())


@contextmanager
def one_thread() -> Iterator[None]:
    """Hold torch to one thread: how it shares out a sum depends on how many there are."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
