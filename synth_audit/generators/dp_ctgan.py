"""A Wasserstein GAN that is asked for labels, private by noised gradients and noisy counts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from synth_audit.errors import PlanError
from synth_audit.generators._deep.families import GanForm, GanTraining, fit_gan, load_gan
from synth_audit.generators._deep.network_model import NetworkModel
from synth_audit.plugins.generator import FitContext, GeneratorInfo
from synth_audit.table.table import Table


@dataclass(frozen=True, kw_only=True)
class DpCtgan(GanTraining):
    """CTGAN's conditions under differential privacy: the generator is asked for a label of a column.

    Real rows are not chosen by their labels, which would be another sampling than the one accounted for: a
    batch is a Poisson sample, and each of its rows answers with its own label of a column chosen at random,
    for which a row is made beside it. What the generator is asked for on its own follows counts of labels,
    bought with Gaussian noise out of ``share`` of ε. Rows are judged one by one, not in packs, since a row
    would take part in the gradient of its whole pack; numbers have ranges instead of modes, which would have
    to be bought.

    Attributes:
        penalty: weight of how much steeper than 1 the critic is between a real and a made row, squared.
        share: of ε for the counts.

    Source: Xu et al. 2019; Fang, Dhami & Kersting 2022 for the private critic.
    """

    penalty: float = 10.0
    share: float = 0.1
    info: ClassVar[GeneratorInfo] = GeneratorInfo(
        title="DP-CTGAN",
        summary="Differentially private Wasserstein GAN that is asked for labels by their counts.",
        cost="minutes",
        source="Fang et al. 2022",
        trial={"steps": 3, "hidden": 8, "noise": 4, "batch": 20},
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.penalty < float("inf"):
            raise PlanError("the penalty is no weight", where="generator.penalty", expected="0 or more")
        if not 0 < self.share < 1:
            raise PlanError("the share is no part of the budget", where="generator.share", expected="0 to 1")

    def fit(self, train: Table, context: FitContext) -> NetworkModel:
        """Count labels, then train; both are paid for before a row is looked at."""
        return fit_gan(self, GanForm(self.penalty, None, self.share), train, context)

    def load(self, folder: Path) -> NetworkModel:
        """The model that was saved there."""
        return load_gan(self, folder)
