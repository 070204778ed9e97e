"""The plain way down: Adam on the mean loss of shuffled batches."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from synth_audit.kernels.deep.training import Loop, refuse_lost


def descend(
    network: nn.Module,
    losses: Callable[[torch.Tensor], torch.Tensor],
    data: torch.Tensor,
    loop: Loop,
    learning_rate: float,
    steps: range | None = None,
    *known: object,
    draws: torch.Generator | None = None,
) -> None:
    """Train a network where it lies; the learning rate falls to 0 on a straight line.

    Args:
        losses: of each of some rows, shape (b, width) to (b,). data: all rows, shape (n, width).
        steps: of the loop's, those that are taken here; all if left out.
        known: settings and layout. draws: what the losses move.

    Raises:
        PluginError: the loss is not a number any more.
    """
    optimiser = torch.optim.Adam(network.parameters(), lr=learning_rate)
    steps = range(loop.steps) if steps is None else steps
    parts = {"network": network, "optimiser": optimiser, **({} if draws is None else {"draws": draws})}
    for step in loop.taken("network", parts, learning_rate, data, *known, steps=steps):
        batch = data[torch.as_tensor(loop.sample(), device=data.device)]
        loss = losses(batch).mean()
        optimiser.param_groups[0]["lr"] = learning_rate * (1 - (step - steps.start) / len(steps))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        lost = float(loss.detach())
        refuse_lost(lost, step + 1)
        loop.told(step + 1, lost)
