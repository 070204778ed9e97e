"""Counts of train's cells with the noise that was paid for, and what follows from those of single columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from synth_audit.core.arrays import Codes, Floats
from synth_audit.core.exponential_mechanism import exponential_choice
from synth_audit.core.generator import FitContext
from synth_audit.kernels.cell_counts import Attributes, cells_of, counted, no_less_than_nothing
from synth_audit.kernels.cell_merging import CellMerging
from synth_audit.kernels.graphical_model import GraphicalModel, Measured, estimated_total, fitted
from synth_audit.kernels.junction_tree import JunctionTree


@dataclass(frozen=True, eq=False)
class NoisyCounts:
    """The cells of train's rows, told of with noise only.

    Attributes:
        codes: shape (n, d). sizes: cells of each column.
    """

    codes: Codes = field(repr=False)
    sizes: tuple[int, ...]
    context: FitContext = field(repr=False)

    def measured(self, attributes: Attributes, noise: float | None) -> Measured:
        """A table of counts with Gaussian noise of this deviation, which was paid for; None for none."""
        self.context.deadline.check()
        counts = self.exact(attributes)
        if noise is None:
            return Measured(attributes, counts, np.ones(()))
        return Measured(
            attributes, counts + self.context.noise.gaussian(noise, counts.shape), np.array(noise)
        )

    def exact(self, attributes: Attributes) -> Floats:
        """Without noise: to score candidates for a private choice, and for nothing else."""
        return counted(self.codes, self.sizes, attributes)

    def off(self, attributes: Attributes, expected: Floats) -> float:
        """Σ |counts − expected|, without noise; one row added or removed moves it by 1 at most."""
        return float(np.abs(self.exact(attributes) - expected).sum())


@dataclass(frozen=True, eq=False)
class SingleColumns:
    """Train with the cells merged that noise hides, and its noisy counts by column.

    Attributes:
        total: estimated number of rows.
    """

    rows: NoisyCounts
    merging: CellMerging
    measured: tuple[Measured, ...] = field(repr=False)
    total: float

    @classmethod
    def of(cls, rows: NoisyCounts, noise: float | None) -> SingleColumns:
        """Measure every column alone, with noise that was paid for."""
        alone = [rows.measured((j,), noise) for j in range(len(rows.sizes))]
        merging = CellMerging.of([one.counts for one in alone], noise or 0.0)
        measured = []
        for j, one in enumerate(alone):
            together = np.bincount(merging.merged[j], minlength=merging.sizes[j])
            measured.append(Measured((j,), merging.counts(one.counts, j), one.deviation * np.sqrt(together)))
        merged = NoisyCounts(merging.codes(rows.codes), merging.sizes, rows.context)
        return cls(merged, merging, tuple(measured), estimated_total(alone))

    def independent(self, one: int, other: int) -> Floats:
        """Counts of two columns if they were independent."""
        a, b = (no_less_than_nothing(self.measured[j].counts) for j in (one, other))
        return np.outer(a / a.sum(), b / b.sum()) * self.total

    def mixed(self, column: int) -> float:
        """``1 − Σ p²``: the chance that two rows differ in a column, in [0, 1)."""
        counts = no_less_than_nothing(self.measured[column].counts)
        return float(1 - np.square(counts / counts.sum()).sum())

    def fitted(
        self,
        more: list[Measured],
        iterations: int,
        start: GraphicalModel | None = None,
        tell: Callable[[], object] | None = None,
    ) -> GraphicalModel:
        """The model of these and more tables."""
        measured = [*self.measured, *more]
        tree = JunctionTree.of(self.rows.sizes, [one.attributes for one in measured])
        check = tell or self.rows.context.deadline.check
        return fitted(tree, measured, self.total, iterations=iterations, start=start, tell=check)


def chosen(scores: Floats, epsilon: float | None, sensitivity: float) -> int:
    """The position of a good score, by an exponential mechanism that was paid for; of the best for None."""
    if epsilon is None:
        return int(np.argmax(scores))
    return exponential_choice(scores, epsilon, sensitivity)


def small_enough(sizes: tuple[int, ...], attributes: Attributes, most_cells: int) -> bool:
    """Whether a table has no more cells than that."""
    return cells_of(sizes, attributes) <= most_cells
