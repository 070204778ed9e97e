"""A variational autoencoder by attention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from synth_audit.generators._deep.families import AttentionTraining
from synth_audit.generators._deep.network_model import check_positive
from synth_audit.plugins.generator import GeneratorInfo

if TYPE_CHECKING:
    from synth_audit.generators._deep.training import Network


@dataclass(frozen=True, kw_only=True)
class AttentionVae(AttentionTraining):
    """Codes of rows by attention, and a variational autoencoder of these codes; all learn together.

    Tokens of a row's columns attend to one another, then those of a column over the rows of a batch; the
    code of the row is a projection of its tokens, and one perceptron for each column rebuilds it: labels by
    cross-entropy, numbers by a mixture of normal densities, with the RMSE of its mean and its likelihood.

    Row attention is the encoder's alone, and the encoder is no part of the model. New rows are made of
    draws from the standard normal prior, which the inner decoder turns into codes, each by itself.

    Attributes:
        latent: dimensions of the prior.
        divergence: weight of ``KL(q(z | row) ‖ N(0, I))``, shared by the columns, beside their mean loss.

    Source: Truda 2023, chapter 4; Somepalli et al. 2021.
    """

    latent: int = 32
    divergence: float = 1.0
    info: ClassVar[GeneratorInfo] = GeneratorInfo(
        title="Attention-VAE",
        summary="Variational autoencoder by attention over columns and rows; no privacy guarantee.",
        cost="minutes",
        source="Truda 2023",
        trial={"steps": 2, "width": 8, "hidden": 8, "mixtures": 2, "latent": 4},
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self, ("latent",), ("divergence",))

    def network(self) -> Network:
        """Encoder, heads, and a prior of codes."""
        from synth_audit.generators.attention_vae.network import VariationalNetwork

        return VariationalNetwork(self)
