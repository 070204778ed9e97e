"""Columns as whole numbers: codes that several tables share, places of labels in a list, ranks of values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from synth_audit.arrays import Codes, Codes32, Floats, Floats32, Labels, Positions
from synth_audit.encode.facets import facets
from synth_audit.neighbours.coordinates import MISSING, smallest_type
from synth_audit.table.kind import LabelPart, NumberPart, VectorPart
from synth_audit.table.label_forms import column_forms, standard_forms
from synth_audit.table.schema import Column, Schema, schema_from_plain, schema_to_plain
from synth_audit.table.table import Table, assemble

Wanted: TypeAlias = Sequence[Positions | None]
"""Positions of the rows of each table that are wanted; None for all of them."""


def codes(tables: Sequence[Table], column: Column) -> list[Codes]:
    """One column of several tables as shared integer codes: equal values get equal codes.

    Numbers are numbered in their order; labels by how often all the tables together hold them, the most
    frequent first, and in the order of their texts where that is equal.

    Returns:
        One array of shape (n,) per table; values in 0 … k−1, and :data:`MISSING`.
    """
    return column.kind.codes([cells_of(table, column) for table in tables])


def cells_of(table: Table, column: Column) -> pa.ChunkedArray:
    """A column as it is stored, the texts of labels each once; see :meth:`Table.coded`."""
    labels = isinstance(column.kind.part, LabelPart)
    return table.coded(column.name) if labels else table.column(column.name)


def anchored_codes(tables: Sequence[Table], column: Column) -> list[Codes]:
    """Codes that are the same beside whatever other tables: those of the first table's values are its own.

    Returns:
        One array per table. The k values of the first table are numbered as :func:`codes` numbers them there
        alone; what others hold besides has codes from k on, and :data:`MISSING` stays.
    """
    joint, [alone] = codes(tables, column), codes(tables[:1], column)
    known = alone != MISSING
    place = np.full(2 + max(int(part.max(initial=MISSING)) for part in joint), MISSING, dtype=np.int64)
    place[joint[0][known]] = alone[known]
    others = np.flatnonzero(place[:-1] == MISSING)
    place[others] = 1 + alone.max(initial=MISSING) + np.arange(len(others))
    return [place[part] for part in joint]


def wanted_codes(joint: Sequence[Codes], rows: Wanted) -> list[npt.NDArray[Any]]:
    """Codes of some rows of each table, in the smallest type that holds those of all."""
    small = np.result_type(*map(smallest_type, joint))
    return [(c if some is None else c[some]).astype(small) for c, some in zip(joint, rows, strict=True)]


def wanted_rows(table: Table, rows: Positions | None) -> Table:
    """The rows of a table at these positions; the table as it is for None."""
    return table if rows is None else table.take(rows)


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
        scales = [facets(c).rank_scale(train, c, None, own_order=True) for c in train.schema]
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


def coded(table: Table, columns: Sequence[Column]) -> Floats:
    """A table as numbers, shape (n, C): labels as position among the column's categories, missing as NaN.

    Labels of one standard form get one position; one that is none of the categories that after the last.
    """
    rows = np.empty((table.n_rows, len(columns)))
    for j, column in enumerate(columns):
        rows[:, j] = _numbers(table, column)
    return rows


def _numbers(table: Table, column: Column) -> Floats:
    part, values = column.kind.part, table.column(column.name)
    return part.read(values) if isinstance(part, NumberPart) else _positions(table, column)


def _positions(table: Table, column: Column) -> Floats:
    labels = column.kind.labels(table.column(column.name))
    if not column.categories or pa.types.is_null(labels.type):
        return np.where(table.missing(column.name), np.nan, 0.0)
    found = pc.index_in(_forms(labels), value_set=pa.array(standard_forms(column.categories), labels.type))
    positions = np.asarray(pc.fill_null(found, len(column.categories)).to_numpy(), dtype=np.float64)
    return np.where(table.missing(column.name), np.nan, positions)


def _forms(labels: pa.ChunkedArray) -> pa.Array:
    """Standard form of each label, made once for those that repeat."""
    encoded = labels.combine_chunks().dictionary_encode()
    return pa.array(standard_forms(encoded.dictionary.to_pylist()), labels.type).take(encoded.indices)


def label_counts(columns: Sequence[Column]) -> list[int | None]:
    """How many categories each column has; None for numbers."""
    return [None if isinstance(c.kind.part, NumberPart) else len(c.categories) for c in columns]


def label_forms(table: Table, name: str) -> Labels:
    """Standard form of each label, None where it is missing, shape (n,)."""
    return np.array(standard_forms(table.labels(name).tolist()), dtype=object)


def value_ranks(
    tables: Sequence[Table],
    columns: Sequence[Column],
    *,
    real: Sequence[Table] = (),
    rows: Sequence[Positions] | None = None,
) -> list[Floats32]:
    """Columns of several tables as shared whole numbers in the order of their values, shape (n, d) each.

    A tree only asks which of two values is larger, so nothing is lost, and no value is too large for the
    single precision in which trees compute. Missing ranks last among numbers, first among labels. A column of
    several parts has a number for each, one for each coordinate of a vector.

    Args:
        real: the tables that say which parts a column has; the first one if left out.
        rows: positions of the rows that are wanted of each table, with the numbers that they have among all
            rows; all if left out.
    """
    ends = np.cumsum([table.n_rows for table in tables])
    wanted = [np.arange(t.n_rows) for t in tables] if rows is None else rows
    place = np.concatenate([w + end - t.n_rows for w, end, t in zip(wanted, ends, tables, strict=True)])
    joint = [  # one at a time in its full length
        ranks[place].astype(np.float32)
        for column in columns
        for ranks in _ranked(tables, column, real or tables[:1])
    ]
    return np.split(np.column_stack(joint), np.cumsum([len(w) for w in wanted])[:-1])


def _ranked(
    tables: Sequence[Table], column: Column, real: Sequence[Table]
) -> Iterator[npt.NDArray[np.generic]]:
    values = [cells_of(table, column) for table in tables]
    for part in column.kind.parts([cells_of(table, column) for table in real]):
        if isinstance(part, LabelPart):
            yield np.concatenate(part.read(values))
            continue
        found = np.concatenate([part.read(v) for v in values])
        for numbers in found.T if isinstance(part, VectorPart) else [found]:
            yield np.unique(numbers, return_inverse=True)[1]


def numbered_values(tables: Sequence[Table], column: Column) -> tuple[npt.NDArray[np.generic], Codes32]:
    """Distinct plain values of a column over all tables, and the codes of all rows, 0 for a missing cell.

    Values are sorted; labels are objects in standard form. The codes have shape (total rows,).
    """
    from pandas import factorize  # here, since a code location must not load it

    if not isinstance(column.kind.part, NumberPart):
        return _numbered_labels([chunk for t in tables for chunk in t.texts(column.name).chunks])
    plain = np.concatenate([column.kind.plain(t.column(column.name)) for t in tables])
    place, distinct = factorize(plain, sort=True)
    return distinct, (place + 1).astype(np.int32)


def _numbered_labels(texts: Sequence[pa.Array]) -> tuple[npt.NDArray[np.generic], Codes32]:
    """Distinct forms, sorted, and the codes of all rows; a Python object for each form, not for each row."""
    column = pa.chunked_array([t.cast(pa.large_string()) for t in texts], pa.large_string())
    encoded = column_forms(column).combine_chunks().dictionary_encode()
    forms = np.array([*encoded.dictionary.to_pylist()], dtype=object)
    order = np.argsort(forms, kind="stable")
    place = np.zeros(len(forms) + 1, dtype=np.int32)  # the last is that of missing ones
    place[order] = 1 + np.arange(len(forms), dtype=np.int32)
    rows = encoded.indices.fill_null(len(forms)).to_numpy(zero_copy_only=False)
    return forms[order], place[rows]
