"""One column as coordinates of a row vector, and back: labels, ranges, modes, ranks, normal scores."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from synth_audit.arrays import Bools, Counts, Floats, Floats32, Labels, Positions
from synth_audit.encode.univariate import NumberDomain
from synth_audit.generators._marginal import binning
from synth_audit.table.kind import Bounds
from synth_audit.table.table import Table

_MOST, _LEAST, _ROWS_EACH = 1000, 10, 30
"""Quantiles that are kept: one for so many rows each, but no more and no fewer than these."""

_RAREST = 1e-5
"""Ranks nearer to 0 or 1 count as this."""

_KNOTS = 256
"""Quantiles by which a number's distribution is kept."""

_ROUNDS = 100
"""Steps of the search for offsets at most; the best of them is taken."""

_WORK = 2_000_000
"""Scores that are looked at in one round at most."""

_FEW = 32
"""Labels up to which going label by label is faster than searching each short row."""

_LONGER, _SHORTER = 1.2, 0.5
"""What a step is multiplied by going on, and at a turn."""

_ENOUGH = 0.1
"""Of the deviation that a draw of as many rows has by chance."""

MOST = 10
"""Modes that are tried."""

_CONCENTRATION = 0.001
"""Prior weight of each: small, so that modes which are not needed die out."""

_LEAST_WEIGHT = 0.005
"""A mode of less weight is left out."""

_ROWS = 20_000
"""Values that a mixture is fitted to at most."""

_SPREAD = 4.0
"""Standard deviations of a mode that reach from −1 to 0 and from 0 to 1."""


Weights = Mapping[str, Floats32]
"""A trained network as arrays."""


@dataclass(frozen=True)
class RowLayout:
    """The coordinates of a row vector.

    Attributes:
        numbers: positions of numbers, each in [−1, 1], or standard normal where read by ranks.
        slices: first and last-plus-one position of each label, one-hot: one of its coordinates is 1.
        width: coordinates in all.
        choices: which of the slices are columns of labels; the others are modes of numbers and gaps.
    """

    numbers: tuple[int, ...]
    slices: tuple[tuple[int, int], ...]
    width: int
    choices: tuple[int, ...] = ()


def one_hot(codes: Positions, width: int) -> Floats32:
    """A 1 at each code, shape (n, width)."""
    vectors = np.zeros((len(codes), width), dtype=np.float32)
    vectors[np.arange(len(codes)), codes] = 1
    return vectors


def beside_gap(number: Floats, missing: Bools, slices: tuple[int, ...]) -> Floats32:
    """A number of each row, and behind it whether it is missing where there is a slice that says so."""
    first = number.astype(np.float32)[:, None]
    return np.hstack([first, one_hot(missing.astype(np.intp), 2)]) if slices else first


