"""A Wasserstein GAN whose critic sees real rows by clipped and noised gradients alone."""

from dataclasses import dataclass
from typing import ClassVar

from synth_audit.generators._deep.gan import GanTraining
from synth_audit.plugins.generator import GeneratorInfo, Weight


@dataclass(frozen=True, kw_only=True)
class DpWgan(GanTraining):
    """A critic that may not be steep, trained by DP-SGD; the generator learns from it at no further cost.

    With ``d = c(made) − c(real)``, for a row made for this real one alone, its loss is
    ``d + penalty · max(0, |d| / ‖made − real‖ − 1)²``: a penalty on the Lipschitz constant as it is defined,
    without a gradient at points between. Under a budget the whole loss's gradient is clipped to C, row by
    row, and noise added to the sum over a Poisson sample; bounds and labels come from the plan.

    Attributes:
        penalty: weight of how much steeper than 1 the critic is between a real and a made row, squared.

    Source: Xie et al. 2018; Petzka et al. 2018 for the penalty.
    """

    penalty: Weight = 10.0
    info: ClassVar[GeneratorInfo] = GeneratorInfo(
        title="DP-WGAN",
        summary="Differentially private Wasserstein GAN with a Lipschitz penalty.",
        cost="minutes",
        source="Xie et al. 2018, Petzka et al. 2018",
        trial={"steps": 3, "hidden": 8, "noise": 4, "batch": 20},
    )
