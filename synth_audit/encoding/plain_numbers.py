"""Numbers of columns as they stand in tables, and where those of train lie."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from synth_audit.core.arrays import Floats
from synth_audit.core.parts import NumberPart, VectorPart
from synth_audit.core.schema import Column
from synth_audit.core.table import Table
from synth_audit.core.text_form import column_forms
from synth_audit.encoding.codes import cells_of
from synth_audit.encoding.composites import form_of, numbers_of_texts
from synth_audit.kernels.robust_scale import CENTRAL

_FEWEST = 13
"""Different numbers in train: fewer are labels that happen to be numbers."""

_OFTEN = 0.5
"""Share of the texts that have a number at a place, for it to be read there."""

_OF_A_FORM = 50
"""Real texts that stand round their number alike, as with one unit, for it to be read among theirs."""


@dataclass(frozen=True, eq=False)
class PlainNumbers:
    """One column of several tables.

    Attributes:
        read: the numbers of all rows, one table below the other, NaN where there is none, shape (n,).
        low, high: the least and the largest in train.
        spread: width of the central 90 % of train, of all of it where that is 0.
        unit: of the numbers; see :class:`NumberPart`.
    """

    name: str
    read: Callable[[], Floats]
    low: float
    high: float
    spread: float
    unit: str | None = ""


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
            read = partial(_read, part, column, tables)
            found.extend(_plain(column.name, part.read(real[0]), read, part.unit))
    return found


def numbers_in_text(
    tables: Sequence[Table], columns: Sequence[Column], reference: Sequence[Table]
) -> list[PlainNumbers]:
    """Numbers within texts by their place among those of the text, six at most; likewise.

    Of free text and of labels so many that they are compared by their letters. Where texts of one number
    stand round it in two ways or more, as with units, it is also read by its place among those of its way.
    """
    found: list[PlainNumbers] = []
    for column in columns:
        real = [cells_of(table, column) for table in reference]
        if any(isinstance(p, VectorPart) for p in column.kind.parts(real)):
            train = numbers_of_texts(column_forms(column.kind.labels(real[0])).to_pylist())
            for place, values in enumerate(train.T):
                if np.isfinite(values).mean() >= _OFTEN:
                    read = partial(_read_texts, column, tables, place)
                    found.extend(_plain(column.name, values, read, None))
            if references := _by_form(real, column):
                read = partial(_read_places, column, tables, references)
                found.extend(_plain(column.name, _places(real[0], column, references), read, None))
    return found


def _plain(name: str, train: Floats, read: Callable[[], Floats], unit: str | None) -> Iterator[PlainNumbers]:
    train = train[np.isfinite(train)]
    if len(np.unique(train)) >= _FEWEST:
        low, high = float(train.min()), float(train.max())
        inner, outer = np.quantile(train, CENTRAL)
        yield PlainNumbers(name, read, low, high, float(outer - inner) or high - low, unit)


def _read_texts(column: Column, tables: Sequence[Table], place: int) -> Floats:
    texts = [column_forms(column.kind.labels(cells_of(table, column))).to_pylist() for table in tables]
    return np.concatenate([numbers_of_texts(part)[:, place] for part in texts])


def _by_form(real: Sequence[pa.ChunkedArray], column: Column) -> dict[str, Floats]:
    """Real numbers in order, by what stands round them; empty with fewer than two ways of most texts.

    Of train and control alike: among train's alone, only strangers' numbers would lie between two of them.
    """
    of_tables = [column_forms(column.kind.labels(cells)).to_pylist() for cells in real]
    texts = [x for of_table in of_tables for x in of_table if x is not None]
    forms = Counter(map(form_of, texts))
    often = {form for form, n in forms.items() if n >= _OF_A_FORM and form.count("#") == 1}
    if len(often) < 2 or sum(forms[form] for form in often) < _OFTEN * len(texts):
        return {}
    numbers = numbers_of_texts(texts)[:, 0]
    of = np.array([form_of(x) for x in texts], dtype=object)
    return {form: np.sort(numbers[of == form]) for form in often}


def _places(cells: pa.ChunkedArray, column: Column, references: Mapping[str, Floats]) -> Floats:
    """Places of the numbers of texts among real ones that stand alike, from 0 to 1."""
    texts = column_forms(column.kind.labels(cells)).to_pylist()
    numbers, found = numbers_of_texts(texts)[:, 0], np.full(len(texts), np.nan)
    of = np.array(["" if x is None else form_of(x) for x in texts], dtype=object)
    for form, order in references.items():
        rows = of == form
        low, high = (np.searchsorted(order, numbers[rows], side) for side in ("left", "right"))
        found[rows] = (low + high) / (2 * len(order))
    return found


def _read_places(column: Column, tables: Sequence[Table], references: Mapping[str, Floats]) -> Floats:
    return np.concatenate([_places(cells_of(table, column), column, references) for table in tables])


def _read(part: NumberPart, column: Column, tables: Sequence[Table]) -> Floats:
    return np.concatenate([part.read(cells_of(table, column)) for table in tables])
