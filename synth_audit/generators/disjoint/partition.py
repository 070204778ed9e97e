"""Which column is in which part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np

from synth_audit.core.arrays import Codes
from synth_audit.core.errors import PlanError
from synth_audit.core.table import Table
from synth_audit.encoding.associations import TableAssociations
from synth_audit.kernels.column_partition import correlated_partition, random_partition

WHERE = "generator.disjoint"
FEWEST = 10
"""Rows that a relation between two columns must rest on to decide where they go."""

MOST_ROWS = 50_000
"""Rows that relations are read off."""

Partition = Literal["correlated", "random", "explicit"]
Groups: TypeAlias = tuple[tuple[str, ...], ...]
"""Names of the columns of each part."""


def number_of_parts(how: Partition, parts: int | None, columns: Groups, generators: int) -> int | None:
    """How many parts a configuration asks for; None where it leaves that to the table.

    Raises:
        PlanError: it contradicts itself, or names a column twice.
    """
    if (how == "explicit") != bool(columns):
        raise PlanError(
            "columns are named for a partition that chooses them itself"
            if columns
            else "an explicit partition names no columns",
            where=f"{WHERE}.columns",
            expected="`partition: explicit` with `columns`, a list of names for each part",
        )
    twice = [name for name, n in Counter(name for group in columns for name in group).items() if n > 1]
    if twice:
        raise PlanError(
            f"the column {twice[0]!r} is named twice among the parts",
            where=f"{WHERE}.columns",
            expected="each column in one part",
        )
    if not all(columns):
        raise PlanError("a part has no columns", where=f"{WHERE}.columns", expected="a column or more")
    if parts is not None and (parts < 1 or (columns and parts != len(columns))):
        raise PlanError(
            f"{parts} parts cannot be made" + (f" of columns for {len(columns)}" if columns else ""),
            where=f"{WHERE}.parts",
            expected=f"{len(columns)}, or nothing" if columns else "1 or more",
        )
    return parts or len(columns) or (generators if generators > 1 else None)


def partitioned(
    train: Table, how: Partition, n_parts: int, columns: Groups, rng: np.random.Generator
) -> Groups:
    """The columns of each part, in the table's order.

    Raises:
        PlanError: a column is in no part or unknown, there are more parts than columns, or the target has a
            part of its own.
    """
    names = train.names
    if n_parts > len(names):
        raise PlanError(
            f"{n_parts} parts of {len(names)} columns",
            where=f"{WHERE}.parts",
            expected=f"at most {len(names)} parts",
            fix="take fewer parts",
        )
    if how == "explicit":
        groups = _named(names, columns)
        target = train.schema.target
        if target is not None and len(groups) > 1 and (target.name,) in groups:
            raise _alone(target.name)
        return groups
    if how == "random":
        groups = _grouped(names, random_partition(len(names), n_parts, rng))
    else:
        rows = train.sample(MOST_ROWS, rng)
        strength = TableAssociations.of(rows, train.schema.features, FEWEST).values
        groups = _grouped(names, correlated_partition(strength, n_parts))
    return _with_company(train, groups)


def _named(names: Sequence[str], columns: Groups) -> Groups:
    given = [name for group in columns for name in group]
    if unknown := [name for name in given if name not in names]:
        raise PlanError(
            f"a part names {unknown[0]!r}, which is no column that may be released",
            where=f"{WHERE}.columns",
            expected=f"among {', '.join(names)}",
        )
    if left := [name for name in names if name not in given]:
        raise PlanError(
            f"the column {left[0]!r} is in no part",
            where=f"{WHERE}.columns",
            expected="each column in one part",
            fix="name it in a part, or declare it an identifier so that it is not released",
        )
    return tuple(tuple(name for name in names if name in group) for group in columns)


def _grouped(names: Sequence[str], part: Codes) -> Groups:
    return tuple(
        tuple(names[i] for i in np.flatnonzero(part == k).tolist()) for k in range(int(part.max()) + 1)
    )


def _with_company(train: Table, groups: Groups) -> Groups:
    """The parts, none of them the target alone: what it depends on would be lost altogether.

    Where it was alone by chance it changes places with the first column of the largest part.

    Raises:
        PlanError: it cannot be otherwise, or was asked for.
    """
    target = train.schema.target
    if target is None or len(groups) == 1 or (target.name,) not in groups:
        return groups
    place = groups.index((target.name,))
    largest = max(range(len(groups)), key=lambda i: len(groups[i]))
    if len(groups[largest]) == 1:
        raise _alone(target.name)
    first, *others = groups[largest]
    changed = {place: (first,), largest: tuple(n for n in train.names if n in (target.name, *others))}
    return tuple(changed.get(i, group) for i, group in enumerate(groups))


def _alone(target: str) -> PlanError:
    return PlanError(
        f"a part holds the target {target!r} alone, which nothing would then predict",
        where=WHERE,
        expected="other columns beside the target",
        fix="take fewer parts, or put a column beside it",
    )
