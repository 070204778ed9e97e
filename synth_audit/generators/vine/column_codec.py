"""Columns of any kind as numeric variables, missing values as variables of their own, and the way back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from synth_audit.core.arrays import Bools, Floats, Labels
from synth_audit.core.schema import Column
from synth_audit.core.table import Table


@dataclass(frozen=True, eq=False)
class ColumnCodec:
    """A column as numbers.

    Attributes:
        column: the column.
        values: shape (n,), NaN where missing; codes 0, 1, … for labels.
        labels: labels by code; None for a numeric column.
    """

    column: Column
    values: Floats
    labels: Labels | None

    @property
    def varies(self) -> bool:
        """True when at least two distinct values are present."""
        known = self.values[~np.isnan(self.values)]
        return len(known) > 0 and bool(known.min() < known.max())

    @property
    def signal(self) -> Floats | None:
        """What can be related to other columns: the values, or where they are missing, or nothing."""
        if self.varies:
            return self.values
        missing = np.isnan(self.values)
        return missing.astype(np.float64) if 0 < missing.sum() < len(missing) else None

    def decoder(self, variables: Sequence[Variable], start: int = 0) -> Decoder:
        """The way back from the variables of these and other columns (see :func:`variables_of`).

        Args:
            start: position of the first of ``variables`` in the model.
        """
        missing = np.isnan(self.values)
        places = list(enumerate(variables, start))
        own = next((i for i, v in places if not v.gap and v.column.name == self.column.name), None)
        gap = next((i for i, v in places if v.gap and np.array_equal(v.values > 0, missing)), None)
        constant = np.nan if missing.all() else float(self.values[~missing][0])
        return Decoder(self.column.name, self.labels, constant, own, gap)


@dataclass(frozen=True, eq=False)
class Variable:
    """A numeric variable of a joint model: a column's values, or 1 where values are missing.

    Attributes:
        values: shape (n,); NaN where missing.
    """

    column: Column
    values: Floats
    gap: bool

    def part(self, rows: Bools) -> Variable:
        """This variable in some rows; where none of them has a value, any will do: a gap hides it."""
        values = self.values[rows]
        return replace(self, values=np.nan_to_num(values) if np.isnan(values).all() else values)

    def __str__(self) -> str:
        return f"{self.column.name} is missing" if self.gap else self.column.name


@dataclass(frozen=True, eq=False)
class Decoder:
    """How values drawn for the variables become a column again.

    Attributes:
        labels: labels by code; None for a numeric column.
        constant: the only value of a column without a variable; NaN when it has none.
        variable, gap: positions of its variables; None when it has no such variable.
    """

    name: str
    labels: Labels | None
    constant: float
    variable: int | None
    gap: int | None

    def decode(self, drawn: Mapping[int, Floats], n: int) -> Floats | Labels:
        """The column's values, shape (n,), from the values drawn for each variable."""
        codes = np.full(n, self.constant) if self.variable is None else drawn[self.variable]
        if self.gap is not None:
            codes = np.where(drawn[self.gap] > 0, np.nan, codes)
        if self.labels is None:
            return codes
        values = np.full(n, None, dtype=object)
        known = ~np.isnan(codes)
        values[known] = self.labels[codes[known].astype(np.intp)]
        return values


def encode(train: Table) -> tuple[ColumnCodec, ...]:
    """Every column as numbers.

    The target's labels are sorted by frequency, the labels of the others by the mean rank of the target
    within each, or by frequency when there is no target.
    """
    target = train.schema.target
    response = None if target is None else _encode(train, target, None).values
    return tuple(_encode(train, c, None if c == target else response) for c in train.schema)


def variables_of(codings: Sequence[ColumnCodec]) -> tuple[Variable, ...]:
    """The variables of columns in this order, each pattern of missing values before its first column.

    Columns that are missing together share one variable, so that they stay missing together.
    """
    seen: set[bytes] = set()
    variables = []
    for coding in codings:
        missing = np.isnan(coding.values)
        if missing.any() and (pattern := missing.tobytes()) not in seen:
            seen.add(pattern)
            variables.append(Variable(coding.column, missing.astype(np.float64), gap=True))
        if coding.varies:
            variables.append(Variable(coding.column, coding.values, gap=False))
    return tuple(variables)


def _encode(train: Table, column: Column, response: Floats | None) -> ColumnCodec:
    scale = column.kind.rank_scale(train, column, response, own_order=True)
    return ColumnCodec(column, scale.of(train), scale.labels)
