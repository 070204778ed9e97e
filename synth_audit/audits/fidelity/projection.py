"""Do the directions in which real rows vary most look the same in the release?"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from synth_audit.arrays import Bools, Counts, Floats, Positions
from synth_audit.audits._shared import at_least, distance
from synth_audit.audits.fidelity._reference import Compare, Found, measured, sampled, sampling_note
from synth_audit.encode.codes import Vocabulary, labels_that_fit, most_frequent
from synth_audit.encode.encoded import centre_and_scale, varies
from synth_audit.errors import NotApplicable
from synth_audit.execution.context import RunContext
from synth_audit.execution.executor import over_blocks, single_threaded_algebra
from synth_audit.findings.measurement import Estimate, Findings, Interval, MeasurementId, Series
from synth_audit.plugins.audit import AuditInfo, Subject
from synth_audit.stats.resampling import normal_interval
from synth_audit.table.schema import Column, nominal, quantitative
from synth_audit.table.table import Table

_FLAT = 1e-12
"""A coordinate varies when its variance is more than this share of its mean square: less is rounding."""

_TIED = 1e-9
"""Directions share the first place when their variances differ by less than this share of the largest."""

_BUDGET = 2**22
"""Numbers that the moments of one table may take: 32 MiB."""

_MOST_GROUPS, _FEWEST_GROUPS = 200, 30
"""Groups of rows that a bootstrap draws: of 200 a deviation is known to 5 %, of 30 to 13 %."""
_ROWS_AT_ONCE = 2**12
"""Rows spread out at a time: 10 MiB at 300 coordinates."""
_DRAWS_AT_ONCE = 8
"""Resamples that one thread decomposes at a time."""

_DIGITS = 9
"""Decimals of a position, so that rounding decides no cell."""

CovarianceView = Callable[[Floats], Floats]
"""What to decompose of a covariance matrix."""

_FAR = 1e6
"""Standard deviations of train beyond which nothing counts as farther away, so that no square overflows."""


NOWHERE = -1
"""Place of what has no coordinate: one more than there are, and cut off."""

EIGENVALUE_DIFFERENCE = distance(
    "eigenvalue_difference",
    "Difference of the principal components' variances",
    help="How differently the variance is spread over the principal components: 0 alike; 1 if one "
    "component carries all of it in one table and no more than any other in the other.",
)

ANGLE = distance(
    "angle",
    "Angle between the first principal components",
    help="As a share of the right angle: 0 the same direction, 1 nothing in common. Where train's first two "
    "components carry nearly equal variance, real rows turn as much: read it beside its reference.",
)

NUMERIC = "numeric columns, each table on its own scale"
"""Setting of the principal components of the correlation matrix of the numeric columns."""

_FEWEST_CELLS, _MOST_CELLS = 4, 24
"""Of the picture along each axis; fewer where train has few rows."""

_CUT = 0.005
"""Share of train's rows beyond either edge of a picture: extremes would leave all others in one cell."""
_MOST_CUT = 0.1
"""Where more would have to lie beyond an edge, so that no few are told of, there is no picture."""

_ROWS_PER_CELL = 2
"""Train has as many times the suppression limit of rows per cell, or the picture would be empty."""

_NAMED = 3
"""Columns named as what a component is made of."""

_ORDINALS = ("first", "second")


@dataclass(frozen=True, eq=False)
class CoordinateRows:
    """A table in standardised coordinates, not yet spread out.

    Attributes:
        numbers: the first coordinates, shape (n, p).
        places: for each column the place of its one indicator, shape (n, q).
        weights: value of each indicator.
    """

    numbers: Floats
    places: npt.NDArray[np.int32]
    weights: Floats

    def __len__(self) -> int:
        return len(self.numbers)

    def dense(self, rows: slice | Positions) -> Floats:
        """Coordinates of some rows, shape (m, width)."""
        numbers, places = self.numbers[rows], self.places[rows]
        found = np.zeros((len(numbers), len(self.weights)))
        found[np.arange(len(numbers))[:, None], places] = self.weights[places]
        found[:, : numbers.shape[1]] = numbers
        return found[:, :NOWHERE]


