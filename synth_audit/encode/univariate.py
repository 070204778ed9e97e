"""The distribution of one column: its domain, missing values included, learned and drawn from.

Of numbers it is a broken line: a kernel density, empirical or stepwise, and its inverse.
"""

from dataclasses import dataclass
from typing import Literal, Self, TypeAlias

import numpy as np

from synth_audit.arrays import Codes, Floats, Labels, Positions
from synth_audit.column_kinds import number_kind
from synth_audit.encode.codes import Vocabulary, codes
from synth_audit.table.coarsening import spacing
from synth_audit.table.kind import Bounds, VectorPart
from synth_audit.table.resolution import Resolution, ValueGrid
from synth_audit.table.schema import Column
from synth_audit.table.table import Table

MarginMethod: TypeAlias = Literal["kde", "empirical"]
"""How a distribution of numbers is learnt: a kernel density, or the sample's own distribution."""

_TOGETHER = 10
"""Extreme values whose mean stands for the end of a range, so that nobody's own extreme is drawn."""

_PLACES = 4096
"""Of a number that may lie anywhere between its ends."""

_MOST_PLACES = 2**31
"""Places of a grid at most, so that each fits 32 bits."""

ATOM_ROWS = 10
"""A value held by fewer rows is never given a probability of its own by the kernel density margin."""

ATOM_SHARE = 0.05
"""Nor is a value with a smaller share of the rows."""

_GRID = 801
"""Levels at which a margin is kept, some 0.01 standard deviations apart."""

_NEAR = 20.0  # a bound further than this many scales from the median has no effect on the density
_EVERYTHING: Bounds = (-np.inf, np.inf)


@dataclass(frozen=True, eq=False)
class Categories:
    """Labels, None for missing, with their frequencies, each of shape (k,)."""

    labels: Labels
    shares: Floats

    @classmethod
    def of(cls, train: Table, name: str) -> Self:
        """As often as train holds them."""
        known = Vocabulary.of(name, train, exact=True)
        rows = np.append(known.counts(train), train.n_missing(name))
        return cls(np.array([*known.labels, None], dtype=object), rows / train.n_rows)

    def sample(self, n: int, rng: np.random.Generator) -> Labels:
        """Labels, shape (n,)."""
        return self.labels[rng.choice(len(self.labels), size=n, p=self.shares)]


@dataclass(frozen=True, eq=False)
class NumbersWithGaps:
    """A margin, None when every value is missing, and the share of missing values."""

    margin: "Margin | None"
    missing: float

    def sample(self, n: int, rng: np.random.Generator) -> Floats:
        """Numbers, NaN where missing, shape (n,)."""
        levels, gaps = rng.random(n), rng.random(n) < self.missing
        values = np.full(n, np.nan) if self.margin is None else self.margin.quantile(levels)
        return np.where(gaps, np.nan, values)


Univariate: TypeAlias = Categories | NumbersWithGaps
"""The distribution of one column, missing values included."""


def univariate(train: Table, column: Column, method: MarginMethod) -> Univariate:
    """Frequencies of labels; of numbers a margin, and a share of missing values."""
    if not number_kind(column):
        return Categories.of(train, column.name)
    values = train.numbers(column.name)
    gaps = np.isnan(values)
    return NumbersWithGaps(None if gaps.all() else column_margin(column, values, method), float(gaps.mean()))


def column_margin(column: Column, values: Floats, method: MarginMethod) -> "Margin":
    """The distribution of numbers of a column; what is drawn from it fits declared bounds and storage.

    Of codes of labels their frequencies, and nothing between them.

    Args:
        values: shape (n,), NaN where missing.

    Raises:
        ValueError: no value is present.
    """
    if (kind := number_kind(column)) is None:
        return stepwise_margin(values)
    step, limits = kind.step(column.storage), kind.limits(column.storage)
    if method == "empirical":
        return empirical_margin(values, step=step, limits=limits)
    return kde_margin(values, step=step, bounds=kind.support(column.declared_bounds), limits=limits)


def outlying_rows(table: Table, column: Column, tail: float) -> Positions:
    """Rows with a number beyond the tails, a share ``tail``, or with one of the rarest labels; ascending.

    Of free text, which mostly occurs once, rows whose letters are the least like those of all: their vectors
    are farther from the mean vector than the quantile ``1 − tail``.
    """
    if number_kind(column):
        return outlying(table.numbers(column.name), tail)
    values = table.column(column.name)
    parts = column.kind.parts([values]) if column.kind.as_it_is else ()
    letters = next((part for part in parts if isinstance(part, VectorPart)), None)
    if letters is None:
        return rarest(codes([table], column)[0], tail)
    vectors = letters.read(values).astype(float)
    known = ~np.isnan(vectors[:, 0])
    if not known.any():
        return np.empty(0, dtype=np.intp)
    far = np.full(len(vectors), -np.inf)
    far[known] = np.linalg.norm(vectors[known] - vectors[known].mean(axis=0), axis=1)
    return np.flatnonzero(far > np.quantile(far[known], 1 - tail))


