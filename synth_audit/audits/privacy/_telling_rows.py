"""How much it tells that two rows are equal: little where strangers' rows are so by nature."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from synth_audit.core.arrays import Codes, Codes32, Floats
from synth_audit.core.equal_rows import NearRows, RowKeys
from synth_audit.core.schema import Column
from synth_audit.core.table import Table
from synth_audit.encoding.codes import codes
from synth_audit.encoding.row_groups import split_rows
from synth_audit.kernels.coordinates import MISSING

DENSE = 0.01
"""Share of control rows that equal a training row, above which it is asked how much that tells."""

_COPIED = 0.05
"""The share of copied people of whom the weights tell most."""

_MOST_CONTROL = 5_000
"""With more control rows the natural rate is known well enough without weights."""


@dataclass(frozen=True)
class Telling:
    """The weight of each group of equal rows, shape (groups,), and its mean over training rows."""

    weights: Floats
    mean: float

    @classmethod
    def alike(cls, groups: Sequence[Codes]) -> Telling:
        """Every row tells the same."""
        return cls(np.ones(1 + max(int(g.max(initial=-1)) for g in groups)), 1.0)

    def error(self, train: Codes, control: Codes) -> float:
        """The standard error of the natural rate, from real rows alone; of one more equal row at least."""
        hit = self.weights[control[np.isin(control, train)]]
        return float(np.sqrt(np.square(hit).sum() + 1) / (len(control) * self.mean))


@dataclass(frozen=True, eq=False)
class CodedOnce:
    """Train, release and control by codes, each column coded once for all choices of columns.

    Attributes:
        tables: these three. known: codes from 0 on that the tables share, one below the other, by column.
    """

    tables: Sequence[Table]
    known: dict[str, Codes32] = field(default_factory=dict)

    def groups(self, columns: Sequence[Column]) -> list[Codes]:
        """Numbers that rows which agree in some columns share, of all three tables; shape (n,) each."""
        whole = RowKeys.of([self._of(c) for c in columns]).whole
        return split_rows(np.unique(whole, return_inverse=True)[1].astype(np.int64), self.tables)

    def real(self, columns: Sequence[Column]) -> list[Codes32]:
        """Codes of some columns of train and control."""
        n, k = self.tables[0].n_rows, self.tables[2].n_rows
        return [np.concatenate([codes[:n], codes[len(codes) - k :]]) for codes in map(self._of, columns)]

    def _of(self, column: Column) -> Codes32:
        if column.name not in self.known:
            joint = np.concatenate(codes(self.tables, column))
            self.known[column.name] = joint.astype(np.int32) - MISSING
        return self.known[column.name]


def telling(rows: CodedOnce, columns: Sequence[Column], groups: Sequence[Codes]) -> Telling:
    """Weights ``w = c / (c + λ)``, by which a match counts as it is likely to be a copy.

    λ is how many rows equal to a real one a release of strangers would hold by chance
    (:meth:`NearRows.expected` among train and control together, times the release's size over theirs), and
    c = 0.05 a copy of one person in twenty. No release and no division of the people moves λ, so that weights
    leave the difference between train and control 0 for whatever is independent of it, but less uncertain:
    rows that are equal by nature make up most of its variance. Everybody weighs 1 where a natural rate is
    under one in a hundred, control is large, or weights would not make the rate surer.

    Args:
        groups: of train, release and control the numbers that rows equal in all these columns share.
    """
    train, release, control = groups
    plain = Telling.alike(groups)
    rare = np.isin(control, train).mean() <= DENSE
    if rare or len(control) > _MOST_CONTROL or len(columns) < 2:
        return plain
    near = NearRows.of(rows.real(columns))
    expected = near.expected * len(release) / (len(train) + len(control) - 1)
    weights = plain.weights.copy()
    weights[np.concatenate([train, control])] = _COPIED / (_COPIED + expected)
    found = Telling(weights, float(weights[train].mean()))
    return min(plain, found, key=lambda x: x.error(train, control))
