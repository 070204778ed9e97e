"""Cells in which the columns of several tables are compared and shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from synth_audit.arrays import Codes, Floats
from synth_audit.encode.codes import codes
from synth_audit.encode.kinds import number_kind
from synth_audit.stats import distributions as dist
from synth_audit.stats.distributions import SortedNumbers
from synth_audit.table.resolution import ValueGrid
from synth_audit.table.schema import Column
from synth_audit.table.table import Table

_MISSING_LABEL = "missing"


@dataclass(frozen=True, eq=False)
class SharedCells:
    """Cells of one column in several tables, the last for missing.

    Attributes:
        codes: the cell of each row, shape (n,) for each table.
        size: how many cells there are; of labels, in which any row lies.
        names: what stands under the bar of each cell, that of missing last, where nothing is missing too.
        ordered: true where neighbours may be joined: cells of numbers, low to high.
        axis: what stands along the axis of the cells.
    """

    codes: tuple[Codes, ...]
    size: int
    names: tuple[str, ...]
    ordered: bool
    axis: str


def shared_cells(
    tables: Sequence[Table], real: Sequence[Table], column: Column, *, most: int, fewest: int
) -> SharedCells:
    """Cells to compare tables in: of numbers by their quantiles in train, one for each label.

    Real rows alone decide which cells of numbers there are. Their names hold rounded edges, each shared by
    enough training rows.

    Args:
        real: tables, train first, in which a cell of numbers should hold ``fewest`` rows.
        most: cells of numbers at most.
    """
    if (kind := number_kind(column)) is None:
        return _label_cells(tables, column)
    numbers = [SortedNumbers.of(t.numbers(column.name)) for t in real]
    edges = tellable_edges(numbers, most, fewest)
    found = tuple(dist.cell_codes(t.numbers(column.name), edges) for t in tables)
    shared = _shared_edges(edges, numbers[0], fewest, kind.edge_grids(edges)) if len(edges) else edges
    names = (*_cell_names(edges, shared, column), _MISSING_LABEL)
    axis = "value, in cells of equal real mass with rounded edges"
    return SharedCells(found, len(names), names, ordered=True, axis=axis)


def _label_cells(tables: Sequence[Table], column: Column) -> SharedCells:
    """One cell for each label of any of the tables, numbered as :func:`.codes.codes` does.

    Of several spellings of a label the most frequent one names it, that of the first table if it has it.
    """
    joint = codes(tables, column)
    last = 1 + max(int(c.max()) for c in joint)
    found = tuple(np.where(c < 0, last, c) for c in joint)
    labels: dict[int, str | None] = {}
    for table, of_table in zip(tables, found, strict=True):
        # The most frequent label of a code first, of equally frequent ones the first met.
        pairs = pa.table({"code": of_table, "label": table.texts(column.name)})
        counted = pairs.group_by(["code", "label"], use_threads=False).aggregate([([], "count_all")])
        order = np.argsort(-counted["count_all"].to_numpy(), kind="stable")[::-1]
        spelt = (counted[name].take(pa.array(order)).to_pylist() for name in ("code", "label"))
        labels = dict(zip(*spelt, strict=True)) | labels
    known = {i: label for i, label in labels.items() if label is not None}
    names = (*(known[i] for i in range(1 + max(known, default=-1))), _MISSING_LABEL)
    size = 1 + max(int(c.max()) for c in found)
    return SharedCells(found, size, names, ordered=False, axis="category")


def tellable_edges(real: Sequence[SortedNumbers], most: int, fewest: int) -> Floats:
    """Inner edges of as many quantile cells of train, at most ``most``, as leave the most to compare.

    Fewer where control is small: of ten cells with too few control rows each, all would be joined.

    Args:
        real: numbers of train, and of control where it is there.
    """
    best, left = np.empty(0), -1
    for n_cells in range(most, 1, -1):
        edges = real[0].quantile_cells(n_cells)
        counts = [v.cell_counts(edges) for v in real]
        told = dist.tellable_cells(counts, fewest, ordered=True)
        if len(told) > left:
            best, left = edges, len(told)
        if len(told) == np.count_nonzero(np.sum(counts, axis=0)):
            break  # none is joined, so fewer cells leave no more
    return best


def _shared_edges(edges: Floats, train: SortedNumbers, fewest: int, grids: Iterable[ValueGrid]) -> Floats:
    """Each edge on the finest grid where ``fewest`` training rows share its place, ascending; else NaN."""
    shared = np.full(len(edges), np.nan)
    for grid in grids:
        near = grid.nearest(edges)
        enough = SortedNumbers.of(grid.nearest(train.values)).held(near) >= fewest
        shared = np.where(np.isnan(shared) & enough, near, shared)
        if not np.isnan(shared).any():
            return np.maximum.accumulate(shared)
    return np.full(len(edges), np.nan)


def _cell_names(edges: Floats, shared: Floats, column: Column) -> list[str]:
    """Names of the cells between edges, by the rounded ones; by number where these are NaN."""
    if not len(edges) or np.isnan(shared).any():
        return [f"cell {i + 1}" for i in range(len(edges) + 1)]
    texts = [column.kind.bound_text(edge) for edge in shared.tolist()]
    spikes = np.nextafter(edges[1:], -np.inf) == edges[:-1]  # cells of one value
    between = [
        b if spike else f"about {b}" if a == b else f"{a} to {b}"
        for (a, b), spike in zip(pairwise(texts), spikes, strict=True)
    ]
    return [f"up to {texts[0]}", *between, f"over {texts[-1]}"]
