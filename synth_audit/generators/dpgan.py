"""A Wasserstein GAN with clipped weights, private by noised gradients of its critic."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from synth_audit.generators._deep.families import GanForm, GanTraining, fit_gan, load_gan
from synth_audit.generators._deep.network_model import NetworkModel, check_positive
from synth_audit.plugins.generator import FitContext, GeneratorInfo
from synth_audit.table.table import Table


@dataclass(frozen=True, kw_only=True)
class Dpgan(GanTraining):
    """A critic with weights between ±``weight_clip``, trained by noised gradients of ``c(made) − c(real)``.

    The paper infers from bounded weights how large a gradient can be; here each row's gradient is clipped as
    well, which holds whatever the network. The optimiser is Adam instead of RMSProp.

    Attributes:
        weight_clip: the largest absolute weight of the critic.

    Source: Xie et al. 2018.
    """

    weight_clip: float = 0.1
    info: ClassVar[GeneratorInfo] = GeneratorInfo(
        title="DPGAN",
        summary="Differentially private Wasserstein GAN with clipped weights.",
        cost="minutes",
        source="Xie et al. 2018",
        trial={"steps": 3, "hidden": 8, "noise": 4, "batch": 20},
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive({}, {"weight_clip": self.weight_clip})

    def fit(self, train: Table, context: FitContext) -> NetworkModel:
        """Train on ``train``; the number of steps and the noise are fixed beforehand."""
        return fit_gan(self, GanForm(weight_clip=self.weight_clip), train, context)

    def load(self, folder: Path) -> NetworkModel:
        """The model that was saved there."""
        return load_gan(self, folder)