@dataclass(frozen=True)
class QuantileTransform:
    """A number x as ``Φ⁻¹(F(x))``, F linear between quantiles of train: a standard normal coordinate.

    A value that many rows share is a step of F, and each of its rows lies anywhere within the step, by a
    draw; whatever a network draws there is that value. What is missing lies anywhere.

    Attributes:
        quantiles: ascending, shape (k,), k ≥ 2, the i-th for rank ``i / (k − 1)``; the first and last are
            means of the ten outermost values. A shared value occurs several times.
        gap: values may be missing; then a slice, *present* and *missing*, follows the number.

    Source: Kotelnikov et al. 2023, section 4; that shared values fill their step is ours.
    """

    name: str
    quantiles: tuple[float, ...]
    gap: bool

    numbers = 1
    choice = False

    @classmethod
    def of(cls, name: str, values: Floats, bounds: Bounds) -> QuantileTransform:
        """Quantiles of the values that are present, of which two at least differ, within the bounds."""
        known = values[~np.isnan(values)]
        count = min(_MOST, max(_LEAST, len(known) // _ROWS_EACH))
        inner = np.quantile(known, np.linspace(0, 1, count)[1:-1], method="median_unbiased")
        quantiles = np.concatenate([bounds[:1], np.clip(inner, *bounds), bounds[1:]])
        return cls(name, tuple(quantiles.tolist()), len(known) < len(values))

    @property
    def slices(self) -> tuple[int, ...]:
        """*Present* and *missing*."""
        return (2,) if self.gap else ()

    def encode(self, table: Table, rng: np.random.Generator) -> Floats32:
        """The normal coordinate, and whether the number is missing."""
        from scipy.special import ndtri  # here, so that looking around stays light

        values = table.numbers(self.name)
        missing = np.isnan(values)
        ranks = np.where(missing, rng.random(len(values)), self._ranks(values, rng.random(len(values))))
        return beside_gap(ndtri(np.clip(ranks, _RAREST, 1 - _RAREST)), missing, self.slices)

    def _ranks(self, values: Floats, places: Floats) -> Floats:
        """``F``; of a shared value as far up its step as its place in [0, 1) says."""
        distinct, first, count = np.unique(self.quantiles, return_index=True, return_counts=True)
        last = first + count - 1
        below = np.clip(np.searchsorted(distinct, values, side="right") - 1, 0, len(distinct) - 1)
        above = np.minimum(below + 1, len(distinct) - 1)
        width = np.where(above > below, distinct[above] - distinct[below], 1.0)
        share = np.clip((values - distinct[below]) / width, 0, 1)
        between = last[below] + share * (first[above] - last[below])
        within = first[below] + places * (last - first)[below]
        return np.where(values <= distinct[below], within, between) / (len(self.quantiles) - 1)

    def decode(self, vectors: Floats32) -> Floats:
        """Within the bounds."""
        from scipy.special import ndtr

        ranks = ndtr(vectors[:, 0].astype(np.float64))
        values: Floats = np.interp(ranks, np.linspace(0, 1, len(self.quantiles)), self.quantiles)
        if self.gap:
            values[vectors[:, -1] > vectors[:, -2]] = np.nan
        return values


def rank_knots(drawn: Floats32) -> Floats:
    """Ascending numbers, of which an equal share of what was drawn lies between any two neighbours.

    ``np.interp(x, knots, np.linspace(0, 1, len(knots)))`` is then the rank of x.
    """
    knots = np.quantile(drawn.astype(np.float64), np.linspace(0, 1, _KNOTS))
    step = max(float(np.ptp(knots)), 1.0) * 1e-9
    return knots + step * np.arange(_KNOTS)  # strictly ascending


def label_offsets(scores: Floats32 | Floats, shares: Floats) -> Floats:
    """What to add to scores so that each label is the largest in about the known share of rows.

    Labels drawn too seldom gain and those drawn too often lose, each in steps of its own, which grow while
    they go one way and are halved at each turn: the scores of a network that is sure of itself leave no room
    between rare labels, and one length of step for all would fling them past each other.

    Args:
        scores: shape (n, k). shares: shape (k,), sum 1.

    Returns:
        Shape (k,).

    Source: Riedmiller & Braun 1993 for the steps.
    """
    scores = scores[: max(_WORK // max(scores.shape[1], 1), 1)]
    scale = float(np.median(np.ptp(scores, axis=1))) or 1.0
    if scores.shape[1] <= _FEW:
        scores = np.asfortranarray(scores, dtype=np.float64)  # label by label
    offsets, best, nearest = np.zeros(len(shares)), np.zeros(len(shares)), np.inf
    steps, before = np.full(len(shares), scale), np.zeros(len(shares))
    enough = _ENOUGH * float(np.sqrt(shares * (1 - shares) / len(scores)).sum())
    for _ in range(_ROUNDS):
        lacking = shares - _times_largest(scores, offsets) / len(scores)
        off = float(np.abs(lacking).sum())
        if off < nearest:
            best, nearest = offsets, off
        if off <= enough:
            break
        way = np.sign(lacking)
        steps = np.minimum(steps * np.where(way == before, _LONGER, _SHORTER), scale)
        offsets, before = offsets + way * steps, way
    return best


def _times_largest(scores: Floats | Floats32, offsets: Floats) -> Counts:
    """How often each label is the largest, the first of equal ones.

    Of few labels one after the other takes a fraction of the time of searching each short row.
    """
    if scores.shape[1] > _FEW:
        return np.bincount((scores + offsets).argmax(axis=1), minlength=scores.shape[1])
    largest = scores[:, 0] + offsets[0]
    winner = np.zeros(len(scores), dtype=np.intp)
    for label in range(1, scores.shape[1]):
        rival = scores[:, label] + offsets[label]
        np.putmask(winner, rival > largest, label)
        np.maximum(largest, rival, out=largest)
    return np.bincount(winner, minlength=scores.shape[1])


@dataclass(frozen=True, eq=False)
class RankTransform:
    """A number as ``2 F(x) − 1``, F its distribution by noisy counts; what many rows share is a step of F.

    Where F jumps a row lies anywhere within the jump, by a draw; what a network draws there is that value.

    Attributes:
        domain: lowest and highest value, and the distance of neighbours.
        cells: F, over the places of the domain.
        gap: share of missing values; None where none may be missing.
        knots: ranks of what a network draws; without them it draws ranks.
        offset: added to *missing* when a network draws.
    """

    name: str
    domain: NumberDomain
    cells: binning.MarginCells = field(repr=False)
    gap: float | None
    knots: tuple[float, ...] = ()
    offset: float = 0.0

    choice = False
    numbers = 1

    @staticmethod
    def queries(domain: NumberDomain, *, gap: bool) -> int:
        """Noisy counts that :meth:`counted` asks for."""
        return binning.rounds(domain.places) + gap

    @classmethod
    def counted(
        cls, name: str, domain: NumberDomain, values: Floats, counting: binning.Counting, *, gap: bool
    ) -> RankTransform:
        """From noisy counts of the values, NaN where missing."""
        missing = np.isnan(values)
        cells = binning.adaptive_cells(
            domain.placed(values[~missing]), domain.places, counting.noisy, counting.least
        )
        share = None
        if gap:
            counts = counting.noisy(np.array([len(values) - missing.sum(), missing.sum()], dtype=np.float64))
            share = float(binning.settled(counts, 0.0)[1])
        return cls(name, domain, cells, share)

    @property
    def slices(self) -> tuple[int, ...]:
        """*Present* and *missing*."""
        return () if self.gap is None else (2,)

    def encode(self, table: Table, rng: np.random.Generator) -> Floats32:
        """The rank, 0 where missing, and whether it is."""
        values = table.numbers(self.name)
        missing = np.isnan(values)
        known = np.where(missing, self.domain.low, values)
        ranks = 2 * self.cells.ranks(_within(self.domain.placed(known), self.domain, rng)) - 1
        return beside_gap(np.where(missing, 0, ranks), missing, self.slices)

    def decode(self, vectors: Floats32) -> Floats:
        """Within the bounds, on the grid."""
        number = vectors[:, 0].astype(np.float64)
        if self.knots:
            ranks = np.interp(number, self.knots, np.linspace(0, 1, len(self.knots)))
        else:
            ranks = (np.clip(number, -1, 1) + 1) / 2
        values = self.domain.values(self.cells.places(ranks))
        if self.slices:
            values[vectors[:, -1] + self.offset > vectors[:, -2]] = np.nan
        return values

    def calibrated(self, vectors: Floats32) -> RankTransform:
        """Such that these vectors of a network decode to the counted distribution."""
        if self.gap is None:
            return replace(self, knots=tuple(rank_knots(vectors[:, 0]).tolist()))
        present, missing = label_offsets(vectors[:, -2:], np.array([1 - self.gap, self.gap]))
        offset = float(missing - present)
        there = vectors[:, -1] + offset <= vectors[:, -2]
        ranked = vectors[there] if there.any() else vectors
        return replace(self, knots=tuple(rank_knots(ranked[:, 0]).tolist()), offset=offset)


def _within(places: Floats, domain: NumberDomain, rng: np.random.Generator) -> Floats:
    """Anywhere within their own step of a grid."""
    return places + rng.random(len(places)) if domain.step else places


@dataclass(frozen=True)
class LabelTransform:
    """Labels, one coordinate each. A column of one value has none.

    Attributes:
        labels: all that may be drawn; a label of a row that is not among them counts as missing, or where
            nothing may be missing as the first.
        gap: values may be missing.
        shares: of labels and gap as far as they are known. offsets: added to what a network draws.
    """

    name: str
    labels: tuple[str, ...]
    gap: bool
    shares: tuple[float, ...] = ()
    offsets: tuple[float, ...] = ()

    numbers = 0
    choice = True

    @property
    def slices(self) -> tuple[int, ...]:
        """One slice, if there is something to choose."""
        width = len(self.labels) + self.gap
        return (width,) if width > 1 else ()

    def encode(self, table: Table, rng: np.random.Generator) -> Floats32:
        """One-hot."""
        if not self.slices:
            return np.zeros((table.n_rows, 0), dtype=np.float32)
        return one_hot(binning.label_codes(table, self.name, self.labels, gap=self.gap), self.slices[0])

    def decode(self, vectors: Floats32) -> Labels:
        """The label of the largest coordinate."""
        values = np.array([*self.labels, None], dtype=object)
        if not self.slices:
            return np.full(len(vectors), values[0], dtype=object)
        drawn: Labels = values[(vectors + np.array(self.offsets or [0.0])).argmax(axis=1)]
        return drawn

    def calibrated(self, vectors: Floats32) -> LabelTransform:
        """With offsets by which each label is drawn as often as its share."""
        return replace(self, offsets=tuple(label_offsets(vectors, np.array(self.shares)).tolist()))


@dataclass(frozen=True)
class RangeTransform:
    """A number between two bounds, ``2 (x − low) / (high − low) − 1``; what lies outside is clipped.

    Attributes:
        bounds: lowest and highest; None where no value is known.
        gap: values may be missing.
    """

    name: str
    bounds: Bounds | None
    gap: bool

    choice = False

    @property
    def numbers(self) -> int:
        """One, if it can differ."""
        return int(self.bounds is not None and self.bounds[0] < self.bounds[1])

    @property
    def slices(self) -> tuple[int, ...]:
        """*Present* and *missing*."""
        return (2,) if self.gap and self.bounds is not None else ()

    def encode(self, table: Table, rng: np.random.Generator) -> Floats32:
        """The number, 0 where missing, and whether it is."""
        values = table.numbers(self.name)
        missing = np.isnan(values)
        if not self.numbers:
            return beside_gap(values, missing, self.slices)[:, 1:]
        assert self.bounds is not None
        low, high = self.bounds
        scaled = 2 * ((values - low) / (high - low)) - 1
        return beside_gap(np.clip(np.nan_to_num(scaled), -1, 1), missing, self.slices)

    def decode(self, vectors: Floats32) -> Floats:
        """Within the bounds."""
        if self.bounds is None:
            return np.full(len(vectors), np.nan)
        low, high = self.bounds
        values = np.full(len(vectors), low)
        if self.numbers:
            unit = (np.clip(vectors[:, 0].astype(np.float64), -1, 1) + 1) / 2
            values = np.clip(low + unit * (high - low), low, high)
        if self.slices:
            values[vectors[:, -1] > vectors[:, -2]] = np.nan
        return values


@dataclass(frozen=True, eq=False)
class ModeTransform:
    """A number as its mode k, one-hot, and its place ``(x − μ_k) / 4 σ_k`` within, clipped to [−1, 1].

    Attributes:
        means, deviations, weights: of the normal modes, each of shape (k,), k ≥ 1; weights sum to 1.
        bounds: of what is drawn. gap: values may be missing, which is a mode too, the last.

    Source: Xu et al. 2019, section 4.2; that missing is a mode is ours.
    """

    name: str
    means: Floats
    deviations: Floats
    weights: Floats
    bounds: Bounds
    gap: bool

    numbers = 1
    choice = False

    @property
    def slices(self) -> tuple[int, ...]:
        """The modes."""
        return (len(self.means) + self.gap,)

    @classmethod
    def of(cls, name: str, values: Floats, bounds: Bounds, rng: np.random.Generator) -> ModeTransform:
        """Modes of the values that are present, of which two at least differ; few different values have no
        more modes."""
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.mixture import BayesianGaussianMixture

        present = values[~np.isnan(values)]
        gap = len(present) < len(values)
        if len(present) > _ROWS:
            present = rng.choice(present, _ROWS, replace=False)
        centre, scale = present.mean(), present.std()
        mixture = BayesianGaussianMixture(
            n_components=min(MOST, len(np.unique(present))),
            weight_concentration_prior_type="dirichlet_process",
            weight_concentration_prior=_CONCENTRATION,
            random_state=int(rng.integers(2**31)),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # a mixture that is nearly there will do
            mixture.fit(((present - centre) / scale)[:, None])
        kept = mixture.weights_ > _LEAST_WEIGHT
        deviations = np.sqrt(mixture.covariances_[kept, 0, 0]) * scale
        weights = mixture.weights_[kept] / mixture.weights_[kept].sum()
        return cls(name, mixture.means_[kept, 0] * scale + centre, deviations, weights, bounds, gap)

    def encode(self, table: Table, rng: np.random.Generator) -> Floats32:
        """The place within the mode, 0 where missing; and the mode, drawn by its share of the density."""
        values = table.numbers(self.name)
        missing = np.isnan(values)
        known = np.where(missing, self.means[0], values)
        z = (known[:, None] - self.means) / self.deviations
        logs = np.log(self.weights) - np.log(self.deviations) - z**2 / 2
        shares = np.exp(logs - logs.max(axis=1, keepdims=True)).cumsum(axis=1)
        mode = (rng.random(len(known))[:, None] * shares[:, -1:] > shares).sum(axis=1)
        place = np.clip((known - self.means[mode]) / (_SPREAD * self.deviations[mode]), -1, 1)
        chosen = one_hot(np.where(missing, len(self.means), mode), self.slices[0])
        return np.column_stack([np.where(missing, 0, place).astype(np.float32), chosen])

    def decode(self, vectors: Floats32) -> Floats:
        """From the mode of the largest coordinate, within the bounds."""
        mode = vectors[:, 1:].argmax(axis=1)
        missing = mode == len(self.means)
        mode = np.where(missing, 0, mode)
        place = np.clip(vectors[:, 0].astype(np.float64), -1, 1)
        values = place * _SPREAD * self.deviations[mode] + self.means[mode]
        return np.where(missing, np.nan, np.clip(values, *self.bounds))


ColumnTransform: TypeAlias = (
    LabelTransform | RangeTransform | RankTransform | ModeTransform | QuantileTransform
)
"""One column as coordinates: leading ``numbers``, then one-hot ``slices``, which are a ``choice`` for
a column of labels, and none for modes and gaps."""
