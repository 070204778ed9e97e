"""The noise on a clipped sum of gradients, and what the sum is divided by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from synth_audit.core.arrays import Floats

NORMALISER = 1_000.0
"""What a private sum is divided by. A constant, since the size of a batch is private; optimisers that rescale
their steps, as Adam does, do not feel it."""


@dataclass(frozen=True)
class GradientNoise:
    """How gradients are protected.

    Attributes:
        clip: the largest L2 norm C that one row may contribute.
        multiplier: standard deviation of the noise over ``clip``.
        gaussian: draws noise of a scale and shape; never seeded.
    """

    clip: float
    multiplier: float
    gaussian: Callable[[float, tuple[int, ...]], Floats]


def noised(total: dict[str, torch.Tensor], noise: GradientNoise) -> dict[str, torch.Tensor]:
    """A clipped sum with its noise, divided by the constant; in place."""
    for gradient in total.values():
        drawn = noise.gaussian(noise.clip * noise.multiplier, tuple(gradient.shape))
        gradient += torch.as_tensor(drawn, dtype=gradient.dtype, device=gradient.device)
        gradient /= NORMALISER
    return total
