"""Labels that too few people have to leave as they are."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from synth_audit.core.arrays import Bools, Floats, Labels
from synth_audit.core.errors import PlanError
from synth_audit.core.generator import FitContext
from synth_audit.core.schema import Column, nominal
from synth_audit.core.table import Table
from synth_audit.encoding.coded_columns import publicly_known

FEWEST_PEOPLE = 20
"""People who have a label that leaves, where a generator is not told otherwise; as in a leaf of its trees."""


def check_fewest(people: int) -> None:
    """Refuse a setting ``minimum_people`` that asks for nobody.

    Raises:
        PlanError: it is below 1.
    """
    if people < 1:
        raise PlanError("a label is nobody's", where="generator.minimum_people", expected="1 person or more")


def may_leave(column: Column, codes: Floats, weights: Floats, size: int, fewest: float) -> Bools:
    """Which labels of a column leave, shape (size,): all where they are public, else those of enough people.

    Args:
        codes: of each row, shape (n,), NaN where missing.
        weights: of each row, shape (n,); those of one person sum to 1 at most.
        size: how many labels there are. fewest: people who have a label that leaves.
    """
    if publicly_known(column):
        return np.ones(size, dtype=bool)
    known = ~np.isnan(codes)
    people = np.bincount(codes[known].astype(np.intp), weights=weights[known], minlength=size)
    enough: Bools = people >= fewest - 1e-9  # weights of one person may sum to a little less than 1
    return enough


def with_frequent_labels(train: Table, context: FitContext, fewest: float) -> Table:
    """Train, in which other labels of the column, as often as these occur, take the place of labels of fewer
    people than ``fewest``; no label does where there are no others.

    For fits without a budget: which labels these are is read off train.
    """
    if fewest <= 1:
        return train
    weights, stored = context.weights(train.n_rows), {name: train.column(name) for name in train.names}
    changed = False
    for column in nominal(train.schema):
        if publicly_known(column):
            continue
        labels = _replaced(train.labels(column.name), column, weights, context.rng, fewest)
        if labels is not None:
            stored[column.name], changed = column.kind.stored(labels, column.storage), True
    return Table(train.schema, pa.table(stored)) if changed else train


def _replaced(
    labels: Labels, column: Column, weights: Floats, rng: np.random.Generator, fewest: float
) -> Labels | None:
    """None where all may stay."""
    present = np.array([label is not None for label in labels], dtype=bool)
    names, places = np.unique(labels[present].astype(str), return_inverse=True)
    codes = np.full(len(labels), np.nan)
    codes[present] = places
    stays = may_leave(column, codes, weights, len(names), fewest)
    if stays.all():
        return None
    kept, rare = labels.copy(), np.flatnonzero(present)[~stays[places]]
    others = labels[present][stays[places]]
    kept[rare] = rng.choice(others, len(rare)) if len(others) else None
    return kept
