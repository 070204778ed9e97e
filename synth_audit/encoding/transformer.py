"""Rows as vectors that a network learns and draws, and the way back.

Numbers lie in [−1, 1], or are standard normal by their ranks; labels are one-hot. What is missing is a label
of its own: the last one of a column of labels or of modes, and a second coordinate pair, *present* and
*missing*, beside a number without modes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from synth_audit.core.arrays import Floats, Floats32
from synth_audit.core.errors import DataError
from synth_audit.core.kind import Bounds
from synth_audit.core.public_domain import PublicDomain
from synth_audit.core.schema import Column, Schema, quantitative
from synth_audit.core.table import Table, assemble
from synth_audit.encoding.column_transforms import (
    ColumnTransform,
    LabelTransform,
    RangeTransform,
    transform_from_plain,
)
from synth_audit.encoding.number_domain import ends_of
from synth_audit.kernels.row_layout import RowLayout

MOST_LABELS = 10_000
"""A column of more different labels is not learnt."""

OfNumbers = Callable[[str, Floats, Bounds], ColumnTransform]
"""How a column of numbers is read: from name, values (NaN where missing) and ends, which differ."""


@dataclass(frozen=True, eq=False)
class Transformer:
    """All columns of a table as one vector per row.

    Attributes:
        schema: of the table that is drawn.
        columns: in the schema's order.
    """

    schema: Schema
    columns: tuple[ColumnTransform, ...]

    @property
    def layout(self) -> RowLayout:
        """Where numbers and labels lie."""
        numbers: list[int] = []
        slices: list[tuple[int, int]] = []
        choices: list[int] = []
        place = 0
        for column in self.columns:
            numbers += range(place, place + column.numbers)
            place += column.numbers
            for width in column.slices:
                choices += [len(slices)] if column.choice else []
                slices.append((place, place + width))
                place += width
        return RowLayout(tuple(numbers), tuple(slices), place, tuple(choices))

    def encode(self, table: Table, rng: np.random.Generator) -> Floats32:
        """Vectors, shape (n, width)."""
        return np.hstack([column.encode(table, rng) for column in self.columns])

    def decode(self, vectors: Floats32) -> Table:
        """Rows from vectors of shape (n, width), whose slices hold any scores: the largest wins."""
        drawn, place = {}, 0
        for column in self.columns:
            width = column.numbers + sum(column.slices)
            drawn[column.name] = column.decode(vectors[:, place : place + width])
            place += width
        return assemble(self.schema, drawn)

    @property
    def knows_margins(self) -> bool:
        """Whether :meth:`calibrated` would change anything."""
        return any(column.known for column in self.columns)

    def calibrated(self, vectors: Floats32) -> Transformer:
        """One that decodes vectors like these, which a network drew, to the margins that are known."""
        calibrated, place = [], 0
        for column in self.columns:
            width = column.numbers + sum(column.slices)
            calibrated.append(column.calibrated(vectors[:, place : place + width]))
            place += width
        return Transformer(self.schema, tuple(calibrated))

    def plain(self) -> list[dict[str, Any]]:
        """As JSON values, without the schema."""
        return [column.plain() for column in self.columns]

    @classmethod
    def from_plain(cls, schema: Schema, plain: Sequence[Mapping[str, Any]]) -> Transformer:
        """What :meth:`plain` wrote."""
        return cls(schema, tuple(transform_from_plain(column) for column in plain))


def on_train(train: Table, of_numbers: OfNumbers | None = None) -> Transformer:
    """Ranges, labels and gaps as train has them.

    Args:
        of_numbers: how numbers are read; None for a range between their ends.

    Raises:
        DataError: a column holds free text.
    """
    return Transformer(train.schema, tuple(_read_off(train, column, of_numbers) for column in train.schema))


def on_declared(train: Table, domain: PublicDomain) -> Transformer:
    """Ranges and labels as the plan declares them, and gaps wherever it does not rule them out.

    Of columns in ``domain.unknown`` they are read off train, and nothing can then be claimed.

    Raises:
        DataError: a column holds free text.
    """
    declared: list[ColumnTransform] = []
    for column in train.schema:
        known = domain.columns[column.name]
        if known.bounds is not None:
            declared.append(RangeTransform(column.name, known.bounds, known.nullable))
        elif labels := known.labels:
            declared.append(LabelTransform(column.name, tuple(labels), known.nullable))
        else:
            declared.append(_read_off(train, column))
    return Transformer(train.schema, tuple(declared))


def _read_off(train: Table, column: Column, of_numbers: OfNumbers | None = None) -> ColumnTransform:
    gap = train.n_missing(column.name) > 0
    if quantitative([column]):
        values = train.numbers(column.name)
        ends = ends_of(values)
        if of_numbers is None or ends is None or ends[0] == ends[1]:
            return RangeTransform(column.name, ends, gap)
        return of_numbers(column.name, values, ends)
    labels = column.kind.domain(train.column(column.name)).categories or ()
    if column.kind.as_it_is or len(labels) > MOST_LABELS:
        raise DataError(
            f"column {column.name!r} has too many different labels to be learnt by a network",
            where=f"train.{column.name}",
            expected=f"categories, at most {MOST_LABELS:,}",
            fix="drop the column, give it `role: identifier`, or merge its rare labels at the source",
        )
    return LabelTransform(column.name, labels, gap)
