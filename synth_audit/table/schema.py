"""What the columns of a table are: kind, roles and domain, what of it is public, and the schema as JSON."""

import base64
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from functools import cached_property
from typing import Any, Self

import pyarrow as pa

from synth_audit.errors import DataError
from synth_audit.table.kind import Bounds, Domain, Kind, Order, Scale, kind_named
from synth_audit.table.resolution import Resolution
from synth_audit.table.rules import OneOf, Rule, Within, parse_rules, quoted, quoted_value

_MOST_SHOWN = 8
"""Labels of a declared column that the text of its rule lists."""


class Role(StrEnum):
    """What a column is for. A column may have several; none named means feature."""

    FEATURE = "feature"
    TARGET = "target"
    SENSITIVE = "sensitive"
    IDENTIFIER = "identifier"
    SPLIT_KEY = "split_key"


RELEASED = frozenset({Role.FEATURE, Role.TARGET, Role.SENSITIVE})
"""The roles of columns that may leave."""


@dataclass(frozen=True)
class Column:
    """One column.

    Attributes:
        storage: Arrow type as the source gave it; synthetic values are returned in it.
        kind_declared: False when the kind was inferred.
        declared_bounds, declared_categories: from the plan; public knowledge.
        declared_resolution: how finely numbers are given, from the plan; public knowledge.
        inferred_bounds, inferred_categories, inferred_resolution: read off train; private, and never a basis
            for a differential privacy claim. Categories are labels, sorted.
        release_text: the plan lets free text leave.
    """

    name: str
    kind: Kind
    storage: pa.DataType
    roles: frozenset[Role] = frozenset({Role.FEATURE})
    kind_declared: bool = False
    nullable: bool = True
    declared_bounds: Bounds | None = None
    declared_categories: tuple[str, ...] | None = None
    inferred_bounds: Bounds | None = None
    inferred_categories: tuple[str, ...] | None = None
    declared_resolution: Resolution | None = None
    inferred_resolution: Resolution | None = None
    release_text: bool = False

    @property
    def bounds(self) -> Bounds | None:
        """Declared bounds, else inferred ones; None for a discrete or wholly missing column."""
        return self.declared_bounds or self.inferred_bounds

    @property
    def categories(self) -> tuple[str, ...]:
        """Declared categories, else inferred ones; empty for a numeric column."""
        return self.declared_categories or self.inferred_categories or ()

    @property
    def resolution(self) -> Resolution | None:
        """The coarser of the declared and the inferred resolution; None where nothing finer could be told."""
        if self.declared_too_finely:
            return self.inferred_resolution
        return self.declared_resolution or self.inferred_resolution

    @property
    def declared_too_finely(self) -> bool:
        """Whether the plan declares finer digits than train has, in which a release could spell records."""
        declared, inferred = self.declared_resolution, self.inferred_resolution
        return declared is not None and inferred is not None and declared.finer_than(inferred)

    @property
    def n_categories(self) -> int | None:
        """How many categories are known; None where values are none, or were never looked at."""
        known = self.declared_categories if self.declared_categories else self.inferred_categories
        return None if known is None else len(known)

    @property
    def domain(self) -> Domain:
        """Bounds and categories, declared or else inferred."""
        return Domain(self.bounds, self.categories)

    def inferred_from(self, values: pa.ChunkedArray) -> "Column":
        """The same with the domain and the resolution that values have."""
        found = self.kind.domain(values)
        return replace(
            self,
            inferred_bounds=found.bounds,
            inferred_categories=found.categories,
            inferred_resolution=self.kind.resolution(values),
        )

    @property
    def released(self) -> bool:
        """False for identifiers and split keys, which never reach a generator or a distance."""
        return RELEASED.issuperset(self.roles)

    @property
    def typeless(self) -> bool:
        """True where the source gave the column no type, since all of its values are missing."""
        return bool(pa.types.is_null(self.storage))


