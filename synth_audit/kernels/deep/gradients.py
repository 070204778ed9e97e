"""Gradients of a loss over a batch: as they are, or clipped per person and noised."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch.func import grad_and_value, vmap

from synth_audit.core.arrays import Floats

Parameters = Mapping[str, torch.Tensor]
"""Weights by name."""

RowLoss = Callable[..., torch.Tensor]
"""The loss of one row, a scalar: called with the weights and what belongs to that row."""

_AT_ONCE = 2**25
"""Gradient entries that are held at a time: 128 MiB."""

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


def per_row_gradients(
    loss: RowLoss, weights: Parameters, *rows: torch.Tensor
) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    """The gradient of every row's own loss.

    Args:
        rows: what belongs to each row, shapes (b, …).

    Returns:
        By name, shape (b, *shape of the weight); and the losses, shape (b,).
    """
    each = vmap(grad_and_value(loss), in_dims=(None, *[0] * len(rows)), randomness="different")
    gradients, losses = each(dict(weights), *rows)
    return gradients, losses


def private_gradient(
    loss: RowLoss, weights: Parameters, noise: GradientNoise, *rows: torch.Tensor
) -> tuple[dict[str, torch.Tensor], float]:
    """``(Σ_i g_i · min(1, C / ‖g_i‖₂) + N(0, C² σ² I)) / constant`` over the rows of a Poisson sample.

    ``g_i`` is the gradient of row i's loss over all weights together. A batch without rows is noise alone.

    Returns:
        By name, and the mean loss, NaN without rows; the loss is not protected.

    Source: Abadi et al. 2016.
    """
    total = {name: torch.zeros_like(w) for name, w in weights.items()}
    size = max(1, _AT_ONCE // max(1, sum(w.numel() for w in weights.values())))
    count, lost = len(rows[0]), 0.0
    for start in range(0, count, size):
        gradients, losses = per_row_gradients(loss, weights, *(x[start : start + size] for x in rows))
        squares = [g.flatten(1).square().sum(dim=1) for g in gradients.values()]
        norms = torch.stack(squares).sum(dim=0).sqrt()
        shares = (noise.clip / norms.clamp(min=torch.finfo(norms.dtype).tiny)).clamp(max=1.0)
        for name, g in gradients.items():
            total[name] += torch.einsum("b,b...->...", shares, g)
        lost += float(losses.detach().sum())
    return noised(total, noise), lost / count if count else float("nan")


def noised(total: dict[str, torch.Tensor], noise: GradientNoise) -> dict[str, torch.Tensor]:
    """A clipped sum with its noise, divided by the constant; in place."""
    for gradient in total.values():
        drawn = noise.gaussian(noise.clip * noise.multiplier, tuple(gradient.shape))
        gradient += torch.as_tensor(drawn, dtype=gradient.dtype, device=gradient.device)
        gradient /= NORMALISER
    return total
