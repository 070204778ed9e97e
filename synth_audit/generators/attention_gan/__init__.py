"""A GAN of the codes of an autoencoder by attention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from synth_audit.generators._deep.families import AttentionTraining
from synth_audit.generators._deep.network_model import check_positive
from synth_audit.plugins.generator import GeneratorInfo

if TYPE_CHECKING:
    from synth_audit.generators._deep.training import Network


@dataclass(frozen=True, kw_only=True)
class AttentionGan(AttentionTraining):
    """An autoencoder by attention is trained and frozen; a Wasserstein GAN learns the codes of train.

    Tokens of a row's columns attend to one another, then those of a column over the rows of a batch; the
    code of the row is a projection of its tokens, and one perceptron for each column rebuilds it: labels by
    cross-entropy, numbers by a mixture of normal densities, with the RMSE of its mean and its likelihood.

    Row attention is the encoder's alone, and the encoder is no part of the model. New rows are made of
    codes that the GAN's generator makes of noise, and each becomes a row by itself.

    Attributes:
        gan_steps: of the generator, after those of the autoencoder.
        critic_steps: of the critic for each of them.
        noise: dimensions of the generator's input.
        gan_hidden: width of generator and critic.
        gan_rate: of both their Adams.

    Source: Truda 2023, chapter 4; Somepalli et al. 2021; Gulrajani et al. 2017.
    """

    gan_steps: int = 2000
    critic_steps: int = 3
    noise: int = 32
    gan_hidden: int = 128
    gan_rate: float = 5e-4
    info: ClassVar[GeneratorInfo] = GeneratorInfo(
        title="Attention-GAN",
        summary="GAN of the codes of an autoencoder by attention; no privacy guarantee.",
        cost="minutes",
        source="Truda 2023",
        trial={"steps": 2, "width": 8, "hidden": 8, "mixtures": 2, "gan_steps": 2, "gan_hidden": 8},
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self, ("gan_steps", "critic_steps", "noise", "gan_hidden"), ("gan_rate",))

    @property
    def all_steps(self) -> int:
        """Those of the autoencoder, then those of the GAN's generator."""
        return self.steps + self.gan_steps

    def network(self) -> Network:
        """Encoder, heads and a generator of codes."""
        from synth_audit.generators.attention_gan.network import CodeGanNetwork

        return CodeGanNetwork(self)
