"""Columns as one who knows a few of them compares them: what must be equal, and how far numbers are apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from synth_audit.core.arrays import Codes, Floats, Positions
from synth_audit.core.schema import Column
from synth_audit.core.table import Table
from synth_audit.encoding.anchored_parts import (
    AnchoredPart,
    ScaledNumbers,
    SharedLabels,
    Vectors,
    anchored_parts,
    varies,
)
from synth_audit.kernels import robust_scale
from synth_audit.kernels.coordinates import drawn_in
from synth_audit.kernels.labels import smallest_type

SECRET_STEP = 1e4
"""Labels of a secret are that far apart from one another and from all numbers."""

Rows = Positions | slice

_TEXT_WIDTH = 4
"""Coordinates of a text that are looked at: texts alike are near in each, and few dimensions are searched
fast."""


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
    def of(cls, parts: Sequence[AnchoredPart], tables: Sequence[Table]) -> list[Self]:
        """Read the parts of one column of a table; each number of a text of several is its own."""
        by_type = {type(part): part for part in parts}
        name = parts[0].column.name
        label, vector = (by_type.get(kind) for kind in (SharedLabels, Vectors))
        codes = np.concatenate(label.read(tables)) if isinstance(label, SharedLabels) else None
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
            unread = (what == robust_scale.MISSING) & (codes >= 0)
            kind[unread] = what.max(initial=0) + 1 + codes[unread]
        found, cells = _dense(kind)
        guesses = np.where(found == robust_scale.MISSING, np.nan, found * SECRET_STEP)
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
    kept = [c for c in columns if varies(reference[0], c)]
    parts: dict[str, list[AnchoredPart]] = {c.name: [] for c in kept}
    for part in anchored_parts(reference, kept):
        parts[part.column.name].append(part)
    return (known for c in kept for known in KnownColumn.of(parts[c.name], tables))


def _dense(values: Codes | Floats) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Different values, ascending, and the place of each among them in the smallest type, shape (n,)."""
    found, places = np.unique(values, return_inverse=True)
    return found, places.astype(smallest_type(places))
