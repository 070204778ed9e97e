"""Columns of any kind as one number each, labels by their place in a list, and the way back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from synth_audit.core.arrays import Floats, Labels
from synth_audit.core.schema import Schema
from synth_audit.core.schema_json import schema_from_plain, schema_to_plain
from synth_audit.core.table import Table, assemble


@dataclass(frozen=True, eq=False)
class CodedColumns:
    """What the numbers of all columns stand for.

    Attributes:
        schema: of the table that is drawn.
        labels: of each column by code 0, 1, …; None for a column of numbers.
    """

    schema: Schema = field(repr=False)
    labels: tuple[Labels | None, ...] = field(repr=False)

    @classmethod
    def of(cls, train: Table) -> tuple[CodedColumns, Floats]:
        """The columns of train and their values, shape (n, d), NaN where missing.

        Dates are microseconds. Labels of equal frequency are numbered by their texts.
        """
        scales = [c.kind.rank_scale(train, c, None, own_order=True) for c in train.schema]
        values = np.column_stack([scale.of(train) for scale in scales])
        return cls(train.schema, tuple(scale.labels for scale in scales)), values

    @property
    def sizes(self) -> tuple[int | None, ...]:
        """How many labels each column has; None for numbers."""
        return tuple(None if labels is None else len(labels) for labels in self.labels)

    def table(self, values: Floats) -> Table:
        """Rows of a table from the numbers of all columns, shape (n, d)."""
        return assemble(
            self.schema,
            {c.name: _read(values[:, j], self.labels[j]) for j, c in enumerate(self.schema)},
        )

    def plain(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "schema": schema_to_plain(self.schema),
            "labels": [None if labels is None else labels.tolist() for labels in self.labels],
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> CodedColumns:
        """What :meth:`plain` wrote."""
        return cls(schema_from_plain(plain["schema"]), tuple(map(_as_labels, plain["labels"])))


def _as_labels(texts: Sequence[str] | None) -> Labels | None:
    return None if texts is None else np.array(texts, dtype=object)


def _read(values: Floats, labels: Labels | None) -> Floats | Labels:
    if labels is None:
        return values
    missing = np.isnan(values)
    texts: Labels = np.array([*labels, None], dtype=object)
    return texts[np.where(missing, len(labels), values).astype(np.intp)]
