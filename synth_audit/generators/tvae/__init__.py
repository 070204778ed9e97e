"""A variational autoencoder for mixed tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from synth_audit.generators._deep.network_model import (
    NetworkGenerator,
    NetworkModel,
    check_positive,
    fit_unprotected,
)
from synth_audit.plugins.generator import FitContext, GeneratorInfo
from synth_audit.table.table import Table

if TYPE_CHECKING:
    from synth_audit.generators._deep.training import Network


@dataclass(frozen=True, kw_only=True)
class Tvae(NetworkGenerator):
    """Codes of rows by a variational autoencoder; new rows are decoded from new codes.

    Numbers are normalised within their modes; the loss of a row is twice its negative log-likelihood given
    the code, plus ``KL(q(code | row) ‖ N(0, I))``. Labels are drawn by their chances.

    Attributes:
        epochs: times that every row is seen.
        batch: rows of a step; an eighth of the table where that is less, but 50 at least.
        latent: dimensions of the code.
        hidden: width of the two layers of encoder and decoder.
        learning_rate: of Adam.
        regularised: let weights decay; off, training overfits sooner.

    Source: Xu et al. 2019.
    """

    epochs: int = 300
    batch: int = 500
    latent: int = 128
    hidden: int = 128
    learning_rate: float = 1e-3
    regularised: bool = True
    info: ClassVar[GeneratorInfo] = GeneratorInfo(
        title="TVAE",
        summary="Variational autoencoder with mode-specific normalisation; no privacy guarantee.",
        cost="minutes",
        source="Xu et al. 2019",
        trial={"epochs": 2, "hidden": 16, "latent": 8},
    )

    def __post_init__(self) -> None:
        counts = ("epochs", "batch", "latent", "hidden")
        check_positive(self, counts, ("learning_rate",))

    def fit(self, train: Table, context: FitContext) -> NetworkModel:
        """Train on ``train``."""
        return fit_unprotected(self, train, context, epochs=self.epochs, batch=self.batch)

    def network(self) -> Network:
        """Encoder and decoder."""
        from synth_audit.generators.tvae.network import TvaeNetwork

        return TvaeNetwork(self)
