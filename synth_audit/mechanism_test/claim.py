"""What is claimed of a mechanism, and worst-case neighbouring tables made from a schema's domain."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

import numpy as np

from synth_audit.arrays import Bools, Floats, Integers, Labels
from synth_audit.dp.guarantee import Neighbouring
from synth_audit.errors import PlanError
from synth_audit.table.schema import Column, Schema
from synth_audit.table.table import Table, assemble

Value: TypeAlias = "float | str | None"
Row: TypeAlias = "Mapping[str, Value]"
_FEW = 3
"""Rows of the smallest neighbouring tables, where one row weighs most."""

_UNSEEN = "unseen label"


@dataclass(frozen=True)
class Claim:
    """(ε, δ)-differential privacy.

    Attributes:
        epsilon: above 0, finite. delta: in [0, 1).
        neighbouring: how two tables differ that must look alike.
        rows: the most rows of whoever is protected.

    Raises:
        PlanError: a number is out of range.
    """

    epsilon: float
    delta: float = 0.0
    neighbouring: Neighbouring = Neighbouring.ADD_OR_REMOVE
    rows: int = 1

    def __post_init__(self) -> None:
        if not (0 < self.epsilon < math.inf and 0 <= self.delta < 1 and self.rows >= 1):
            raise PlanError(
                "the claim is out of range",
                where="epsilon, delta, rows",
                expected="0 < epsilon < ∞, 0 ≤ delta < 1 and at least one row",
                fix="give the claim as its author states it",
            )

    @property
    def sentence(self) -> str:
        """As a reader has it."""
        return f"ε = {self.epsilon:.4g}, δ = {self.delta:g}, {self.neighbouring}"


@dataclass(frozen=True, eq=False)
class Job:
    """Some runs in a row.

    Attributes:
        case: position of the pair of neighbours.
        having: for each run whether it is on the neighbour with the canary, shape (n,).
        seeds: for each run a fresh seed below 2³¹ for what takes one, shape (n,).
    """

    case: int
    having: Bools
    seeds: Integers


class RunnableMechanism(Protocol):
    """What is tested; it must survive the way to another process."""

    @property
    def cases(self) -> tuple[str, ...]:
        """The pairs of neighbours, by what sets them apart."""
        ...

    @property
    def at_once(self) -> int:
        """Runs that are worth asking for together."""
        ...

    def scores(self, case: int) -> tuple[str, ...]:
        """What is looked at in each result of a case."""
        ...

    def run(self, job: Job) -> Floats:
        """What is seen of each run, finite, shape (n, scores)."""
        ...

    def repeated(self) -> Integers | None:
        """Results of a few runs as codes, shape (m,), if the same runs again gave the same; else None."""
        ...


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Two tables that differ in one entity.

    Attributes:
        name: what sets them apart. canary: the row that ``having`` has and ``without`` lacks.
    """

    name: str
    without: Table
    having: Table
    canary: Row


@dataclass(frozen=True)
class ColumnRange:
    """The values of a column that tables are made of.

    Attributes:
        usual: of nearly all rows. odd: of the canary. spread: all that other rows may have.
    """

    usual: Value
    odd: Value
    spread: tuple[Value, ...]
    nullable: bool


def range_of(column: Column) -> ColumnRange:
    """From the declared domain; where only the rows tell one, the canary lies outside it.

    Raises:
        PlanError: the column has neither bounds nor categories.
    """
    labels = column.declared_categories or column.inferred_categories
    if labels:
        odd = labels[-1] if column.declared_categories else _UNSEEN
        return ColumnRange(labels[0], odd, tuple(labels[: max(1, len(labels) - 1)]), column.nullable)
    if column.bounds is None:
        raise PlanError(
            f"column {column.name!r} has neither bounds nor categories",
            where=f"columns.{column.name}",
            expected="declared bounds or categories, of which worst-case tables are made",
            fix="declare them in the plan, or leave the column out",
        )
    low, high = column.bounds
    odd_number = high if column.declared_bounds else high + max(high - low, 1.0)
    middle = low + (high - low) * np.array([0.1, 0.3, 0.5, 0.7])
    return ColumnRange(low, odd_number, tuple(float(x) for x in middle), column.nullable)


def worst_cases(schema: Schema, claim: Claim, rows: int) -> tuple[Neighbours, ...]:
    """Pairs of tables that faulty mechanisms are known to tell apart.

    * *extremes*: among equal rows, the largest numbers and labels that no other row has;
    * *few*: the same among three rows, where whatever is divided by their number moves most;
    * *spread*: the same among rows of many values;
    * *missing*: among complete rows, one of missing values alone;
    * *one more*: a row like all others, which their number alone tells of (not when one is replaced).

    Args:
        rows: of the smaller table, or of both when one is replaced.
    """
    ranges = {c.name: range_of(c) for c in schema.features}
    usual = {name: r.usual for name, r in ranges.items()}
    odd = {name: r.odd for name, r in ranges.items()}
    gap = {name: None if r.nullable else r.usual for name, r in ranges.items()}
    equal, few = [usual] * rows, [usual] * min(_FEW, rows)
    mixed = [
        {n: r.spread[(i + j) % len(r.spread)] for j, (n, r) in enumerate(ranges.items())} for i in range(rows)
    ]
    cases: list[tuple[str, Sequence[Row], Row]] = [
        ("extremes", equal, odd),
        ("few", few, odd),
        ("spread", mixed, odd),
    ]
    if any(r.nullable for r in ranges.values()):
        cases.append(("missing", equal, gap))
    if claim.neighbouring is Neighbouring.ADD_OR_REMOVE:
        cases.append(("one more", few, usual))
    replaced = [usual] * claim.rows if claim.neighbouring is Neighbouring.REPLACE else []
    return tuple(
        Neighbours(
            name,
            table_of(schema, [*base, *replaced]),
            table_of(schema, [*base, *[canary] * claim.rows]),
            canary,
        )
        for name, base, canary in cases
    )


def table_of(schema: Schema, rows: Sequence[Row]) -> Table:
    """Rows as a table whose schema knows of the rows what a fit on them would.

    What is inferred of a column is inferred anew, since a generator that goes by it must be caught.
    """
    features = schema.released_only()
    loose = Schema(tuple(replace(c, inferred_resolution=None) for c in features))
    columns = {c.name: _values(c, [row[c.name] for row in rows]) for c in loose}
    table = assemble(loose, columns)
    seen = []
    for c in loose:
        domain = c.kind.domain(table.column(c.name))
        seen.append(replace(c, inferred_bounds=domain.bounds, inferred_categories=domain.categories or None))
    return table.declared_as(Schema(tuple(seen)))


def _values(column: Column, values: Sequence[Value]) -> Floats | Labels:
    if column.declared_categories or column.inferred_categories:
        labels = np.empty(len(values), dtype=object)
        labels[:] = values
        return labels
    return np.array([np.nan if v is None else float(v) for v in values])
