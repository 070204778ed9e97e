"""A private autoencoder, and a private GAN that draws its codes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from synth_audit.generators._budget import bought, part_of_budget
from synth_audit.generators._deep.families import GanForm, GanTraining
from synth_audit.generators._deep.network_model import (
    Learn,
    NetworkModel,
    RowsToLearn,
    check_positive,
    fit_protected,
)
from synth_audit.generators._deep.transforms import RowLayout
from synth_audit.generators._marginal.binning import check_share
from synth_audit.plugins.generator import FitContext, GeneratorInfo
from synth_audit.table.table import Table

if TYPE_CHECKING:
    from synth_audit.generators._deep.training import Weights
    from synth_audit.generators.dp_auto_gan.network import AutoGan


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
        check_positive(self, ("latent", "autoencoder_steps"), ("autoencoder_rate",))
        check_share(self.share)

    @property
    def form(self) -> GanForm:
        """What tells it from other private GANs."""
        return GanForm(penalty=self.penalty)

    def network(self) -> AutoGan:
        """A generator of codes, a decoder and a critic."""
        from synth_audit.generators.dp_auto_gan.network import AutoGan

        return AutoGan(self)

    def fit(self, train: Table, context: FitContext) -> NetworkModel:
        """Train the autoencoder, then the GAN; both are paid for before the first step."""

        def buy(n_rows: int, layout: RowLayout) -> Learn:
            part, rate = part_of_budget(self.share, context), self.sampling_rate
            what = "training of the autoencoder"
            coding = bought(context, n_rows, count=self.autoencoder_steps, rate=rate, what=what, epsilon=part)
            judging = bought(context, n_rows, count=self.steps, rate=rate, what="training of the critic")

            def learn(rows: RowsToLearn) -> Weights:
                network = self.network()
                first = rows.bought_training("autoencoder", coding, self.clip)
                network = replace(network, decoder=first.run(network.learn_decoder))
                return rows.bought_training("train", judging, self.clip).run(network.learn)

            return learn

        return fit_protected(self, train, context, self.margins, buy)
