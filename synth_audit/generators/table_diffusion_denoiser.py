"""Diffusion that predicts the row itself, private by one noised gradient per batch."""

from dataclasses import dataclass
from typing import ClassVar

from synth_audit.generators._deep.diffusion import DiffusionTraining, Predicted
from synth_audit.plugins.generator import GeneratorInfo


@dataclass(frozen=True, kw_only=True)
class TableDiffusionDenoiser(DiffusionTraining):
    """Take noise off in a few steps; the network predicts the row behind it.

    With ``β_t = (1 − cos(π t / T)) / 2`` and ``x̃_t = x + √β_t ξ`` the loss of a row is the mean over
    t = 1 … T of the mean square of M(x̃_t) − x over numbers, plus ``(1 / K) Σ_c KL(x_c ‖ softmax(M(x̃_t)_c))``
    over the columns of labels, each by the softmax of its own coordinates, K labels in all. Under a budget
    each step clips the gradient of every row's whole loss to C and adds noise to their sum over a Poisson
    sample; bounds and labels come from the plan.

    Source: Truda 2023, chapter 5.
    """

    target: ClassVar[Predicted] = "row"
    info: ClassVar[GeneratorInfo] = GeneratorInfo(
        title="TableDiffusion, denoiser",
        summary="Differentially private diffusion that predicts the row behind the noise.",
        cost="minutes",
        source="Truda 2023",
        trial={"steps": 3, "hidden": 8},
    )
