"""Rows on a scale that no unit, spelling or code can change: ranks of numbers, frequency order of labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby

import numpy as np

from synth_audit.core.arrays import Codes, Floats
from synth_audit.core.parts import LabelPart, NumberPart, Part
from synth_audit.core.schema import Column
from synth_audit.core.table import Table
from synth_audit.encoding.anchored_parts import varies
from synth_audit.encoding.codes import Wanted, cells_of, codes, wanted_codes, wanted_rows
from synth_audit.kernels.coordinates import MISSING, Coordinates
from synth_audit.kernels.labels import side_by_side

_UNIT = np.sqrt(12.0)
"""Ranks over n are uniform on [0, 1]; times this their standard deviation is 1, as that of other numbers."""

_BEYOND = 2**24
"""Before the codes of labels that have no position: more than any column has."""

FAMILIAR = 0.5
"""A column of which so many rows have labels of train was not recoded, of as many as strangers have."""


@dataclass(frozen=True)
class RankEncoder:
    """Coordinates of each row by where its values stand in a table, not by what they are.

    Numbers become mid-ranks over n, in units of their standard deviation, with 0 and an indicator where they
    are missing; labels become their position when the table's labels are sorted by falling frequency, unless
    half as many rows have labels of the first table as of tables that are ranked in it: then nothing was
    recoded, and labels are what they are, for rare ones swap places by chance, and of labels that hardly two
    rows share each would stand where one of train does. A copy of train that was multiplied, shifted, put on
    a logarithm, recoded or respelt lies where train lies.

    Labels that read as numbers, dates or quantities in train have the ranks of these beside their position,
    each table read under its own convention.

    Columns that are constant in train tell no two of its rows apart and are left out.
    """

    columns: tuple[Column, ...]

    def encode(
        self, scales: Sequence[Table], tables: Sequence[Table], rows: Wanted | None = None
    ) -> list[Coordinates]:
        """Coordinates of ``tables``, each ranked among the rows of the table beside it in ``scales``.

        Args:
            rows: positions of those that are wanted of each table, None for all; all of all if left out.
        """
        wanted = rows or [None] * len(tables)
        parts = [(c, part) for c in self.columns if varies(scales[0], c) for part in _parts(c, scales[0])]
        labels = [(column, part) for column, part in parts if isinstance(part, LabelPart)]
        numbers = [
            (column, place, part, 1 + any(map(partial(_gaps, column, part), (*scales, *tables))))
            for column, place, part in _placed(parts)
        ]
        unlike = np.array([2 * part.weight for _, part in labels])
        placed = []
        places = [_label_places(c, scales, tables) for c, _ in labels]
        for i, (scale, table, some) in enumerate(zip(scales, tables, wanted, strict=True)):
            read = wanted_rows(table, some)
            dense = np.zeros((read.n_rows, 1 + sum(width for *_, width in numbers)))
            start = 1
            for column, place, number, width in numbers:  # each written where it stays: there may be millions
                ranks = _ranks(*_numbers(column, place, number, scale, read))[:, :width]
                dense[:, start : start + width] = np.sqrt(number.weight) * ranks
                start += width
            kept = [wanted_codes([of_tables[i]], [some])[0] for of_tables in places]
            placed.append(Coordinates.of(dense, side_by_side(kept, read.n_rows), unlike))
        return placed


def _parts(column: Column, train: Table) -> Sequence[Part]:
    return column.kind.parts([cells_of(train, column)])


def _gaps(column: Column, part: NumberPart, table: Table) -> bool:
    """Whether numbers may be missing: in labels that are read as numbers too, any may be."""
    return part.weight < 1 or table.n_missing(column.name) > 0


def _placed(parts: Sequence[tuple[Column, Part]]) -> Iterator[tuple[Column, int, NumberPart]]:
    """The numbers, and which one of its column each is."""
    for _, of_column in groupby(parts, key=lambda found: found[0].name):
        numbers = [(column, part) for column, part in of_column if isinstance(part, NumberPart)]
        yield from ((column, place, part) for place, (column, part) in enumerate(numbers))


def _numbers(
    column: Column, place: int, part: NumberPart, scale: Table, table: Table
) -> tuple[Floats, Floats]:
    """Numbers of the two tables, as the first of them reads, or as ``part`` does where it does not."""
    own = [p for p in column.kind.parts([cells_of(scale, column)]) if isinstance(p, NumberPart)]
    part = own[place] if place < len(own) else part
    return part.read(cells_of(scale, column)), part.read(cells_of(table, column))


def _ranks(scale: Floats, values: Floats) -> Floats:
    """Mid-rank over n of each value among ``scale``, centred, in standard deviations; shape (n, 2)."""
    known = np.sort(scale[~np.isnan(scale)])
    missing = np.isnan(values)
    order = np.argsort(values)  # neighbouring values stand in neighbouring memory
    at_most = np.empty(len(values), dtype=np.intp)
    at_most[order] = sum(np.searchsorted(known, values[order], side) for side in ("left", "right"))
    place = at_most / (2 * max(1, len(known))) - 0.5
    return np.column_stack([np.where(missing, 0.0, _UNIT * place), missing]).astype(np.float64)


def _label_places(column: Column, scales: Sequence[Table], tables: Sequence[Table]) -> list[Codes]:
    """Positions of the labels of each table in the order of the first scale, or of its own if recoded."""
    distinct = list({id(table): table for table in (*scales, *tables)}.values())
    joint = dict(zip(map(id, distinct), codes(distinct, column), strict=True))
    first = joint[id(scales[0])]
    pairs = [(joint[id(scale)], joint[id(table)]) for scale, table in zip(scales, tables, strict=True)]
    strangers = [values for scale, values in pairs if scale is first and values is not first]
    usual = min((_known_share(first, values) for values in strangers), default=1.0)
    return [
        _frequency_order(first if _known_share(first, values) >= FAMILIAR * usual else scale, values)
        for scale, values in pairs
    ]


def _known_share(first: Codes, values: Codes) -> float:
    """Share of the values that ``first`` has too; 1 where there are none."""
    known = values[values != MISSING]
    return float(np.isin(known, first).mean()) if len(known) else 1.0


def _frequency_order(scale: Codes, values: Codes) -> Codes:
    """Position of each value among the labels of ``scale``, the most frequent first, shape (n,).

    Labels that ``scale`` lacks follow, each by its own code; a missing value keeps its code.
    """
    n = 1 + max(values.max(initial=MISSING), scale.max(initial=MISSING))
    counts = np.bincount(scale[scale != MISSING], minlength=n)
    order = np.argsort(-counts, kind="stable")
    position = np.empty(n, dtype=np.int64)
    position[order] = np.arange(n)
    position[counts == 0] = _BEYOND + np.flatnonzero(counts == 0)
    return np.where(values == MISSING, MISSING, np.append(position, MISSING)[values])
