"""A device of its own on the processor: tensors that bear another device's name and hold their numbers.

Whatever mixes them with tensors of the processor fails as it would on a GPU, and nothing else does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

NAME = "meta"
"""The one device that any build of torch knows and that computes nothing itself."""

_ATEN = torch.ops.aten
_TAKE_BOTH = (
    *(_ATEN.copy_.default, _ATEN._to_copy.default),
    *(_ATEN.index.Tensor, _ATEN.index_put.default, _ATEN.index_put_.default, _ATEN._index_put_impl_.default),
)
"""What may be handed tensors of two devices: copies, and positions, which may lie on the processor."""


class Elsewhere(torch.Tensor):
    """A tensor on the device."""

    held: torch.Tensor

    @staticmethod
    def __new__(cls, held: torch.Tensor) -> Elsewhere:
        made: Elsewhere = torch.Tensor._make_wrapper_subclass(
            cls, held.shape, strides=held.stride(), dtype=held.dtype, device=torch.device(NAME)
        )
        made.held = held
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _ran(func, args, kwargs or {})

    def tolist(self) -> Any:
        return self.held.tolist()


def _held(value: Any) -> Any:
    return value.held if isinstance(value, Elsewhere) else value


def _sent(value: Any) -> Any:
    return Elsewhere(value) if type(value) is torch.Tensor else value


def _named(kwargs: Mapping[str, Any]) -> str:
    return torch.device(kwargs["device"]).type if kwargs.get("device") is not None else ""


def _ran(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """One operation by the processor, on the device where its tensors lie or are sent."""
    tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
    there = [x for x in tensors if isinstance(x, Elsewhere)]
    others = [x for x in tensors if not isinstance(x, Elsewhere)]
    assert not any(x.device.type == NAME for x in others), f"{func}: a tensor came past this device"
    if there and any(x.dim() for x in others) and func not in _TAKE_BOTH:
        raise RuntimeError(f"{func}: tensors on two devices")
    to = _named(kwargs)
    if to == NAME:
        kwargs = {**kwargs, "device": "cpu"}
    out = func(*tree_map(_held, args), **tree_map(_held, kwargs))
    if func._schema.is_mutable and isinstance(args[0], torch.Tensor):
        return args[0]
    return tree_map(_sent, out) if to == NAME or (there and to != "cpu") else out


class _Dispatched(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _ran(func, args, kwargs or {})


class _Made(TorchFunctionMode):
    """What torch makes of plain values by itself, without an operation that could be seen."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        if func in (torch.tensor, torch.as_tensor) and (device := kwargs.pop("device", None)) is not None:
            return func(*args, **kwargs).to(device)
        if func in (torch.Tensor.__getitem__, torch.Tensor.__setitem__) and isinstance(args[0], Elsewhere):
            places = args[1] if isinstance(args[1], tuple) else (args[1],)
            places = tuple(torch.tensor(list(i)) if isinstance(i, list | range) else i for i in places)
            args = (args[0], places, *args[2:])
        return func(*args, **kwargs)


@contextmanager
def simulated_device() -> Iterator[None]:
    """Under it ``.to(NAME)`` and ``device=NAME`` send tensors there."""
    with _Dispatched(), _Made():
        yield