@dataclass(frozen=True)
class Schema:
    """Columns in the table's order; inferred from train only, so that no candidate moves it.

    Attributes:
        rules: what every row obeys, as the plan states it; see :mod:`synth_audit.table.rules`.
    """

    columns: tuple[Column, ...]
    rules: tuple[Rule, ...] = ()

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __getitem__(self, name: str) -> Column:
        return self._by_name[name]

    @cached_property
    def _by_name(self) -> dict[str, Column]:
        return {c.name: c for c in reversed(self.columns)}  # of two of one name the first

    @cached_property
    def names(self) -> tuple[str, ...]:
        """All column names."""
        return tuple(c.name for c in self.columns)

    @property
    def features(self) -> tuple[Column, ...]:
        """The columns that may be learnt and released: all but identifiers and split keys."""
        return tuple(c for c in self.columns if c.released)

    def leading_features(self, most: int) -> tuple[Column, ...]:
        """At most so many features, in order: target and sensitive ones, and the first of the others."""
        told = [c for c in self.features if c.roles & {Role.TARGET, Role.SENSITIVE}]
        kept = {c.name for c in [*told, *(c for c in self.features if c not in told)][:most]}
        return tuple(c for c in self.features if c.name in kept)

    def with_role(self, role: Role) -> tuple[Column, ...]:
        """The columns that have ``role``."""
        return tuple(c for c in self.columns if role in c.roles)

    @property
    def target(self) -> Column | None:
        """The response, if the plan names one."""
        return next(iter(self.with_role(Role.TARGET)), None)

    def released_only(self) -> "Schema":
        """The schema of the synthetic table."""
        return Schema(self.features, self.rules)

    def without_inferred_resolution(self) -> "Schema":
        """The same without what train tells of digits, which a fit under differential privacy may not use."""
        return Schema(tuple(replace(c, inferred_resolution=None) for c in self.columns), self.rules)


def quantitative(columns: Iterable[Column]) -> tuple[Column, ...]:
    """The columns of numbers and dates, in their order: those that have quantiles and correlations."""
    return tuple(c for c in columns if c.kind.scale is Scale.QUANTITATIVE)


def nominal(columns: Iterable[Column]) -> tuple[Column, ...]:
    """The columns of labels, in their order: those that have categories."""
    return tuple(c for c in columns if c.kind.scale is Scale.NOMINAL)


def declared_rules(schema: Schema) -> tuple[Rule, ...]:
    """The plan's rules, then its bounds and categories as rules, each meaning once."""
    of_columns = [rule for column in schema.features for rule in _of_column(column)]
    return tuple(dict.fromkeys([*schema.rules, *of_columns]))


def _of_column(column: Column) -> list[Rule]:
    found: list[Rule] = []
    name, kind = column.name, column.kind
    if column.declared_bounds is not None:
        low, high = column.declared_bounds
        ends = " and ".join(kind.bound_text(x) for x in (low, high))
        found.append(
            Within(f"{quoted(name)} between {ends}", name, low, high, dates=kind.order is Order.DATES)
        )
    if column.declared_categories is not None:
        values = tuple(sorted(column.declared_categories))
        listed = [quoted_value(v) for v in values]
        if len(listed) > _MOST_SHOWN:
            listed = [*listed[: _MOST_SHOWN - 1], f"… {len(listed)} in all"]
        found.append(OneOf(f"{quoted(name)} in [{', '.join(listed)}]", name, values))
    return found


def check_names(names: Sequence[str], *, where: str) -> None:
    """Raise ``DataError`` if a column name is empty or occurs twice."""
    if "" in names:
        raise DataError(
            "a column has an empty name",
            where=where,
            expected="a name for every column",
            fix="name or drop the column before the audit",
        )
    twice = [name for name, n in Counter(names).items() if n > 1]
    if twice:
        raise DataError(
            f"column {twice[0]!r} occurs more than once",
            where=where,
            expected="distinct column names",
            fix="rename or drop the duplicate before the audit",
        )


