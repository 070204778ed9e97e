"""Tables as small integers with what they stand for, so that predicates are ranges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from synth_audit.core.arrays import Codes32
from synth_audit.core.kind import Domain
from synth_audit.core.parts import NumberPart
from synth_audit.core.schema import Column
from synth_audit.core.table import Table
from synth_audit.core.text_form import standard_form, standard_forms
from synth_audit.kernels.predicates import CodedRows, ColumnCodebook


def codebook(tables: Sequence[Table], columns: Sequence[Column]) -> tuple[ColumnCodebook, list[CodedRows]]:
    """Number the values of several tables alike and prepare each table for matching.

    Numbers are compared as float64, datetimes in microseconds; NaN and null are missing.

    Raises:
        ValueError: no column.
    """
    if not columns:
        raise ValueError("predicates need a column")
    values, numbered = zip(*(_numbered(tables, column) for column in columns), strict=True)
    ends = np.cumsum([t.n_rows for t in tables])[:-1]
    lexicon = ColumnCodebook(
        names=tuple(c.name for c in columns),
        numeric=tuple(isinstance(c.kind.part, NumberPart) for c in columns),
        domains=tuple(map(_domain, columns)),
        values=tuple(values),
    )
    lasts = [lexicon.last(j) for j in range(len(columns))]
    parts = np.split(np.array(numbered), ends, axis=1)
    return lexicon, [CodedRows.of(np.ascontiguousarray(part), lasts) for part in parts]


def _numbered(tables: Sequence[Table], column: Column) -> tuple[npt.NDArray[np.generic], Codes32]:
    """Distinct plain values of a column over all tables, labels in standard form, and the codes of all rows,
    shape (total,)."""
    from pandas import factorize  # here, since a code location must not load it

    plain = np.concatenate([column.kind.plain(t.column(column.name)) for t in tables])
    if not isinstance(column.kind.part, NumberPart):
        plain = np.array(standard_forms(plain.tolist()), dtype=object)
    place, distinct = factorize(plain, sort=True)
    return distinct, (place + 1).astype(np.int32)


def _domain(column: Column) -> Domain:
    """What may occur, labels in standard form."""
    forms = dict.fromkeys(map(standard_form, column.domain.categories or ()))
    return replace(column.domain, categories=tuple(forms))
