"""Numbers of columns as they stand in tables, and how far those of train spread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from synth_audit.core.arrays import Floats
from synth_audit.core.parts import NumberPart
from synth_audit.core.schema import Column
from synth_audit.core.table import Table
from synth_audit.encoding.codes import cells_of
from synth_audit.kernels.robust_scale import CENTRAL

_FEWEST = 13
"""Different numbers in train: fewer are labels that happen to be numbers."""


@dataclass(frozen=True, eq=False)
class PlainNumbers:
    """One column of several tables.

    Attributes:
        read: the numbers of all rows, one table below the other, NaN where there is none, shape (n,).
        spread: width of the central 90 % of train, of all of it where that is 0.
    """

    name: str
    read: Callable[[], Floats]
    spread: float


def plain_numbers(
    tables: Sequence[Table], columns: Sequence[Column], reference: Sequence[Table]
) -> list[PlainNumbers]:
    """Columns with more than a dozen different numbers in train.

    Args:
        reference: train first, and control, which say how a column is read.
    """
    found: list[PlainNumbers] = []
    for column in columns:
        real = [cells_of(table, column) for table in reference]
        for part in (p for p in column.kind.parts(real) if isinstance(p, NumberPart)):
            train = part.read(real[0])
            train = train[np.isfinite(train)]
            if len(np.unique(train)) >= _FEWEST:
                inner, outer = np.quantile(train, CENTRAL)
                spread = float(outer - inner) or float(train.max()) - float(train.min())
                found.append(PlainNumbers(column.name, partial(_read, part, column, tables), spread))
    return found


def _read(part: NumberPart, column: Column, tables: Sequence[Table]) -> Floats:
    return np.concatenate([part.read(cells_of(table, column)) for table in tables])
