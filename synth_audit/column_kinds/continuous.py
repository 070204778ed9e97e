"""Numbers with a fraction."""

from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from synth_audit.column_kinds._bases import Numbers, counts
from synth_audit.table.kind import Clues, KindInfo


@dataclass(frozen=True)
class Continuous(Numbers):
    """Floats and decimals, so that NUMERIC never becomes a label."""

    info: ClassVar[KindInfo] = KindInfo(
        title="Continuous", summary="Numbers with a fraction.", frame_types=("float64",)
    )

    def suits(self, values: pa.ChunkedArray, clues: Clues) -> bool:
        """Any number that is stored with a fraction."""
        return counts(values, clues) and not pa.types.is_integer(values.type)
