"""What a plan may declare of one column, and the schema that follows from it and from the values of train."""

import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Annotated, Literal

import pyarrow as pa
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from synth_audit.errors import DataError, PlanError
from synth_audit.table.arrow import PlacedRows, index_columns, nan_as_missing
from synth_audit.table.kind import Bounds, Clues, DomainTerm, Kind, Order, TimeUnit, kind_named, kinds
from synth_audit.table.resolution import Resolution
from synth_audit.table.rules import OneOf, Ordered, Rule, Within, as_number, ordering
from synth_audit.table.schema import RELEASED, Column, Role, Schema
from synth_audit.table.storage_types import plain
from synth_audit.table.table import Table
from synth_audit.text import meant

_NO_CLUES = Clues()


def infer_schema(
    data: pa.Table | PlacedRows | Table,
    specs: "Mapping[str, ColumnSpec] | None" = None,
    *,
    rules: Sequence[Rule] = (),
    where: str = "train",
) -> Schema:
    """Build the schema of a table from the plan's declarations and, where silent, from its values.

    Inference: boolean stays boolean; dates and timestamps are datetime; text of several words that hardly
    repeat is text, other text categorical; a number with exactly two distinct values is categorical; other
    integers are integer, other numbers continuous (decimals too, so that NUMERIC never becomes a label).
    Declared categories make a column categorical; declared bounds, and rules that ask for an order, keep a
    number a number. An index of pandas' that the plan does not declare is no column.

    Raises:
        PlanError: a declaration or rule names no column, or contradicts itself.
        DataError: a column cannot be what the plan says, is of no usable type, or has too many categories.
    """
    specs = specs or {}
    whole = data if isinstance(data, pa.Table) else data.data
    data = whole if isinstance(data, Table) else plain(whole, where=where)
    if unknown := [name for name in specs if name not in data.column_names]:
        raise PlanError(
            f"the plan describes column {unknown[0]!r}, which the table does not have",
            where=f"columns.{unknown[0]}",
            expected=f"one of {', '.join(data.column_names)}",
            fix="correct the name, or drop the entry from `columns`",
        )
    nothing = ColumnSpec.model_validate({})
    ranked, aside = ordering(rules), set(index_columns(data.column_names, specs))
    columns = tuple(
        _infer_column(name, data.column(name), specs.get(name, nothing), name in ranked, where)
        for name in data.column_names
        if name not in aside
    )
    schema = Schema(columns, tuple(rules))
    _check_roles(schema)
    _check_rules(rules, schema)
    return schema


def _infer_column(name: str, values: pa.ChunkedArray, spec: "ColumnSpec", ranked: bool, where: str) -> Column:
    values = nan_as_missing(values)
    storage = values.type
    clues = Clues(
        categories=spec.categories is not None,
        bounds=spec.bounds is not None,
        ranked=ranked,
        released=RELEASED.issuperset(spec.roles),
    )
    kind = kind_named(spec.kind) if spec.kind else kind_of(values, clues)
    if kind is None:
        raise DataError(
            f"column {name!r} has type {storage}, which cannot be audited",
            where=where,
            expected="numbers, text, booleans, dates or times",
            fix=f"cast {name!r} in the source query, or give it `role: identifier`",
        )
    if not kind.allows(storage):
        raise DataError(
            f"column {name!r} is declared {kind} but holds {storage}",
            where=where,
            expected=f"values that can be read as {kind}",
            fix=f"declare another kind for {name!r}, or convert the column at its source",
        )
    if "bounds" in spec.domain_terms - kind.domain_terms:
        raise DataError(
            f"column {name!r} is declared with bounds but is {kind}",
            where=where,
            expected="numbers or dates",
            fix=f"drop the bounds of {name!r}, or convert the column at its source",
        )
    listed = spec.categories
    column = Column(
        name=name,
        kind=kind,
        storage=storage,
        roles=frozenset(spec.roles),
        kind_declared=spec.kind is not None,
        nullable=spec.nullable,
        declared_bounds=spec.numeric_bounds,
        declared_categories=None if listed is None else tuple(map(kind.label_meant, listed)),
        declared_resolution=_declared_resolution(name, spec, kind, where),
        release_text=spec.release_text,
    )
    return _with_domain(column, values, where) if column.released else column


