"""What a plan may declare of one column, under ``columns``."""

from __future__ import annotations

import math
from datetime import date, datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from synth_audit.table.arrow import microseconds
from synth_audit.table.kind import Bounds, DomainTerm, TimeUnit, kind_named, kinds
from synth_audit.table.schema import Role


def _roles(value: object) -> object:
    return (value,) if isinstance(value, str) else value


def _labels(value: object) -> object:
    return [_label(x) for x in value] if isinstance(value, (list, tuple)) else value


AnyLabels = BeforeValidator(_labels, json_schema_input_type=tuple[str | bool | float, ...])


def _known_kind(name: str) -> str:
    known = [kind.name for kind in kinds()]
    if name not in known:
        raise ValueError(f"unknown kind {name!r}; one of {', '.join(sorted(known))}")
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
    def _consistent(self) -> ColumnSpec:
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


def as_number(value: float | date | datetime) -> float:
    """A bound as a number: dates in microseconds since 1970."""
    return microseconds(value) if isinstance(value, date) else float(value)
