"""An autoencoder by attention, and a mixture of its codes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from synth_audit.generators._deep.families import AttentionTraining
from synth_audit.generators._deep.network_model import check_positive
from synth_audit.plugins.generator import GeneratorInfo

if TYPE_CHECKING:
    from synth_audit.generators._deep.training import Network


@dataclass(frozen=True, kw_only=True)
class AttentionAe(AttentionTraining):
    """Rows are rebuilt from codes by attention; new codes come from a mixture of normal densities.

    Tokens of a row's columns attend to one another, then those of a column over the rows of a batch; the
    code of the row is a projection of its tokens, and one perceptron for each column rebuilds it: labels by
    cross-entropy, numbers by a mixture of normal densities, with the RMSE of its mean and its likelihood.

    Row attention is the encoder's alone, and the encoder is no part of the model. New rows are made of
    codes from a mixture of normal densities that was fitted to the codes of train, each by itself.
    As published the autoencoder only rebuilds real rows, which would be no release.

    Attributes:
        components: normal densities of the codes; fewer where there are fewer than 50 rows for each.

    Source: Truda 2023, chapter 4; Somepalli et al. 2021; Ghosh et al. 2020 for codes drawn afterwards.
    """

    components: int = 10
    info: ClassVar[GeneratorInfo] = GeneratorInfo(
        title="Attention-AE",
        summary="Autoencoder by attention over columns and rows; no privacy guarantee.",
        cost="minutes",
        source="Truda 2023",
        trial={"steps": 2, "width": 8, "hidden": 8, "mixtures": 2},
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self, ("components",))

    def network(self) -> Network:
        """Encoder, heads and a mixture of codes."""
        from synth_audit.generators.attention_ae.network import MixtureNetwork

        return MixtureNetwork(self)
