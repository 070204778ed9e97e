"""Columns as attackers who know some of them compare them, and differences of columns as columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, groupby
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from synth_audit.arrays import Codes, Floats, Positions
from synth_audit.encode.encoded import AnchoredPart, Encoded, ScaledNumbers, SharedLabels, Vectors
from synth_audit.neighbours.coordinates import drawn_in, smallest_type
from synth_audit.stats import distributions
from synth_audit.stats.distributions import RobustScale
from synth_audit.table.kind import TIME
from synth_audit.table.schema import Column
from synth_audit.table.table import Table

SECRET_STEP = 1e4
"""Labels of a secret are that far apart from one another and from all numbers."""

Rows = Positions | slice

_TEXT_WIDTH = 4
"""Coordinates of a text that are looked at: texts alike are near in each, and few dimensions are searched
fast."""


MOST, MOST_NUMBERS = 12, 4
"""Differences that are taken at most, and such of other numbers than dates and times among them."""

_OVERLAP = 0.5
"""Part of the narrower central range that must lie in the other for numbers to be of one sort."""


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
            unread = (what == distributions.MISSING) & (codes >= 0)
            kind[unread] = what.max(initial=0) + 1 + codes[unread]
        found, cells = _dense(kind)
        guesses = np.where(found == distributions.MISSING, np.nan, found * SECRET_STEP)
        level, rank = _dense(drawn_in(numbers, far=1.0))
        return cls(name, cells, rank[:, None], (level,), cells, guesses, counted=True)

    def numbers(self, rows: Rows = slice(None)) -> Floats:
        """Numbers of some rows, shape (rows, width)."""
        found = np.empty((len(self.labels[rows]), len(self.levels)))
        for j, level in enumerate(self.levels):
            found[:, j] = level[self.ranks[rows, j]]
        return found

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

    @property
    def shares(self) -> Floats:
        """Share of the rows that has each value, missing as one; without :attr:`values`, which stay."""
        return np.unique(self.known_secret(), return_counts=True)[1] / len(self.labels)


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


def differences(
    known: Sequence[KnownColumn],
    tables: Sequence[Table],
    features: Sequence[Column],
    reference: Sequence[Table],
) -> list[KnownColumn]:
    """What pairs of columns differ by, of those whose differences have a meaning.

    These are dates and times with one another; and numbers of the same unit, as far as there is one, that
    are given equally finely and lie in one range: those that overlap most.

    Args:
        known: columns that vary, whose rows are those of the tables. features: all columns.
        reference: train first, and control.
    """
    place = {column.name: i for i, column in enumerate(known)}
    varying = [column for column in features if column.name in place]
    numbers = [p for p in Encoded(tables, varying, reference).parts if isinstance(p, ScaledNumbers)]
    pairs = [(a, b) for a, b in combinations(numbers, 2) if a.part.unit == b.part.unit is not None]
    times = [pair for pair in pairs if pair[0].part.unit == TIME]
    others = sorted(
        (pair for pair in pairs if pair[0].part.unit != TIME and _overlap(*pair) >= _OVERLAP),
        key=lambda pair: -_overlap(*pair),
    )
    return [
        _difference(a, b, tables, reference, (place[a.column.name], place[b.column.name]))
        for a, b in (times + others[:MOST_NUMBERS])[:MOST]
    ]


def _difference(
    first: ScaledNumbers,
    second: ScaledNumbers,
    tables: Sequence[Table],
    reference: Sequence[Table],
    parents: tuple[int, int],
) -> KnownColumn:
    scale = RobustScale.of(_apart(first, second, reference))
    name = f"{second.column.name} less {first.column.name}"
    column = KnownColumn.of_numbers(name, *scale.read(_apart(first, second, tables)))
    return replace(column, parents=parents, unit=first.part.unit)


def _apart(first: ScaledNumbers, second: ScaledNumbers, tables: Sequence[Table]) -> Floats:
    """Second less first, NaN where either is missing; rows of all tables one below the other."""
    a, b = (
        np.concatenate([side.part.read(table.column(side.column.name)) for table in tables])
        for side in (first, second)
    )
    with np.errstate(over="ignore"):
        found = b - a
    return np.where(np.isfinite(found), found, np.nan)


def _overlap(first: ScaledNumbers, second: ScaledNumbers) -> float:
    """Part of the narrower central range that lies in the other; 0 where they are not given as finely."""
    a, b = first.scale, second.scale
    if first.column.resolution != second.column.resolution or not np.isfinite([a.span, b.span]).all():
        return 0.0
    high = min(a.centre + a.span / 2, b.centre + b.span / 2)
    low = max(a.centre - a.span / 2, b.centre - b.span / 2)
    return max(0.0, high - low) / min(a.span, b.span)