@dataclass(frozen=True, eq=False)
class Moments:
    """Sums of coordinates and of their products over groups of rows.

    Attributes:
        rows: shape (G,). first: shape (G, d). second: shape (G, d, d).
    """

    rows: Floats
    first: Floats
    second: Floats

    @classmethod
    def of(cls, rows: CoordinateRows, rng: np.random.Generator) -> Self:
        """Of random groups of equal size, of which there are as many as rows or memory allow."""
        width = len(rows.weights) - 1
        n_groups = min(len(rows), _MOST_GROUPS, max(_FEWEST_GROUPS, _BUDGET // max(1, width**2)))
        groups = np.array_split(rng.permutation(len(rows)), n_groups)

        def total(block: slice) -> tuple[Floats, Floats]:
            first, second = np.zeros(width), np.zeros((width, width))
            members = groups[block.start]
            for start in range(0, len(members), _ROWS_AT_ONCE):
                part = rows.dense(members[start : start + _ROWS_AT_ONCE])
                first, second = first + part.sum(axis=0), second + part.T @ part
            return first, second

        found = over_blocks(n_groups, 1, total)
        sizes = np.array([len(g) for g in groups], dtype=np.float64)
        return cls(sizes, np.array([f for f, _ in found]), np.array([s for _, s in found]))

    def covariance(self, weights: Floats) -> Floats:
        """Covariance with each group counted ``weights`` times, shape (d, d); population form."""
        n = weights @ self.rows
        mean = weights @ self.first / n
        found = np.tensordot(weights, self.second, 1) / n - np.outer(mean, mean)
        square = np.diag(found) + mean**2
        flat = np.diag(found) <= _FLAT * square
        found[flat], found[:, flat] = 0.0, 0.0
        return np.asarray(found)

    @property
    def mean(self) -> Floats:
        """Mean of all rows, shape (d,)."""
        return np.asarray(self.first.sum(axis=0) / self.rows.sum())

    @property
    def whole(self) -> Floats:
        """Covariance of all rows, shape (d, d)."""
        return self.covariance(np.ones(len(self.rows)))


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Principal components of one table.

    Attributes:
        shares: of the variance along each component, falling, shape (d,); all 0 where nothing varies.
        first: the first component, unit length, as a column; several where they carry equal variance, none
            where nothing varies; shape (d, k).
    """

    shares: Floats
    first: Floats

    @classmethod
    def of(cls, covariance: Floats) -> Self:
        """By eigendecomposition of a covariance or correlation matrix, shape (d, d)."""
        values, vectors = np.linalg.eigh(covariance)
        values = np.maximum(values[::-1], 0.0)
        total = float(values.sum())
        if total <= 0:
            return cls(np.zeros(len(values)), np.empty((len(values), 0)))
        tied = int((values >= values[0] * (1 - _TIED)).sum())
        return cls(values / total, vectors[:, ::-1][:, :tied].copy())  # a view would keep all vectors


def correlation(covariance: Floats) -> Floats:
    """Correlation matrix; rows and columns of what does not vary are 0."""
    deviation = np.sqrt(np.diag(covariance))
    scale = np.divide(1.0, deviation, out=np.zeros_like(deviation), where=deviation > 0)
    return np.asarray(covariance * np.outer(scale, scale))


def eigenvalue_difference(a: Spectrum, b: Spectrum) -> float:
    """``d / (2 (d − 1)) · Σ |λ_i − λ′_i|`` of the shares of variance of d ≥ 2 components.

    0 for equal spectra; 1 between one direction that carries everything and all carrying the same, and where
    one table does not vary at all. Source: Rajabinasab, Lautrup & Zimek 2025; Disjoint Generative Models.
    """
    if not (a.first.shape[1] and b.first.shape[1]):
        return 1.0
    d = len(a.shares)
    return min(1.0, float(np.abs(a.shares - b.shares).sum()) * d / (2 * (d - 1)))


def first_angle(a: Spectrum, b: Spectrum) -> float:
    """Angle between first components, whatever their sign, as a share of the right angle: in [0, 1].

    ``2/π · arccos |u · v|``, computed as ``4/π · arctan(|u − v| / |u + v|)``, which is exact for small angles
    too. Where several components tie for the first place, the smallest angle between their spans; 1 where one
    table does not vary at all. Source: as :func:`eigenvalue_difference`.
    """
    if not (a.first.shape[1] and b.first.shape[1]):
        return 1.0
    left, _, right = np.linalg.svd(a.first.T @ b.first)
    u, v = a.first @ left[:, 0], b.first @ right[0]
    return float(4 / np.pi * np.arctan2(np.linalg.norm(u - v), np.linalg.norm(u + v)))


_MEASURES = {EIGENVALUE_DIFFERENCE.name: eigenvalue_difference, ANGLE.name: first_angle}


def components(moments: Moments, views: Sequence[CovarianceView]) -> tuple[Spectrum, ...]:
    """Principal components of all rows by each view of their covariance."""
    with single_threaded_algebra():
        covariance = moments.whole
        return tuple(Spectrum.of(view(covariance)) for view in views)


def resampled(
    moments: Moments, views: Sequence[CovarianceView], n_draws: int, rng: np.random.Generator
) -> list[tuple[Spectrum, ...]]:
    """As :func:`components`, of bootstrap samples of the groups of rows."""
    n_groups = len(moments.rows)
    weights = rng.multinomial(n_groups, np.full(n_groups, 1 / n_groups), size=n_draws).astype(np.float64)

    def of(draws: slice) -> list[tuple[Spectrum, ...]]:
        drawn = (moments.covariance(w) for w in weights[draws])
        return [tuple(Spectrum.of(view(c)) for view in views) for c in drawn]

    return [s for block in over_blocks(n_draws, _DRAWS_AT_ONCE, of) for s in block]


def plane(moments: Moments) -> tuple[Floats, Floats]:
    """The first two components of all rows as columns, shape (d, 2), their largest loadings positive, and the
    shares of the variance along them, shape (2,)."""
    with single_threaded_algebra():
        values, vectors = np.linalg.eigh(moments.whole)
    axes = vectors[:, ::-1][:, :2]
    largest = np.argmax(
        np.round(np.abs(axes), 6), axis=0
    )  # equal loadings must not be told apart by rounding
    axes = axes * np.where(axes[largest, np.arange(axes.shape[1])] < 0, -1.0, 1.0)
    return axes, np.maximum(values[::-1][:2], 0.0) / np.maximum(values, 0.0).sum()


def positions(rows: CoordinateRows, axes: Floats, centre: Floats) -> Floats:
    """Where rows lie on components, seen from ``centre``, shape (n, 2), rounded."""
    found = over_blocks(len(rows), _ROWS_AT_ONCE, lambda part: (rows.dense(part) - centre) @ axes)
    return np.asarray(np.round(np.concatenate(found), _DIGITS), dtype=np.float64)


def edges(along: Floats, n_cells: int, beyond: float) -> Floats | None:
    """Equal cells between the quantiles ``beyond`` and ``1 − beyond`` of positions on one component.

    Returns:
        shape (n_cells + 1,), ascending; None where the two quantiles agree.
    """
    low, high = (float(q) for q in np.quantile(along, [beyond, 1 - beyond]))
    if high - low <= 10.0**-_DIGITS:
        return None
    return np.asarray(np.round(np.linspace(low, high, n_cells + 1), _DIGITS), dtype=np.float64)


def cell_counts(where: Floats, across: Floats, up: Floats) -> Counts:
    """Rows in each cell of a plane, shape (cells up, cells across); rows beyond its edges are left out."""
    n_across, n_up = len(across) - 1, len(up) - 1
    x = np.searchsorted(across, where[:, 0], side="right") - 1
    y = np.searchsorted(up, where[:, 1], side="right") - 1
    inside = (x >= 0) & (x < n_across) & (y >= 0) & (y < n_up)
    return np.bincount(y[inside] * n_across + x[inside], minlength=n_up * n_across).reshape(n_up, n_across)


def cells_shown(counts: Counts, fewest: int) -> Bools:
    """Which cells may be told: those of at least ``fewest`` rows, without as many of the smallest as it takes
    for the cells that are withheld to hold as many rows together, or none."""
    shown = counts >= fewest
    while shown.any() and 0 < counts[~shown].sum() < fewest:
        smallest = np.argmin(np.where(shown, counts, counts.max() + 1))
        shown.flat[smallest] = False
    return np.asarray(shown)


@dataclass(frozen=True, eq=False)
class StandardisedCoordinates:
    """Coordinates in which every column that varies in train has total variance 1 there.

    A numeric column is centred and scaled by train, missing read as the mean, with a further coordinate that
    is 1 where it is missing. A discrete column has one for each label that is frequent in train, one for all
    other labels, unseen ones included, and one for missing. The coordinates of a column are divided by the
    root of their total variance in train. Source: the scaling of factor analysis of mixed data, Pagès 2004,
    with columns instead of labels weighing the same.

    Attributes:
        numbers: what reads each of the first coordinates off a table.
        places: what reads, for a column, the place of the one indicator that each row has.
        weights: value of each indicator, 0 for numbers, and 0 for the place of nothing at the end.
        owners: name of the column of each coordinate.
    """

    numbers: tuple[Callable[[Table], Floats], ...]
    places: tuple[Callable[[Table], Positions], ...]
    weights: Floats
    owners: tuple[str, ...]

    @classmethod
    def of(cls, tables: Sequence[Table], columns: Sequence[Column], most: int) -> Self:
        """Anchored on the first of the tables; the others only say which coordinates are needed.

        Args:
            most: coordinates to keep to where possible, by counting rarer labels among the others.
        """
        train, varying = tables[0], [c for c in columns if varies(tables[0], c)]
        scaled = {c.name: centre_and_scale(train.numbers(c.name)) for c in quantitative(varying)}
        owned: Owned = [(name, 0.0) for name, (_, scale) in scaled.items() if np.isfinite(scale)]
        numbers, places = list[Callable[[Table], Floats]](), list[Callable[[Table], Positions]]()
        for name in sorted(scaled, key=lambda name: not np.isfinite(scaled[name][1])):
            centre, scale = scaled[name]
            # With a share m of missing values the numbers have variance 1 − m, the indicator m (1 − m).
            absent = float(train.missing(name).mean())
            root = float(np.sqrt((1 - absent) * (np.isfinite(scale) + absent)))
            if np.isfinite(scale):
                numbers.append(partial(_standardised, name, centre, scale * root))
            if any(t.n_missing(name) for t in tables):
                places.append(partial(_gaps, name, _added(owned, name, 1 / root)))
        discrete = nominal(varying)
        sizes = [len(Vocabulary.of(c.name, train).labels) for c in discrete]
        kept = labels_that_fit(sizes, most - len(owned), max(sizes, default=1))
        places += [p for c in discrete if (p := _label_places(tables, c.name, kept, owned)) is not None]
        weights = np.array([*(weight for _, weight in owned), 0.0])
        return cls(tuple(numbers), tuple(places), weights, tuple(name for name, _ in owned))

    def read(self, table: Table) -> CoordinateRows:
        """A table in these coordinates."""
        numbers = [np.empty((table.n_rows, 0)), *(read(table) for read in self.numbers)]
        places = [np.empty((table.n_rows, 0)), *(read(table) for read in self.places)]
        return CoordinateRows(
            np.column_stack(numbers), np.column_stack(places).astype(np.int32), self.weights
        )


Owned = list[tuple[str, float]]
"""Of each coordinate the column, and the value of its indicator; 0 for a number."""


def _added(owned: Owned, name: str, weight: float) -> int:
    """The place of one more coordinate, that is ``weight`` or 0."""
    owned.append((name, weight))
    return len(owned) - 1


def _standardised(name: str, centre: float, scale: float, table: Table) -> Floats:
    with np.errstate(over="ignore"):  # infinitely far is far
        scaled = np.clip((table.numbers(name) - centre) / scale, -_FAR, _FAR)
    return np.nan_to_num(scaled, nan=0.0)


def _gaps(name: str, place: int, table: Table) -> Positions:
    return np.where(table.missing(name), place, NOWHERE)


def _label_places(
    tables: Sequence[Table], name: str, kept: int, owned: Owned
) -> Callable[[Table], Positions] | None:
    """None where nothing but labels too rare to tell apart remains."""
    train = tables[0]
    vocabulary = Vocabulary.of(name, train).by_frequency(train)
    counts = vocabulary.counts(train)
    frequent = most_frequent(counts, kept)
    merged = not frequent.all() or any((vocabulary.places(t) == len(counts)).any() for t in tables[1:])
    shares = np.array([*counts[frequent], counts[~frequent].sum(), train.n_missing(name)]) / train.n_rows
    total = 1 - float(shares @ shares)
    if total < _FLAT:
        return None
    weight = 1 / float(np.sqrt(total))
    places = np.full(len(counts) + 2, NOWHERE, dtype=np.intp)
    places[:-2][frequent] = [_added(owned, name, weight) for _ in range(int(frequent.sum()))]
    places[-2] = _added(owned, name, weight) if merged else NOWHERE
    places[:-2][~frequent] = places[-2]
    if any(t.n_missing(name) for t in tables):
        places[-1] = _added(owned, name, weight)
    return lambda table: places[vocabulary.places(table)]


@dataclass(frozen=True, kw_only=True)
class Projection:
    """Compares the principal components of the release with those of train, and shows rows on two of them.

    Every column that varies in train adds the same variance there, see
    `StandardisedCoordinates`. With λ the shares of the variance along d components, and u, v the
    first component of train and of the table compared:
    ``eigenvalue_difference = d / (2 (d − 1)) · Σ |λ_i − λ′_i|``, ``angle = 2/π · arccos |u · v|``, both in
    [0, 1]. The setting ``numeric columns, each table on its own scale`` is of the correlation matrices of the
    numeric columns, missing values read as train's mean. Intervals: standard deviation over bootstrap samples
    of random groups of rows of both tables. Pictures: shares of rows over train's first two components, cut
    at train's 0.5 % and 99.5 % quantiles.

    Fields:
        n_bootstrap: resamples behind an interval, at least 50.
        most_coordinates: rarer labels are counted together to keep to so many, at least 10.
        most_rows: rows that are read of a table, at random where it has more, at least 1,000.

    Source: Disjoint Generative Models, section 3; Rajabinasab, Lautrup & Zimek 2025; TableDiffusion thesis,
    section 7.4.
    """

    n_bootstrap: int = 100
    most_coordinates: int = 300
    most_rows: int = 100_000

    info: ClassVar[AuditInfo] = AuditInfo(
        title="Principal components",
        question="Do rows of the release spread in the same directions as real rows?",
        threat_model="Someone who looks for the main patterns of all columns together would see others.",
        not_covered="Patterns that carry little of the variance, and relations that no straight line shows.",
        quantities=(EIGENVALUE_DIFFERENCE, ANGLE),
        risk="fidelity",
        cost="seconds",
        source="Disjoint Generative Models, section 3; Rajabinasab, Lautrup & Zimek 2025; TableDiffusion "
        "thesis, section 7.4",
    )

    def __post_init__(self) -> None:
        at_least(self, n_bootstrap=50, most_coordinates=10, most_rows=1_000)

    def run(self, subject: Subject, context: RunContext) -> Findings:
        """Compare the release, and control as its reference, with train.

        Raises:
            NotApplicable: fewer than two columns vary in train.
        """
        rng, n = context.rng, subject.synthetic.n_rows
        read = sampling_note(subject, self.most_rows)
        subject = sampled(subject, self.most_rows, rng)
        tables = [subject.train, subject.synthetic, *subject.real[1:]]
        frame = StandardisedCoordinates.of(tables, subject.features, self.most_coordinates)
        if len(set(frame.owners)) < 2:
            raise NotApplicable("fewer than two columns vary in train, so no directions can be told apart")
        train = Moments.of(frame.read(subject.train), rng)
        compare = _compared(frame, train, self.n_bootstrap, subject.level, rng)
        found = measured(subject, compare, self.info.quantities, rng)
        series, notes = _pictures(subject, frame, train)
        return Findings(tuple(replace(m, n_requested=n) for m in found), series, (*notes, *read))


def _compared(
    frame: StandardisedCoordinates, train: Moments, n_draws: int, level: float, rng: np.random.Generator
) -> Compare:
    """A comparison of both quantities in every view; all share train's components and its resamples."""
    n = len(frame.numbers)
    views: dict[str, CovarianceView] = {"": lambda c: c}
    if n >= 2:
        views[NUMERIC] = lambda c: correlation(c[:n, :n])
    seen = tuple(views.values())
    known, known_draws = components(train, seen), resampled(train, seen, n_draws, rng)

    def compare(table: Table, rng: np.random.Generator) -> Found:
        moments = Moments.of(frame.read(table), rng)
        own, draws = components(moments, seen), resampled(moments, seen, n_draws, rng)
        found = {}
        for i, setting in enumerate(views):
            for quantity, measure in _MEASURES.items():
                value = measure(known[i], own[i])
                drawn = [measure(a[i], b[i]) for a, b in zip(known_draws, draws, strict=True)]
                # No distance is below 0 or above 1; anything is possible where no resample differs.
                interval = Interval(0.0, 1.0, level, "whole range, since resampling moves nothing")
                if np.ptp(drawn) > 0:
                    around = normal_interval(value, np.array(drawn), level)
                    interval = replace(around, low=max(0.0, around.low), high=min(1.0, around.high))
                found[MeasurementId("", quantity, setting)] = Estimate(value, interval)
        return found

    return compare


def _pictures(
    subject: Subject, frame: StandardisedCoordinates, train: Moments
) -> tuple[tuple[Series, ...], tuple[str, ...]]:
    """One density of rows over train's first two components for each table, on the same cells, and notes."""
    axes, carried = plane(train)
    notes = [_made_of(frame, axes[:, i], float(carried[i]), i) for i in range(2)]
    n, fewest = subject.train.n_rows, subject.suppression
    n_cells = min(_MOST_CELLS, math.isqrt(n // (_ROWS_PER_CELL * max(fewest, 1))))
    cut = max(_CUT, fewest / n)
    if n_cells < _FEWEST_CELLS or cut > _MOST_CUT:
        return (), (*notes, "Train has too few rows for a picture of where they lie.")
    tables = {"train": subject.train, "control": subject.control, "synthetic": subject.synthetic}
    places = {
        name: positions(frame.read(table), axes, train.mean)
        for name, table in tables.items()
        if table is not None
    }
    across, up = (edges(places["train"][:, i], n_cells, cut) for i in range(2))
    if across is None or up is None:
        return (), (*notes, "Nearly all rows of train lie on one line, so there is no picture of them.")
    series, outside = [], {}
    for name, where in places.items():
        counts = cell_counts(where, across, up)
        outside[name] = len(where) - int(counts.sum()), len(where)
        shares = np.where(cells_shown(counts, fewest), counts / len(where), math.nan)
        first, second = (f"{_ORDINALS[i]} component ({_percent(carried[i])} of variance)" for i in (0, 1))
        series.append(
            Series(
                id=MeasurementId("", "projection", name),
                title="Where rows lie on train's first two components",
                kind="density",
                x_label=first,
                y_label=second,
                x=tuple(_centres(across)),
                lines={f"{y:g}": tuple(row.tolist()) for y, row in zip(_centres(up), shares, strict=True)},
            )
        )
    return tuple(series), (*notes, _outside(outside, fewest))


def _centres(edges: Floats) -> list[float]:
    """Middle of each cell, with as many decimals as tell neighbours apart."""
    width = float(edges[1] - edges[0])
    return [round(float(c), max(0, 2 - math.floor(math.log10(width)))) for c in (edges[1:] + edges[:-1]) / 2]


def _made_of(frame: StandardisedCoordinates, axis: Floats, carried: float, i: int) -> str:
    """The columns that make up most of a component."""
    parts: dict[str, float] = {}
    for owner, loading in zip(frame.owners, axis.tolist(), strict=True):
        parts[owner] = parts.get(owner, 0.0) + loading**2
    largest = sorted(parts, key=lambda name: (-round(parts[name], 6), name))[:_NAMED]
    listed = ", ".join(f"{name} ({_percent(parts[name])})" for name in largest)
    return (
        f"Train's {_ORDINALS[i]} component carries {_percent(carried)} of the variance, mostly from {listed}."
    )


def _outside(outside: Mapping[str, tuple[int, int]], fewest: int) -> str:
    """How many rows of all of each table the picture leaves out; a few real ones are not counted out."""
    shares = [
        f"{_percent(n / rows)} of {name}" if n >= fewest else f"fewer than {fewest} rows of {name}"
        for name, (n, rows) in outside.items()
    ]
    return f"Outside the picture lie {', '.join(shares)}."


def _percent(share: float) -> str:
    return f"{100 * share:.0f}\u00a0%"
