"""What the generators by attention share: settings, and the fit with numbers by their ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from synth_audit.core.errors import PlanError
from synth_audit.core.generator import FitContext
from synth_audit.core.table import Table
from synth_audit.encoding.network_model import Draw, NetworkModel
from synth_audit.encoding.network_training import Fit, check_positive, fit_unprotected
from synth_audit.encoding.quantile_transform import QuantileTransform

if TYPE_CHECKING:
    from synth_audit.kernels.deep.attention import AttentionSettings


@dataclass(frozen=True, kw_only=True)
class AttentionTraining:
    """How encoder and heads are built and trained.

    Attributes:
        steps: gradient steps of encoder and heads.
        batch: rows of a step, which attend to one another.
        width: dimensions of a column's token, and of the code of a row.
        heads: of attention; a divisor of ``width``.
        hidden: width of all perceptrons, of which each column has one that rebuilds it.
        mixtures: normal densities k that tell of a number, by 3 k outputs.
        labels_weight, numbers_weight: α and β of the loss.
        learning_rate: of Adam at first; it falls to 0 on a straight line.
    """

    steps: int = 1500
    batch: int = 128
    width: int = 32
    heads: int = 4
    hidden: int = 64
    mixtures: int = 5
    labels_weight: float = 1.0
    numbers_weight: float = 1.0
    learning_rate: float = 2e-3

    def __post_init__(self) -> None:
        counts = ("steps", "batch", "width", "heads", "hidden", "mixtures")
        sizes = ("labels_weight", "numbers_weight", "learning_rate")
        check_positive({n: getattr(self, n) for n in counts}, {n: getattr(self, n) for n in sizes})
        if self.width % self.heads:
            raise PlanError(
                f"{self.width} dimensions cannot be shared by {self.heads} heads",
                where="generator.heads",
                expected="a divisor of width",
            )

    @property
    def network(self) -> AttentionSettings:
        """Of encoder and heads, for the kernel."""
        from synth_audit.kernels.deep.attention import AttentionSettings

        return AttentionSettings(
            self.width,
            self.heads,
            self.hidden,
            self.mixtures,
            self.labels_weight,
            self.numbers_weight,
            self.learning_rate,
        )

    def fit_attention(
        self, train: Table, context: FitContext, fit: Fit, draw: Draw, more_steps: int = 0
    ) -> NetworkModel:
        """Train on ``train``, by ``more_steps`` beyond those of encoder and heads."""
        return fit_unprotected(
            train,
            context,
            steps=self.steps + more_steps,
            batch=self.batch,
            fit=fit,
            draw=draw,
            of_numbers=QuantileTransform.of,
        )
