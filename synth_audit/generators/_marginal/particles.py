"""Particles moved until their pairs of columns look like given tables, and a model that draws among them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from synth_audit.arrays import Codes, Floats
from synth_audit.generators._marginal.binning import Binning
from synth_audit.generators._marginal.counts import Attributes, on_simplex
from synth_audit.table.schema import schema_from_plain, schema_to_plain
from synth_audit.table.table import Table

_COLUMNS, _PARTICLES = "model.json", "particles.npz"


@dataclass(frozen=True, eq=False)
class ParticleModel:
    """Particles, and what their cells mean.

    Attributes:
        particles: cells, shape (m, d).
    """

    binning: Binning = field(repr=False)
    particles: Codes = field(repr=False)

    def sample(self, n: int, rng: np.random.Generator) -> Table:
        """Draw ``n`` rows: particles with replacement, and values from their cells."""
        return self.binning.table(self.particles[rng.integers(len(self.particles), size=n)], rng)

    def save(self, folder: Path) -> None:
        """Write columns as ``model.json`` and cells as ``particles.npz``."""
        plain = {"schema": schema_to_plain(self.binning.schema), "columns": self.binning.plain()}
        (folder / _COLUMNS).write_text(json.dumps(plain, allow_nan=False), encoding="utf-8")
        np.savez(folder / _PARTICLES, allow_pickle=False, particles=self.particles)

    @classmethod
    def load(cls, folder: Path) -> ParticleModel:
        """The model that was saved there."""
        plain = json.loads((folder / _COLUMNS).read_text(encoding="utf-8"))
        binning = Binning.from_plain(schema_from_plain(plain["schema"]), plain["columns"])
        with np.load(folder / _PARTICLES, allow_pickle=False) as arrays:
            return cls(binning, arrays["particles"])


@dataclass(frozen=True, eq=False)
class TargetTable:
    """Shares of the cells of one or two columns.

    Attributes:
        shares: 0 or more, of sum 1; one axis for each column.
    """

    attributes: Attributes
    shares: Floats = field(repr=False)

    @classmethod
    def of(cls, attributes: Attributes, counts: Floats, total: float) -> TargetTable:
        """The nearest shares to noisy counts of so many rows: their Euclidean projection to the simplex."""
        return cls(attributes, on_simplex(counts.ravel() / total).reshape(counts.shape))

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
            direction = _direction(len(own), rng)
            along = places[:, own] @ direction
            order = np.argsort(along)
            wanted = np.empty(n)
            wanted[order] = target.quantiles(direction, n)
            # The mean of direction ⊗ direction is the identity over the number of columns.
            move[:, own] += len(own) * np.outer(wanted - along, direction)
        places = np.clip(places + step * move / np.maximum(taking_part, 1), 0.0, 1.0)
    cells: Codes = np.minimum((places * np.array(sizes)).astype(np.int64), np.array(sizes) - 1)
    return cells


def _direction(size: int, rng: np.random.Generator) -> Floats:
    drawn: Floats = rng.normal(size=size)
    return drawn / float(np.linalg.norm(drawn))
