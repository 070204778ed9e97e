"""Columns as adversaries who know some of them compare them, and which of them agree with single rows."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from synth_audit.arrays import Bools, Codes, Floats, Positions
from synth_audit.encode import scales
from synth_audit.encode.encoded import AnchoredPart, Encoded, ScaledNumbers, SharedLabels, Vectors
from synth_audit.neighbours.coordinates import drawn_in, smallest_type
from synth_audit.table.schema import Column
from synth_audit.table.table import Table

SECRET_STEP = 1e4
"""Labels of a secret are that far apart from one another and from all numbers."""

Rows = Positions | slice

_TEXT_WIDTH = 4
"""Coordinates of a text that are looked at: texts alike are near in each, and few dimensions are searched
fast."""


_NEAR = 0.02
"""Share of the release that is near a number."""

_FAR = 10.0
"""A pair of rare values agrees no more than so much: one person must not decide for all."""

_WORK, _FEWEST, _MOST = 2e10, 25, 250
"""Products that may be taken, and people of each side that are looked at in any case and at most."""

_ROWS = 2**13
"""Rows of the release whose products are taken at a time: those of 20 columns fit a core's cache, and take
half as long as of 2^16 rows."""

Places = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class KnownColumn:
    """One column of several tables, their rows one below the other: codes and what they stand for.

    Attributes:
        name: of the column.
        labels: what must be equal, 0 … k−1 in the smallest type that holds them, shape (n,); what a cell is,
            where it may be a number.
        ranks: of each number, 0 … l−1 likewise, shape (n, width). levels: the numbers of these ranks,
            ascending, in robust ranges, beyond one range growing by their logarithm; 0 where a cell has none.
        cells: what each cell is to one who guesses it, as codes likewise, shape (n,). guesses: of these
            codes, :data:`SECRET_STEP` apart, NaN for missing. counted: whether the number is added to it.
        parents: positions of the two columns whose difference this is; empty for a column of the table.
        unit: what a difference is in.
    """

    name: str
    labels: npt.NDArray[Any]
    ranks: npt.NDArray[Any]
    levels: tuple[Floats, ...]
    cells: npt.NDArray[Any]
    guesses: Floats
    counted: bool = False
    parents: tuple[int, ...] = ()
    unit: str | None = None

    @classmethod
    def of(cls, parts: Sequence[AnchoredPart], encoded: Encoded) -> list[Self]:
        """Read the parts of one column of a table; each number of a text of several is its own."""
        by_type = {type(part): part for part in parts}
        name = parts[0].column.name
        label, vector = (by_type.get(kind) for kind in (SharedLabels, Vectors))
        tables = encoded.tables
        codes = np.concatenate(encoded.codes(label.column)) if isinstance(label, SharedLabels) else None
        found = []
        for part in parts:
            if isinstance(part, ScaledNumbers):
                numbers, what = zip(*(part.read(table) for table in tables), strict=True)
                found.append(cls.of_numbers(name, np.concatenate(numbers), np.concatenate(what), codes))
        if found:
            return found
        assert codes is not None
        different, cells = _dense(codes)
        guesses = np.where(different < 0, np.nan, different * SECRET_STEP)
        if isinstance(vector, Vectors):
            placed = np.concatenate([vector.read(table) for table in tables])[:, :_TEXT_WIDTH]
            missing = np.isnan(placed).any(axis=1)
            near = np.where(missing[:, None], 0.0, placed / (vector.spread * _TEXT_WIDTH))
            levels, ranks = zip(*map(_dense, near.T), strict=True)
            return [cls(name, missing.astype(np.int8), np.column_stack(ranks), levels, cells, guesses)]
        return [cls(name, cells, np.empty((len(codes), 0), np.int8), (), cells, guesses)]

    @classmethod
    def of_numbers(cls, name: str, numbers: Floats, what: Codes, codes: Codes | None = None) -> Self:
        """A number on its scale, and what each cell is.

        Beside a label: equal labels are equal numbers, so a label counts where none is read.
        """
        kind = what.copy()
        if codes is not None:
            unread = (what == scales.MISSING) & (codes >= 0)
            kind[unread] = what.max(initial=0) + 1 + codes[unread]
        found, cells = _dense(kind)
        guesses = np.where(found == scales.MISSING, np.nan, found * SECRET_STEP)
        level, rank = _dense(drawn_in(numbers, far=1.0))
        return cls(name, cells, rank[:, None], (level,), cells, guesses, counted=True)

    def secret(self, rows: Rows = slice(None)) -> Floats:
        """Cells of some rows as guesses, NaN where missing, shape (rows,).

        Two are the same when they differ by no more than the tolerance; labels lie :data:`SECRET_STEP` apart.
        """
        found: Floats = self.guesses[self.cells[rows]]
        if self.counted:
            found += self.levels[0][self.ranks[rows, 0]]
        return found

    def known_secret(self, rows: Rows = slice(None)) -> Floats:
        """The same with missing ones as one label more."""
        return np.nan_to_num(self.secret(rows), copy=False, nan=-SECRET_STEP)

    def known_place(self, rows: Rows = slice(None)) -> Floats:
        """A number that cells near one another have nearly alike, missing ones as a label, shape (rows,).

        The cell as a guess; of text the first of its coordinates, as texts alike are no equal labels.
        """
        found = self.known_secret(rows)
        if len(self.levels) <= 1:
            return found
        near = self.labels[rows] * SECRET_STEP + self.levels[0][self.ranks[rows, 0]]
        return np.where(found == -SECRET_STEP, found, near)

    @cached_property
    def values(self) -> npt.NDArray[Any]:
        """Equal for equal cells, missing ones among them; 0 … k−1, shape (n,)."""
        return _dense(self.known_secret())[1]


def known_columns(
    tables: Sequence[Table], columns: Sequence[Column], reference: Sequence[Table]
) -> Iterator[KnownColumn]:
    """The columns that vary in train, one after the other, for rows of several tables.

    Those of one text of several numbers have one name.

    Args:
        reference: train first, and control, whose rows together set the scale of numbers.
    """
    encoded = Encoded(tables, columns, reference)
    parts = groupby(encoded.parts, key=lambda part: part.column.name)
    return (known for _, of_column in parts for known in KnownColumn.of([*of_column], encoded))


def _dense(values: Codes | Floats) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Different values, ascending, and the place of each among them in the smallest type, shape (n,)."""
    found, places = np.unique(values, return_inverse=True)
    return found, places.astype(smallest_type(places))


