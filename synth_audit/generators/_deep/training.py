"""What every training shares: epochs, batches, steps, and going on after a stop."""

from __future__ import annotations

import hashlib
import json
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from synth_audit.arrays import Floats32, Positions
from synth_audit.errors import PluginError
from synth_audit.execution.context import one_thread
from synth_audit.files import replacing
from synth_audit.generators._deep import networks, nn, torch
from synth_audit.generators._deep import private_gradient as gradients
from synth_audit.generators._deep.transforms import RowLayout, Weights

_STEPS_EACH, _FEWEST_SEEN = 8, 50
"""Steps that an epoch has at least, where so many rows are in each batch: with fewer, little is learnt."""

_EVERY = 30.0
"""Seconds between two states that are kept."""

_DIGEST, _DONE, _SEAL = "digest", "done", "seal"

Arrays: TypeAlias = Mapping[str, np.ndarray[Any, Any]]


@runtime_checkable
class Kept(Protocol):
    """Anything else whose state moves with the steps."""

    def state(self) -> dict[str, Any]:
        """The state as arrays by name."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Be as when ``state`` was taken."""


Part: TypeAlias = "nn.Module | torch.optim.Optimizer | torch.Generator | np.random.Generator | Kept"
"""What a step changes: networks, optimisers, draws, the order of batches."""

Parts: TypeAlias = Mapping[str, Part]


def changing_parts(run: object) -> Parts:
    """The attributes of a run of training that a step changes."""
    changing = nn.Module, torch.optim.Optimizer, torch.Generator, np.random.Generator, Kept
    return {name: part for name, part in vars(run).items() if isinstance(part, changing)}


@dataclass(frozen=True)
class Resumption:
    """Where a training may be taken up again.

    A state is known by a digest of where it starts: parts before the first step, settings and rows. So a
    state of another plan, another table, other settings or other seeds is not taken up, nor one that was
    altered after it was written, which another digest tells.

    Attributes:
        folder: private, for its state. parts: what its batches and messages move.
        said: called with the reason why a state that lies there is left alone.
    """

    folder: Path
    parts: Parts
    said: Callable[[str], None]

    def steps(self, name: str, parts: Parts, known: Sequence[object], steps: range) -> Iterator[int]:
        """The steps that are left; the state is kept now and then, and after the last.

        Args:
            name: of the training among those of one fit. parts: all that a step changes.
            known: settings, layout: anything whose text says what it is; and rows.
        """
        path = self.folder / f"{name}.npz"
        parts = {**{f"loop {key}": part for key, part in self.parts.items()}, **parts}
        digest = _digest(name, steps, *known, _arrays(parts))
        kept_at = time.monotonic()
        done, why_not = _taken_up(path, parts, digest)
        if why_not:
            self.said(why_not)
        for step in steps[done:]:
            yield step
            if time.monotonic() - kept_at >= _EVERY or step == steps[-1]:
                self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                arrays = {**_arrays(parts), _DONE: np.array(step + 1 - steps.start)}
                told = {_DIGEST: np.array(digest), _SEAL: np.array(_digest(digest, arrays))}
                with replacing(path, private=True) as part, part.open("wb") as file:
                    np.savez(file, allow_pickle=False, **arrays, **told)
                kept_at = time.monotonic()


