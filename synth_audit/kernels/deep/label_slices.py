"""Sums, softmax and choices within each one-hot slice of row vectors, for all slices at once."""

from __future__ import annotations

import torch
from torch import nn

from synth_audit.kernels.row_layout import RowLayout


class LabelSlices(nn.Module):
    """The coordinates of all slices side by side: w in all, of s slices. Nothing here is learnt.

    Attributes:
        places: positions of the coordinates in a row vector, shape (w,).
        owner: which slice each belongs to, shape (w,). sizes: labels of the slice it belongs to, shape (w,).
    """

    places: torch.Tensor
    owner: torch.Tensor
    sizes: torch.Tensor

    def __init__(self, layout: RowLayout) -> None:
        super().__init__()
        widths = torch.tensor([stop - start for start, stop in layout.slices], dtype=torch.long)
        places = [place for start, stop in layout.slices for place in range(start, stop)]
        owner = torch.repeat_interleave(torch.arange(len(widths)), widths)
        self.count = len(widths)
        self.register_buffer("places", torch.tensor(places, dtype=torch.long), persistent=False)
        self.register_buffer("owner", owner, persistent=False)
        self.register_buffer("sizes", widths[owner].float(), persistent=False)
        members = torch.zeros((len(places), self.count))
        members[torch.arange(len(places)), owner] = 1
        self.register_buffer("members", members, persistent=False)

    def sums(self, x: torch.Tensor) -> torch.Tensor:
        """Of finite numbers within each slice: shape (n, w) to (n, s)."""
        return x @ self.members

    def largest(self, x: torch.Tensor) -> torch.Tensor:
        """Within each slice: shape (n, w) to (n, s)."""
        lowest = x.new_full((len(x), self.count), -torch.inf)
        return lowest.scatter_reduce(1, self.owner.expand(len(x), -1), x, "amax")

    def log_softmax(self, scores: torch.Tensor) -> torch.Tensor:
        """Logarithms of chances that sum to 1 within each slice; shape (n, w)."""
        apart = scores - self.largest(scores.detach())[:, self.owner]
        return apart - self.sums(apart.exp()).log()[:, self.owner]

    def drawn(self, scores: torch.Tensor, draws: torch.Generator) -> torch.Tensor:
        """One label in each slice by the softmax of its scores, one-hot; shape (n, w)."""
        uniform = torch.rand(scores.shape, generator=draws).clamp(1e-9, 1 - 1e-7).to(scores.device)
        noisy = scores - torch.log(-torch.log(uniform))
        return (noisy == self.largest(noisy)[:, self.owner]).to(scores.dtype)
