"""Free text."""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from synth_audit.column_kinds._bases import TextLabels, names_rows
from synth_audit.encode.codes import per_label
from synth_audit.encode.texts import WIDTH
from synth_audit.table.arrow import is_text, value_type
from synth_audit.table.kind import Clues, KindInfo, Part, VectorPart

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

    def _letters_of(self, distinct: int, rows: int, *, read: bool) -> tuple[Part, ...]:
        """Of free text always."""
        return (VectorPart(partial(per_label, self, self._vectors), WIDTH),)
