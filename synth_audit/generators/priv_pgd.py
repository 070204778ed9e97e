"""Noisy counts of all pairs of columns, and particles that descend to them in sliced Wasserstein distance."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import ClassVar

from synth_audit.generators._budget import UNPAID_COUNTS
from synth_audit.generators._marginal.binning import binning_for
from synth_audit.generators._marginal.graphical_model import (
    Attributes,
    NoisyCounts,
    cells_of,
    estimated_total,
)
from synth_audit.generators._marginal.model import ParticleModel, TargetTable, moved_particles
from synth_audit.generators._model_files import read_model
from synth_audit.plugins.generator import FitContext, GeneratorInfo, check_settings
from synth_audit.table.table import Table


@dataclass(frozen=True, kw_only=True)
class PrivPgd:
    """Particles whose pairs of columns have the noisy counts of train's.

    Under a budget the counts of all pairs get Gaussian noise of one size; what follows looks at them alone. A
    noisy table is made shares by its projection to the simplex. Each sweep moves every particle towards all
    tables, along a random direction each.

    Attributes:
        bins: of a number, of equal width.
        particles: how many; rows are drawn among them.
        sweeps: over all pairs.
        most_cells: of the table of a pair; a column without any smaller one is counted alone.

    Source: Donhauser, Lokna, Sanyal, Boedihardjo, Hönig & Yang 2024.
    """

    bins: int = 32
    particles: int = 4000
    sweeps: int = 60
    most_cells: int = 1_000_000
    info: ClassVar[GeneratorInfo] = GeneratorInfo(
        title="PrivPGD",
        summary="Differentially private particles, moved to noisy counts of all pairs of columns.",
        source="Donhauser et al. 2024",
        trial={"particles": 400, "sweeps": 5},
    )

    def __post_init__(self) -> None:
        check_settings(self, counts=("bins", "particles", "sweeps", "most_cells"))

    def fit(self, train: Table, context: FitContext) -> ParticleModel:
        """Measure all pairs, which is paid for before a row is looked at; then move particles.

        Raises:
            BudgetSpent: the budget does not bear it, or has no delta.
        """
        train = train.released_only()
        binning = binning_for(train, context, self.bins)
        tables = self._tables(binning.sizes)
        noise = _bought(len(tables), context)
        rows = NoisyCounts(binning.codes(train), binning.sizes, context)
        measured = [rows.measured(r, noise) for r in tables]
        total = estimated_total(measured)
        targets = [TargetTable.of(one.attributes, one.counts, total) for one in measured]

        def tell(done: int) -> None:
            context.deadline.check()
            context.progress("particles moved", done + 1, self.sweeps)

        found = moved_particles(targets, binning.sizes, self.particles, self.sweeps, context.rng, tell)
        return ParticleModel(binning, found)

    def load(self, folder: Path) -> ParticleModel:
        """The model that was saved there."""
        return read_model(folder, ParticleModel)

    def _tables(self, sizes: tuple[int, ...]) -> list[Attributes]:
        """All pairs that are small enough, and each column that is in none."""
        pairs = [r for r in combinations(range(len(sizes)), 2) if cells_of(sizes, r) <= self.most_cells]
        paired = {a for r in pairs for a in r}
        return [*pairs, *((a,) for a in range(len(sizes)) if a not in paired)]


def _bought(tables: int, context: FitContext) -> float | None:
    accountant = context.accountant
    if accountant.budget is None:
        accountant.void(UNPAID_COUNTS)
        return None
    noise = accountant.least_noise(steps=tables)
    accountant.gaussian(noise, what="counts of all pairs of columns", count=tables)
    return noise
