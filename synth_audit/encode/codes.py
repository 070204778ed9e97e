"""Columns as whole numbers: codes that several tables share, places of labels in a list."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from synth_audit.arrays import Bools, Codes, Codes32, Counts, Floats, Labels
from synth_audit.neighbours.coordinates import MISSING
from synth_audit.stats.distributions import entropy
from synth_audit.table.kind import Kind, LabelPart, NumberPart
from synth_audit.table.label_forms import column_forms, standard_forms
from synth_audit.table.schema import Column
from synth_audit.table.table import Table

Scalar = TypeVar("Scalar", bound=np.generic)


def codes(tables: Sequence[Table], column: Column) -> list[Codes]:
    """One column of several tables as shared integer codes: equal values get equal codes.

    Numbers are numbered in their order; labels by how often all the tables together hold them, the most
    frequent first, and in the order of their texts where that is equal.

    Returns:
        One array of shape (n,) per table; values in 0 … k−1, and :data:`MISSING`.
    """
    return column.kind.codes([cells_of(table, column) for table in tables])


def column_entropy(table: Table, column: Column) -> float:
    """Shannon entropy of a column's values in bits, missing counted as one; numbers are not coded for it."""
    if isinstance(part := column.kind.part, NumberPart):
        return entropy(part.read(table.column(column.name)))
    return entropy(codes([table], column)[0])


