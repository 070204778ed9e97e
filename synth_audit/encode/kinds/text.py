"""Free text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from synth_audit.arrays import Positions
from synth_audit.encode.kinds._labels import TextLabels, names_rows
from synth_audit.encode.texts import WIDTH
from synth_audit.table.arrow import is_text, value_type
from synth_audit.table.kind import Clues, KindInfo, Part, VectorPart
from synth_audit.table.schema import Column
from synth_audit.table.table import Table

_FEWEST_ROWS = 20
"""Fewer rows than this have too few labels to tell text from categories."""

_FEWEST_WORDS = 3
"""Half of the texts have at least so many words; names and codes have fewer."""


@dataclass(frozen=True)
class Text(TextLabels):
    """Sentences, notes, addresses: equal or not as labels are, and near where they share most letters."""

    info: ClassVar[KindInfo] = KindInfo(
        title="Text", summary="Free text, compared by its letters.", precedence=15, frame_types=("str",)
    )

    as_it_is = True

    def allows(self, storage: pa.DataType) -> bool:
        """Text, and what has no type."""
        return is_text(value_type(storage)) or bool(pa.types.is_null(storage))

    def suits(self, values: pa.ChunkedArray, clues: Clues) -> bool:
        """Text of several words of which half of the rows have one of their own, unless the plan lists its
        labels or withholds it."""
        if clues.categories or clues.ranked or not clues.released or not self.allows(values.type):
            return False
        texts = self.labels(values)
        present = len(texts) - texts.null_count
        if present < _FEWEST_ROWS or not names_rows(pc.count_distinct(texts).as_py(), present):
            return False
        words = pc.count_substring_regex(pc.utf8_trim_whitespace(texts), pattern=r"\s+")
        return bool(pc.quantile(words, q=0.5, interpolation="lower")[0].as_py() + 1 >= _FEWEST_WORDS)

    def like_identifier(self, distinct: int, present: int, rows: int) -> str:
        """Text that half of the rows have for themselves may name them."""
        if not names_rows(distinct, present):
            return ""
        return (
            "holds free text of people's own; it leaves only where the plan says `release_text: true`, so "
            "give it `role: identifier` or drop it at the source"
        )

    def outlying(self, table: Table, column: Column, tail: float) -> Positions:
        """Rows whose letters are the least like those of all: their vectors are farther from the mean vector
        than the quantile ``1 − tail``. Most texts occur once, so that how often says nothing."""
        vectors = self._vectors(table.column(column.name)).astype(float)
        known = ~np.isnan(vectors[:, 0])
        if not known.any():
            return np.empty(0, dtype=np.intp)
        far = np.full(len(vectors), -np.inf)
        far[known] = np.linalg.norm(vectors[known] - vectors[known].mean(axis=0), axis=1)
        return np.flatnonzero(far > np.quantile(far[known], 1 - tail))

    def _letters_of(self, distinct: int, rows: int, *, read: bool) -> tuple[Part, ...]:
        """Of free text always."""
        return (VectorPart(self._vectors, WIDTH),)