def _declared_resolution(name: str, spec: "ColumnSpec", kind: Kind, where: str) -> Resolution | None:
    if spec.precision is None:
        return None
    try:
        return kind.declared_resolution(spec.precision)
    except TypeError as odd:
        raise DataError(
            f"column {name!r} is declared with a precision that does not suit it: {odd}",
            where=where,
            expected="a step for numbers, a unit of time for dates and times",
            fix=f"drop the precision of {name!r}, or declare its kind",
        ) from None


def kind_of(values: pa.ChunkedArray, clues: Clues = _NO_CLUES) -> Kind | None:
    """The first kind that values suit; None where they suit none."""
    return next((kind for kind in kinds() if kind.suits(values, clues)), None)


def _with_domain(column: Column, values: pa.ChunkedArray, where: str) -> Column:
    """The column with its inferred domain, after checking the declared one."""
    found = column.inferred_from(values)
    ends, known = found.inferred_bounds, column.declared_bounds
    if ends and known and (ends[0] < known[0] or ends[1] > known[1]):
        raise _outside(column, "bounds", where)
    labels = found.inferred_categories or ()
    if column.declared_categories is not None:
        if set(labels) - set(column.declared_categories):
            raise _outside(column, "categories", where)
    elif expected := column.kind.too_many_labels(len(labels)):
        raise DataError(
            f"column {column.name!r} has {len(labels):,} categories",
            where=where,
            expected=expected,
            fix=f"give {column.name!r} `role: identifier`, or group its values at the source",
        )
    return found


def _outside(column: Column, what: str, where: str) -> DataError:
    return DataError(
        f"column {column.name!r} has values outside its declared {what}",
        where=where,
        expected=f"every value within columns.{column.name}.{what}",
        fix="widen the declaration, clean the values at the source, or have numbers of the plan's source set "
        "to the nearest bound by `outside: clip`",
    )


def _check_roles(schema: Schema) -> None:
    targets = schema.with_role(Role.TARGET)
    if len(targets) > 1:
        raise PlanError(
            f"{len(targets)} columns have the role target: {', '.join(c.name for c in targets)}",
            where="columns",
            expected="at most one target",
            fix="keep one target; `sensitive` is for the others",
        )
    for column in schema:
        wanted = sorted(column.roles & {Role.TARGET, Role.SENSITIVE})
        if wanted and not column.released:
            (withheld, *_) = sorted(column.roles - RELEASED)
            raise PlanError(
                f"column {column.name!r} has the roles {wanted[0]} and {withheld}",
                where=f"columns.{column.name}",
                expected=f"no {withheld} with it: such a column never leaves, so nothing can be learnt of it",
                fix=f"keep one of the two, or make a copy of the column the {withheld}",
            )
    if not schema.features:
        raise PlanError(
            "no column is left to release: all are identifiers or split keys",
            where="columns",
            expected="at least one feature",
            fix="take `identifier` or `split_key` off the columns to release",
        )


def _check_rules(rules: Sequence[Rule], schema: Schema) -> None:
    """Raise ``PlanError`` for a rule on a column that is unknown, never leaves, or holds other values."""
    for rule in rules:
        for name in rule.columns:
            if name not in schema.names:
                raise _misplaced(
                    rule,
                    f"names column {name!r}, which the table does not have",
                    f"one of {', '.join(schema.names)}",
                    "correct the name; for a label write `column in [label]`",
                )
            if not schema[name].released:
                raise _misplaced(
                    rule,
                    f"names column {name!r}, which is never released",
                    "columns that are neither identifier nor split key",
                    "drop the rule",
                )
        if why := _unfit(rule, [schema[name] for name in rule.columns]):
            raise _misplaced(rule, *why)


def _misplaced(rule: Rule, what: str, expected: str, fix: str) -> PlanError:
    return PlanError(f"the rule {rule.text!r} {what}", where="rules", expected=expected, fix=fix)


