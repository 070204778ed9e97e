"""Labels without an order."""

from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from synth_audit.column_kinds._bases import TextLabels, counts, is_number, names_rows
from synth_audit.table.arrow import is_datetime, is_text
from synth_audit.table.kind import Clues, KindInfo


@dataclass(frozen=True)
class Categorical(TextLabels):
    """Text, numbers that are codes, and whatever the plan lists the labels of."""

    info: ClassVar[KindInfo] = KindInfo(
        title="Categorical", summary="Labels without an order.", precedence=10, frame_types=("str",)
    )

    def allows(self, storage: pa.DataType) -> bool:
        """Whatever can be compared for equality."""
        return not pa.types.is_nested(storage)

    def suits(self, values: pa.ChunkedArray, clues: Clues) -> bool:
        """Text; two numbers; declared labels; what has no type; identifiers, compared for equality alone."""
        storage = values.type
        if clues.categories or is_text(storage):
            return True
        if pa.types.is_dictionary(storage) or pa.types.is_null(storage):
            return True
        if is_number(storage):
            return not counts(values, clues)
        return not (clues.released or pa.types.is_nested(storage) or is_datetime(storage))

    def like_identifier(self, distinct: int, present: int, rows: int) -> str:
        """Labels that half of the rows have for themselves look like names."""
        if not names_rows(distinct, present):
            return ""
        return (
            f"has {distinct:,} labels for {present:,} rows, like names or free text; labels are released as "
            "they are, so give it `role: identifier` or group them at the source"
        )
