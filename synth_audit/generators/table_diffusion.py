"""Diffusion that predicts the noise, private by one noised gradient per batch."""

from dataclasses import dataclass
from typing import ClassVar

from synth_audit.generators._deep.diffusion import DiffusionTraining, Predicted
from synth_audit.plugins.generator import GeneratorInfo, Size


@dataclass(frozen=True, kw_only=True)
class TableDiffusion(DiffusionTraining):
    """Take noise off in a few steps; the network predicts the noise.

    With ``β_t = (1 − cos(π t / T)) / 2`` and ``z_t = √β_t ξ`` the loss of a row is the mean over t = 1 … T
    of ``‖M(x + z_t) − z_t‖² / width``: a C of 1 for the sum of squares, as printed, is one of ``1 / width``
    here. Under a budget each step clips the gradient of every row's whole loss to C and
    adds noise to their sum over a Poisson sample; bounds and labels come from the plan.

    Source: Truda 2023, chapter 5.
    """

    clip: Size = 0.1
    target: ClassVar[Predicted] = "noise"
    info: ClassVar[GeneratorInfo] = GeneratorInfo(
        title="TableDiffusion",
        summary="Differentially private diffusion that predicts the added noise.",
        cost="minutes",
        source="Truda 2023",
        trial={"steps": 3, "hidden": 8},
    )
