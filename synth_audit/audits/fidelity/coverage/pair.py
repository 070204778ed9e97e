"""Train and another table in one space: which rows lie in whose balls, how surely, and which are new."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synth_audit.core.arrays import Bools, Floats
from synth_audit.core.measurement import Estimate, Interval
from synth_audit.kernels.attack_success import SuccessCount
from synth_audit.kernels.coordinates import Coordinates
from synth_audit.kernels.intervals import critical_value
from synth_audit.kernels.proportion_interval import unseen_share
from synth_audit.kernels.support import Support, bootstrap_weights, squared_radii, strangers


@dataclass(frozen=True, eq=False)
class RowsInSpace:
    """Train and another table in one space.

    Attributes:
        train_met, other_met: true for the rows that also stand in the other of the two, shape (n,) each.
    """

    train: Coordinates
    other: Coordinates
    train_met: Bools
    other_met: Bools

    @property
    def least(self) -> int:
        """Rows of the smaller table."""
        return min(len(self.train), len(self.other))


@dataclass(frozen=True, eq=False)
class Curves:
    """The other table in the balls of train, and train in those of the other table."""

    precision: Support
    recall: Support

    @classmethod
    def of(cls, pair: RowsInSpace) -> Curves:
        """Each row is seen from the mean of the reference's rows but itself, at ``|x − c| n / (n − 1)``.

        A row draws the mean towards itself, in a table of many columns and few rows so much that a stranger
        would never come as near. A row that also stands in the reference, as in a copy, is treated as it is
        there.
        """
        return cls(
            _balls(pair.train, pair.other, pair.other_met), _balls(pair.other, pair.train, pair.train_met)
        )

    @property
    def scores(self) -> Floats:
        """α-precision, β-recall and their product."""
        precision, recall = self.precision.integral(), self.recall.integral()
        return np.array([precision, recall, precision * recall])


def _balls(home: Coordinates, away: Coordinates, met: Bools) -> Support:
    n = len(home)
    others_only = (n / max(n - 1, 1)) ** 2
    [inside], [outside] = squared_radii(home, home), squared_radii(away, home)
    return Support.of(inside * others_only, np.where(met, outside * others_only, outside))


def scored(curves: Curves, least: int, drawn: Floats, level: float) -> dict[str, Estimate]:
    """The three scores, each ``± z · standard deviation of the draws``.

    Noise pulls a score below 1, and resampling pulls it there again: ends of the draws could miss the value
    itself. A half-width is at least what a share u of rows could change, the most that the interval
    of a proportion leaves possible for rows of which none was seen among n.

    Args:
        least: n, rows of the smaller table. drawn: of :func:`resampled`.
    """
    z = critical_value(level)
    unseen = unseen_share(least, level)
    precision, recall, product = curves.scores
    narrowest = unseen * np.array([1.0, 1.0, precision + recall + unseen])
    half = np.maximum(z * drawn.std(axis=0, ddof=1), narrowest)
    names = ("alpha_precision", "beta_recall", "auprc")
    return {
        name: Estimate(float(v), Interval(float(v - h), float(v + h), level, "bootstrap standard error"))
        for name, v, h in zip(names, (precision, recall, product), half, strict=True)
    }


def resampled(pair: RowsInSpace, most: int, n_draws: int, rng: np.random.Generator) -> Floats:
    """Scores under random weights of the rows of both tables, shape (n_draws, 3).

    Centres and radii move with the weights. At most ``most`` rows of each table are weighted, in a way that
    makes their scores vary as those of the whole table do.
    """
    known, known_weights = _weighted(pair.train, most, n_draws, rng)
    made, made_weights = _weighted(pair.other, most, n_draws, rng)
    around_known = _without_own(known, known_weights), squared_radii(made, known, known_weights)
    around_made = _without_own(made, made_weights), squared_radii(known, made, made_weights)
    found = np.empty((n_draws, 3))
    for draw, (w, v) in enumerate(zip(known_weights, made_weights, strict=True)):
        precision = Support.of(around_known[0][draw], around_known[1][draw], w, v).integral()
        recall = Support.of(around_made[0][draw], around_made[1][draw], v, w).integral()
        found[draw] = precision, recall, precision * recall
    return found


def _without_own(rows: Coordinates, weights: Floats) -> Floats:
    """Squared distance of each row from the weighted mean of the others, shape (sets, n)."""
    others = np.where(weights < 1, 1 - weights, 1.0)
    distances: Floats = squared_radii(rows, rows, weights) / others**2
    return distances


def _weighted(
    rows: Coordinates, most: int, n_draws: int, rng: np.random.Generator
) -> tuple[Coordinates, Floats]:
    part = drawn_part(rows, most, rng)
    return part, bootstrap_weights(len(rows), len(part), n_draws, rng)


def authenticity(made: Coordinates, train: Coordinates, level: float, rng: np.random.Generator) -> Estimate:
    """Share of authentic rows; those with one nearest training row are one cluster.

    The interval takes the training rows as given.
    """
    found = strangers(made, train, rng)
    _, owner = np.unique(found.nearest, return_inverse=True)
    tries = np.bincount(owner)
    hits = np.bincount(owner, found.authentic).astype(np.int64)
    interval = SuccessCount.of_clusters(hits, tries).interval(level)
    return Estimate(float(found.authentic.mean()), interval)


def drawn_part(rows: Coordinates, most: int, rng: np.random.Generator) -> Coordinates:
    """A random part of at most ``most`` rows; all of them where there are no more."""
    n = len(rows)
    return rows if n <= most else rows.take(np.sort(rng.choice(n, most, replace=False)))
