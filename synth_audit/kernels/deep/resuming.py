"""Training that is taken up where it was broken off, from a file of arrays.

What a training may leave holds what was learnt of real rows, and the state of its draws. So only one that
protects nobody leaves anything: noise that is drawn twice from one state is subtracted by whoever has both.

The file is ``.npz``, read without pickled objects: no code can be in it.
"""

from __future__ import annotations

import hashlib
import json
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import torch
from torch import nn

from synth_audit.core.files import replacing

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


Part: TypeAlias = nn.Module | torch.optim.Optimizer | torch.Generator | np.random.Generator | Kept
"""What a step changes: networks, optimisers, draws, the order of batches."""

Parts: TypeAlias = Mapping[str, Part]


class KeptTraining:
    """The state of a training in a file of its own.

    It is known by a digest of where it starts: parts before the first step, settings and rows. So a state of
    another plan, another table, other settings or other seeds is not taken up, nor one that was altered
    after it was written, which another digest tells.

    Args:
        folder: private. name: of the training among those of one fit.
        known: settings, layout, number of steps: anything whose text says what it is; and rows.
    """

    def __init__(self, folder: Path, name: str, parts: Parts, known: tuple[object, ...]) -> None:
        self.path, self.parts = folder / f"{name}.npz", parts
        self.digest = _digest(parts, known)
        self._kept_at = time.monotonic()

    def taken_up(self) -> tuple[int, str]:
        """Bring all parts to the state that was kept: steps done by then, and why a state is left alone."""
        if not self.path.exists():
            return 0, ""
        try:
            with self.path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
                arrays = dict(file)
            digest, seal = str(arrays.pop(_DIGEST)), str(arrays.pop(_SEAL))
            done = int(arrays[_DONE])
        except (OSError, ValueError, TypeError, KeyError, EOFError, zipfile.BadZipFile):
            return 0, "checkpoint cannot be read and is ignored"
        if digest != self.digest:
            return 0, "checkpoint of another table, plan or setting is ignored"
        if seal != _seal(digest, arrays):
            return 0, "checkpoint was altered after it was written and is ignored"
        for name, part in self.parts.items():
            prefix = f"{name}/"
            _restore(part, {k.removeprefix(prefix): a for k, a in arrays.items() if k.startswith(prefix)})
        return done, ""

    @property
    def due(self) -> bool:
        """Whether the last state is old enough."""
        return time.monotonic() - self._kept_at >= _EVERY

    def keep(self, done: int) -> None:
        """Write the state after so many steps; the file before stays until this one is whole."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        arrays = {**_arrays(self.parts), _DONE: np.array(done)}
        told = {_DIGEST: np.array(self.digest), _SEAL: np.array(_seal(self.digest, arrays))}
        with replacing(self.path, private=True) as part, part.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays, **told)
        self._kept_at = time.monotonic()


def _digest(parts: Parts, known: tuple[object, ...]) -> str:
    found = hashlib.sha256()
    for thing in known:
        if isinstance(thing, torch.Tensor):
            found.update(f"{thing.dtype} {tuple(thing.shape)}".encode())
            found.update(thing.detach().cpu().contiguous().numpy().tobytes())
        else:
            found.update(repr(thing).encode())
        found.update(b"\0")
    _add(found, _arrays(parts))
    return found.hexdigest()


def _seal(digest: str, arrays: Arrays) -> str:
    found = hashlib.sha256(digest.encode())
    _add(found, arrays)
    return found.hexdigest()


def _add(found: hashlib._Hash, arrays: Arrays) -> None:
    for name, array in sorted(arrays.items()):
        found.update(f"{name} {array.dtype} {array.shape}\0".encode())
        found.update(array.tobytes())


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
