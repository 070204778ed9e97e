"""Train and another table in one space: balls that hold a share of a sample, and what lies inside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from synth_audit.arrays import Bools, Floats, Positions
from synth_audit.encode.embedding import EmbeddingSettings, embed
from synth_audit.encode.encoded import Encoded
from synth_audit.errors import NotApplicable
from synth_audit.execution.context import RunContext
from synth_audit.execution.executor import over_blocks, single_threaded_algebra
from synth_audit.findings.measurement import Estimate, Interval, MeasurementId, Series
from synth_audit.neighbours.coordinates import Coordinates, add_unlike, drawn_in, small_codes
from synth_audit.neighbours.search import Nearest, nearest, nearest_other
from synth_audit.plugins.audit import Subject
from synth_audit.stats.proportions import Proportion, unseen_share
from synth_audit.stats.resampling import critical_value
from synth_audit.table.schema import Column
from synth_audit.table.table import Table

DECIMALS = 9
"""Squared radii are rounded to this, so that radii which are equal in exact arithmetic compare as equal."""

_BLOCK = 2**21
"""Distances held at a time by one thread: 16 MiB."""

_FEW_LABELS = 64
"""Up to so many labels in a column, a matrix product is faster than counting for each set of weights."""

_NOISE = 1e-12
"""Rounding of a squared distance computed from products, relative to the squared norms."""

SpaceName = Literal["features", "embedding"]
SPACES: tuple[SpaceName, ...] = ("features", "embedding")
"""Spaces to compare rows in, as :class:`AnchoredSpace` describes them."""

_GRID = np.arange(1, 50) / 50
"""Shares at which the pictured curves are drawn: a point for every two per cent."""

CONTROL = "control rows"
"""Label of the curve of control rows in pictures."""


def tamed(rows: Coordinates) -> Coordinates:
    """The rows with coordinates far out :func:`drawn_in`.

    One absurd value can move the mean so far that all other rows are equally far from it.
    """
    dense = np.empty_like(rows.numbers)
    for place, column in zip(dense.T, rows.numbers.T, strict=True):  # one by one: there may be millions
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
        centres = weights @ reference.numbers
        squared = -2.0 * (centres @ rows.numbers.T)
        squared += _of_labels(rows, reference, weights)
    squared += np.einsum("ij,ij->i", rows.numbers, rows.numbers)
    squared += np.einsum("ij,ij->i", centres, centres)[:, None]
    rounded: Floats = squared.clip(min=0.0).round(DECIMALS)
    return rounded


def _of_labels(rows: Coordinates, reference: Coordinates, weights: Floats) -> Floats:
    """What label columns add to the squared distance, shape (sets, n).

    A row with label k of a column adds ``u / 2 · (1 − 2 p_k + Σ p²)``, with p the shares of the labels in the
    reference. Columns of few labels are computed together, by one matrix product.
    """
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

        Rows on the edge of the ball count in part, so that exactly α of the reference is inside. So P_α = α
        for equal samples, however many ties they have.

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
    """Draw random weights of a part of a sample. Means vary under them as if the whole were resampled.

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


def strangers(made: Coordinates, train: Coordinates, rng: np.random.Generator) -> tuple[Bools, Positions]:
    """Find the authentic rows: farther from their nearest training row than its nearest neighbour in train.

    A row that equals a training row is never authentic, also where that row occurs twice. ``train`` needs two
    rows or more.

    Returns:
        With t the training row nearest to s (one at random of equally near ones): True where
        ``d(s, t) > d(t, nearest other training row)``, and the position of t; shape (n,) each.
    """
    found = nearest(made, train)
    owner = _by_lot(made, train, found, rng)
    owners, position = np.unique(owner, return_inverse=True)
    own_neighbour = nearest_other(train, owners).first[position]
    return found.first > own_neighbour, owner


