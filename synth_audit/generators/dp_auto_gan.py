"""A private autoencoder, and a private GAN that draws its codes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from synth_audit.errors import PlanError
from synth_audit.generators._budget import bought, part_of_budget
from synth_audit.generators._deep.families import (
    BLOCKS,
    GanForm,
    GanTraining,
    GeneratorSize,
    draw_with,
    loop_of,
    noise_of,
    taught,
)
from synth_audit.generators._deep.network_model import NetworkModel, Weights, check_positive, transformer_for
from synth_audit.generators._deep.rows import with_margins
from synth_audit.generators._deep.transforms import RowLayout
from synth_audit.plugins.generator import FitContext, GeneratorInfo
from synth_audit.run.context import torch_device
from synth_audit.table.table import Table

if TYPE_CHECKING:
    from torch import nn

    from synth_audit.generators._deep.autoencoder import AutoencoderSettings
    from synth_audit.generators._deep.gan import Conditions


@dataclass(frozen=True, kw_only=True)
class DpAutoGan(GanTraining):
    """Rows are decoded from codes, and a GAN learns which codes; its critic judges what is decoded.

    Autoencoder and critic are both trained by DP-SGD and their costs composed. The paper noises the decoder
    and leaves the encoder as it is, since it is not released; but the decoder learns from its codes, which
    one row then moves for all others. Here the gradients of both are clipped and noised together.

    Attributes:
        share: of ε for the autoencoder.
        latent: dimensions of the code.
        autoencoder_steps: bought beforehand, as those of the critic are.
        autoencoder_rate: of the autoencoder's Adam.
        penalty: weight of how much steeper than 1 the critic is between a real and a made row, squared.

    Source: Tantipongpipat et al. 2021.
    """

    share: float = 0.3
    latent: int = 16
    autoencoder_steps: int = 300
    autoencoder_rate: float = 5e-3
    penalty: float = 10.0
    info: ClassVar[GeneratorInfo] = GeneratorInfo(
        title="DP-auto-GAN",
        summary="Differentially private autoencoder with a private GAN that draws its codes.",
        cost="minutes",
        source="Tantipongpipat et al. 2021",
        trial={"steps": 3, "hidden": 8, "noise": 4, "batch": 20, "latent": 2, "autoencoder_steps": 3},
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        counts = ("latent", "autoencoder_steps")
        check_positive({n: getattr(self, n) for n in counts}, {"autoencoder_rate": self.autoencoder_rate})
        if not 0 <= self.penalty < float("inf"):
            raise PlanError("the penalty is no weight", where="generator.penalty", expected="0 or more")
        if not 0 < self.share < 1:
            raise PlanError("the share is no part of the budget", where="generator.share", expected="0 to 1")

    def fit(self, train: Table, context: FitContext) -> NetworkModel:
        """Train the autoencoder, then the GAN; both are paid for before the first step."""
        device = torch_device(context.device, "this generator")
        from synth_audit.generators._deep.autoencoder import fitted_decoder
        from synth_audit.generators._deep.training import built, with_weights

        train = train.released_only()
        transformer = with_margins(transformer_for(train, context), train, context, self.margins)
        n, rate, layout = train.n_rows, self.sampling_rate, transformer.layout
        part = part_of_budget(self.share, context)
        what = "training of the autoencoder"
        coding = bought(context, n, count=self.autoencoder_steps, rate=rate, what=what, epsilon=part)
        judging = bought(context, n, count=self.steps, rate=rate, what="training of the critic")
        weights: Weights = {}
        if layout.width:
            draws = judging.draws()
            rows = transformer.encode(train, draws)
            loop, noise = loop_of(coding, "autoencoder"), noise_of(coding, self.clip)
            decoder = fitted_decoder(rows, layout, self._autoencoder, loop, noise, draws, device)
            network = built(lambda: self._network(self, layout, None), draws)
            with_weights(network.get_submodule("decoder"), decoder)
            form = GanForm(penalty=self.penalty)
            weights = taught(self, form, rows, layout, network, None, judging, draws, device)
        draw = draw_with(self, self._network)
        return NetworkModel.calibrated(transformer, weights, draw, context.rng)

    def load(self, folder: Path) -> NetworkModel:
        """The model that was saved there."""
        return NetworkModel.load(folder, draw_with(self, self._network))

    def _network(
        self, settings: GeneratorSize, layout: RowLayout, conditions: Conditions | None
    ) -> nn.Module:
        from synth_audit.generators._deep.autoencoder import DecodedNet, decoder_of
        from synth_audit.generators._deep.training import ResidualNet

        codes = ResidualNet(settings.noise, self.latent, settings.hidden, BLOCKS)
        return DecodedNet(codes, decoder_of(layout.width, self._autoencoder))

    @property
    def _autoencoder(self) -> AutoencoderSettings:
        from synth_audit.generators._deep.autoencoder import AutoencoderSettings

        return AutoencoderSettings(self.latent, self.hidden, self.autoencoder_rate)
