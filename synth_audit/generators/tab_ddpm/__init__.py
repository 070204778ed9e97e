"""Diffusion of mixed tables without protection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from synth_audit.generators._deep.network_model import (
    NetworkGenerator,
    NetworkModel,
    check_positive,
    fit_unprotected,
)
from synth_audit.generators._deep.transforms import QuantileTransform
from synth_audit.plugins.generator import FitContext, GeneratorInfo
from synth_audit.table.table import Table

if TYPE_CHECKING:
    from synth_audit.generators._deep.training import Network


@dataclass(frozen=True, kw_only=True)
class TabDdpm(NetworkGenerator):
    """Rows become noise level by level; a network learns the way back.

    Numbers, standard normal by their ranks, are noised by a Gaussian diffusion, whose noise ε the network
    predicts; labels by a multinomial one, of which it predicts the row without noise. The loss of a row at a
    random level is the mean square of what is missed of ε, plus T times the mean over columns of labels of
    ``KL(q(x_{t−1} | x_t, x_0) ‖ q(x_{t−1} | x_t, x̂_0))``. As published the target is given to the network;
    here it is a column like all others.

    Attributes:
        steps: gradient steps.
        batch: rows of a step.
        levels: noise levels T.
        hidden, layers: width and number of the network's layers.
        learning_rate: of Adam at first; it falls to 0 on a straight line.

    Source: Kotelnikov et al. 2023.
    """

    steps: int = 5000
    batch: int = 512
    levels: int = 100
    hidden: int = 256
    layers: int = 2
    learning_rate: float = 1e-3
    info: ClassVar[GeneratorInfo] = GeneratorInfo(
        title="TabDDPM",
        summary="Gaussian and multinomial diffusion of mixed tables; no privacy guarantee.",
        cost="minutes",
        source="Kotelnikov et al. 2023",
        trial={"steps": 3, "levels": 4, "hidden": 8},
    )

    def __post_init__(self) -> None:
        check_positive(self, ("steps", "batch", "levels", "hidden", "layers"), ("learning_rate",))

    def fit(self, train: Table, context: FitContext) -> NetworkModel:
        """Train on ``train``."""
        normal = QuantileTransform.of
        return fit_unprotected(self, train, context, steps=self.steps, batch=self.batch, of_numbers=normal)

    def network(self) -> Network:
        """Both diffusions."""
        from synth_audit.generators.tab_ddpm.network import TabDdpmNetwork

        return TabDdpmNetwork(self)
