"""Columns as cells that several tables share: to count and to cross-tabulate."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from synth_audit.arrays import Bools, Codes, Floats
from synth_audit.column_kinds import number_kind
from synth_audit.encode.codes import Vocabulary, most_frequent
from synth_audit.stats.association import JackknifeRows, rows_apart
from synth_audit.stats.distributions import SortedNumbers, cell_codes
from synth_audit.table.schema import Column, quantitative
from synth_audit.table.table import Table


@dataclass(frozen=True, eq=False)
class AnchoredCells:
    """Cells of the values of one column, which train fixes, so that tables can be cross-tabulated alike.

    Attributes:
        size: how many there are at most, that of missing values among them.
        of: the cell of each row of a table, shape (n,), in 0 … size − 1.
        not_compared: the cell that correlations pass over, −1 for none.
    """

    size: int
    of: Callable[[Table], Codes]
    not_compared: int = -1


def anchored_cells(train: Table, column: Column, *, most_cells: int, most_labels: int) -> AnchoredCells:
    """Cells of numbers of about equal mass in train, and a last one of missing ones; or of labels.

    A cell for each of the most frequent labels of train, one for its others, one for labels that train lacks,
    and one for missing. Correlations pass over missing numbers.
    """
    name = column.name
    if number_kind(column):
        edges = SortedNumbers.of(train.numbers(name)).quantile_cells(most_cells)
        size = len(edges) + 2
        return AnchoredCells(size, lambda table: cell_codes(table.numbers(name), edges), size - 1)
    vocabulary = Vocabulary.of(name, train)
    frequent = most_frequent(vocabulary.counts(train), most_labels)
    rarer = int(frequent.sum())
    cells = np.append(np.where(frequent, np.cumsum(frequent) - 1, rarer), [rarer + 1, rarer + 2])
    return AnchoredCells(rarer + 3, lambda table: cells[vocabulary.places(table)])


def column_grouping(train: Table, column: Column, *, bins: int) -> AnchoredCells:
    """Quantile bins of numbers, of about equal mass in train, or its labels by their texts.

    Cell 0 is of missing values, the last of labels that train lacks.
    """
    name = column.name
    if not number_kind(column):
        vocabulary = Vocabulary.of(name, train)
        return AnchoredCells(len(vocabulary.labels) + 2, lambda table: 1 + vocabulary.places(table))
    values = train.numbers(name)[~train.missing(name)]
    edges = np.unique(np.quantile(values, np.arange(1, bins) / bins)) if len(values) else np.empty(0)

    def group(table: Table) -> Codes:
        bin_of = 1 + np.searchsorted(edges, table.numbers(name), side="right")
        return np.where(table.missing(name), 0, bin_of)

    return AnchoredCells(len(edges) + 2, group)


@dataclass(frozen=True, eq=False)
class ColumnCells:
    """How each column becomes cells.

    A number falls into one of at most so many cells of about equal mass in train, or is missing. A label that
    is among the most frequent ones of train has its own cell, others of train share one, labels that train
    lacks share one, and missing is one.
    """

    columns: tuple[Column, ...]
    cells: tuple[AnchoredCells, ...]

    @classmethod
    def of(cls, train: Table, columns: Sequence[Column], most_cells: int, most_labels: int) -> "ColumnCells":
        """Read the scale off train."""
        cells = (anchored_cells(train, c, most_cells=most_cells, most_labels=most_labels) for c in columns)
        return cls(tuple(columns), tuple(cells))

    @property
    def numeric(self) -> Bools:
        """Which columns are measured on a quantitative scale, shape (d,)."""
        return np.isin([c.name for c in self.columns], [c.name for c in quantitative(self.columns)])

    @property
    def sizes(self) -> Codes:
        """Number of cells of each column, shape (d,)."""
        return np.array([cells.size for cells in self.cells])

    @property
    def not_compared(self) -> Codes:
        """The cell of missing numbers, which correlations pass over; −1 for labels; shape (d,)."""
        return np.array([cells.not_compared for cells in self.cells])

    def values(self, table: Table, *, missing_counts: bool) -> Iterator[Codes | Floats]:
        """One column after the other: its cells, or as numbers what correlations compare.

        Args:
            missing_counts: cells of numbers too, of which a missing number is one.
        """
        for column, cells, number in zip(self.columns, self.cells, self.numeric, strict=True):
            yield table.numbers(column.name) if number and not missing_counts else cells.of(table)

    def rows(self, table: Table, n_groups: int = 1, rng: np.random.Generator | None = None) -> JackknifeRows:
        """The rows of a table, in groups to be left out once each."""
        cells = np.column_stack([cells.of(table) for cells in self.cells])
        numbers = [table.numbers(c.name) for c in quantitative(self.columns)]
        values = np.column_stack([np.empty((table.n_rows, 0)), *numbers])
        return JackknifeRows.of(cells, self.sizes, values, n_groups, rng)


def told_pairs(
    rows: JackknifeRows, scale: ColumnCells, fewest: int, *, missing_counts: bool = False
) -> Bools:
    """Pairs in each column of which at least so many rows differ from the fullest cell, shape (d, d).

    An association that rests on fewer says nothing of the columns, and much of those few people.

    Args:
        missing_counts: a missing number is a cell, as mutual information has it; else the rows in which both
            columns have a value are asked, as correlations do.
    """
    present = np.ones(rows.cells.shape, dtype=bool)
    not_compared = np.full(len(scale.columns), -1)
    if not missing_counts:
        present[:, scale.numeric] = ~np.isnan(rows.numbers)
        not_compared = scale.not_compared
    apart = rows_apart(rows, present, not_compared)
    told = np.minimum(apart, apart.T) >= fewest
    np.fill_diagonal(told, False)
    return told


def readable_pairs(columns: Iterable[Codes | Floats], suppression: int) -> Bools:
    """Pairs whose association gives away a count of few rows, shape (d, d).

    Of two columns with two levels each, what one knows of either column leaves one count free in the table of
    both, so that their association tells all four; they are withheld where any is 1 … suppression − 1.

    Args:
        columns: values of each, such as :meth:`ColumnCells.values` gives them; one is held at a time.
    """
    halves, d = {}, 0
    for i, values in enumerate(columns):
        levels = np.unique(values[~np.isnan(values)])
        if len(levels) == 2:
            halves[i] = [values == level for level in levels]
        d = i + 1
    found = np.zeros((d, d), dtype=bool)
    for i, j in combinations(halves, 2):
        counts = [int(np.sum(a & b)) for a in halves[i] for b in halves[j]]
        found[i, j] = found[j, i] = any(0 < n < suppression for n in counts)
    return found