def schema_to_plain(schema: Schema) -> dict[str, Any]:
    """Columns and rules; bounds and categories that were read off train are among them."""
    return {"columns": [_from_column(c) for c in schema], "rules": [rule.text for rule in schema.rules]}


def schema_from_plain(plain: Mapping[str, Any]) -> Schema:
    """The schema that :func:`schema_to_plain` wrote."""
    return Schema(tuple(_to_column(c) for c in plain["columns"]), parse_rules(plain["rules"]))


def range_to_plain(ends: Bounds | None) -> list[float | str] | None:
    """Two ends of a range, infinite ones as text."""
    return None if ends is None else [float_to_plain(x) for x in ends]


def float_to_plain(x: float) -> float | str:
    """JSON knows no infinity and no NaN; ``float`` reads both from text."""
    return x if math.isfinite(x) else str(x)


def _from_column(column: Column) -> dict[str, Any]:
    storage = pa.schema([pa.field("x", column.storage)]).serialize().to_pybytes()
    plain = {f.name: getattr(column, f.name) for f in fields(column)}
    for name, value in plain.items():
        if name.endswith("_bounds"):
            plain[name] = range_to_plain(value)
        if name.endswith("_resolution"):
            plain[name] = value and value.plain()
    written = {"kind": column.kind.name, "storage": base64.b64encode(storage).decode("ascii")}
    return plain | written | {"roles": sorted(column.roles)}


def _to_column(plain: Mapping[str, Any]) -> Column:
    storage = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(plain["storage"]))).field(0).type
    read: dict[str, Any] = {"kind": kind_named(plain["kind"]), "storage": storage}
    read["roles"] = frozenset(Role(r) for r in plain["roles"])
    for name, value in plain.items():
        if name.endswith("_categories"):
            read[name] = None if value is None else tuple(value)
        if name.endswith("_bounds"):
            read[name] = None if value is None else (float(value[0]), float(value[1]))
        if name.endswith("_resolution"):
            read[name] = None if value is None else Resolution.from_plain(value)
    return Column(**(dict(plain) | read))


@dataclass(frozen=True)
class PublicColumn:
    """What is declared of one column.

    Attributes:
        kind: None where it was inferred from the rows.
        bounds: lowest and highest value that may occur; datetimes in microseconds.
        categories: every label that may occur.
    """

    kind: Kind | None
    bounds: Bounds | None
    categories: tuple[str, ...] | None
    nullable: bool

    @property
    def labels(self) -> tuple[str, ...] | None:
        """Every label that may occur, declared or the kind's own; None where neither says."""
        fixed = None if self.kind is None else self.kind.fixed_domain
        return self.categories or (fixed.categories if fixed else None)

    @property
    def known(self) -> bool:
        """True when nothing of its domain need be read off the rows."""
        fixed = self.kind is not None and self.kind.fixed_domain is not None
        return fixed or self.bounds is not None or self.categories is not None


@dataclass(frozen=True)
class PublicDomain:
    """What is declared of every column that may be released, by name."""

    columns: Mapping[str, PublicColumn] = field(default_factory=dict)

    @classmethod
    def of(cls, schema: Schema) -> Self:
        """The declared part of a schema; what was inferred from train stays out."""
        found = {}
        for c in schema.features:
            kind = c.kind if c.kind_declared else None
            # Bounds that are declared, or that every column of a declared kind has.
            fixed = kind.fixed_domain if kind else None
            bounds = c.declared_bounds or (fixed.bounds if fixed else None)
            found[c.name] = PublicColumn(kind, bounds, c.declared_categories, c.nullable)
        return cls(found)

    @property
    def unknown(self) -> tuple[str, ...]:
        """The columns whose bounds or categories the plan leaves out."""
        return tuple(name for name, column in self.columns.items() if not column.known)
