"""Columns as one who knows a few of them compares them: what must be equal, and how far numbers are apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from synth_audit.core.arrays import Codes, Floats
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

_TEXT_WIDTH = 4
"""Coordinates of a text that are looked at: texts alike are near in each, and few dimensions are searched
fast."""


@dataclass(frozen=True, eq=False)
class KnownColumn:
    """One column of several tables, their rows one below the other.

    Attributes:
        name: of the column.
        labels: what must be equal, 0 … k−1 in the smallest type that holds them, shape (n,); what a cell is,
            where it may be a number.
        numbers: in robust ranges, beyond one range growing by their logarithm; 0 where there is none,
            shape (n, width).
        secret: the cell as a guess, NaN where missing, shape (n,): two cells are the same when they differ by
            no more than the tolerance, and labels lie :data:`SECRET_STEP` apart.
        parents: positions of the two columns whose difference this is; empty for a column of the table.
        unit: what a difference is in.
    """

    name: str
    labels: npt.NDArray[Any]
    numbers: Floats
    secret: Floats
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
        secret = np.where(codes < 0, np.nan, codes * SECRET_STEP)
        if isinstance(vector, Vectors):
            placed = np.concatenate([vector.read(table) for table in tables])[:, :_TEXT_WIDTH]
            missing = np.isnan(placed).any(axis=1)
            near = np.where(missing[:, None], 0.0, placed / (vector.spread * _TEXT_WIDTH))
            return [cls(name, missing.astype(np.int8), near, secret)]
        return [cls(name, _dense(codes), np.empty((len(codes), 0)), secret)]

    @classmethod
    def of_numbers(cls, name: str, numbers: Floats, what: Codes, codes: Codes | None = None) -> Self:
        """A number on its scale, and what each cell is.

        Beside a label: equal labels are equal numbers, so a label counts where none is read.
        """
        kind = what.copy()
        if codes is not None:
            unread = (what == robust_scale.MISSING) & (codes >= 0)
            kind[unread] = what.max(initial=0) + 1 + codes[unread]
        squashed = drawn_in(numbers, far=1.0)
        secret = np.where(kind == robust_scale.MISSING, np.nan, kind * SECRET_STEP + squashed)
        return cls(name, _dense(kind), squashed[:, None], secret)

    @property
    def place(self) -> Floats:
        """A number that cells near one another have nearly alike, NaN where missing, shape (n,).

        The cell as a guess; of text the first of its coordinates, as texts alike are no equal labels.
        """
        if self.numbers.shape[1] <= 1:
            return self.secret
        return np.where(np.isnan(self.secret), np.nan, self.labels * SECRET_STEP + self.numbers[:, 0])

    @cached_property
    def values(self) -> npt.NDArray[Any]:
        """Equal for equal cells, missing ones among them; 0 … k−1, shape (n,)."""
        return _dense(np.nan_to_num(self.secret, nan=-SECRET_STEP))

    @property
    def shares(self) -> Floats:
        """Share of the rows that has each value, missing as one; without :attr:`values`, which stay."""
        counts = np.unique(np.nan_to_num(self.secret, nan=-SECRET_STEP), return_counts=True)[1]
        return counts / len(self.secret)

    @property
    def ranks(self) -> npt.NDArray[Any]:
        """Dense ranks of each number in the smallest type that holds them, shape (n, width)."""
        found = [_dense(numbers) for numbers in self.numbers.T]
        return np.column_stack(found) if found else np.empty(self.numbers.shape, np.int8)

    def mirrored(self, n: int) -> Self:
        """The same with the numbers of the first n rows (the release) turned round by rank.

        Each takes the value that has its rank counted from the other end, ties in the middle of theirs; where
        some numbers are labels, the others.
        """
        numbers = self.numbers.copy()
        # The label of numbers, or of cells whose numbers are all 0.
        rows = np.flatnonzero(self.labels[:n] == 0)
        values = numbers[rows, 0]
        ordered = np.sort(values)
        middle = (np.searchsorted(ordered, values) + np.searchsorted(ordered, values, "right") - 1) // 2
        numbers[rows, 0] = ordered[len(rows) - 1 - middle]
        return replace(self, numbers=numbers)


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


def _dense(codes: Codes | Floats) -> npt.NDArray[Any]:
    places = np.unique(codes, return_inverse=True)[1]
    return places.astype(smallest_type(places))
