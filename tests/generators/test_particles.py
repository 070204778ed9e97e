"""Particles end where the tables of counts are."""

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import wasserstein_distance

from synth_audit.generators._marginal.marginals import counted, on_simplex
from synth_audit.generators.priv_pgd import TargetTable, moved_particles


def test_the_projection_is_the_nearest_point_with_shares():
    assert on_simplex(np.array([0.2, 0.8])) == pytest.approx([0.2, 0.8])
    assert on_simplex(np.array([2.0, 0, -1])) == pytest.approx([1, 0, 0])
    assert on_simplex(np.array([0.5, 0.7, -0.3])) == pytest.approx([0.4, 0.6, 0])


def test_quantiles_are_those_of_the_cells_along_a_direction():
    table = TargetTable.of((0, 1), np.array([[1.0, 0], [0, 3]]), 4.0)
    found = table.quantiles(np.array([1.0, 0]), 4)
    assert found.tolist() == [0.25, 0.75, 0.75, 0.75]


def test_pairs_of_particles_become_those_of_the_tables():
    rng = np.random.default_rng(0)
    first = rng.integers(0, 6, 3000)
    codes = np.stack([first, np.where(rng.random(3000) < 0.8, first, 2), rng.integers(0, 2, 3000)], axis=1)
    sizes = (6, 6, 2)
    targets = [TargetTable.of(r, counted(codes, sizes, r), 3000.0) for r in combinations(range(3), 2)]
    told = []
    made = moved_particles(targets, sizes, 1000, 60, rng, told.append)
    assert told == list(range(60))
    for column in range(3):
        assert wasserstein_distance(made[:, column], codes[:, column]) < 0.1
    off = np.abs(counted(made, sizes, (0, 1)) / 1000 - counted(codes, sizes, (0, 1)) / 3000).sum() / 2
    assert off < 0.15