def _by_lot(
    queries: Coordinates, reference: Coordinates, found: Nearest, rng: np.random.Generator
) -> Positions:
    """Position of the nearest reference row, drawn among all that are as near, shape (n,)."""
    lots = rng.random(len(queries))
    tied = np.flatnonzero(found.ties > 1)
    norms = np.einsum("ij,ij->i", reference.numbers, reference.numbers)

    def draw(block: slice) -> Positions:
        rows = tied[block]
        part = queries.take(rows)
        squared = norms - 2.0 * (part.numbers @ reference.numbers.T)
        labels = small_codes(part.labels, reference.labels)
        add_unlike(squared, reference.unlike.tolist(), *labels)
        least = squared.min(axis=1)
        size = np.einsum("ij,ij->i", part.numbers, part.numbers)
        as_near = squared <= (least + _NOISE * (1.0 + 2.0 * size + np.abs(least)))[:, None]
        ticket = np.floor(lots[rows] * np.count_nonzero(as_near, axis=1))
        drawn: Positions = (np.cumsum(as_near, axis=1) > ticket[:, None]).argmax(axis=1)
        return drawn

    owner = found.index.copy()
    if len(tied):
        owner[tied] = np.concatenate(over_blocks(len(tied), max(1, _BLOCK // len(reference)), draw))
    return owner


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
        """Distances from the mean of the other rows: with c of all n rows, ``|x − c| n / (n − 1)``.

        A row moves the mean towards itself. With many columns and few rows this is so strong that no control
        row would come as near. A row that also occurs in the reference, as in a copy, is treated as there.
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
    parts, weights = [], []
    for rows in (pair.train, pair.other):
        parts.append(drawn_part(rows, most, rng))
        weights.append(bootstrap_weights(len(rows), len(parts[-1]), n_draws, rng))
    found = []
    for home, away in ((0, 1), (1, 0)):
        own, other = weights[home], weights[away]
        # Each row is seen from the weighted mean of the others.
        others = np.where(own < 1, 1 - own, 1.0)
        inside = squared_radii(parts[home], parts[home], own) / others**2
        outside = squared_radii(parts[away], parts[home], own)
        draws = zip(inside, outside, own, other, strict=True)
        found.append(np.array([Support.of(*draw).integral() for draw in draws]))
    return np.column_stack([*found, found[0] * found[1]])


def authenticity(made: Coordinates, train: Coordinates, level: float, rng: np.random.Generator) -> Estimate:
    """Share of authentic rows; those with one nearest training row are one cluster.

    The interval takes the training rows as given.
    """
    authentic, nearest_row = strangers(made, train, rng)
    _, owner = np.unique(nearest_row, return_inverse=True)
    hits = np.bincount(owner, authentic).astype(np.int64)
    interval = Proportion.of_clusters(hits, np.bincount(owner)).interval(level)
    return Estimate(float(authentic.mean()), interval)


def drawn_part(rows: Coordinates, most: int, rng: np.random.Generator) -> Coordinates:
    """A random part of at most ``most`` rows; all of them where there are no more."""
    n = len(rows)
    return rows if n <= most else rows.take(np.sort(rng.choice(n, most, replace=False)))


@dataclass(frozen=True, eq=False)
class AnchoredSpace:
    """A space that all of train anchors, whichever rows are put into it.

    ``features``: numeric columns standardised, beyond ten standard deviations by logarithm; discrete ones
    one-hot; missing an indicator of its own. ``embedding``: the contrastive embedding of these settings.
    """

    name: SpaceName
    subject: Subject
    varying: Sequence[Column]
    settings: EmbeddingSettings
    context: RunContext

    @classmethod
    def on(
        cls, name: SpaceName, subject: Subject, settings: EmbeddingSettings, context: RunContext
    ) -> AnchoredSpace:
        """Raises ``NotApplicable`` where no column varies in train."""
        varying = Encoded([subject.train], subject.features).varying
        if not varying:
            raise NotApplicable("no column varies in train, so that there is no centre to be near to")
        return cls(name, subject, varying, settings, context)

    def rows(self, known: Table, other: Table) -> RowsInSpace:
        """Rows of train and of another table, and which of them stand in both."""
        groups = Encoded([known, other], self.varying).groups()
        met = np.isin(groups[0], groups[1]), np.isin(groups[1], groups[0])
        of_train, of_other = self.coordinates([known, other])
        return RowsInSpace(of_train, of_other, *met)

    def coordinates(self, tables: Sequence[Table]) -> list[Coordinates]:
        """Tables in one space.

        Raises:
            NotApplicable: the embedding has too little to learn from.
            PluginError: the embedding is asked for and torch is not installed.
        """
        train = self.subject.train
        if self.name == "embedding":
            return embed(train, tables, self.subject.features, settings=self.settings, context=self.context)
        with np.errstate(over="ignore"):  # an absurd value, infinitely many deviations away, is tamed
            points = Encoded(tables, self.varying, [train]).coordinates()
        return [tamed(rows) for rows in points]


def curves(seen: Mapping[str, Curves], subject: Subject, setting: str) -> tuple[Series, ...]:
    """Pictures of P_α and R_β, a line for each label; none where train has too few rows for any.

    P_α reveals to a holder of the release where the real radii are. So α and 1 − α each stand for at least as
    many training rows as the suppression limit, and counts of real rows are rounded to multiples of it.

    Args:
        seen: by label: the release, and :data:`CONTROL` if there are control rows.
    """
    n, fewest = subject.train.n_rows, subject.suppression
    alphas = _GRID[np.minimum(_GRID, 1 - _GRID) * n >= fewest - 1e-9]
    if not len(alphas):
        return ()
    inside = {label: pair.precision.share_within(alphas) for label, pair in seen.items()}
    if subject.control is not None and CONTROL in inside:
        compared = min(subject.control.n_rows, subject.synthetic.n_rows)
        inside[CONTROL] = _in_steps(inside[CONTROL], compared, fewest)
    covered = {label: _in_steps(pair.recall.share_within(alphas), n, fewest) for label, pair in seen.items()}

    def picture(name: str, title: str, x_label: str, y_label: str, found: Mapping[str, Floats]) -> Series:
        lines = {label: tuple(ys.tolist()) for label, ys in found.items()}
        x = tuple(alphas.tolist())
        return Series(MeasurementId("", name, setting), title, "line", x_label, y_label, x, lines)

    return (
        picture(
            "precision_curve",
            "Rows inside the balls of the real ones",
            "most typical share of train",
            "share of rows in the same ball",
            inside,
        ),
        picture(
            "recall_curve",
            "Real rows inside the balls of others",
            "most typical share of the synthetic or control rows",
            "share of train in the same ball",
            covered,
        ),
    )


def _in_steps(shares: Floats, n: int, step: int) -> Floats:
    """Shares of n rows with their numbers rounded to multiples of ``step``."""
    rounded: Floats = np.minimum(np.rint(shares * n / step) * step / n, 1.0)
    return rounded
