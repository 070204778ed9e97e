"""One variable's distribution as a broken line: kernel density, empirical or stepwise, and its inverse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from synth_audit.arrays import Floats

Range = tuple[float, float]

ATOM_ROWS = 10
"""A value held by fewer rows is never given a probability of its own by the kernel density margin."""
ATOM_SHARE = 0.05
"""Nor is a value with a smaller share of the rows."""
_GRID = 801
"""Levels at which a margin is kept, some 0.01 standard deviations apart."""

_NEAR = 20.0  # a bound further than this many scales from the median has no effect on the density
_EVERYTHING: Range = (-np.inf, np.inf)


@dataclass(frozen=True, eq=False)
class Margin:
    """A distribution function: straight between its knots, vertical where two knots agree.

    Attributes:
        knots: values, shape (k,), non-decreasing.
        levels: F at the knots, shape (k,), non-decreasing from 0 to 1.
        step: spacing of the values that can occur (1 for integers); 0 when all can.
        limits: no value outside is ever returned.
    """

    knots: Floats
    levels: Floats
    step: float = 0.0
    limits: Range = _EVERYTHING

    def __post_init__(self) -> None:
        self.knots.setflags(write=False)
        self.levels.setflags(write=False)

    def interval(self, values: Floats) -> tuple[Floats, Floats]:
        """F just below and F at each value, shapes (n,); equal where the value has no mass; NaN stays NaN."""
        half = self.step / 2
        below = self._level(values - half, "left")
        at = self._level(values + half, "right")
        missing = np.isnan(values)
        return np.where(missing, np.nan, below), np.where(missing, np.nan, at)

    def quantile(self, levels: Floats) -> Floats:
        """The value below which a share ``levels`` lies, shape (n,); levels in [0, 1]."""
        values = np.interp(levels, self.levels, self.knots)
        if self.step:
            values = np.rint(values / self.step) * self.step
        return np.clip(values, *self.limits)

    def _level(self, values: Floats, side: Literal["left", "right"]) -> Floats:
        after = np.searchsorted(self.knots, values, side=side)
        i = np.clip(after, 1, len(self.knots) - 1)
        width = self.knots[i] - self.knots[i - 1]
        share = np.clip((values - self.knots[i - 1]) / np.where(width > 0, width, 1.0), 0.0, 1.0)
        between = self.levels[i - 1] + share * (self.levels[i] - self.levels[i - 1])
        return np.where(after == 0, 0.0, np.where(after == len(self.knots), 1.0, between))


def stepwise_margin(codes: Floats) -> Margin:
    """The observed frequencies of codes, shape (n,) with NaN, and nothing between them.

    Raises:
        ValueError: no code is present.
    """
    values, counts = np.unique(_present(codes), return_counts=True)
    return _merge(np.empty(0), np.empty(0), values, counts / counts.sum())


def empirical_margin(values: Floats, *, step: float = 0.0, limits: Range = _EVERYTHING) -> Margin:
    """The sample's distribution function, linear between order statistics.

    F(x_(i)) = (i − ½)/n. Its range is the sample's, so the extremes do recur.

    Args:
        values: shape (n,), NaN where missing.

    Raises:
        ValueError: no value is present.
    """
    known = np.sort(_present(values))
    levels = (np.arange(len(known)) + 0.5) / len(known)
    knots = np.concatenate([known[:1], known, known[-1:]])
    return Margin(knots, np.concatenate([[0.0], levels, [1.0]]), step, limits)


def kde_margin(
    values: Floats, *, step: float = 0.0, bounds: Range | None = None, limits: Range = _EVERYTHING
) -> Margin:
    """A kernel density (Nagler's kde1d: local likelihood, plug-in bandwidth) with atoms.

    F = Σ_a p_a·1{a ≤ x} + (1 − Σ p_a)·G(x). Atoms a are values held by at least ``ATOM_ROWS`` rows and
    ``ATOM_SHARE`` of all, and values on a bound; G smooths the rest, so an observed extreme recurs only
    by chance. A rare value that stands alone beside atoms cannot be smoothed and is left out.

    Args:
        values: shape (n,), NaN where missing.
        step: spacing of the values that can occur; 0 for none.
        bounds: public limits of the support; without them a column of no negative value stays so.
        limits: what the storage type can hold.

    Raises:
        ValueError: no value is present.
    """
    known = _present(values)
    if bounds is None and known.min() >= 0:
        bounds = (0.0, np.inf)
    low, high = bounds or _EVERYTHING
    limits = (max(low, limits[0]), min(high, limits[1]))
    atoms, masses, rest = _split_atoms(known, (low, high), step)
    if len(rest) == 0:
        return _merge(np.empty(0), np.empty(0), atoms, masses, step, limits)
    grid, levels = _smooth(_spread(rest, step), (low - step / 2, high + step / 2))
    return _merge(grid, levels, atoms, masses, step, limits)


def _present(values: Floats) -> Floats:
    known = np.asarray(values[~np.isnan(values)], dtype=np.float64)
    if len(known) == 0:
        raise ValueError("a margin needs at least one value")
    return known


def _split_atoms(known: Floats, bounds: Range, step: float) -> tuple[Floats, Floats, Floats]:
    """Atoms, their probabilities, and the remaining values."""
    values, inverse, counts = np.unique(known, return_inverse=True, return_counts=True)
    common = (counts >= ATOM_ROWS) & (counts >= ATOM_SHARE * len(known))
    if not step:  # a value on a bound would make the boundary-corrected density infinite there
        common |= np.isin(values, bounds)
    if len(values) == 1:
        common[:] = True
    elif (~common).sum() == 1 and common.any():  # nothing to smooth: keep it if many hold it
        common |= counts >= ATOM_ROWS
        counts = np.where(common, counts, 0)
        inverse = inverse[common[inverse]]
    share = counts[common] / counts.sum()
    return values[common], share, values[inverse[~common[inverse]]]


def _spread(values: Floats, step: float) -> Floats:
    """Tied values laid out evenly over their cell of width ``step``; no randomness."""
    if not step:
        return values
    ordered = np.sort(values)
    _, start, counts = np.unique(ordered, return_index=True, return_counts=True)
    rank = np.arange(len(ordered)) - np.repeat(start, counts)
    return ordered + ((rank + 0.5) / np.repeat(counts, counts) - 0.5) * step


def _smooth(values: Floats, support: Range) -> tuple[Floats, Floats]:
    """A density of at least two distinct values as a grid of quantiles and their levels.

    Values are put on a common scale first. Without a bound near them that scale is asinh, linear in the
    middle and logarithmic in the tails, so that one bandwidth serves a heavy-tailed column too.
    """
    from pyvinecopulib.core import Kde1d
    from scipy.special import ndtr

    levels = ndtr(np.linspace(-4.75, 4.75, _GRID))
    centre, scale = _centre_and_scale(values)
    scaled = (values - centre) / scale
    # A distant bound would only cost precision: the estimator takes logarithms of distances to it.
    low, high = (end if abs(end) < _NEAR else None for end in (np.array(support) - centre) / scale)
    if low is not None or high is not None:
        grid = Kde1d.from_data(scaled, support=(low, high)).icdf(levels)
    else:
        grid = np.sinh(Kde1d.from_data(np.arcsinh(scaled)).icdf(levels))
    grid = np.maximum.accumulate(np.clip(grid * scale + centre, *support))
    levels[0], levels[-1] = 0.0, 1.0
    return grid, levels


def _centre_and_scale(values: Floats) -> tuple[float, float]:
    low, centre, high = np.quantile(values, [0.25, 0.5, 0.75])
    scale = (high - low) / 1.349
    if scale <= 1e-9 * np.ptp(values):
        scale = float(np.std(values))
    return float(centre), float(scale)


def _merge(
    grid: Floats,
    levels: Floats,
    atoms: Floats,
    masses: Floats,
    step: float = 0.0,
    limits: Range = _EVERYTHING,
) -> Margin:
    """A smooth part and atoms as one broken line; atoms are sorted and distinct."""
    smooth = max(0.0, 1.0 - float(masses.sum())) if len(grid) else 0.0
    heights = np.concatenate([[0.0], np.cumsum(masses)])
    on_grid = smooth * levels + heights[np.searchsorted(atoms, grid, side="left")]
    under = smooth * np.interp(atoms, grid, levels) if len(grid) else np.zeros(len(atoms))
    knots = np.concatenate([grid, atoms, atoms])
    line = np.concatenate([on_grid, under + heights[:-1], under + heights[1:]])
    order = np.lexsort((line, knots))
    line = np.maximum.accumulate(line[order])
    line[0], line[-1] = 0.0, 1.0
    return Margin(knots[order], line, step, limits)
