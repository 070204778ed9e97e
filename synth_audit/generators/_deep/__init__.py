"""Networks that learn to draw rows, and what the generators that use them share.

Torch, and the networks built on it, are imported when they are first used. Describing a generator reads its
settings alone and must stay fast, so that no settings file imports torch. With these names a method is one
file: its settings, how it learns and how it draws.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch
    from torch import nn
    from torch.nn import functional

    from synth_audit.generators._deep import networks
else:

    class _Lazy:
        """A module that is imported when an attribute is read."""

        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, attribute: str) -> object:
            return getattr(import_module(self._name), attribute)

    torch, nn, functional = map(_Lazy, ("torch", "torch.nn", "torch.nn.functional"))
    networks = _Lazy("synth_audit.generators._deep.networks")

__all__ = ["functional", "networks", "nn", "torch"]