@dataclass(frozen=True, eq=False)
class _Windows:
    """Which cells of a release are near to cells of people.

    Attributes:
        places: of each cell of the release among those of its column, shape (d, m).
        first, last: places near to each cell of a person, shape (people, d).
    """

    places: Places
    first: Places
    last: Places

    @classmethod
    def of(cls, columns: Iterable[tuple[Floats, Floats]], step: float) -> Self:
        places, first, last = zip(*(_near_places(*column, step) for column in columns), strict=True)
        return cls(np.array(places), np.column_stack(first), np.column_stack(last))

    def agreement(self, person: int) -> Floats:
        """Rows near in both columns of each pair, in standard deviations of those by chance; (d, d)."""
        first, last = self.first[person], self.last[person]
        d, m = self.places.shape
        both = np.zeros((d, d), np.float32)
        for start in range(0, m, _ROWS):
            places = self.places[:, start : start + _ROWS]
            near = (places >= first[:, None]) & (places <= last[:, None])
            ones = near.astype(np.float32)  # of which products are whole numbers, and sums exact
            both += ones @ ones.T
        counts = last - first + 1.0
        scale = np.where(counts > 0, np.maximum(counts, 1) ** -0.5, 0.0) * m**0.25
        together: Floats = np.minimum(both * np.outer(scale, scale), _FAR)
        return together


