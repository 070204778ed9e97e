"""A Wasserstein GAN with clipped weights, private by noised gradients of its critic."""

from dataclasses import dataclass
from typing import ClassVar

from synth_audit.generators._deep.gan import GanTraining
from synth_audit.plugins.generator import GeneratorInfo, Size


@dataclass(frozen=True, kw_only=True)
class Dpgan(GanTraining):
    """A critic with weights between ±``weight_clip``, trained by noised gradients of ``c(made) − c(real)``.

    The paper infers from bounded weights how large a gradient can be; here each row's gradient is clipped as
    well, which holds whatever the network. The optimiser is Adam instead of RMSProp.

    Attributes:
        weight_clip: the largest absolute weight of the critic.

    Source: Xie et al. 2018.
    """

    weight_clip: Size = 0.1
    info: ClassVar[GeneratorInfo] = GeneratorInfo(
        title="DPGAN",
        summary="Differentially private Wasserstein GAN with clipped weights.",
        cost="minutes",
        source="Xie et al. 2018",
        trial={"steps": 3, "hidden": 8, "noise": 4, "batch": 20},
    )
