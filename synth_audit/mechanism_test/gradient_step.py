"""The step that our networks are trained by, on gradients that are given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from synth_audit.core.arrays import Floats
from synth_audit.core.noise import Noise

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class GradientStep:
    """A function of gradients, shape (rows, weights): Poisson sample, clipped sum, noise.

    Attributes:
        clip: the clipping norm. multiplier: of the noise. rate: of Poisson sampling; 1 for all rows.
    """

    clip: float = 1.0
    multiplier: float = 1.0
    rate: float = 1.0

    def __call__(self, table: Floats, n: int) -> Floats:
        """``n`` noised sums of one batch each, in units of the clipping norm, shape (n, weights)."""
        import torch

        from synth_audit.kernels.deep.gradients import NORMALISER, GradientNoise
        from synth_audit.kernels.deep.layer_gradients import private_gradient
        from synth_audit.kernels.deep.training import one_thread

        noise = GradientNoise(self.clip, self.multiplier, Noise.gaussian)
        layer = torch.nn.Linear(table.shape[1], 1)

        def losses(rows: torch.Tensor) -> torch.Tensor:
            """Losses whose gradients are the rows; a second place, 0, takes back what the bias gains."""
            places = torch.stack([rows, torch.zeros_like(rows)], dim=1)
            at_row, at_zero = layer(places.flatten(0, 1)).reshape(-1, 2).T
            return at_row - at_zero

        rows = torch.as_tensor(table, dtype=torch.float32)
        everyone = np.arange(len(table))
        found = np.empty((n, table.shape[1]))
        with one_thread():
            for i in range(n):
                batch = Noise.poisson_sample(len(table), self.rate) if self.rate < 1 else everyone
                private_gradient(layer, losses, noise, rows[torch.as_tensor(batch)])
                found[i] = layer.weight.grad[0].numpy() * (NORMALISER / self.clip)
        return found
