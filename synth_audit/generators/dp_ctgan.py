"""A Wasserstein GAN that is asked for labels, private by noised gradients and noisy counts."""

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from synth_audit.generators._deep.gan import NOT_ASKED, Conditions, GanTraining
from synth_audit.generators._deep.network_model import RowsToLearn
from synth_audit.generators._deep.transforms import RowLayout, Weights
from synth_audit.plugins.generator import FitContext, GeneratorInfo, Part, Weight


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

    penalty: Weight = 10.0
    share: Part = 0.1
    info: ClassVar[GeneratorInfo] = GeneratorInfo(
        title="DP-CTGAN",
        summary="Differentially private Wasserstein GAN that is asked for labels by their counts.",
        cost="minutes",
        source="Fang et al. 2022",
        trial={"steps": 3, "hidden": 8, "noise": 4, "batch": 20},
    )

    def buy(self, context: FitContext, n_rows: int, layout: RowLayout) -> tuple[float | None, Any]:
        """The noise multiplier of all counts of labels together, and the steps of the critic."""
        noise, accountant = None, context.accountant
        if layout.choices and accountant.budget is not None:
            noise = accountant.least_noise(epsilon=accountant.reached(self.share))
            accountant.gaussian(noise, what="counts of the labels of each column")
        return noise, super().buy(context, n_rows, layout)

    def teach(self, rows: RowsToLearn, bought: tuple[float | None, Any]) -> Weights:
        """Count labels, then let critic and generator play.

        A row is in one label of each column, so that the noise grows with the root of columns.
        """
        (noise, steps), conditions = bought, NOT_ASKED
        if rows.layout.choices:
            conditions = Conditions.of(rows.vectors, rows.layout)
        if conditions.width and noise is not None:
            scale = noise * len(rows.layout.choices) ** 0.5
            counts = conditions.counts + rows.context.noise.gaussian(scale, conditions.counts.shape)
            conditions = Conditions(conditions.starts, np.maximum(counts, 1.0))  # each can be asked for
        return rows.bought_training("train", steps, self.clip).run(partial(self.learn, conditions=conditions))
