"""Rows that are beyond people by the same lags in several columns, and how much this tells of each person."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np

from synth_audit.core.arrays import Floats, Integers, Positions
from synth_audit.kernels.lag_spikes import MISSING, LagColumn, LagSpike, different

_MOST_PAIRS = 200_000
"""Pairs of a person and a row that are followed at most."""

_FEWEST = 3
"""Fewer pairs are none."""

_CLEARLY = 5.0
"""Standard errors above chance of a lag that is followed."""

NOT_HELD = 2.0
"""Bits against a row for each value that is near in it for most rows of people, and is not."""

_BINS = 4
"""Steps, times those a lag may be missed by, that lead to a row where values are near alone."""

_FAR = 2**20
"""Times the size of a column beyond which steps are no longer told apart."""

_FEW = 4
"""People of whom one row may tell as much: twins, and relatives under one roof."""

_MOST_COLUMNS = 12
_JOINED_BY = 6
"""Columns of which any two lead to a row."""

_MOST_LEAD = 0.5
"""Share of people whose values lead to rows, in a column that leads."""


_LARGEST_KEY, _LARGEST_PRODUCT = 2**32, 2**61
"""Keys, and products of keys and rows, above which keys are numbered anew lest they overflow."""


class Lag(NamedTuple):
    """A lag of one column, and how much one value of it tells on average."""

    bits: float
    column: int
    lag: int


@dataclass(frozen=True)
class Shift:
    """Lags of several columns that hold together.

    Attributes:
        lags: the most telling first, of different columns.
        score: standard errors above chance of the surest lag beside the first two; of these where there is
            no other.
    """

    lags: tuple[Lag, ...]
    score: float


def followed(columns: Sequence[LagColumn], spike: LagSpike) -> Shift | None:
    """The lags of all columns that go with those of two; None where hardly anybody has these.

    Of the pairs of a person and a row that are apart by the two lags, the most frequent lag of each other
    column is counted; the surest one is asked of the pairs too, and the others are taken by what is left.
    """
    pair = tuple(zip(spike.columns, spike.lags, strict=True))
    people, rows = joined(columns, pair, whole=False)
    if len(people) < _FEWEST:
        return None
    first, second = (columns[k] for k in spike.columns)
    others = [k for k, c in enumerate(columns) if different(c, first) and different(c, second)]
    best = max((_most_frequent(columns[k], k, people, rows) for k in others), default=(0.0, 0, 0))
    if best[0] > _CLEARLY:
        kept = columns[best[1]].holds(people, rows, best[2])
        people, rows = people[kept], rows[kept]
    else:
        others = []  # no lag of them is
    lags = []
    for k in (*spike.columns, *others):
        sure, _, lag = _most_frequent(columns[k], k, people, rows)
        if k in spike.columns or sure > _CLEARLY:
            lags.append(Lag(mean_told(columns[k], lag), k, lag))
    return most_telling(columns, lags, best[0] if best[0] > _CLEARLY else min(spike.score, _CLEARLY))


def moved_by(columns: Sequence[LagColumn], lag: int = 0, score: float = 0.0) -> Shift | None:
    """One lag for all columns but those that have none; None with fewer than two."""
    lags = (0 if c.fixed else lag for c in columns)
    return most_telling(
        columns,
        [Lag(mean_told(c, x), k, x) for k, (c, x) in enumerate(zip(columns, lags, strict=True))],
        score,
    )


def linked_bits(columns: Sequence[LagColumn], shift: Shift, enough: float, *, near: bool = False) -> Floats:
    """How much each person's best row tells by the lags that hold for it, in bits, shape (n,); 0 without one.

    Rows are those that two of the six most telling lags hold for; where most people have only common values
    in these columns, which lead to nobody, as many lags together as lead to a few rows each. What a row tells
    of further people is deducted: people who lack a thing have nought in all columns that measure it, and so
    have rows, of which none is anybody's, however much so many noughts would tell were they independent.

    Args:
        enough: bits below which a row tells of nobody, and nothing is deducted.
        near: rows near in those two are enough, and lags that do not hold speak against a row.
    """
    found, telling = np.zeros(len(columns[0].people)), []
    for people, rows in _led_to(columns, shift.lags[:_JOINED_BY], near=near):
        bits = np.zeros(len(people))
        for lag in shift.lags:
            column = columns[lag.column]
            held, known = column.holds_and_known(people, rows, lag.lag)
            bits[held] += column.told(rows[held])
            if near:
                bits[~held & known] -= NOT_HELD
        np.maximum.at(found, people, np.minimum(bits, enough))
        much = bits > enough
        telling.append((people[much], rows[much], bits[much]))
    of_others = np.zeros(len(columns[0].release))
    for _, rows, bits in telling:
        np.maximum.at(of_others, *_fifth(rows, bits))
    for people, rows, bits in telling:
        np.maximum.at(found, people, bits - of_others[rows])
    return found


def _led_to(
    columns: Sequence[LagColumn], lags: Sequence[Lag], *, near: bool
) -> Iterator[tuple[Positions, Positions]]:
    """Pairs of a person and a row that some of the lags hold for, by each choice of these."""
    of = [columns[x.column] for x in lags]
    if near or sum(bool(c.leading[0].mean() >= _MOST_LEAD) for c in of) > 1:
        for pair in combinations(lags, 2):
            yield joined(columns, tuple((x.column, x.lag) for x in pair), whole=True, near=near)
        return
    chances = sorted((c.chance(x.lag, leading=False) for c, x in zip(of, lags, strict=True)), reverse=True)
    pairs = len(of[0].people) * len(of[0].release) * np.cumprod(chances)
    size = min(len(lags), 2 + int((pairs[1:] > _MOST_PAIRS).sum()))
    coded = [_coded(c, x.lag) for c, x in zip(of, lags, strict=True)]
    for some in combinations(coded, size):
        yield _joined_by_common(some, len(of[0].people))


def _coded(column: LagColumn, lag: int) -> Integers:
    """Codes that people and rows, these below, share who are apart by a lag; -1 for what is missing."""
    n = len(column.people)
    steps = np.concatenate([column.people, column.release])
    known = steps != MISSING
    moved = np.where(known, steps, 0) + np.where(np.arange(len(steps)) < n, lag, 0)
    codes = np.unique(moved if column.whole else moved % column.size, return_inverse=True)[1]
    return np.where(known, codes, -1)


def _joined_by_common(coded: Sequence[Integers], n: int) -> tuple[Positions, Positions]:
    """Pairs of a person, of whom there are n, and a row that share all codes, common ones or not."""
    keys, known = coded[0], coded[0] >= 0
    for codes in coded[1:]:
        if int(keys.max()) >= _LARGEST_KEY:
            keys = np.unique(keys, return_inverse=True)[1]
        keys = keys * (int(codes.max()) + 1) + codes
        known = known & (codes >= 0)
    return _pairs(np.where(known, keys, -2)[:n], np.where(known, keys, -1)[n:], 0, _MOST_PAIRS)


def _fifth(rows: Positions, bits: Floats) -> tuple[Positions, Floats]:
    """Rows that tell of five people or more, and how much they tell of the fifth."""
    order = np.lexsort((-bits, rows))
    rows, bits = rows[order], bits[order]
    fifth = np.flatnonzero(rows[_FEW:] == rows[:-_FEW]) + _FEW
    first = np.searchsorted(rows, rows[fifth])
    place = fifth[fifth - first == _FEW]
    return rows[place], bits[place]


def most_telling(columns: Sequence[LagColumn], lags: Sequence[Lag], score: float) -> Shift | None:
    """The most telling lags of different columns; None with fewer than two."""
    chosen: list[Lag] = []
    for lag in sorted(lags, reverse=True):
        if all(different(columns[lag.column], columns[x.column]) for x in chosen):
            chosen.append(lag)
    return Shift(tuple(chosen[:_MOST_COLUMNS]), score) if len(chosen) > 1 else None


def mean_told(column: LagColumn, lag: int) -> float:
    """How much it tells on average that a lag holds, in bits."""
    least = 1 / (len(column.people) * len(column.release))
    return float(-np.log2(max(column.chance(lag, leading=False), least)))


def _most_frequent(column: LagColumn, k: int, people: Positions, rows: Positions) -> tuple[float, int, int]:
    """Standard errors above chance of the most frequent lag of a column, 0 if it cannot be a clear one; the
    column, and the lag."""
    found = column.leading_apart(people, rows)
    if not len(found):
        return 0.0, k, 0
    if column.fixed:
        lag, n = 0, int((found == 0).sum())
    else:
        values, counts = np.unique(found, return_counts=True)
        lag, n = int(values[counts.argmax()]), int(counts.max())
    if n <= _CLEARLY:
        return 0.0, k, lag  # nothing can be expected of so few that makes the lag a clear one
    expected = column.chance(lag) * len(found)
    return float((n - expected) / np.sqrt(expected + 1)), k, lag


def joined(
    columns: Sequence[LagColumn],
    pair: Sequence[tuple[int, int]],
    *,
    whole: bool,
    near: bool = False,
    most: int = _MOST_PAIRS,
) -> tuple[Positions, Positions]:
    """Pairs of a person and a row that are apart by the lags of two columns, of some people if they are many.

    Args:
        whole: by the lags as far as they hold for whole steps, not mod the sizes of columns.
        near: steps that are near lead to a row too, most of them. most: pairs.
    """
    coded = []
    for k, lag in pair:
        c = columns[k]
        size = c.size * (_FAR if whole and c.whole else 1)
        coded.append(c.codes(lag, size, _BINS * c.near if near and c.near else 1))
    (*first, _), (*second, n) = coded
    people, rows = (
        np.where((a >= 0) & (b >= 0), a * n + b, np.minimum(-1, np.minimum(a, b)))
        for a, b in zip(first, second, strict=True)
    )
    return _pairs(people, rows, sum(k for k, _ in pair), most)


def _pairs(people: Integers, rows: Integers, offset: int, most: int) -> tuple[Positions, Positions]:
    """Every person with every row of the same key; of some people if there are too many.

    Args:
        people: keys; -1 is that of no row, -2 none. rows: keys, -1 being none.
        offset: moves who these are. most: pairs.
    """
    asked, m, able = np.flatnonzero(people > -2), len(rows), np.flatnonzero(rows >= 0)
    wanted, keys = people[asked], rows[able]
    if int(keys.max(initial=0)) >= _LARGEST_PRODUCT // m:
        values, keys = np.unique(keys, return_inverse=True)
        place = np.searchsorted(values, wanted)
        wanted = np.where(np.append(values, -1)[place] == wanted, place, -1)
    ordered = np.sort(keys * m + able)  # by their keys, those of one key in their order
    low, high = (np.searchsorted(ordered, (wanted + k) * m) for k in (0, 1))
    n = np.where(wanted >= 0, high - low, 0)
    one_of = max(1, -(-int(n.sum()) // most))
    some = slice(offset % one_of, None, one_of)
    asked, low, n = asked[some], low[some], n[some]
    starts = np.repeat(low - np.cumsum(n) + n, n)
    return np.repeat(asked, n), ordered[starts + np.arange(len(starts))] % m