def _unfit(rule: Rule, columns: Sequence[Column]) -> tuple[str, str, str] | None:
    """What is wrong, expected and to be done where the columns' kinds do not go with a rule."""
    known = [c for c in columns if not c.typeless]
    ranked = ordering([rule])
    for column in known:
        if column.name in ranked and column.kind.order is None:
            return (
                f"asks for an order in column {column.name!r}, which is {column.kind}",
                "numbers or dates",
                "declare its kind under `columns`, or convert it at its source; for labels write "
                "`column in [label, …]`",
            )
    orders = {c.kind.order for c in known}
    match rule:
        case Within() if orders == {Order.NUMBERS if rule.dates else Order.DATES}:
            mixed = "numbers with a date" if rule.dates else "dates with a number"
            return f"compares {mixed}", "values of one kind", "write dates as 2024-12-31"
        case Ordered() if Order.DATES in orders and len(orders) > 1:
            return "compares a date with something else", "two columns of one kind", "drop the rule"
        case OneOf() if known and any(known[0].kind.meant(v) is None for v in rule.allowed):
            return (
                "lists values that its column cannot hold",
                f"values that are {known[0].kind}",
                "correct the values, or declare `kind: categorical` under `columns`",
            )
    return None


def _roles(value: object) -> object:
    return (value,) if isinstance(value, str) else value


def _labels(value: object) -> object:
    return [_label(x) for x in value] if isinstance(value, (list, tuple)) else value


AnyLabels = BeforeValidator(_labels, json_schema_input_type=tuple[str | bool | float, ...])


def _known_kind(name: str) -> str:
    known = [kind.name for kind in kinds()]
    if name not in known:
        raise ValueError(f"unknown kind {name!r}{meant(name, known)}; one of {', '.join(sorted(known))}")
    return name


class ColumnSpec(BaseModel):
    """What the plan declares of one column. Everything declared is taken to be public knowledge."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    kind: Annotated[str, AfterValidator(_known_kind)] | None = Field(
        None, description="how values are compared; inferred when left out"
    )
    roles: Annotated[
        tuple[Role, ...], BeforeValidator(_roles, json_schema_input_type=Role | tuple[Role, ...])
    ] = Field((Role.FEATURE,), alias="role", description="one role or a list of roles")
    bounds: tuple[float | date | datetime, float | date | datetime] | None = Field(
        None, description="lowest and highest value that may occur; dates for datetime columns"
    )
    categories: Annotated[tuple[str, ...], AnyLabels] | None = Field(
        None, description="every label that may occur"
    )
    outside: Literal["refuse", "clip"] = Field(
        "refuse",
        description="what becomes of numbers of the source outside `bounds`: the table is refused, or they "
        "are set to the nearest bound and counted",
    )
    nullable: bool = Field(True, description="may values be missing")
    precision: Annotated[float, Field(gt=0, allow_inf_nan=False)] | TimeUnit | None = Field(
        None,
        description="how finely values are given: a step such as 0.01, or a unit of time such as minute; "
        "generators round to it. Finer than train is given, it counts under a privacy budget only",
    )
    release_text: bool = Field(False, description="may free text leave; it does not unless the plan says so")

    @model_validator(mode="after")
    def _consistent(self) -> "ColumnSpec":
        if self.kind is not None and (odd := self.domain_terms - kind_named(self.kind).domain_terms):
            raise ValueError(f"{min(odd)} do not go with kind {self.kind}")
        if self.bounds is not None:
            low, high = (as_number(x) for x in self.bounds)
            if not low <= high:
                raise ValueError("bounds must be given as [lowest, highest]")
            if not math.isfinite(high - low):
                raise ValueError("bounds must be finite; a rule such as `age >= 0` leaves one end open")
        if self.outside == "clip" and (self.bounds is None or isinstance(self.bounds[0], date)):
            raise ValueError("`outside: clip` goes with bounds of numbers")
        return self

    @property
    def domain_terms(self) -> frozenset[DomainTerm]:
        """By what the domain is declared."""
        terms: dict[DomainTerm, object] = {"bounds": self.bounds, "categories": self.categories}
        return frozenset(term for term, declared in terms.items() if declared is not None)

    @property
    def numeric_bounds(self) -> Bounds | None:
        """Bounds as floats, in microseconds for datetimes."""
        if self.bounds is None:
            return None
        low, high = (as_number(x) for x in self.bounds)
        return low, high


def _label(value: object) -> object:
    """Text as :func:`.arrow_values.labels_of` has it; null is no label and stays, to be refused."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value if value is None else str(value)
