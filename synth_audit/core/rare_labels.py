"""Labels that too few people have to be learnt, where no noise hides who has them.

Under a budget nothing of train decides which labels are drawn, and this is not asked.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from synth_audit.core.arrays import Bools, Floats, Labels
from synth_audit.core.errors import PlanError
from synth_audit.core.generator import FitContext, Generator, minimum_people
from synth_audit.core.schema import Column, nominal
from synth_audit.core.table import Table


def check_fewest(people: int) -> None:
    """Refuse a setting ``minimum_people`` that asks for nobody.

    Raises:
        PlanError: it is below 1.
    """
    if people < 1:
        raise PlanError("a label is nobody's", where="generator.minimum_people", expected="1 person or more")


def publicly_known(column: Column) -> bool:
    """Whether the labels of a column may leave however few rows have them: they are declared, the same for
    every column of the kind, or text that the plan releases."""
    return bool(column.declared_categories or column.kind.fixed_domain or column.release_text)


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


def as_learnt(generator: Generator, train: Table, context: FitContext) -> Table:
    """Train, whose released columns hold no label of fewer people than :func:`minimum_people` says.

    Other labels of the column take their place, as often as these occur; none does where there are no others.
    Which labels these are is read off train: under a budget train stays as it is.
    """
    fewest = minimum_people(generator)
    if fewest <= 1 or context.accountant.budget is not None:
        return train
    train, rng = train.released_only(), context.rng
    replaced = {
        column.name: column.kind.stored(_replaced(labels, stay, rng), column.storage)
        for column, labels, stay in _with_rare_labels(train, context.weights(train.n_rows), fewest)
    }
    stored = {name: train.column(name) for name in train.names}
    return Table(train.schema, pa.table(stored | replaced)) if replaced else train


def rare_label_columns(
    train: Table, weights: Floats, fewest: float, drawn: Table | None = None
) -> tuple[str, ...]:
    """Names of the columns in train of which some label is learnt from nobody; see :func:`as_learnt`.

    Args:
        weights: of each row, shape (n,); those of one person sum to 1 at most.
        drawn: leave out columns all of whose rare labels are in this table.
    """
    return tuple(
        column.name
        for column, labels, stay in _with_rare_labels(train.released_only(), weights, fewest)
        if drawn is None or not set(labels[~stay]) <= set(drawn.labels(column.name))
    )


def _with_rare_labels(train: Table, weights: Floats, fewest: float) -> Iterator[tuple[Column, Labels, Bools]]:
    """Such columns, their labels, and which rows' labels stay, shape (n,) each."""
    from pandas import factorize  # here, so that looking around stays light

    for column in nominal(train.schema):
        if publicly_known(column):
            continue
        labels = train.labels(column.name)
        places, names = factorize(labels)
        stays = may_leave(column, np.where(places >= 0, places, np.nan), weights, len(names), fewest)
        if not stays.all():
            yield column, labels, (places < 0) | stays[places]


def _replaced(labels: Labels, stay: Bools, rng: np.random.Generator) -> Labels:
    """Others of the labels that are there and stay in place of the rest, as often as they occur."""
    others = labels[stay]
    others = others[[label is not None for label in others]]
    kept, rare = labels.copy(), np.flatnonzero(~stay)
    kept[rare] = rng.choice(others, len(rare)) if len(others) else None
    return kept
