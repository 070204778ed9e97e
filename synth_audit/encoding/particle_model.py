"""A model that draws among particles, each a row of cells."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from synth_audit.core.arrays import Codes
from synth_audit.core.schema_json import schema_from_plain, schema_to_plain
from synth_audit.core.table import Table
from synth_audit.encoding.binning import Binning

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
