"""The networks of the papers."""

from __future__ import annotations

import torch
from torch import nn

GROUPS = 1
"""Groups of a row's hidden coordinates that are normalised together."""


class ResidualBlock(nn.Module):
    """``[ReLU(GroupNorm(W x + b)), x]``: the output is concatenated with the input."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, hidden)
        self.norm = nn.GroupNorm(GROUPS, hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Shape (n, width) to (n, hidden + width)."""
        return torch.cat([torch.relu(self.norm(self.linear(x))), x], dim=-1)


class ResidualNet(nn.Module):
    """Residual blocks and a last linear layer; each row is computed by itself.

    Source: the generator of Xu et al. 2019, with groups in place of batches as the thesis has it.
    """

    def __init__(self, width: int, out: int, hidden: int, blocks: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(ResidualBlock(width + i * hidden, hidden) for i in range(blocks))
        self.out = nn.Linear(width + blocks * hidden, out)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Shape (n, width) to (n, out)."""
        for block in self.blocks:
            x = block(x)
        out: torch.Tensor = self.out(x)
        return out
