"""Tables as small integers with what they stand for, so that predicates are ranges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from synth_audit.core.arrays import Codes32
from synth_audit.core.kind import Domain
from synth_audit.core.parts import NumberPart
from synth_audit.core.schema import Column
from synth_audit.core.table import Table
from synth_audit.core.text_form import column_forms, standard_form
from synth_audit.kernels.predicates import ColumnCodebook


def codebook(tables: Sequence[Table], columns: Sequence[Column]) -> tuple[ColumnCodebook, list[Codes32]]:
    """Number the values of several tables alike: what the codes mean, and those of each table, shape (d, n).

    Numbers are compared as float64, datetimes in microseconds; NaN and null are missing.

    Raises:
        ValueError: no column.
    """
    if not columns:
        raise ValueError("predicates need a column")
    values, codes = [], [np.empty((len(columns), t.n_rows), dtype=np.int32) for t in tables]
    ends = np.cumsum([t.n_rows for t in tables])[:-1]
    for j, column in enumerate(columns):  # one at a time beside the codes, which are all that stays
        distinct, numbered = _numbered(tables, column)
        values.append(distinct)
        for rows, part in zip(codes, np.split(numbered, ends), strict=True):
            rows[j] = part
    lexicon = ColumnCodebook(
        names=tuple(c.name for c in columns),
        numeric=tuple(isinstance(c.kind.part, NumberPart) for c in columns),
        domains=tuple(map(_domain, columns)),
        values=tuple(values),
    )
    return lexicon, codes


def _numbered(tables: Sequence[Table], column: Column) -> tuple[npt.NDArray[np.generic], Codes32]:
    """Distinct plain values of a column over all tables, labels in standard form, and the codes of all rows,
    shape (total,)."""
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


def _domain(column: Column) -> Domain:
    """What may occur, labels in standard form."""
    forms = dict.fromkeys(map(standard_form, column.domain.categories or ()))
    return replace(column.domain, categories=tuple(forms))
