"""Kendall's τ between all columns of a table, for pictures of what a generator kept of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synth_audit.core.arrays import Floats
from synth_audit.core.kind_distribution import RankScale
from synth_audit.core.schema import Column
from synth_audit.core.table import Table
from synth_audit.kernels.ordering import kendall

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
        scales: one for each column.
        fewest: rows that a number must rest on.
    """

    columns: tuple[Column, ...]
    scales: tuple[RankScale, ...]
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
        if target is not None:
            response = target.kind.rank_scale(train, target, None, own_order=False).of(train)
        scales = (
            c.kind.rank_scale(train, c, None if c == target else response, own_order=False) for c in columns
        )
        return cls(columns, tuple(scales), fewest)

    def correlations(self, table: Table) -> Correlations:
        """τ of every pair of columns over the rows where both are present.

        It is withheld where a column differs from its most frequent value in fewer than ``fewest`` of them,
        or its ranks could be worked out: where one person stands apart, τ is that person's rank.
        """
        values = [scale.of(table) for scale in self.scales]
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
