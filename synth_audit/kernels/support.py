"""Balls that hold a share of a sample, how much of another lies inside, and which rows are no near copies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synth_audit.core.arrays import Bools, Floats, Positions
from synth_audit.kernels.coordinates import Coordinates, drawn_in
from synth_audit.kernels.euclidean import nearest, nearest_other
from synth_audit.kernels.labels import add_unlike, small_codes
from synth_audit.kernels.neighbours import Nearest
from synth_audit.kernels.parallel import over_blocks, single_threaded_algebra

DECIMALS = 9
"""Squared radii are rounded to this, so that radii which are equal in exact arithmetic compare as equal."""

_BLOCK = 2**21
"""Distances held at a time by one thread: 16 MiB."""

_FEW_LABELS = 64
"""Labels of a column up to which a product of matrices is faster than counting them set by set."""

_NOISE = 1e-12
"""Rounding of a squared distance computed from products, relative to the squared norms."""


def tamed(rows: Coordinates) -> Coordinates:
    """The rows with coordinates far out :func:`drawn_in`.

    A mean is a centre that one absurd value can carry off: all other rows would then be equally far from it.
    """
    dense = np.empty_like(rows.dense)
    for place, column in zip(dense.T, rows.dense.T, strict=True):  # one by one: there may be millions
        place[:] = drawn_in(column)
    return Coordinates(dense, rows.labels, rows.unlike)


def squared_radii(rows: Coordinates, reference: Coordinates, weights: Floats | None = None) -> Floats:
    """Squared distance of each row from the centre of a sample, ``|x − Σ w_j r_j|²``.

    Args:
        rows: n rows. reference: m rows of the same space, m ≥ 1.
        weights: of the reference's rows, shape (sets, m), each set with the sum 1; equal if left out.

    Returns:
        Shape (sets, n), rounded; of one set if no weights are given.
    """
    if weights is None:
        weights = np.full((1, len(reference)), 1 / len(reference))
    with single_threaded_algebra():
        centres = weights @ reference.dense
        squared = -2.0 * (centres @ rows.dense.T)
        squared += _of_labels(rows, reference, weights)
    squared += np.einsum("ij,ij->i", rows.dense, rows.dense)
    squared += np.einsum("ij,ij->i", centres, centres)[:, None]
    rounded: Floats = squared.clip(min=0.0).round(DECIMALS)
    return rounded


def _of_labels(rows: Coordinates, reference: Coordinates, weights: Floats) -> Floats:
    """What columns of one-hot labels add: ``u / 2 · (1 − 2 p_k + Σ p²)`` for label k of each, p the
    reference's shares. Those of few labels by one product of matrices; shape (sets, n)."""
    total = np.zeros((len(weights), len(rows)))
    minus, hot = [], []
    for column, unlike in enumerate((rows.unlike / 2).tolist()):
        codes, others = rows.labels[:, column], reference.labels[:, column]
        used, joint = np.unique(np.concatenate([codes, others]), return_inverse=True)
        own, beside = joint[: len(codes)], joint[len(codes) :]
        if few := len(used) <= _FEW_LABELS:
            shares = weights @ np.eye(len(used))[beside]
        else:
            shares = np.stack([np.bincount(beside, w, len(used)) for w in weights])
        total += unlike * (1.0 + np.einsum("ij,ij->i", shares, shares))[:, None]
        if few:
            minus.append(2.0 * unlike * shares)
            hot.append(np.eye(len(used))[own])
        else:
            total -= 2.0 * unlike * shares[:, own]
    if hot:
        total -= np.hstack(minus) @ np.hstack(hot).T
    return total


