"""Distances between two distributions of one column: pure functions on cell shares and samples."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]


def kolmogorov_smirnov(a: Floats, b: Floats) -> float:
    """Largest distance between two empirical distribution functions, in [0, 1].

    Args:
        a, b: samples without missing values, shapes (n,) and (m,), not empty.
    """
    a, b = np.sort(a), np.sort(b)
    points = np.concatenate([a, b])
    of_a = np.searchsorted(a, points, side="right") / len(a)
    of_b = np.searchsorted(b, points, side="right") / len(b)
    return float(np.abs(of_a - of_b).max())


def total_variation(p: Floats, q: Floats) -> Floats:
    """``½ Σ |p − q|`` over the last axis, in [0, 1]; p and q are shares of the same cells."""
    distance: Floats = 0.5 * np.abs(p - q).sum(axis=-1)
    return distance


def hellinger(p: Floats, q: Floats) -> float:
    """``sqrt(½ Σ (√p − √q)²)``, in [0, 1]; p and q are shares of the same cells, shape (k,)."""
    return float(np.sqrt(0.5 * np.sum((np.sqrt(p) - np.sqrt(q)) ** 2)))


def quantile_cells(anchor: Floats, most: int) -> Floats:
    """Inner edges of at most ``most`` cells of about equal mass of ``anchor``, shape (≤ most − 1,).

    A value so frequent that it fills several cells gets one of its own, so spikes survive.
    """
    known = anchor[~np.isnan(anchor)]
    if not len(known):
        return np.empty(0)
    edges = np.unique(np.quantile(known, np.linspace(0, 1, most + 1)[1:-1]))
    heavy = [x for x in edges if np.mean(known == x) >= 1 / most]
    return np.unique(np.concatenate([edges, np.nextafter(heavy, -np.inf)]))


def cell_codes(values: Floats, edges: Floats) -> Codes:
    """Cell of each value: 0 … len(edges) from low to high, and len(edges) + 1 for missing, shape (n,)."""
    cells = np.searchsorted(edges, values, side="left")
    return np.where(np.isnan(values), len(edges) + 1, cells).astype(np.int64)


def shares(codes: Codes, n_cells: int) -> Floats:
    """Share of rows in each cell, shape (n_cells,)."""
    return np.bincount(codes, minlength=n_cells) / len(codes)


def resampled_shares(p: Floats, n: int, n_draws: int, rng: np.random.Generator) -> Floats:
    """Cell shares of bootstrap resamples of n rows, shape (n_draws, k): multinomial in the shares."""
    return rng.multinomial(n, p / p.sum(), size=n_draws) / n
