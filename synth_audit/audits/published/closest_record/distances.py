"""Distances to the closest record in one space, closer shares, and their picture."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from statistics import NormalDist
from typing import Generic, Literal, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from synth_audit.arrays import Codes, Floats, Integers, Positions
from synth_audit.encode.codes import Wanted, cells_of, codes, wanted_codes, wanted_rows
from synth_audit.encode.distances import EuclideanEncoder, GowerEncoder, robust_coordinates, varies
from synth_audit.encode.embedding import EmbeddingSettings, embed
from synth_audit.execution.context import RunContext
from synth_audit.findings.measurement import (
    Direction,
    Interval,
    Measurement,
    MeasurementId,
    Quantity,
    Reference,
    Series,
)
from synth_audit.neighbours import euclidean, gower
from synth_audit.neighbours.coordinates import MISSING, Coordinates, side_by_side
from synth_audit.neighbours.search import Nearest
from synth_audit.plugins.audit import Subject
from synth_audit.stats.proportions import proportion_interval
from synth_audit.stats.resampling import quantile_rank
from synth_audit.table.kind import LabelPart, NumberPart, Part
from synth_audit.table.schema import Column
from synth_audit.table.table import Table

Places = npt.NDArray[np.int32]

_SIDES: tuple[Literal["left", "right"], ...] = ("left", "right")

_UNIT = np.sqrt(12.0)
"""Ranks over n are uniform on [0, 1]; times this their standard deviation is 1, as that of other numbers."""

_BEYOND = 2**24
"""Before the codes of labels that have no position: more than any column has."""

FAMILIAR = 0.5
"""A column of which so many rows have labels of train was not recoded, of as many as strangers have."""

Distance = Literal["euclidean", "robust", "gower", "ranks", "mirrored_ranks", "embedding"]

TableName = Literal["train", "control", "synthetic"]

Rows = TypeVar("Rows", Coordinates, gower.Mixed)

DISTANCES: tuple[Distance, ...] = ("euclidean", "robust", "gower", "ranks", "mirrored_ranks", "embedding")

FEWEST_ROWS = 100
"""Fewer synthetic rows than this decide nothing."""

SHARE = Quantity(
    "share",
    "Synthetic rows nearer to train than to control",
    proportional=False,  # its scale depends on the sizes of train and control
)

SHARE_EXCESS = Quantity(
    "share_excess",
    "Closest-record share beyond chance",
    range=(-1.0, 1.0),
    proportional=False,
    help="The share less what a release that is independent of train would show.",
)

SHARE_LEAK = Quantity(
    "share_leak",
    "Copied rows that would explain the closest-record share",
    range=(float("-inf"), 1.0),
    help="0: none; 1: all. The excess over chance as a part of the most that the split allows.",
)

SHARE_P_VALUE = Quantity(
    "share_p_value",
    "p-value of the closest-record share",
    unit="probability",
    direction=Direction.HIGHER,
    help="Chance of so large a share if the release were independent of train.",
)

QUANTITIES = (SHARE, SHARE_EXCESS, SHARE_LEAK, SHARE_P_VALUE)

_INDEPENDENT = "a release that is independent of the split"


class Threshold(NamedTuple):
    """The α-quantile of the real distances, with the part of its ties that makes up exactly α."""

    distance: float
    tie_part: float


def threshold(ordered: Floats, alpha: float) -> Threshold:
    """Quantile q and tie part γ with ``P(D < q) + γ·P(D = q) = α`` on a sorted sample, shape (n,)."""
    q = float(ordered[quantile_rank(len(ordered), alpha) - 1])
    below, upto = np.searchsorted(ordered, q, "left"), np.searchsorted(ordered, q, "right")
    n = len(ordered)
    return Threshold(q, float((alpha - below / n) / ((upto - below) / n)))


def score_of(close: float, limit: Threshold, alpha: float) -> float:
    """DCR privacy score from the share of close synthetic rows.

    ``score = (DCR − 1) / (DCR_max − 1)``, ``DCR = close / α``. A copy of train has distance 0 everywhere, so
    DCR_max = 1/α, which gives the published ``(α/100)(DCR − 1)/(1 − α/100)``. Where real duplicates are so
    common that q = 0, DCR_max = γ/α: the scale still runs to 1 at a full copy instead of hiding it.

    Returns:
        At most 1; NaN where a full copy cannot be told from chance (every control row is a duplicate).
    """
    most = (1.0 if limit.distance > 0 else limit.tie_part) / alpha
    return (close / alpha - 1) / (most - 1) if most > 1 + 1e-9 else float("nan")


def privacy_score(synthetic: Floats, control: Floats, alpha: float) -> float:
    """DCR privacy score in its size-correct form.

    Args:
        synthetic: d(s, train), shape (n_s,). control: d(c, train), shape (n_c,): the same reference set.
        alpha: share of real distances that counts as close.

    Returns:
        0 no perceived risk, 1 everything leaked; see :func:`score_of`.
    """
    limit = threshold(np.sort(control), alpha)
    return score_of(_close(synthetic, limit), limit, alpha)


def proportion_privacy_score(synthetic: Floats, control: Floats, alpha: float, level: float) -> Interval:
    """Scores of the ends of the interval for the share of close rows, control rows taken as fixed.

    A resample of rows none of which is close has none either: where the bootstrap sees no spread,
    this still says how many close rows may have been missed.
    """
    limit = threshold(np.sort(control), alpha)
    n = len(synthetic)
    ends = proportion_interval(_close(synthetic, limit) * n, n, level)
    return Interval(score_of(ends.low, limit, alpha), score_of(ends.high, limit, alpha), level, ends.method)


def _close(synthetic: Floats, limit: Threshold) -> float:
    """Share of rows nearer than the threshold, those at it counting in part."""
    at = float(np.mean(synthetic == limit.distance))
    return min(1.0, float(np.mean(synthetic < limit.distance)) + limit.tie_part * at)


def bootstrap_privacy_score(
    synthetic: Floats,
    control: Floats,
    alpha: float,
    n_draws: int,
    rng: np.random.Generator,
    *,
    fellows: Floats | None = None,
) -> Floats:
    """Privacy scores of resampled synthetic and control rows, shape (n_draws,).

    Control rows are resampled, and so are people of train beside them, half as many and each twice, since two
    who are each other's nearest are one draw. How many resampled synthetic rows fall below or at the
    threshold is multinomial in the original shares, so it is drawn as such: the same distribution, without
    the rows.

    Args:
        fellows: distance of people of train to the nearest of the others; none if left out.
    """
    n, k = len(synthetic), len(control)
    among = np.empty(0) if fellows is None else fellows
    real, places = _ranked(np.concatenate([control, among]))
    ends = _ends(real, real)
    below, upto = _ends(np.sort(synthetic), real)
    draws = np.empty(n_draws)
    for i in range(n_draws):
        drawn = places[rng.integers(0, k, k)]
        if len(among):
            twice = np.repeat(rng.integers(k, len(places), max(len(among) // 2, 1)), 2)
            drawn = np.concatenate([drawn, places[twice]])
        place, limit = _resampled_threshold(real, ends, drawn, alpha)
        low, high = int(below[place]), int(upto[place])
        n_below, n_at, _ = rng.multinomial(n, [low / n, (high - low) / n, max(0.0, 1 - high / n)]).tolist()
        draws[i] = score_of((n_below + limit.tie_part * n_at) / n, limit, alpha)
    return draws


def _ranked(values: Floats) -> tuple[Floats, Places]:
    """Values in order, and the place of each in it, shape (n,) both."""
    order = np.argsort(values, kind="stable")
    places = np.empty(len(values), dtype=np.int32)
    places[order] = np.arange(len(values), dtype=np.int32)
    return values[order], places


def _ends(ordered: Floats, values: Floats) -> tuple[Places, Places]:
    """How many lie below each value and how many up to it, shape (n,) both."""
    below, upto = (np.searchsorted(ordered, values, side).astype(np.int32) for side in _SIDES)
    return below, upto


def _resampled_threshold(
    ordered: Floats, ends: tuple[Places, Places], drawn: Places, alpha: float
) -> tuple[int, Threshold]:
    """:func:`threshold` of ``ordered[drawn]``, and its place: only the few up to it are put in order.

    Args:
        ends: how many of ``ordered`` lie below each of it, and up to it.
    """
    n, rank = len(drawn), quantile_rank(len(drawn), alpha)
    low = drawn[drawn < rank + 8 * math.isqrt(rank) + 8]
    low = low if len(low) >= rank else drawn.copy()
    low.partition(rank - 1)
    place = int(low[rank - 1])
    below, upto = (np.count_nonzero(drawn < end[place]) for end in ends)
    return place, Threshold(float(ordered[place]), float((alpha - below / n) / ((upto - below) / n)))


class ClosestShare(NamedTuple):
    """Share of synthetic rows whose nearest real row is in train, and how many rows that is worth."""

    share: float
    n_effective: float


def closest_share(to_train: Nearest, to_control: Nearest, n_train: int) -> ClosestShare:
    """P(the nearest real row is a training row), a tie counting by how many of the tied rows are.

    Picking one of the tied rows at random makes the expectation exactly n_train / (n_train + n_control)
    for a release that is independent of the split; half a point per tie would not, for unequal sizes, and
    would let a copy of a table with many duplicates pass.

    Several synthetic rows may share one nearest real row and then count as one draw, so the number
    of independent draws is ``n² / Σ_r w_r²`` with w_r the synthetic rows whose nearest row is r.
    """
    in_train = part_nearer(to_train, to_control)
    whose = np.where(in_train >= 0.5, to_train.index, n_train + to_control.index)
    return ClosestShare(float(in_train.mean()), independent_number(whose))


def part_nearer(one: Nearest, other: Nearest) -> Floats:
    """Chance that the nearest of both reference sets' rows is one of the first, shape (n,).

    0 or 1, and among tied rows the part that is of the first set. Its expectation is the first set's part of
    all rows if both are drawn alike, exactly and whatever the ties.
    """
    tied = one.first == other.first
    return np.where(tied, one.ties / (one.ties + other.ties), one.first < other.first)


def independent_number(nearest_row: Positions, own: Positions | None = None) -> float:
    """How many independent draws queries are worth when they share nearest rows or are each other's.

    Whether the nearest row is of a certain kind has one answer for all queries that share it, and one for two
    queries that are each other's nearest: such a group of w is worth one draw, so all of them are worth
    ``n² / Σ w²``. Source: Henze 1988, for the role of such pairs in the variance.

    Args:
        nearest_row: position of the row nearest to each of n queries.
        own: positions of the queries themselves in the same count, each once; None when no query can be the
            nearest row of another.
    """
    group = nearest_row
    if own is not None:
        where = np.full(max(int(own.max()), int(nearest_row.max())) + 1, -1, dtype=np.intp)
        where[own] = np.arange(len(own))
        partner = where[nearest_row]
        mutual = (partner >= 0) & (nearest_row[partner] == own)
        group = np.where(mutual, np.minimum(own, nearest_row), nearest_row)
    weights = np.bincount(group).astype(np.float64)
    return len(group) ** 2 / float(np.sum(weights**2))


def distance_ratio(found: Nearest) -> Floats:
    """d1/d2 of each row, shape (n,); 1 where both are 0, since a duplicated record singles nobody out.

    And 1 where both are infinite, since what is so far from everybody is near to nobody.
    """
    told = (found.second > 0) & np.isfinite(found.first)
    return np.divide(found.first, found.second, out=np.ones_like(found.first), where=told)


@dataclass(frozen=True)
class RankEncoder:
    """Coordinates of each row by where its values stand in a table, not by what they are.

    Numbers become mid-ranks over n, in units of their standard deviation, with 0 and an indicator where they
    are missing; labels become their position when the table's labels are sorted by falling frequency, unless
    half as many rows have labels of the first table as of tables that are ranked in it: then nothing was
    recoded, and labels are what they are, for rare ones swap places by chance, and of labels that hardly two
    rows share each would stand where one of train does. A copy of train that was multiplied, shifted, put on
    a logarithm, recoded or respelt lies where train lies.

    Labels that read as numbers, dates or quantities in train have the ranks of these beside their position,
    each table read under its own convention.

    Columns that are constant in train tell no two of its rows apart and are left out.
    """

    columns: tuple[Column, ...]

    def encode(
        self, scales: Sequence[Table], tables: Sequence[Table], rows: Wanted | None = None
    ) -> list[Coordinates]:
        """Coordinates of ``tables``, each ranked among the rows of the table beside it in ``scales``.

        Args:
            rows: positions of those that are wanted of each table, None for all; all of all if left out.
        """
        wanted = rows or [None] * len(tables)
        parts = [(c, part) for c in self.columns if varies(scales[0], c) for part in _parts(c, scales[0])]
        labels = [(column, part) for column, part in parts if isinstance(part, LabelPart)]
        numbers = [
            (column, place, part, 1 + any(map(partial(_gaps, column, part), (*scales, *tables))))
            for column, place, part in _placed(parts)
        ]
        unlike = np.array([2 * part.weight for _, part in labels])
        placed = []
        places = [_label_places(c, scales, tables) for c, _ in labels]
        for i, (scale, table, some) in enumerate(zip(scales, tables, wanted, strict=True)):
            read = wanted_rows(table, some)
            dense = np.zeros((read.n_rows, 1 + sum(width for *_, width in numbers)))
            start = 1
            for column, place, number, width in numbers:  # each written where it stays: there may be millions
                ranks = _ranks(*_numbers(column, place, number, scale, read))[:, :width]
                dense[:, start : start + width] = np.sqrt(number.weight) * ranks
                start += width
            kept = [wanted_codes([of_tables[i]], [some])[0] for of_tables in places]
            placed.append(Coordinates.of(dense, side_by_side(kept, read.n_rows), unlike))
        return placed


def _parts(column: Column, train: Table) -> Sequence[Part]:
    return column.kind.parts([cells_of(train, column)])


def _gaps(column: Column, part: NumberPart, table: Table) -> bool:
    """Whether numbers may be missing: in labels that are read as numbers too, any may be."""
    return part.weight < 1 or table.n_missing(column.name) > 0


def _placed(parts: Sequence[tuple[Column, Part]]) -> Iterator[tuple[Column, int, NumberPart]]:
    """The numbers, and which one of its column each is."""
    for _, of_column in groupby(parts, key=lambda found: found[0].name):
        numbers = [(column, part) for column, part in of_column if isinstance(part, NumberPart)]
        yield from ((column, place, part) for place, (column, part) in enumerate(numbers))


def _numbers(
    column: Column, place: int, part: NumberPart, scale: Table, table: Table
) -> tuple[Floats, Floats]:
    """Numbers of the two tables, as the first of them reads, or as ``part`` does where it does not."""
    own = [p for p in column.kind.parts([cells_of(scale, column)]) if isinstance(p, NumberPart)]
    part = own[place] if place < len(own) else part
    return part.read(cells_of(scale, column)), part.read(cells_of(table, column))


def _ranks(scale: Floats, values: Floats) -> Floats:
    """Mid-rank over n of each value among ``scale``, centred, in standard deviations; shape (n, 2)."""
    known = np.sort(scale[~np.isnan(scale)])
    missing = np.isnan(values)
    order = np.argsort(values)  # neighbouring values stand in neighbouring memory
    at_most = np.empty(len(values), dtype=np.intp)
    at_most[order] = sum(np.searchsorted(known, values[order], side) for side in ("left", "right"))
    place = at_most / (2 * max(1, len(known))) - 0.5
    return np.column_stack([np.where(missing, 0.0, _UNIT * place), missing]).astype(np.float64)


def _label_places(column: Column, scales: Sequence[Table], tables: Sequence[Table]) -> list[Codes]:
    """Positions of the labels of each table in the order of the first scale, or of its own if recoded."""
    distinct = list({id(table): table for table in (*scales, *tables)}.values())
    joint = dict(zip(map(id, distinct), codes(distinct, column), strict=True))
    first = joint[id(scales[0])]
    pairs = [(joint[id(scale)], joint[id(table)]) for scale, table in zip(scales, tables, strict=True)]
    strangers = [values for scale, values in pairs if scale is first and values is not first]
    usual = min((_known_share(first, values) for values in strangers), default=1.0)
    return [
        _frequency_order(first if _known_share(first, values) >= FAMILIAR * usual else scale, values)
        for scale, values in pairs
    ]


def _known_share(first: Codes, values: Codes) -> float:
    """Share of the values that ``first`` has too; 1 where there are none."""
    known = values[values != MISSING]
    return float(np.isin(known, first).mean()) if len(known) else 1.0


def _frequency_order(scale: Codes, values: Codes) -> Codes:
    """Position of each value among the labels of ``scale``, the most frequent first, shape (n,).

    Labels that ``scale`` lacks follow, each by its own code; a missing value keeps its code.
    """
    n = 1 + max(values.max(initial=MISSING), scale.max(initial=MISSING))
    counts = np.bincount(scale[scale != MISSING], minlength=n)
    order = np.argsort(-counts, kind="stable")
    position = np.empty(n, dtype=np.int64)
    position[order] = np.arange(n)
    position[counts == 0] = _BEYOND + np.flatnonzero(counts == 0)
    return np.where(values == MISSING, MISSING, np.append(position, MISSING)[values])


@dataclass(frozen=True, eq=False)
class Space(Generic[Rows]):
    """Rows of train and control, some of the release, and the search that belongs to their distance."""

    tables: dict[TableName, Rows]
    search: Callable[[Rows, Rows], Nearest]
    search_other: Callable[[Rows, Positions, Integers | None], Nearest]

    def size(self, part: TableName) -> int:
        """Number of rows."""
        return len(self.tables[part])

    def nearest(self, part: TableName, rows: Positions, reference: TableName) -> Nearest:
        """For the rows at these positions of one table, the nearest rows of another."""
        return self.search(self.tables[part].take(rows), self.tables[reference])

    def nearest_other(self, part: TableName, rows: Positions, persons: Integers | None = None) -> Nearest:
        """For the rows at these positions of a table, the nearest of its other rows.

        Args:
            persons: number of the person of each row of the table; rows of the same one are not looked at.
        """
        return self.search_other(self.tables[part], rows, persons)


def space_of(
    subject: Subject, distance: Distance, asked: Positions, settings: EmbeddingSettings, context: RunContext
) -> Space[Coordinates] | Space[gower.Mixed]:
    """The space of a distance, in which all rows of train and control are searched.

    Args:
        asked: positions of the rows of the release that are looked up: no others are in the space.
        settings: of the embedding.

    Raises:
        NotApplicable: the embedding is asked for and has too little to learn from.
        PluginError: the embedding is asked for and torch is not installed.
    """
    assert subject.control is not None
    parts: tuple[TableName, ...] = ("train", "control", "synthetic")
    tables, columns = [subject.train, subject.control, subject.synthetic], subject.features
    real, few = [subject.control], (None, None, asked)
    if distance == "gower":
        mixed = GowerEncoder.anchored_on(subject.train, columns, beside=real).encode(tables, few)
        return Space(dict(zip(parts, mixed, strict=True)), gower.nearest, gower.nearest_other)
    match distance:
        case "embedding":
            some = [subject.train, subject.control, subject.synthetic.take(asked)]
            placed = embed(subject.train, some, columns, settings=settings, context=context)
        case "ranks" | "mirrored_ranks":
            # Control is in train's units for certain, the release perhaps in its own.
            scales = [subject.train, subject.train, subject.synthetic]
            placed = RankEncoder(columns).encode(scales, tables, few)
            if distance == "mirrored_ranks":
                placed = [rows.folded() for rows in placed]
        case "robust":
            placed = robust_coordinates(tables, columns, beside=real, rows=few)
        case "euclidean":
            placed = EuclideanEncoder.anchored_on(subject.train, columns).encode(tables, few)
    return Space(dict(zip(parts, placed, strict=True)), euclidean.nearest, euclidean.nearest_other)


def shares(
    to_train: Nearest, to_control: Nearest, n_train: int, n_control: int, level: float, setting: str = ""
) -> list[Measurement]:
    """Share of synthetic rows nearest to train, with its interval on the independent number of rows."""
    share, n_effective = closest_share(to_train, to_control, n_train)
    null = n_train / (n_train + n_control)
    around = proportion_interval(min(share * n_effective, n_effective), n_effective, level)
    z = (share - null) / math.sqrt(null * (1 - null) / n_effective)
    n = len(to_train.first)

    def restated(quantity: Quantity, origin: float, unit: float) -> Measurement:
        return quantity.at(
            (share - origin) / unit,
            setting=setting,
            interval=Interval(
                (around.low - origin) / unit,
                (around.high - origin) / unit,
                level,
                f"{around.method} on the effective number of rows",
            ),
            n_requested=n,
            n_achieved=n,
            n_minimum=FEWEST_ROWS,
            reference=Reference((null - origin) / unit, _INDEPENDENT),
        )

    return [
        restated(SHARE, 0.0, 1.0),
        restated(SHARE_EXCESS, null, 1.0),
        restated(SHARE_LEAK, null, 1 - null),
        SHARE_P_VALUE.at(NormalDist().cdf(-z), setting=setting, n_requested=n, n_achieved=n),
    ]


def distance_curve(to_train: Nearest, real: Nearest, suppression: int) -> Series:
    """Cumulative distribution of both distances, in steps of the smallest count that may be shown."""
    grid = np.linspace(0.0, float(np.quantile(np.concatenate([to_train.first, real.first]), 0.99)), 61)

    def cumulative(values: Floats) -> tuple[float, ...]:
        counts = np.searchsorted(np.sort(values), grid, side="right")
        return tuple((counts // suppression * suppression / len(values)).tolist())

    return Series(
        id=MeasurementId("", "distance_to_train"),
        title="Distance to the closest training row",
        kind="line",
        x_label="distance (standard deviations)",
        y_label="share of rows at most this far",
        x=tuple(grid.tolist()),
        lines={"synthetic rows": cumulative(to_train.first), "control rows": cumulative(real.first)},
    )
