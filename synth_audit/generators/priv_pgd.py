"""Noisy counts of all pairs of columns, and particles that descend to them in sliced Wasserstein distance."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import ClassVar, Self

import numpy as np

from synth_audit.arrays import Codes, Floats
from synth_audit.generators._marginal import marginals
from synth_audit.generators._marginal.binning import Binning, binning_for
from synth_audit.generators._model_files import FitsWhole, SavedWhole
from synth_audit.plugins.generator import Count, FitContext, GeneratorInfo
from synth_audit.table.table import Table


@dataclass(frozen=True, eq=False)
class ParticleModel(SavedWhole):
    """Particles, and what their cells mean.

    Attributes:
        particles: cells, shape (m, d).
    """

    binning: Binning = field(repr=False)
    particles: Codes = field(repr=False)

    def sample(self, n: int, rng: np.random.Generator) -> Table:
        """Draw ``n`` rows: particles with replacement, and values from their cells."""
        return self.binning.table(self.particles[rng.integers(len(self.particles), size=n)], rng)


@dataclass(frozen=True, eq=False)
class TargetTable:
    """Shares of the cells of one or two columns.

    Attributes:
        shares: 0 or more, of sum 1; one axis for each column.
    """

    attributes: marginals.Attributes
    shares: Floats = field(repr=False)

    @classmethod
    def of(cls, attributes: marginals.Attributes, counts: Floats, total: float) -> Self:
        """The nearest shares to noisy counts of so many rows: their Euclidean projection to the simplex."""
        return cls(attributes, marginals.on_simplex(counts.ravel() / total).reshape(counts.shape))

    def quantiles(self, direction: Floats, n: int) -> Floats:
        """Of the cells along a direction, at the levels (i + ½) / n; shape (n,), ascending."""
        inside = np.argwhere(self.shares > 0)
        places = ((inside + 0.5) / self.shares.shape) @ direction
        order = np.argsort(places)
        upto = np.cumsum(self.shares[tuple(inside.T)][order])
        levels = (np.arange(n) + 0.5) / n * upto[-1]
        found: Floats = places[order][np.minimum(np.searchsorted(upto, levels), len(order) - 1)]
        return found


def moved_particles(
    targets: Sequence[TargetTable],
    sizes: Sequence[int],
    n: int,
    sweeps: int,
    rng: np.random.Generator,
    tell: Callable[[int], object] = lambda done: None,
) -> Codes:
    """Cells of ``n`` particles, shape (n, d).

    Each sweep moves every particle by the mean over all tables of its columns, along one random direction for
    each; steps shrink from 1 to a tenth.

    Args:
        targets: every column is in one of them, or its particles stay where they began.
        tell: called with the number of sweeps done.
    """
    columns = len(sizes)
    places = rng.random((n, columns))
    taking_part = np.zeros(columns)
    for target in targets:
        taking_part[list(target.attributes)] += 1
    for sweep in range(sweeps):
        tell(sweep)
        step = 0.1 ** (sweep / max(sweeps - 1, 1))
        move = np.zeros_like(places)
        for target in targets:
            own = list(target.attributes)
            direction = rng.normal(size=len(own))
            direction /= float(np.linalg.norm(direction))
            along = places[:, own] @ direction
            order = np.argsort(along)
            wanted = np.empty(n)
            wanted[order] = target.quantiles(direction, n)
            # The mean of direction ⊗ direction is the identity over the number of columns.
            move[:, own] += len(own) * np.outer(wanted - along, direction)
        places = np.clip(places + step * move / np.maximum(taking_part, 1), 0.0, 1.0)
    cells: Codes = np.minimum((places * np.array(sizes)).astype(np.int64), np.array(sizes) - 1)
    return cells


@dataclass(frozen=True, kw_only=True)
class PrivPgd(FitsWhole):
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

    bins: Count = 32
    particles: Count = 4000
    sweeps: Count = 60
    most_cells: Count = 1_000_000
    info: ClassVar[GeneratorInfo] = GeneratorInfo(
        title="PrivPGD",
        summary="Differentially private particles, moved to noisy counts of all pairs of columns.",
        source="Donhauser et al. 2024",
        trial={"particles": 400, "sweeps": 5},
    )

    def fit(self, train: Table, context: FitContext) -> ParticleModel:
        """Measure all pairs, which is paid for before a row is looked at; then move particles.

        Raises:
            BudgetSpent: the budget does not bear it, or has no delta.
        """
        train = train.released_only()
        binning = binning_for(train, context, self.bins)
        tables: list[marginals.Attributes] = [
            r
            for r in combinations(range(len(binning.sizes)), 2)
            if marginals.cells_of(binning.sizes, r) <= self.most_cells
        ]
        paired = {a for r in tables for a in r}
        tables += [(a,) for a in range(len(binning.sizes)) if a not in paired]
        noise = None
        if not context.accountant.unpaid(marginals.UNPAID_COUNTS):
            noise = context.accountant.least_noise(steps=len(tables))
            context.accountant.gaussian(noise, what="counts of all pairs of columns", count=len(tables))
        rows = marginals.NoisyCounts(binning.codes(train), binning.sizes, context)
        measured = [rows.measured(r, noise) for r in tables]
        total = marginals.estimated_total(measured)
        targets = [TargetTable.of(one.attributes, one.counts, total) for one in measured]

        def tell(done: int) -> None:
            context.deadline.check()
            context.progress("particles moved", done + 1, self.sweeps)

        found = moved_particles(targets, binning.sizes, self.particles, self.sweeps, context.rng, tell)
        return ParticleModel(binning, found)
