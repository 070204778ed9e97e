"""A conditional GAN for mixed tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from synth_audit.errors import PlanError
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
class Ctgan(NetworkGenerator):
    """A Wasserstein GAN that is asked for rows with a given label of a given column.

    While it learns labels are asked for by the logarithm of their counts, so that rare ones are learnt; when
    rows are drawn, by their counts. The critic, with gradient penalty, judges rows in packs, against
    collapse. Numbers are normalised within their modes.

    Attributes:
        epochs: times that as many rows as train has are seen.
        batch: rows of a step; an eighth of the table where that is less, but 50 at least. Rounded down to
            whole packs.
        noise: dimensions of the generator's input.
        hidden: width of the two layers of generator and critic.
        learning_rate: of both Adams.
        pack: rows that the critic judges together; 10 as published.
        averaging: decay of the running mean of the generator's weights that rows are drawn with; 0 for the
            last weights, as published.

    Source: Xu et al. 2019; Yazıcı et al. 2019.
    """

    epochs: int = 300
    batch: int = 500
    noise: int = 128
    hidden: int = 256
    learning_rate: float = 2e-4
    pack: int = 1
    averaging: float = 0.998
    info: ClassVar[GeneratorInfo] = GeneratorInfo(
        title="CTGAN",
        summary="Conditional Wasserstein GAN trained by sampling; no privacy guarantee.",
        cost="minutes",
        source="Xu et al. 2019",
        trial={"epochs": 2, "hidden": 16, "noise": 8},
    )

    def __post_init__(self) -> None:
        counts = ("epochs", "batch", "noise", "hidden", "pack")
        if not 0 <= self.averaging < 1:
            raise PlanError(
                "the decay is no share", where="generator.averaging", expected="0 or more, below 1"
            )
        check_positive(self, counts, ("learning_rate",))

    def fit(self, train: Table, context: FitContext) -> NetworkModel:
        """Train on ``train``."""
        return fit_unprotected(self, train, context, epochs=self.epochs, batch=self.batch)

    def network(self) -> Network:
        """A generator that is asked for labels, and its critic."""
        from synth_audit.generators.ctgan.network import CtganNetwork

        return CtganNetwork(self)
