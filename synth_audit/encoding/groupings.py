"""Groups of rows by one column, as train has them: its labels, or quantile bins of its numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from synth_audit.core.arrays import Bools, Codes, Floats
from synth_audit.core.table import Table
from synth_audit.encoding.label_forms import label_forms


@dataclass(frozen=True, eq=False)
class NumberGroups:
    """Quantile bins of train; group 0 is of missing values.

    Attributes:
        edges: inner edges of the bins, ascending.
    """

    name: str
    edges: Floats

    @classmethod
    def on(cls, train: Table, name: str, bins: int) -> NumberGroups:
        """At most so many bins, of about equal mass."""
        values = train.numbers(name)[~train.missing(name)]
        cuts = np.quantile(values, np.arange(1, bins) / bins) if len(values) else np.empty(0)
        return cls(name, np.unique(cuts))

    @property
    def size(self) -> int:
        """How many groups there are at most."""
        return len(self.edges) + 2

    def of(self, table: Table) -> Codes:
        """The group of each row, shape (n,)."""
        found, known = _missing_first(table, self.name)
        found[known] = 1 + np.searchsorted(self.edges, table.numbers(self.name)[known], side="right")
        return found


@dataclass(frozen=True, eq=False)
class LabelGroups:
    """Labels of train, ascending; group 0 is of missing values, the last one of labels that train lacks."""

    name: str
    labels: npt.NDArray[np.str_]

    @classmethod
    def on(cls, train: Table, name: str) -> LabelGroups:
        """Read off train."""
        return cls(name, np.unique(label_forms(train, name)[~train.missing(name)].astype(str)))

    @property
    def size(self) -> int:
        """How many groups there are at most."""
        return len(self.labels) + 2

    def of(self, table: Table) -> Codes:
        """The group of each row, shape (n,)."""
        found, known = _missing_first(table, self.name)
        values = label_forms(table, self.name)[known].astype(str)
        places = np.searchsorted(self.labels, values)
        same = self.labels[np.minimum(places, len(self.labels) - 1)] == values if len(self.labels) else False
        found[known] = np.where(same, 1 + places, self.size - 1)
        return found


def _missing_first(table: Table, name: str) -> tuple[Codes, Bools]:
    """Group 0 for every row, shape (n,), and which rows have a value to be grouped by."""
    return np.zeros(table.n_rows, dtype=np.int64), ~table.missing(name)