def cells_of(table: Table, column: Column) -> pa.ChunkedArray:
    """A column as it is stored, the texts of labels each once; see :meth:`Table.coded`."""
    labels = isinstance(column.kind.part, LabelPart)
    return table.coded(column.name) if labels else table.column(column.name)


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Labels of a column in a fixed order, and the place of each row's label among them.

    Two texts of one standard form are the same label, unless ``exact``: then every letter counts, as for
    labels that are drawn again.

    Attributes:
        name: of the column.
        labels: k in all, in standard form unless ``exact``; of equal ones the first has the rows.
    """

    name: str
    labels: tuple[str, ...]
    exact: bool = False

    @classmethod
    def of(cls, name: str, *reference: Table, exact: bool = False) -> Self:
        """All labels of some tables, by their texts."""
        found: set[str | None] = set()
        for table in reference:
            found.update(distinct_labels(table.schema[name].kind, table.column(name), exact=exact)[1])
        return cls(name, tuple(sorted(label for label in found if label is not None)), exact)

    @property
    def array(self) -> Labels:
        """The labels as objects, shape (k,)."""
        return np.array(self.labels, dtype=object)

    def reordered(self, order: Codes) -> "Vocabulary":
        """The labels at these places, shape (k,)."""
        return replace(self, labels=tuple(self.labels[i] for i in order))

    def by_frequency(self, table: Table) -> "Vocabulary":
        """The labels that a table holds most often first, equally frequent ones in their order."""
        return self.reordered(np.argsort(-self.counts(table), kind="stable"))

    def counts(self, table: Table) -> Counts:
        """How many rows hold each label, shape (k,)."""
        return np.bincount(1 + self.places(table), minlength=len(self.labels) + 2)[1:-1]

    def places(self, table: Table) -> Codes:
        """Place of each row's label, shape (n,): k for one that is not among them, −1 where it is missing.

        What stands for the labels, the others and missing in this order is thus indexed by it.
        """
        place: dict[str | None, int] = {label: i for i, label in reversed([*enumerate(self.labels)])}
        kind = table.schema[self.name].kind
        rows, labels = distinct_labels(kind, table.column(self.name), exact=self.exact)
        known = [MISSING if label is None else place.get(label, len(self.labels)) for label in labels]
        found: Codes = np.array([*known, MISSING], dtype=np.int64)[rows]
        return found


def distinct_labels(
    kind: Kind, values: pa.ChunkedArray, *, exact: bool = False
) -> tuple[Codes, list[str | None]]:
    """Each row's place among some labels, :data:`MISSING` where it is null, and these in standard form.

    Values are made labels once each and not row by row, so that a label may occur twice.

    Args:
        exact: labels as they are written.
    """
    if pa.types.is_null(values.type):
        return np.full(len(values), MISSING), []
    encoded = values.unify_dictionaries().combine_chunks()
    if not pa.types.is_dictionary(encoded.type):
        encoded = encoded.dictionary_encode()
    labels = kind.labels(pa.chunked_array([encoded.dictionary]))
    rows = encoded.indices.cast(pa.int64()).fill_null(MISSING).to_numpy(zero_copy_only=False)
    return rows, (labels if exact else column_forms(labels)).to_pylist()


def per_label(
    kind: Kind, read: Callable[[Sequence[str | None]], npt.NDArray[Scalar]], values: pa.ChunkedArray
) -> npt.NDArray[Scalar]:
    """What each label is read as, NaN where it is missing, shape (n, …).

    Args:
        read: takes distinct labels in standard form, None for none.
    """
    rows, labels = distinct_labels(kind, values)
    found = read(labels)
    nothing = np.full((1, *found.shape[1:]), np.nan, found.dtype)
    return np.concatenate([found, nothing])[rows]


def most_frequent(counts: Counts, most: int) -> Bools:
    """Which labels that occur are among so many most frequent ones, shape (k,).

    Equally frequent ones are so all or none, so that no order or spelling of labels decides.
    """
    return counts > (np.sort(counts)[-most - 1] if len(counts) > most else 0)


def by_frequency(joint: Sequence[Codes], counted: Codes) -> list[Codes]:
    """Codes as place by falling frequency in ``counted``, ties by code; a missing value is a label."""
    least = min(int(part.min(initial=0)) for part in joint)
    most = max(int(part.max(initial=0)) for part in joint)
    order = np.argsort(-np.bincount(counted - least, minlength=1 + most - least), kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return [place[part - least] for part in joint]


def few_labels(cells: Codes, most: int) -> Codes:
    """The commonest labels, and one for all others; 0 … most − 1, shape (n,)."""
    return np.minimum(by_frequency([cells], cells)[0], most - 1)


def split_rows(joint: npt.NDArray[Scalar], tables: Sequence[Table]) -> list[npt.NDArray[Scalar]]:
    """Rows of several tables, one below the other, as one array per table."""
    ends = np.cumsum([t.n_rows for t in tables])[:-1]
    return list(np.split(joint, ends))


def coded(table: Table, columns: Sequence[Column]) -> Floats:
    """A table as numbers, shape (n, C): labels as position among the column's categories, missing as NaN.

    Labels of one standard form get one position; one that is none of the categories that after the last.
    """
    rows = np.empty((table.n_rows, len(columns)))
    for j, column in enumerate(columns):
        part = column.kind.part
        if isinstance(part, NumberPart):
            rows[:, j] = part.read(table.column(column.name))
        else:
            categories = tuple(form for form in standard_forms(column.categories) if form is not None)
            places = Vocabulary(column.name, categories).places(table)
            rows[:, j] = np.where(places == MISSING, np.nan, places)
    return rows


def label_counts(columns: Sequence[Column]) -> list[int | None]:
    """How many categories each column has; None for numbers."""
    return [None if isinstance(c.kind.part, NumberPart) else len(c.categories) for c in columns]


def numbered_values(tables: Sequence[Table], column: Column) -> tuple[npt.NDArray[np.generic], Codes32]:
    """Distinct plain values of a column over all tables, and the codes of all rows, 0 for a missing cell.

    Values are sorted; labels are objects in standard form. The codes have shape (total rows,).
    """
    from pandas import factorize  # here, since a code location must not load it

    if not isinstance(column.kind.part, NumberPart):
        vocabulary = Vocabulary.of(column.name, *tables)
        places = np.concatenate([vocabulary.places(table) for table in tables])
        return vocabulary.array, (1 + places).astype(np.int32)
    place, distinct = factorize(_plain(tables, column), sort=True)
    return distinct, (place + 1).astype(np.int32)


def distinct_numbers(tables: Sequence[Table], column: Column) -> Floats:
    """The distinct numbers of a column over all tables, ascending, as :func:`numbered_values` has them."""
    plain = _plain(tables, column)
    return np.unique(plain[~np.isnan(plain)])


def _plain(tables: Sequence[Table], column: Column) -> npt.NDArray[Any]:
    """Plain values of a column, the tables one below the other."""
    return np.concatenate([table.plain(column.name) for table in tables])


def labels_that_fit(counts: Sequence[int], room: int, most: int) -> int:
    """The largest number of labels, at most ``most``, that every column can keep in ``room``; at least 1.

    Args:
        counts: labels of each column, of which it keeps all if it has no more.
    """
    kept = most
    while kept > 1 and sum(min(n, kept) for n in counts) > room:
        kept -= 1
    return max(kept, 1)
