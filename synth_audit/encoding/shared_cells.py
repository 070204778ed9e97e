"""Cells of one column in several tables, so that their shares can be compared and drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import pyarrow as pa

from synth_audit.core.arrays import Codes, Floats
from synth_audit.core.resolution import ValueGrid
from synth_audit.core.schema import Column
from synth_audit.core.table import Table
from synth_audit.encoding.codes import codes
from synth_audit.kernels import distributions as dist
from synth_audit.kernels.sorted_numbers import SortedNumbers

_MISSING = "missing"


@dataclass(frozen=True, eq=False)
class SharedNumberCells:
    """Quantile cells of train, and the last for missing.

    Attributes:
        names: of each cell, lowest first. They hold rounded edges, each shared by enough training rows.
    """

    codes: tuple[Codes, ...]
    names: tuple[str, ...]
    ordered: bool = True
    axis: str = "value, in cells of equal real mass with rounded edges"

    @classmethod
    def of(
        cls,
        tables: Sequence[Table],
        real: Sequence[Table],
        column: Column,
        most: int,
        fewest: int,
        grids: Callable[[Floats], Iterable[ValueGrid]],
    ) -> SharedNumberCells:
        """At most ``most`` cells, in which ``fewest`` rows of each real table lie where that can be.

        Args:
            grids: for the edges, what they may be rounded to, fine to coarse.
        """
        numbers = [SortedNumbers.of(t.numbers(column.name)) for t in real]
        edges = tellable_edges(numbers, most, fewest)
        found = tuple(dist.cell_codes(t.numbers(column.name), edges) for t in tables)
        shared = _shared_edges(edges, numbers[0], fewest, grids(edges)) if len(edges) else edges
        return cls(found, (*_cell_names(edges, shared, column), _MISSING))

    @property
    def size(self) -> int:
        """Number of cells."""
        return len(self.names)


@dataclass(frozen=True, eq=False)
class SharedLabelCells:
    """One cell for each label of any of the tables, and the last for missing."""

    tables: tuple[Table, ...]
    name: str
    codes: tuple[Codes, ...]
    ordered: bool = False
    axis: str = "category"

    @classmethod
    def of(cls, tables: Sequence[Table], column: Column) -> SharedLabelCells:
        """Numbered as :func:`.codes.codes` does."""
        joint = codes(tables, column)
        last = 1 + max(int(c.max()) for c in joint)
        return cls(tuple(tables), column.name, tuple(np.where(c < 0, last, c) for c in joint))

    @property
    def size(self) -> int:
        """Number of cells in which any row lies."""
        return 1 + max(int(c.max()) for c in self.codes)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The labels; missing has a name where nothing is missing too.

        Of several spellings of a label the most frequent one names it, that of the first table if it has it.
        """
        labels: dict[int, str | None] = {}
        for table, of_table in zip(self.tables, self.codes, strict=True):
            spelt = _spellings(of_table, table.texts(self.name))
            labels = dict(reversed(spelt)) | labels
        known = {i: label for i, label in labels.items() if label is not None}
        return (*(known[i] for i in range(1 + max(known, default=-1))), _MISSING)


def _spellings(found: Codes, texts: pa.ChunkedArray) -> list[tuple[int, str | None]]:
    """Each code with each of its labels, the most frequent first, of equally frequent ones the first met."""
    pairs = pa.table({"code": found, "label": texts}).group_by(["code", "label"], use_threads=False)
    counted = pairs.aggregate([([], "count_all")])
    order = np.argsort(-counted["count_all"].to_numpy(), kind="stable")
    spelt = [*zip(*(counted[name].to_pylist() for name in ("code", "label")), strict=True)]
    return [spelt[i] for i in order.tolist()]


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