def _near_places(release: Floats, people: Floats, step: float) -> tuple[Places, Places, Places]:
    """Of one column the places of the release's cells, and the first and last near to each person's."""
    m, reach = len(release), max(1, round(_NEAR * len(release) / 2))
    ordered = np.sort(release)
    low = np.searchsorted(ordered, people, "left") - reach
    high = np.searchsorted(ordered, people, "right") + reach - 1
    # No further than to other labels.
    low = np.maximum(low, np.searchsorted(ordered, people - step / 2, "left"))
    high = np.minimum(high, np.searchsorted(ordered, people + step / 2, "right") - 1)
    inside = high >= low
    low_value, high_value = ordered[np.clip(low, 0, m - 1)], ordered[np.clip(high, 0, m - 1)]
    last = np.where(inside, np.searchsorted(ordered, high_value, "right") - 1, -1)
    found = (np.searchsorted(ordered, release), np.searchsorted(ordered, low_value, "left"), last)
    places, first, last = (x.astype(np.int32) for x in found)
    return places, first, last


def looked_rows(n_release: int, n_columns: int) -> slice:
    """Rows of the release that are looked at, evenly spread: all, unless those exceed the work for 25 people.

    As much work on fewer rows and more people tells as much: what a person's own row adds to the rows near in
    two columns, in standard deviations, falls by the root of the rows.

    >>> looked_rows(1_000_000, 20), looked_rows(8_000_000, 20)
    (slice(0, 1000000, 1), slice(0, 8000000, 8))
    """
    return slice(0, n_release, max(1, math.ceil(2 * n_release * n_columns**2 * _FEWEST / _WORK)))


def co_agreement(columns: Iterable[tuple[Floats, Floats]], member: Bools, step: float) -> Floats:
    """How much more train people agree with single rows in two columns at once than strangers, shape (d, d).

    For each person and pair of columns, the number of release rows that are near in both over the square root
    of how many there were if the columns had nothing to do with each other; of that the difference of the
    means of train and control, in standard errors. Near are equal labels, and the nearest 2 % of numbers.

    Args:
        columns: d of them, cells of the release and of people of both sides, none NaN, shape (m,) and
            (people,); each is asked for once. member: who is in train, shape (people,).
        step: what lies further apart is not the same label.
    """
    windows = _Windows.of(columns, step)
    d, m = windows.places.shape
    most = int(np.clip(_WORK / (2 * m * d * d), _FEWEST, _MOST))
    chosen = [np.flatnonzero(member)[:most], np.flatnonzero(~member)[:most]]
    means, errors = [], []
    for rows in chosen:
        total, squares = np.zeros((d, d)), np.zeros((d, d))
        for person in rows:
            found = windows.agreement(int(person))
            total += found
            squares += found * found
        mean = total / len(rows)
        means.append(mean)
        errors.append((np.maximum(squares / len(rows) - mean * mean, 0) + 1 / len(rows)) / len(rows))
    apart: Floats = (means[0] - means[1]) / np.sqrt(errors[0] + errors[1])
    np.fill_diagonal(apart, -np.inf)
    return apart


def strongest_pairs(apart: Floats, most: int) -> list[tuple[int, int]]:
    """The pairs that stand out most, from the largest down."""
    rows, columns = np.triu_indices(len(apart), 1)
    order = np.argsort(-apart[rows, columns], kind="stable")[:most]
    return [(int(rows[i]), int(columns[i])) for i in order]


def grown(apart: Floats, pair: tuple[int, int], size: int) -> tuple[int, ...]:
    """A pair with the columns that stand out most beside all that are in already, ascending."""
    members = list(pair)
    while len(members) < min(size, len(apart)):
        beside = np.clip(apart[members], -_FAR, _FAR).sum(axis=0)
        beside[members] = -np.inf
        members.append(int(np.argmax(beside)))
    return tuple(sorted(members))