def steps_of_epochs(epochs: int, batch: int, rows: int) -> tuple[int, int]:
    """Rows of a batch, and gradient steps in all; a small table has smaller batches.

    Args:
        epochs: times that every row is seen. batch: rows of a batch at most.
    """
    size = min(batch, max(_FEWEST_SEEN, rows // _STEPS_EACH))
    return size, epochs * max(1, rows // size)


class ShuffledBatches:
    """Batches of equal size; every row once before any a second time."""

    def __init__(self, n: int, size: int, rng: np.random.Generator) -> None:
        self.n, self.size, self.rng = n, size, rng
        self.order, self.place = rng.permutation(n), 0

    def state(self) -> dict[str, Any]:
        """The order of rows, how many of them were drawn, and how many are at a time."""
        return {"order": self.order, "place": self.place, "size": self.size}

    def restore(self, state: Mapping[str, Positions]) -> None:
        """Be as when ``state`` was taken."""
        self.order, self.place = state["order"], int(state["place"])

    def __call__(self) -> Positions:
        if self.place + self.size > self.n:
            self.order, self.place = self.rng.permutation(self.n), 0
        self.place += self.size
        return self.order[self.place - self.size : self.place]


@dataclass(frozen=True, eq=False)
class Training:
    """Rows that a network learns, in how many steps, and who is told.

    Attributes:
        vectors: the rows, shape (n, width). layout: of their coordinates.
        steps: gradient steps, or rounds of them.
        sample: positions of the rows of the next batch.
        told: called with the number of steps done and the loss of the last.
        rng: first weights and draws; its seed must be secret where ``noise`` protects.
        noise: on the gradients of real rows; None for training without protection.
        resumption: where it goes on if it is broken off; None for from the start.
    """

    vectors: Floats32
    layout: RowLayout
    steps: int
    sample: Callable[[], Positions]
    told: Callable[[int, float], None]
    rng: np.random.Generator
    device: str = "cpu"
    noise: gradients.GradientNoise | None = None
    resumption: Resumption | None = None

    @cached_property
    def rows(self) -> torch.Tensor:
        """The rows where the network is."""
        return torch.as_tensor(self.vectors, device=self.device)

    def run(self, learn: Callable[[Training], Weights]) -> Weights:
        """The weights learnt: by one thread, so that it can be repeated, unless the noise is secret."""
        if self.noise is not None:
            return learn(self)
        with one_thread():
            return learn(self)

    def batch(self) -> torch.Tensor:
        """The next rows."""
        return self.rows[torch.as_tensor(self.sample(), device=self.device)]

    def built(self, make: Callable[[], networks.Built]) -> networks.Built:
        """A network with first weights from the training's draws, on its device."""
        network: networks.Built = networks.built(make, self.rng).to(self.device)
        return network

    def gradient(self, network: nn.Module, losses: gradients.RowLosses, *rows: torch.Tensor) -> float:
        """Set gradients to those of a batch, protected if the training is; the mean loss."""
        if self.noise is not None:
            return gradients.private_gradient(network, losses, self.noise, *rows)
        return gradients.mean_gradient(network, losses, *rows)

    def descend(
        self,
        network: nn.Module,
        losses: Callable[[torch.Tensor], torch.Tensor],
        learning_rate: float,
        *known: object,
        steps: range | None = None,
        draws: torch.Generator | None = None,
    ) -> None:
        """Train a network where it lies; the learning rate falls to 0 on a straight line.

        Args:
            losses: of each of some rows, shape (b, width) to (b,).
            known: settings. steps: those that are taken here; all if left out. draws: what the losses move.

        Raises:
            PluginError: the loss is not a number any more.
        """
        optimiser = torch.optim.Adam(network.parameters(), lr=learning_rate)
        steps = range(self.steps) if steps is None else steps
        parts = {"network": network, "optimiser": optimiser, **({} if draws is None else {"draws": draws})}
        for step in self.taken("network", parts, learning_rate, *known, steps=steps):
            loss = losses(self.batch()).mean()
            optimiser.param_groups[0]["lr"] = learning_rate * (1 - (step - steps.start) / len(steps))
            self.done(step, networks.follow(optimiser, loss))

    def taken(self, name: str, parts: Parts, *known: object, steps: range | None = None) -> Iterator[int]:
        """The steps to be taken one by one: all, or those that are left of a training that was broken off.

        Args:
            name: of the training within the fit, for a file. parts: all that a step changes.
            known: what else a step follows from beside rows and layout, such as settings.
            steps: those of this training; all if left out.
        """
        steps = range(self.steps) if steps is None else steps
        if self.resumption is None or not steps:
            return iter(steps)
        return self.resumption.steps(name, parts, (self.layout, self.rows, *known), steps)

    def done(self, step: int, lost: float, judged: float | None = None) -> None:
        """Tell of a step that was taken.

        Args:
            lost: its loss. judged: what must be a finite number; the loss if left out.

        Raises:
            PluginError: it is NaN or infinite.
        """
        if not np.isfinite(lost if judged is None else judged):
            raise PluginError(
                "training diverged: its loss is not a number any more, and no model came of it",
                where=f"step {step + 1:,}",
                expected="a finite loss",
                fix="a smaller `learning_rate`, or fewer steps",
            )
        self.told(step + 1, lost)

    def done_in_noise(self, step: int, lost: float, network: nn.Module) -> None:
        """Tell of a step of a network that may be protected.

        A training under a budget is judged by what the network makes of a row of ones, which is no number
        where its weights have run away. Its loss is of real rows and not paid for, and whether the training
        ends would tell of them. Weights follow from noised gradients alone.
        """
        if self.noise is None:
            return self.done(step, lost)
        with torch.no_grad():
            ones = torch.ones((1, self.layout.width), device=self.device)
            self.done(step, lost, float(network(ones).sum()))
        return None


def _taken_up(path: Path, parts: Parts, digest: str) -> tuple[int, str]:
    """Bring all parts to the state that was kept: steps done by then, and why a state is left alone."""
    if not path.exists():
        return 0, ""
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            arrays = dict(file)
        of, seal = str(arrays.pop(_DIGEST)), str(arrays.pop(_SEAL))
        done = int(arrays[_DONE])
    except (OSError, ValueError, TypeError, KeyError, EOFError, zipfile.BadZipFile):
        return 0, "checkpoint cannot be read and is ignored"
    if of != digest:
        return 0, "checkpoint of another table, plan or setting is ignored"
    if seal != _digest(digest, arrays):
        return 0, "checkpoint was altered after it was written and is ignored"
    for name, part in parts.items():
        prefix = f"{name}/"
        _restore(part, {k.removeprefix(prefix): a for k, a in arrays.items() if k.startswith(prefix)})
    return done, ""


def _digest(*things: object) -> str:
    """Of texts, tensors, mappings of arrays, and what its text describes."""
    found = hashlib.sha256()
    for thing in things:
        if isinstance(thing, torch.Tensor):
            thing = {"": thing.detach().cpu().numpy()}
        if not isinstance(thing, dict):
            found.update(repr(thing).encode() + b"\0")
            continue
        for name, array in sorted(thing.items()):
            found.update(f"{name} {array.dtype} {array.shape}\0".encode())
            found.update(array.tobytes())
    return found.hexdigest()


def _arrays(parts: Parts) -> dict[str, np.ndarray[Any, Any]]:
    return {f"{name}/{key}": a for name, part in parts.items() for key, a in _state(part).items()}


def _state(part: Part) -> dict[str, np.ndarray[Any, Any]]:
    if isinstance(part, nn.Module):
        return {key: w.detach().cpu().numpy().copy() for key, w in part.state_dict().items()}
    if isinstance(part, torch.optim.Optimizer):
        moments = part.state_dict()["state"]
        return {f"{i}/{key}": w.cpu().numpy() for i, own in moments.items() for key, w in own.items()}
    if isinstance(part, torch.Generator):
        return {"state": part.get_state().numpy()}
    if isinstance(part, np.random.Generator):
        return {"state": np.array(json.dumps(part.bit_generator.state))}
    return {key: np.asarray(value) for key, value in part.state().items()}


def _restore(part: Part, state: Arrays) -> None:
    if isinstance(part, nn.Module):
        part.load_state_dict({key: torch.as_tensor(a) for key, a in state.items()})
    elif isinstance(part, torch.optim.Optimizer):
        moments: dict[int, dict[str, torch.Tensor]] = {}
        for place, array in state.items():
            i, _, key = place.partition("/")
            moments.setdefault(int(i), {})[key] = torch.as_tensor(array)
        part.load_state_dict({**part.state_dict(), "state": moments})
    elif isinstance(part, torch.Generator):
        part.set_state(torch.as_tensor(state["state"]))
    elif isinstance(part, np.random.Generator):
        part.bit_generator.state = json.loads(str(state["state"]))
    else:
        part.restore(state)