def outlying(values: Floats, tail: float = 0.05) -> Positions:
    """Positions, ascending, of values below the ``tail / 2`` or above the ``1 − tail / 2`` quantile.

    Strictly beyond, so that a value which many rows share is no outlier. A missing value is none either.

    Args:
        values: shape (n,), NaN where missing.
        tail: share of the rows outside, in (0, 1).
    """
    known = values[~np.isnan(values)]
    if not len(known):
        return np.empty(0, dtype=np.intp)
    low, high = np.quantile(known, [tail / 2, 1 - tail / 2])
    return np.flatnonzero((values < low) | (values > high))


def rarest(codes: Codes, tail: float = 0.05) -> Positions:
    """Positions, ascending, of the rows of the rarest category, and of the next ones up to ``tail`` in all.

    Categories of one frequency count together, so that no order of theirs decides. Where all categories are
    equally frequent, none is rare.

    Args:
        codes: shape (n,), negative where missing.
        tail: share of the known rows, in (0, 1); the rarest category counts even if it has more.
    """
    known = codes[codes >= 0]
    categories, counts = np.unique(known, return_counts=True)
    sizes = np.unique(counts)
    if len(sizes) < 2:
        return np.empty(0, dtype=np.intp)
    together = np.array([counts[counts <= size].sum() for size in sizes])
    most = max(int(sizes[0]), int(sizes[together <= tail * len(known)].max(initial=0)))
    return np.flatnonzero(np.isin(codes, categories[counts <= most]))


@dataclass(frozen=True)
class NumberDomain:
    """Multiples of ``step`` from ``low`` to ``high``; any number between where it is 0."""

    low: float
    high: float
    step: float

    @property
    def places(self) -> int:
        """How many values there are; 4,096 intervals of equal width where they are not counted."""
        if self.step:
            return min(_MOST_PLACES, 1 + round((self.high - self.low) / self.step))
        return _PLACES

    def placed(self, values: Floats) -> Floats:
        """Where values lie in [0, places), beyond the ends at the nearest; whole if there is a step."""
        inside = np.clip(values, self.low, self.high) - self.low
        if self.step:
            return np.minimum(np.rint(inside / self.step), self.places - 1)
        share = inside / (self.high - self.low)
        return np.minimum(share * _PLACES, np.nextafter(_PLACES, 0))

    def values(self, places: Floats) -> Floats:
        """The values at these places; of a domain with a step the one at or below."""
        if self.step:
            found = self.low + np.floor(places) * self.step
        else:
            found = self.low + (self.high - self.low) * (places / _PLACES)
        return np.clip(found, self.low, self.high)


def number_domain(column: Column, bounds: Bounds, resolution: Resolution | None) -> NumberDomain:
    """The values within the bounds that the column can hold, by its resolution or else how it is stored."""
    if resolution is None:
        step = spacing(column)
        return NumberDomain(*(ValueGrid(step).within(bounds) if step else bounds), step)
    return NumberDomain(
        *resolution.grid.within(bounds), 0.0 if resolution.grid.calendar else resolution.grid.step
    )


def ends_of(values: Floats) -> Bounds | None:
    """The mean of the ten smallest and that of the ten largest values, of fewer where there are few."""
    known = np.sort(values[~np.isnan(values)])
    if not len(known):
        return None
    some = max(1, min(_TOGETHER, len(known) // 4))
    low, high = known[0], known[-1]  # differences to them: the mean of equal values is then that value
    return float(low + (known[:some] - low).mean()), float(high + (known[-some:] - high).mean())


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
    limits: Bounds = _EVERYTHING

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


def empirical_margin(values: Floats, *, step: float = 0.0, limits: Bounds = _EVERYTHING) -> Margin:
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
    values: Floats, *, step: float = 0.0, bounds: Bounds | None = None, limits: Bounds = _EVERYTHING
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


def _split_atoms(known: Floats, bounds: Bounds, step: float) -> tuple[Floats, Floats, Floats]:
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


def _smooth(values: Floats, support: Bounds) -> tuple[Floats, Floats]:
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
    limits: Bounds = _EVERYTHING,
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
