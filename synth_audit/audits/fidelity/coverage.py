"""Does the release lie where the real rows are typical, reach all of them, and consist of new rows?

Rows lie in balls around the centre of a sample, each of which holds a share of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import numpy as np

from synth_audit.arrays import Bools, Floats, Positions
from synth_audit.audits._shared import at_least, merit, some_of
from synth_audit.audits.fidelity._reference import Found, measured_together, sampling_note
from synth_audit.encode.embedding import EmbeddingSettings, embed
from synth_audit.encode.encoded import Encoded
from synth_audit.errors import NotApplicable
from synth_audit.execution.context import RunContext
from synth_audit.execution.executor import over_blocks, single_threaded_algebra
from synth_audit.findings.measurement import Estimate, Findings, Interval, MeasurementId, Series
from synth_audit.neighbours.coordinates import Coordinates, add_unlike, drawn_in, small_codes
from synth_audit.neighbours.search import Nearest, most_queries, nearest, nearest_other
from synth_audit.plugins.audit import AuditInfo, Subject
from synth_audit.stats.proportions import Proportion, unseen_share
from synth_audit.stats.resampling import critical_value
from synth_audit.table.schema import Column
from synth_audit.table.table import Table

ALPHA_PRECISION = merit(
    "alpha_precision",
    "α-precision",
    help="1: each ball around the real centre holds as many synthetic rows as real; 0: none, or all.",
)

BETA_RECALL = merit(
    "beta_recall",
    "β-recall",
    help="1: each ball around the synthetic centre holds as many real rows as synthetic; 0: none, or all.",
)

AUPRC = merit(
    "auprc",
    "α-precision times β-recall",
    help="Near 1 only where both are.",
)

AUTHENTICITY = merit(
    "authenticity",
    "Authenticity",
    unit="share",
    help="Synthetic rows farther from their nearest training row than that one's own neighbour is; a copy "
    "has 0. More than control rows reach is no merit: rows that are nowhere near are authentic too.",
)

_MANY_DOUBLES = 0.01
"""Share of training rows with a double from which on a reader is told."""

_DECIMALS = 9
"""Of squared radii, so that radii which are equal in exact arithmetic compare as equal. Far above rounding,
as no coordinate lies far beyond ten, and far below any difference that counts."""

_BLOCK = 2**21
"""Distances held at a time by one thread: 16 MiB."""

_FEW_LABELS = 64
"""Up to so many labels in a column, a matrix product is faster than counting for each set of weights: with
eight in half of the time, with 64 in as much."""

_NOISE = 1e-12
"""Rounding of a squared distance computed from products, relative to the squared norms."""

SpaceName = Literal["features", "embedding"]
SPACES: tuple[SpaceName, ...] = ("features", "embedding")
"""Spaces to compare rows in, as :class:`AnchoredSpace` describes them."""

_GRID = np.arange(1, 50) / 50
"""Shares at which the pictured curves are drawn: a point for every two per cent."""

CONTROL = "control rows"
"""Label of the curve of control rows in pictures."""


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """Compares how train and the release lie around each other's centre.

    With r_α the radius around train's mean within which the share α of train lies, ``P_α`` = share of the
    release within r_α and ``alpha_precision = 1 − 2 ∫ |P_α − α| dα``. ``beta_recall`` is the same with roles
    swapped: the share R_β of train in the ball around the release's mean that holds the share β of the
    release. ``auprc = alpha_precision · beta_recall``. ``authenticity`` = share of synthetic rows that are
    farther from their nearest training row than that row is from its nearest other training row.

    A row is seen from the mean of the rows but itself, and rows on a ball's edge count in part: a copy scores
    1, 1, 1 and 0 exactly. The programme of Alaa et al. differs in the recall: there a real row is covered
    where its nearest synthetic row is in that ball and nearer than the nearest other real row.

    All are in [0, 1]. The first three have an interval from the Bayesian bootstrap of both tables, centre and
    radii included, for the number at this many rows: noise alone pulls equal distributions down to about
    ``1 − 0.63 √(1/n + 1/m)``, control rows as well. Authenticity has that of a share, the training rows
    as given, of which rows with one nearest training row are a cluster.

    Fields:
        spaces: ``features`` (without a setting), standardised and one-hot, and ``embedding``, the contrastive
            embedding, which takes minutes.
        embedding_settings: how the network of the embedding is built and trained.
        most_rows: rows of a table, drawn at random where it has more, that lie in balls and span them.
        max_queries: at most this many rows, drawn at random, are asked for authenticity, all of train being
            searched.
        max_resampled: the bootstrap weights at most this many rows of each table, drawn at random, as
            if they were all.
        n_bootstrap: draws behind the intervals.

    Raises:
        NotApplicable: no column varies in train, or the embedding has too little to learn from.

    Source: Alaa et al. 2022; TableDiffusion thesis, section 6.8.3; TVineSynth, appendix I.
    """

    spaces: tuple[SpaceName, ...] = ("features",)
    embedding_settings: EmbeddingSettings = field(default_factory=EmbeddingSettings)
    most_rows: int = 100_000
    max_queries: int = 3000
    max_resampled: int = 5000
    n_bootstrap: int = 200

    info: ClassVar[AuditInfo] = AuditInfo(
        title="Typical, covered and new rows",
        question="Do synthetic rows lie where real ones are typical, do they cover all of them, and are "
        "they new rows?",
        threat_model="Someone who studies typical or unusual cases would miss some, or be shown what does "
        "not exist.",
        not_covered="What the distance from a centre does not show, such as relations between columns: "
        "shuffled columns may score well. Authenticity is no promise of privacy: rows near several "
        "similar people, or true in a single secret column, count as new.",
        quantities=(ALPHA_PRECISION, BETA_RECALL, AUPRC, AUTHENTICITY),
        risk="fidelity",
        cost="seconds",
        source="Alaa et al. 2022; TableDiffusion thesis, section 6.8.3; TVineSynth, appendix I",
    )

    def __post_init__(self) -> None:
        some_of(self, "spaces", SPACES)
        if "features" not in self.spaces:
            raise ValueError("spaces must hold features")
        at_least(self, max_queries=1, most_rows=100, max_resampled=100, n_bootstrap=100)

    def run(self, subject: Subject, context: RunContext) -> Findings:
        """Compare the release, and control rows as its reference, with train in every space."""
        seen: list[dict[SpaceName, Curves]] = []
        varying = Encoded([subject.train], subject.features).varying
        if not varying:
            raise NotApplicable("no column varies in train, so that there is no centre to be near to")
        with context.keeping() as keeping:  # or the embedding would be learnt anew for every table
            settings = self.embedding_settings
            spaces = [AnchoredSpace(s, subject, varying, settings, keeping) for s in self.spaces]

            def compare(tables: Sequence[Table], seed: int) -> list[Found]:
                found = [_Compared({}, {}, np.random.default_rng(seed)) for _ in tables]
                for space in spaces:
                    self._compare(space, tables, found)
                seen.extend(x.curves for x in found)
                return [x.estimates for x in found]

            measurements = measured_together(subject, compare, self.info.quantities, context.rng)
        n = subject.synthetic.n_rows
        asked = min(most_queries(self.max_queries, subject.train.n_rows), n)
        counted = (
            replace(m, n_requested=asked, n_achieved=asked)
            if m.id.quantity == AUTHENTICITY.name
            else replace(m, n_achieved=min(self.most_rows, n))
            for m in measurements
        )
        # The release is compared first, control rows next; a third may be a part of the first.
        labels = ("synthetic rows", CONTROL)[: len(subject.real)]
        pictures = [
            picture
            for s in self.spaces
            for picture in curves(dict(zip(labels, (c[s] for c in seen), strict=False)), subject, _setting(s))
        ]
        read = sampling_note(subject, self.most_rows, "All but authenticity is read from")
        return Findings(tuple(counted), tuple(pictures), (*_doubles(subject), *read))

    def _compare(self, space: AnchoredSpace, tables: Sequence[Table], found: Sequence[_Compared]) -> None:
        """Add what each table shows in a space; all are asked of the same rows of train, put there once."""
        train, level = space.subject.train, space.subject.level
        most, asked = most_queries(self.max_queries, train.n_rows), list[Table]()
        pairs = list[tuple[Coordinates, Coordinates]]()
        for table, one in zip(tables, found, strict=True):
            known, part = (t.sample(self.most_rows, one.draws) for t in (train, table))
            pair = space.rows(known, part)
            one.curves[space.name] = Curves.of(pair)
            drawn = resampled(pair, self.max_resampled, self.n_bootstrap, one.draws)
            one.add(space.name, scored(one.curves[space.name], pair, drawn, level))
            if known is train:
                pairs.append((pair.other, pair.train))
            else:
                asked.append(part.sample(most, one.draws))
        if asked:
            *others, every = space.coordinates([*asked, train])
            pairs = [(other, every) for other in others]
        for one, (other, every) in zip(found, pairs, strict=True):
            made = drawn_part(other, most, one.draws)
            one.add(space.name, {AUTHENTICITY.name: authenticity(made, every, level, one.draws)})


@dataclass(frozen=True, eq=False)
class _Compared:
    """What one table showed so far.

    Attributes:
        draws: the table's own, moved by no other table.
    """

    estimates: dict[MeasurementId, Estimate]
    curves: dict[SpaceName, Curves]
    draws: np.random.Generator

    def add(self, space: SpaceName, estimates: Mapping[str, Estimate]) -> None:
        """Keep estimates by quantity as those of a space."""
        self.estimates.update({MeasurementId("", n, _setting(space)): e for n, e in estimates.items()})


def _setting(space: SpaceName) -> str:
    return "" if space == "features" else space


def _doubles(subject: Subject) -> tuple[str, ...]:
    """A note where enough training rows have a double for authenticity to mean something else."""
    [groups] = Encoded([subject.train], subject.features).groups()
    sizes = np.bincount(groups)[groups]
    n = int(np.count_nonzero(sizes > 1))
    share = n / len(groups)
    if share < _MANY_DOUBLES or n < subject.suppression:
        return ()
    return (
        f"about {share:.0%} of the training rows have a double: a synthetic row that equals one is not "
        "authentic, although it may point at nobody, and a row that is merely near one always is",
    )


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
    rounded: Floats = squared.clip(min=0.0).round(_DECIMALS)
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
        sides = (pair.train, pair.other, pair.other_met), (pair.other, pair.train, pair.train_met)
        return cls(*(_balls(*side) for side in sides))

    @property
    def scores(self) -> Floats:
        """α-precision, β-recall and their product."""
        precision, recall = self.precision.integral(), self.recall.integral()
        return np.array([precision, recall, precision * recall])


def _balls(home: Coordinates, away: Coordinates, met: Bools) -> Support:
    others_only = (len(home) / max(len(home) - 1, 1)) ** 2
    [inside], [outside] = squared_radii(home, home), squared_radii(away, home)
    return Support.of(inside * others_only, np.where(met, outside * others_only, outside))


def scored(curves: Curves, pair: RowsInSpace, drawn: Floats, level: float) -> dict[str, Estimate]:
    """The three scores, each ``± z · standard deviation of the draws``.

    Noise pulls a score below 1, and resampling pulls it there again: ends of the draws could miss the value
    itself. A half-width is at least what a share u of rows could change, the most that the interval
    of a proportion leaves possible for rows of which none was seen among those of the smaller table.

    Args:
        drawn: of :func:`resampled`.
    """
    unseen = unseen_share(min(len(pair.train), len(pair.other)), level)
    narrowest = unseen * np.array([1.0, 1.0, curves.scores[:2].sum() + unseen])
    half = np.maximum(critical_value(level) * drawn.std(axis=0, ddof=1), narrowest)
    quantities = (ALPHA_PRECISION, BETA_RECALL, AUPRC)
    return {
        q.name: Estimate(v, Interval(v - h, v + h, level, "bootstrap standard error"))
        for q, v, h in zip(quantities, curves.scores.tolist(), half.tolist(), strict=True)
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
