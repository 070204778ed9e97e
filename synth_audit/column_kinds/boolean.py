"""True and false."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from synth_audit.arrays import Floats, Labels
from synth_audit.column_kinds._bases import TextLabels, is_number
from synth_audit.table.kind import Clues, Domain, KindInfo

_MEANT = {"1": "true", "0": "false"}
_AS_NUMBER = {label: digit for digit, label in _MEANT.items()}


@dataclass(frozen=True)
class Boolean(TextLabels):
    """The labels ``true`` and ``false``; stored as numbers, 1 and 0."""

    info: ClassVar[KindInfo] = KindInfo(
        title="Boolean", summary="True or false.", precedence=20, frame_types=("str",)
    )
    fixed_domain = Domain(categories=("false", "true"))

    def allows(self, storage: pa.DataType) -> bool:
        """Booleans, numbers, and what has no type."""
        return bool(pa.types.is_boolean(storage) or pa.types.is_null(storage)) or is_number(storage)

    def suits(self, values: pa.ChunkedArray, clues: Clues) -> bool:
        """What is stored as one."""
        return bool(pa.types.is_boolean(values.type))

    def labels(self, values: pa.ChunkedArray) -> pa.ChunkedArray:
        """A 1 reads as true and a 0 as false."""
        texts = super().labels(values)
        for digit, label in _MEANT.items():
            texts = pc.if_else(pc.equal(texts, digit), label, texts)
        return texts

    def label_meant(self, text: str) -> str:
        """Any spelling of the two."""
        return _MEANT.get(text, text.casefold())

    def stored(self, values: Floats | Labels, storage: pa.DataType) -> pa.Array:
        """As 1 and 0 in a type for numbers."""
        if not pa.types.is_boolean(storage):
            values = np.array([_AS_NUMBER.get(x, x) for x in values], dtype=object)
        return super().stored(values, storage)