@dataclass(frozen=True, eq=False)
class Support:
    """How much of a reference sample and of another one lies in balls that grow around one centre.

    Attributes:
        reference, other: shares inside the k-th ball, shape (levels + 1,), from 0 to 1; one ball for each
            radius that occurs.
    """

    reference: Floats
    other: Floats

    @classmethod
    def of(
        cls,
        reference: Floats,
        other: Floats,
        reference_weights: Floats | None = None,
        other_weights: Floats | None = None,
    ) -> Support:
        """Compare radii, shapes (n,) and (m,), around one centre.

        Args:
            reference_weights, other_weights: of the rows, of any positive sum; equal if left out.
        """
        levels, joint = np.unique(np.concatenate([reference, other]), return_inverse=True)
        own, beside = joint[: len(reference)], joint[len(reference) :]
        return cls(_inside(own, len(levels), reference_weights), _inside(beside, len(levels), other_weights))

    def share_within(self, alphas: Floats) -> Floats:
        """P_α: share of the other sample in the ball that holds the share α of the reference.

        Of rows right on the ball's edge, that part counts which makes up exactly α of the reference, so that
        P_α = α for equal samples with whatever ties.

        Args:
            alphas: in (0, 1], shape (k,).
        """
        level = np.searchsorted(self.reference[1:], np.asarray(alphas) - 1e-12, side="left")
        level = np.minimum(level, len(self.reference) - 2)
        low, high = self.reference[level], self.reference[level + 1]
        part = np.divide(alphas - low, high - low, out=np.ones_like(low), where=high > low)
        inside: Floats = self.other[level] + part * (self.other[level + 1] - self.other[level])
        return inside

    def integral(self) -> float:
        """``1 − 2 ∫ |P_α − α| dα``, exactly: 1 where P_α = α throughout, 0 where no or every row is inside
        the smallest ball."""
        width = np.diff(self.reference)
        gap = np.abs(self.other - self.reference)
        low, high = gap[:-1], gap[1:]
        crossing = (self.other - self.reference)[:-1] * (self.other - self.reference)[1:] < 0
        total = np.where(low + high > 0, low + high, 1.0)
        mean = np.where(crossing, (low**2 + high**2) / total, low + high) / 2
        return float(1.0 - 2.0 * np.sum(width * mean))


def _inside(level: Positions, n_levels: int, weights: Floats | None) -> Floats:
    """Share of rows at or below each level, after a 0, shape (n_levels + 1,)."""
    total = np.cumsum(np.bincount(level, weights, n_levels))
    return np.concatenate([[0.0], total / total[-1]])


def bootstrap_weights(n: int, size: int, draws: int, rng: np.random.Generator) -> Floats:
    """Random weights of a part of a sample under which means vary as under resampling the whole of it.

    ``w = 1 + √(size / n) (E − 1)`` with E standard exponential, then scaled to the sum 1: a mean of the
    part's rows varies with ``σ² / n``. With size = n it is the Bayesian bootstrap.

    Args:
        n: rows of the sample. size: rows of the part, at most n.

    Returns:
        shape (draws, size), positive.

    Source: Rubin 1981.
    """
    weights = 1.0 + np.sqrt(size / n) * (rng.exponential(size=(draws, size)) - 1.0)
    scaled: Floats = weights / weights.sum(axis=1, keepdims=True)
    return scaled


@dataclass(frozen=True, eq=False)
class Strangers:
    """Which rows are no near copies, shape (n,) each.

    Attributes:
        authentic: true where ``d(s, t) > d(t, nearest other training row)``, t the training row nearest to s.
        nearest: position of t; where several are as near, one of them by lot.
    """

    authentic: Bools
    nearest: Positions


def strangers(made: Coordinates, train: Coordinates, rng: np.random.Generator) -> Strangers:
    """Ask of each made row whether it is farther from its training row than that one's own neighbour is.

    A row that equals a training row is never authentic, also where that row has a double. ``train`` needs two
    rows or more.
    """
    found = nearest(made, train)
    owner = _by_lot(made, train, found, rng)
    owners, position = np.unique(owner, return_inverse=True)
    own_neighbour = nearest_other(train, owners).first[position]
    return Strangers(found.first > own_neighbour, owner)


def _by_lot(
    queries: Coordinates, reference: Coordinates, found: Nearest, rng: np.random.Generator
) -> Positions:
    """Position of the nearest reference row, drawn among all that are as near, shape (n,)."""
    lots = rng.random(len(queries))
    tied = np.flatnonzero(found.ties > 1)
    norms = np.einsum("ij,ij->i", reference.dense, reference.dense)

    def draw(block: slice) -> Positions:
        rows = tied[block]
        part = queries.take(rows)
        squared = norms - 2.0 * (part.dense @ reference.dense.T)
        labels = small_codes(part.labels, reference.labels)
        add_unlike(squared, reference.unlike.tolist(), *labels)
        least = squared.min(axis=1)
        size = np.einsum("ij,ij->i", part.dense, part.dense)
        as_near = squared <= (least + _NOISE * (1.0 + 2.0 * size + np.abs(least)))[:, None]
        ticket = np.floor(lots[rows] * np.count_nonzero(as_near, axis=1))
        drawn: Positions = (np.cumsum(as_near, axis=1) > ticket[:, None]).argmax(axis=1)
        return drawn

    owner = found.index.copy()
    if len(tied):
        owner[tied] = np.concatenate(over_blocks(len(tied), max(1, _BLOCK // len(reference)), draw))
    return owner
