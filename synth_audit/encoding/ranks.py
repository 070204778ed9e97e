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

FAMILIAR = 0.5
"""A column of which more rows than this have labels of train was not recoded."""


@dataclass(frozen=True)
class RankEncoder:
    """Coordinates of each row by where its values stand in a table, not by what they are.

    Numbers become mid-ranks over n, in units of their standard deviation, with 0 and an indicator where they
    are missing; labels become their position when the table's labels are sorted by falling frequency, unless
    most rows have labels of the first table: then nothing was recoded, and the order there holds, for rare
    labels swap places by chance. A copy of train that was multiplied, shifted, put on a logarithm, recoded or
    respelt lies where train lies.

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
        for scale, table, some in zip(scales, tables, wanted, strict=True):
            read = wanted_rows(table, some)
            dense = np.zeros((read.n_rows, 1 + sum(width for *_, width in numbers)))
            start = 1
            for column, place, number, width in numbers:  # each written where it stays: there may be millions
                ranks = _ranks(*_numbers(column, place, number, scale, read))[:, :width]
                dense[:, start : start + width] = np.sqrt(number.weight) * ranks
                start += width
            order = [_label_order(*codes([scales[0], scale, table], column)) for column, _ in labels]
            kept = [wanted_codes([places], [some])[0] for places in order]
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


def _label_order(first: Codes, scale: Codes, values: Codes) -> Codes:
    """Position of each value in the order of ``first`` if it has most of them, else in that of ``scale``."""
    known = values[values != MISSING]
    familiar = len(known) == 0 or np.isin(known, first).mean() > FAMILIAR
    return _frequency_order(first if familiar else scale, values)


def _frequency_order(scale: Codes, values: Codes) -> Codes:
    """Position of each value among the labels of ``scale``, the most frequent first, shape (n,).

    Labels that ``scale`` lacks share the last position; a missing value keeps its code.
    """
    counts = np.bincount(
        scale[scale != MISSING], minlength=max(values.max(initial=-1), scale.max(initial=-1)) + 1
    )
    order = np.argsort(-counts, kind="stable")
    position = np.empty(len(counts), dtype=np.int64)
    position[order] = np.minimum(np.arange(len(counts)), (counts > 0).sum())
    return np.where(values == MISSING, MISSING, np.append(position, MISSING)[values])
