"""Kendall's τ between all columns of a table, for pictures of what a generator kept of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synth_audit.core.arrays import Codes, Floats, Labels
from synth_audit.core.schema import Column
from synth_audit.core.table import Table
from synth_audit.kernels.ordering import kendall, scale_by_frequency, scale_by_response

MOST_COLUMNS = 40
"""More than these make no picture: the target, the sensitive columns and the first of the others stay."""

DIGITS = 2
"""Decimals that are kept: enough for a picture."""


@dataclass(frozen=True)
class Correlations:
    """A symmetric matrix.

    Attributes:
        names: columns in the table's order.
        values: Kendall's τ-b in [−1, 1], one row per column, 1 on the diagonal; NaN where it would rest on
            fewer rows than may be told of.
    """

    names: tuple[str, ...] = ()
    values: tuple[tuple[float, ...], ...] = ()


NO_CORRELATIONS = Correlations()
"""Where there is no table."""


@dataclass(frozen=True, eq=False)
class Scales:
    """How columns become numbers, fixed by the training rows, so that tables can be compared.

    Attributes:
        labels: for each column of labels, its labels in the order of their codes.
        fewest: rows that a number must rest on.
    """

    columns: tuple[Column, ...]
    labels: dict[str, list[str]]
    fewest: int

    @classmethod
    def of(cls, train: Table, fewest: int) -> Scales:
        """Labels sorted by the mean rank of the target in each; without a target, and for the target's own,
        by falling frequency. Nominal labels have no order of their own: on this one τ shows most of what
        they say about the target.
        """
        columns = train.schema.leading_features(MOST_COLUMNS)
        target = train.schema.target
        response = None
        labels: dict[str, list[str]] = {}
        if target is not None:
            if not target.kind.numeric:
                labels[target.name] = _sorted_labels(train, target, None)
            response = _numbers(train, target, labels)
        for column in columns:
            if not column.kind.numeric and column.name not in labels:
                labels[column.name] = _sorted_labels(train, column, response)
        return cls(columns, labels, fewest)

    def correlations(self, table: Table) -> Correlations:
        """τ of every pair of columns over the rows where both are present.

        It is withheld where a column differs from its most frequent value in fewer than ``fewest`` of them,
        or its ranks could be worked out: where one person stands apart, τ is that person's rank.
        """
        values = [_numbers(table, c, self.labels) for c in self.columns]
        found = np.eye(len(values))
        for i, a in enumerate(values):
            for j in range(i):
                found[i, j] = found[j, i] = self._told(a, values[j])
        return Correlations(tuple(c.name for c in self.columns), tuple(map(tuple, found.tolist())))

    def _told(self, a: Floats, b: Floats) -> float:
        both = ~(np.isnan(a) | np.isnan(b))
        if min(_apart(a[both]), _apart(b[both])) < self.fewest:
            return float("nan")
        return round(kendall(a, b), DIGITS)


def _apart(values: Floats) -> int:
    """Rows that do not hold the most frequent value."""
    _, counts = np.unique(values, return_counts=True)
    return len(values) - int(counts.max(initial=0))


def _sorted_labels(train: Table, column: Column, response: Floats | None) -> list[str]:
    texts = train.labels(column.name)
    known = sorted({x for x in texts if x is not None})
    codes = _codes(texts, known)
    n = len(known)
    place = scale_by_frequency(codes, n) if response is None else scale_by_response(codes, n, response)
    return [known[i] for i in np.argsort(place)]


def _numbers(table: Table, column: Column, labels: dict[str, list[str]]) -> Floats:
    """A column as float64, NaN where it is missing or holds a label that train lacks; shape (n,)."""
    if column.kind.numeric:
        return table.numbers(column.name)
    codes = _codes(table.labels(column.name), labels[column.name])
    return np.where(codes < 0, np.nan, codes.astype(np.float64))


def _codes(texts: Labels, known: list[str]) -> Codes:
    place = {label: i for i, label in enumerate(known)}
    return np.fromiter((place.get(x, -1) for x in texts), dtype=np.intp, count=len(texts))
