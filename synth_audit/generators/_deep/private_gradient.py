"""Gradients of a batch: their mean, or clipped row by row, summed and noised, so that they are private."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

from synth_audit.arrays import Floats
from synth_audit.generators._deep import functional, nn, torch

_ROWS = 4096
"""Rows at a time whose gradients are clipped."""


_ROUNDING = 1e-5
"""Of the terms of a squared norm in single precision: added, so that none is taken for smaller than it is."""


NORMALISER = 1_000.0
"""What a private sum is divided by. A constant, since the size of a batch is private; optimisers that rescale
their steps, as Adam does, do not feel it."""


RowLosses: TypeAlias = "Callable[..., torch.Tensor]"
"""Losses of rows, shape (b,): called with what belongs to these rows, and runs the network on them."""


Calls: TypeAlias = "dict[tuple[str, nn.Module], list[tuple[torch.Tensor, torch.Tensor]]]"


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


@dataclass(frozen=True, eq=False)
class _Meeting:
    """One layer and all rows: inputs and gradients at outputs, shapes (b, t, in) and (b, t, out)."""

    prefix: str  # of its weights' names
    layer: nn.Module
    given: torch.Tensor
    slope: torch.Tensor

    def squares(self) -> torch.Tensor:
        """At least the squared norm of each row's gradient, shape (b,)."""
        once = self.slope.sum(dim=1)  # of a bias
        if isinstance(self.layer, nn.Linear):
            products = torch.bmm(self.slope, self.slope.mT) * torch.bmm(self.given, self.given.mT)
            size = products.sum(dim=(1, 2)) + _ROUNDING * products.abs().sum(dim=(1, 2))
        else:
            size = (self.slope * self.given).sum(dim=1).square().sum(dim=1)
        return (1 + _ROUNDING) * (size + once.square().sum(dim=1))

    def of(self, rows: torch.Tensor) -> _Meeting:
        """Of some rows, by a mask of shape (b,)."""
        return _Meeting(self.prefix, self.layer, self.given[rows], self.slope[rows])

    def clipped(self, shares: torch.Tensor) -> Iterator[tuple[str, torch.Tensor]]:
        """By weight, the sum of the rows' gradients, each times its share."""
        slope = self.slope * shares[:, None, None]
        if isinstance(self.layer, nn.Linear):
            yield f"{self.prefix}weight", slope.flatten(0, 1).T @ self.given.flatten(0, 1)
        else:
            yield f"{self.prefix}weight", (slope * self.given).sum(dim=(0, 1))
        yield f"{self.prefix}bias", slope.sum(dim=(0, 1))


def private_gradient(
    network: nn.Module, losses: RowLosses, noise: GradientNoise, *rows: torch.Tensor
) -> float:
    """Set gradients to ``(Σ_i g_i · min(1, C / ‖g_i‖₂) + N(0, C² σ² I)) / constant`` over a Poisson sample.

    ``g_i`` is the gradient of row i's loss over all weights together; one that is not finite counts as none,
    since it would make the sum, and all that follows, no number. A batch without rows is noise alone.

    Args:
        network: linear layers and group normalisation with biases, and what has no weights; no row may touch
            what is computed for another.
        rows: what belongs to each row, shapes (b, …).

    Returns:
        The mean loss, NaN without rows; it is not protected.

    Raises:
        TypeError: another layer has weights.
    """
    total = {name: torch.zeros_like(w) for name, w in network.named_parameters()}
    count, lost = len(rows[0]), 0.0
    for start in range(0, count, _ROWS):
        found, met = _met(network, losses, *(x[start : start + _ROWS] for x in rows))
        norms = torch.stack([meeting.squares() for meeting in met]).sum(dim=0).sqrt()
        if not bool((sound := norms.isfinite()).all()):
            norms, met = norms[sound], [meeting.of(sound) for meeting in met]
        shares = (noise.clip / norms.clamp(min=torch.finfo(norms.dtype).tiny)).clamp(max=1.0)
        for meeting in met:
            for name, gradient in meeting.clipped(shares):
                total[name] += gradient
        lost += float(found.sum())
    for name, w in network.named_parameters():
        drawn = noise.gaussian(noise.clip * noise.multiplier, tuple(w.shape))
        drawn = torch.as_tensor(drawn, dtype=w.dtype, device=w.device)
        w.grad = total[name].add_(drawn).div_(NORMALISER)
    return lost / count if count else float("nan")


def mean_gradient(network: nn.Module, losses: RowLosses, *rows: torch.Tensor) -> float:
    """Set gradients to those of the mean loss of a batch, which is returned."""
    loss = losses(*rows).mean()
    network.zero_grad()
    loss.backward()
    return float(loss.detach())


def _met(network: nn.Module, losses: RowLosses, *rows: torch.Tensor) -> tuple[torch.Tensor, list[_Meeting]]:
    """Losses of the rows, and each layer as they met it, however often it was called."""
    with _listening(network) as calls:
        found = losses(*rows)
    slopes = torch.autograd.grad(found.sum(), [out for outs in calls.values() for _, out in outs])
    met, left = [], iter(slopes)
    for (prefix, layer), seen in calls.items():
        given = [x for x, _ in seen]
        if isinstance(layer, nn.GroupNorm):  # its weights multiply what is normalised
            given = [functional.group_norm(x, layer.num_groups, eps=layer.eps) for x in given]
        given = [_places(x, len(found)) for x in given]
        slope = [_places(next(left), len(found)) for _ in seen]
        met.append(_Meeting(prefix, layer, torch.cat(given, dim=1), torch.cat(slope, dim=1)))
    return found.detach(), met


@contextmanager
def _listening(network: nn.Module) -> Iterator[Calls]:
    """Inputs and outputs of every layer with weights, in the order of calls."""
    calls: Calls = {}
    handles = []
    for name, layer in network.named_modules():
        if next(layer.parameters(recurse=False), None) is None:
            continue
        if not isinstance(layer, (nn.Linear, nn.GroupNorm)) or layer.bias is None:
            raise TypeError(f"no clipped gradient is known for {type(layer).__name__}")

        prefix = f"{name}." if name else ""

        def note(
            layer: nn.Module, given: tuple[torch.Tensor], out: torch.Tensor, prefix: str = prefix
        ) -> None:
            calls.setdefault((prefix, layer), []).append((given[0].detach(), out))

        handles.append(layer.register_forward_hook(note))
    try:
        yield calls
    finally:
        for handle in handles:
            handle.remove()


def _places(x: torch.Tensor, rows: int) -> torch.Tensor:
    """Shape (rows, places, width) of what has shape (rows · places, width)."""
    return x.reshape(rows, -1, x.shape[-1])
