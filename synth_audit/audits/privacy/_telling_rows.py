"""How much it tells that two rows are equal: little where strangers' rows are so by nature."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from synth_audit.core.arrays import Codes, Codes32, Floats
from synth_audit.core.equal_rows import NearRows
from synth_audit.core.schema import Column
from synth_audit.core.table import Table
from synth_audit.encoding.codes import codes
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


def telling(tables: Sequence[Table], columns: Sequence[Column], groups: Sequence[Codes]) -> Telling:
    """Weights ``w = c / (c + λ)``, by which a match counts as it is likely to be a copy.

    λ is how many rows equal to a real one a release of strangers would hold by chance
    (:meth:`NearRows.expected` among train and control together, times the release's size over theirs), and
    c = 0.05 a copy of one person in twenty. No release and no division of the people moves λ, so that weights
    leave the difference between train and control 0 for whatever is independent of it, but less uncertain:
    rows that are equal by nature make up most of its variance. Everybody weighs 1 where a natural rate is
    under one in a hundred, control is large, or weights would not make the rate surer.

    Args:
        tables, groups: train, release and control, and the numbers that equal rows of all share.
    """
    train, release, control = groups
    plain = Telling.alike(groups)
    rare = np.isin(control, train).mean() <= DENSE
    if rare or len(control) > _MOST_CONTROL or len(columns) < 2:
        return plain
    coded = [_real_codes(tables, column) for column in columns]
    expected = NearRows.of(coded).expected * len(release) / (len(train) + len(control) - 1)
    weights = plain.weights.copy()
    weights[np.concatenate([train, control])] = _COPIED / (_COPIED + expected)
    found = Telling(weights, float(weights[train].mean()))
    return min(plain, found, key=lambda x: x.error(train, control))


def _real_codes(tables: Sequence[Table], column: Column) -> Codes32:
    """Codes of a column of train and control, from 0 on."""
    train, _, control = codes(tables, column)
    return np.concatenate([train, control]).astype(np.int32) - MISSING
