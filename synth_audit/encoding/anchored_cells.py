"""Cells of one column that train fixes, so that any table can be cross-tabulated on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc

from synth_audit.core.arrays import Codes, Floats
from synth_audit.core.table import Table
from synth_audit.core.text_form import column_forms
from synth_audit.kernels.distributions import cell_codes, quantile_cells

_RARER, _UNSEEN, _MISSING = 0, 1, 2
"""Cells after those of the labels: rarer labels of train, labels that train lacks, no value."""


@dataclass(frozen=True, eq=False)
class NumberCells:
    """Cells of about equal mass in train, and a last one of missing numbers, which correlations pass over.

    Attributes:
        edges: inner edges of the cells, ascending.
    """

    name: str
    edges: Floats

    @classmethod
    def on(cls, train: Table, name: str, most: int) -> NumberCells:
        """At most so many cells."""
        return cls(name, quantile_cells(train.numbers(name), most))

    @property
    def size(self) -> int:
        """Number of cells."""
        return len(self.edges) + 2

    @property
    def not_compared(self) -> int:
        """The cell of missing numbers."""
        return self.size - 1

    def of(self, table: Table) -> Codes:
        """The cell of each row, shape (n,)."""
        return cell_codes(table.numbers(self.name), self.edges)


@dataclass(frozen=True, eq=False)
class LabelCells:
    """A cell for each of the most frequent labels of train, one for its others, one for labels that train
    lacks, and one for missing.

    Attributes:
        places: cell of each frequent label.
        rarer: the other labels of train.
    """

    name: str
    places: Mapping[str, int]
    rarer: frozenset[str]
    not_compared: int = -1

    @classmethod
    def on(cls, train: Table, name: str, most: int) -> LabelCells:
        """At most so many labels have a cell of their own."""
        labels, held = pc.value_counts(column_forms(train.texts(name))).flatten()
        counts = dict(zip(labels.to_pylist(), held.to_pylist(), strict=True))
        counts.pop(None, None)
        frequent = _frequent(counts, most)
        return cls(name, {label: i for i, label in enumerate(sorted(frequent))}, frozenset(counts) - frequent)

    @property
    def size(self) -> int:
        """Number of cells."""
        return len(self.places) + _MISSING + 1

    def of(self, table: Table) -> Codes:
        """The cell of each row, shape (n,)."""
        first = len(self.places)
        place = {**self.places, **dict.fromkeys(self.rarer, first + _RARER)}
        coded = column_forms(table.texts(self.name)).combine_chunks().dictionary_encode()
        cells = [place.get(label, first + _UNSEEN) for label in coded.dictionary.to_pylist()]
        numbers = coded.indices.fill_null(len(cells)).to_numpy()
        found: Codes = np.array([*cells, first + _MISSING], dtype=np.int64)[numbers]
        return found


def _frequent(counts: Mapping[str, int], most: int) -> frozenset[str]:
    """At most so many of the most frequent labels; of equally frequent ones all or none, so that no order or
    spelling of labels decides."""
    ordered = sorted(counts.values(), reverse=True)
    fewest = ordered[most] + 1 if len(ordered) > most else 0
    return frozenset(label for label, n in counts.items() if n >= fewest)
