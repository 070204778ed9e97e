"""Which column is in which part, and what crosses between parts."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self, TypeAlias

import numpy as np

from synth_audit.arrays import Bools, Codes, Floats
from synth_audit.encode.cells import ColumnCells, readable_pairs, told_pairs
from synth_audit.errors import PlanError
from synth_audit.findings.measurement import MeasurementId, Series
from synth_audit.stats import association
from synth_audit.table.schema import Column
from synth_audit.table.table import Table

_CELLS, _LABELS = 10, 50
"""Cells of a number, and labels of a column that are told apart."""

WHERE = "generator.disjoint"

FEWEST = 10
"""Rows that a relation between two columns must rest on to decide where they go."""

_MOST_ROWS = 50_000
"""Rows that relations are read off."""

_MOST_COLUMNS = 40
"""Columns that the picture of relations shows."""

Partition = Literal["correlated", "random", "explicit"]

Groups: TypeAlias = tuple[tuple[str, ...], ...]
"""Names of the columns of each part."""


@dataclass(frozen=True, eq=False)
class TableAssociations:
    """Relations of all pairs of columns of a table.

    Attributes:
        values: Spearman's correlation of two numbers, Cramér's V of two labels, η of a label and a number,
            both corrected for what chance adds; shape (d, d).
        told: pairs whose value rests on as many rows as may be told of; shape (d, d).
    """

    values: Floats
    told: Bools

    @classmethod
    def of(cls, table: Table, columns: Sequence[Column], fewest: int) -> Self:
        """Measure all pairs.

        Args:
            fewest: rows that may be told of.
        """
        scale = ColumnCells.of(table, columns, _CELLS, _LABELS)
        rows, numeric = scale.rows(table), scale.numeric
        ratios = association.correlation_ratio(association.variance_shares(rows, np.flatnonzero(~numeric)))
        labels = association.cramers_v(association.contingency(rows))
        ranked = association.between_numbers(association.spearman(rows), numeric)
        told = told_pairs(rows, scale, fewest)
        told &= ~readable_pairs(scale.values(table, missing_counts=False), fewest)
        return cls(association.mixed(ranked, ratios, labels, numeric)[0], told)


def random_partition(n_columns: int, n_parts: int, rng: np.random.Generator) -> Codes:
    """The part of each column, 0 … n_parts − 1, at random and of sizes that differ by one at most."""
    return rng.permutation(np.arange(n_columns) % n_parts)


def correlated_partition(strength: Floats, n_parts: int) -> Codes:
    """Parts of equal size with strong relations *across* them: the two columns of the strongest go apart.

    Again and again the largest entry between two columns that have no part yet is found, and its columns go
    into two different parts, of those with most room the two in which they leave least inside, ties to the
    first. A last single column goes where there is room. Sizes differ by one at most.

    Args:
        strength: how strongly columns hang together, with either sign, shape (d, d).
        n_parts: between 1 and d.

    Source: Disjoint Generative Models (Lautrup et al. 2025), section 4.3; which of two parts gets which
    column is not said there.
    """
    strength = np.abs(strength)
    d = len(strength)
    part = np.full(d, -1, dtype=np.int64)
    if n_parts == 1:
        return part + 1
    room = np.bincount(np.arange(d) % n_parts, minlength=n_parts)
    while (left := np.flatnonzero(part < 0)).size > 1:
        among = strength[np.ix_(left, left)].copy()
        np.fill_diagonal(among, -1.0)
        i, j = left[[*np.unravel_index(int(np.argmax(among)), among.shape)]].tolist()
        p, q = _two_parts(strength, part, room, i, j)
        part[i], part[j] = p, q
        room[[p, q]] -= 1
    part[part < 0] = int(np.argmax(room))
    return part


def exterior_to_interior(strength: Floats, part: Codes) -> float:
    """‖across parts‖_F / ‖inside parts‖_F over pairs of different columns; ∞ where nothing is inside.

    Args:
        strength: shape (d, d); NaN counts as 0. part: of each column, shape (d,).
    """
    known = np.nan_to_num(strength)
    inside = part[:, None] == part
    apart = float(np.linalg.norm(known[~inside]))
    within = float(np.linalg.norm(known[inside & ~np.eye(len(part), dtype=bool)]))
    return apart / within if within > 0 else float("inf")


def _two_parts(strength: Floats, part: Codes, room: Codes, i: int, j: int) -> tuple[int, int]:
    """Different parts for i and for j, of those with most room, with least relation inside."""
    second = np.sort(room)[-2]
    wide = [int(p) for p in np.flatnonzero(room >= max(int(second), 1))]
    inside = np.array([[strength[k, part == p].sum() for p in wide] for k in (i, j)])
    most = [int(room[p] == room.max()) for p in wide]
    pairs = [
        # The widest part must be one of the two, or sizes would drift apart.
        (-(most[a] + most[b]), float(inside[0, a] + inside[1, b]), a, b)
        for a in range(len(wide))
        for b in range(len(wide))
        if a != b
    ]
    _, _, a, b = min(pairs)
    return wide[a], wide[b]


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
        rows = train.sample(_MOST_ROWS, rng)
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


def partition_pictures(
    train: Table, groups: Groups, least: int, rng: np.random.Generator
) -> tuple[Series, Series]:
    """Which column is in which part, and the real relations inside and across, the parts in turn."""
    rows = train.sample(_MOST_ROWS, rng)
    ordered = [name for group in groups for name in group]
    part = np.array([i for i, group in enumerate(groups) for _ in group])
    found = TableAssociations.of(rows, [train.schema[name] for name in ordered], least)
    values = np.where(found.told, np.round(found.values, 2), np.nan)
    np.fill_diagonal(values, 1.0)
    ratio = exterior_to_interior(np.where(found.told, values, np.nan), part)
    names = [f"{name} ({i + 1})" for name, i in zip(ordered, part, strict=True)]
    shown = range(min(len(names), _MOST_COLUMNS))
    told = f"{ratio:.2f}" if math.isfinite(ratio) else "none inside"
    matrix = Series(
        id=MeasurementId("generator", "partition", "relations"),
        title=f"Parts of the columns (in brackets) and what relates them; across parts by inside: {told}",
        kind="matrix",
        x_label="column",
        y_label="column",
        x=tuple(names[i] for i in shown),
        lines={names[i]: tuple(float(values[i, j]) for j in shown) for i in shown},
    )
    own, off, known = part[:, None] == part, ~np.eye(len(part), dtype=bool), np.abs(values)
    strengths = Series(
        id=MeasurementId("generator", "relations"),
        title="Mean strength of relations inside each part, and across to the others",
        kind="bar",
        x_label="part",
        y_label="mean of |relation|",
        x=tuple(f"part {i + 1}" for i in range(len(groups))),
        lines={
            "inside": tuple(_mean(known[(part == i)[:, None] & own & off]) for i in range(len(groups))),
            "across": tuple(_mean(known[(part == i)[:, None] & ~own]) for i in range(len(groups))),
        },
    )
    return matrix, strengths


def _mean(values: Floats) -> float:
    known = values[~np.isnan(values)]
    return round(float(known.mean()), 2) if len(known) else math.nan
