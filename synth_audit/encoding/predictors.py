"""Targets and predictors of models: numbers in standard deviations of train, labels by their frequency."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from synth_audit.core.arrays import Codes, Floats, Target
from synth_audit.core.schema import Column
from synth_audit.core.table import Table
from synth_audit.encoding.codes import codes
from synth_audit.encoding.euclidean import EuclideanEncoder
from synth_audit.kernels.coordinates import one_hot
from synth_audit.kernels.linear import Scaling
from synth_audit.kernels.ordering import scale_by_frequency


def standardised_target(
    tables: Sequence[Table], train: Table, column: Column, far: float
) -> tuple[list[Target], int]:
    """Numbers, shape (n,) each, and that they are no classes; at most ``far`` from the mean of train."""
    scaling = Scaling.of(train.numbers(column.name)[:, None])
    scale = scaling.scale[0] if np.isfinite(scaling.scale[0]) else 1.0
    values = [(t.numbers(column.name) - scaling.centre[0]) / scale for t in tables]
    return [np.clip(v, -far, far) for v in values], 0


def classes(tables: Sequence[Table], train: Table, column: Column, most: int) -> tuple[list[Target], int]:
    """Classes, shape (n,) each, the most frequent of train first and the rarest one together; how many."""
    *found, everyone = _ranked([*tables, train], column)
    merged = [np.minimum(y, most - 1) for y in found]
    return [*merged], 1 + max(int(y.max()) for y in (*merged, np.minimum(everyone, most - 1)))


def standardised(tables: Sequence[Table], train: Table, column: Column, far: float) -> list[Floats]:
    """Numbers, missing at the mean of train with an indicator of its own; shape (n, 1 or 2) each."""
    encoder = EuclideanEncoder.anchored_on(train, [column])
    return [np.clip(c.dense, -far, far) for c in encoder.encode(tables)]


def indicators(tables: Sequence[Table], train: Table, column: Column, most: int) -> list[Floats]:
    """One indicator for each label, the rarer ones together; a constant of train is 0; shape (n, k) each."""
    *found, everyone = _ranked([*tables, train], column)
    if everyone.min() == everyone.max():
        return [np.zeros((t.n_rows, 1)) for t in tables]
    joint = one_hot(np.minimum(np.concatenate(found), most - 1))
    return list(np.split(joint, np.cumsum([t.n_rows for t in tables])[:-1]))


def _ranked(tables: Sequence[Table], column: Column) -> list[Codes]:
    """Labels as place by falling frequency in the last table, ties by their codes; missing is a label."""
    joint = codes(tables, column)
    shifted = [c - min(int(c.min()) for c in joint) for c in joint]
    n = 1 + max(int(c.max()) for c in shifted)
    place = scale_by_frequency(shifted[-1], n)
    return [place[c] for c in shifted]
