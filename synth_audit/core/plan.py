"""The plan: one YAML file per table, validated whole before any data is touched."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    model_validator,
)

from synth_audit.core import registry
from synth_audit.core.accounting.guarantee import Budget, Neighbouring, Unit
from synth_audit.core.accounting.terms import FitTerms
from synth_audit.core.errors import PlanError, problems_of
from synth_audit.core.execution_spec import ExecutionSpec
from synth_audit.core.kind import Bounds, Kind, kind_named, kinds
from synth_audit.core.paths import read_text
from synth_audit.core.plugin_config import Location, PluginChoice, PluginConfig, combinations
from synth_audit.core.rule_text import FORMS, parse_rules
from synth_audit.core.rules import Rule
from synth_audit.core.schema import RELEASED, Role
from synth_audit.core.strict_yaml import Malformed, load_yaml
from synth_audit.core.timestamps import microseconds

if TYPE_CHECKING:
    from synth_audit.core.audit import Audit
    from synth_audit.core.generator import Generator
    from synth_audit.core.source import Source

_LONGEST_NAME = 200
DEFAULT_GATES = "expectations/release.json"


def _roles(value: object) -> object:
    return (value,) if isinstance(value, str) else value


def _labels(value: object) -> object:
    return [_label(x) for x in value] if isinstance(value, (list, tuple)) else value


def _listed(value: object) -> object:
    return (value,) if isinstance(value, str) else value


_Listed = BeforeValidator(_listed, json_schema_input_type=str | tuple[str, ...])


def _readable(texts: tuple[str, ...]) -> tuple[str, ...]:
    parse_rules(texts)
    return texts


_AnyLabels = BeforeValidator(_labels, json_schema_input_type=tuple[str | bool | float, ...])


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
    categories: Annotated[tuple[str, ...], _AnyLabels] | None = Field(
        None, description="every label that may occur"
    )
    nullable: bool = Field(True, description="may values be missing")

    @model_validator(mode="after")
    def _consistent(self) -> ColumnSpec:
        if self.bounds is not None:
            if self.kind is not None and not kind_named(self.kind).numeric:
                raise ValueError(f"bounds do not go with kind {self.kind}")
            low, high = (_number(x) for x in self.bounds)
            if not low <= high:
                raise ValueError("bounds must be given as [lowest, highest]")
            if not math.isfinite(high - low):
                raise ValueError("bounds must be finite; a rule such as `age >= 0` leaves one end open")
        if self.categories is not None and self.kind is not None and kind_named(self.kind).numeric:
            raise ValueError(f"categories do not go with kind {self.kind}")
        return self

    def numeric_bounds(self, kind: Kind) -> Bounds | None:
        """Bounds as floats, in microseconds for datetimes."""
        if self.bounds is None or not kind.numeric:
            return None
        low, high = (_number(x) for x in self.bounds)
        return low, high


class SplitSpec(BaseModel):
    """How control rows are set aside."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    control: float = Field(default=0.2, gt=0, lt=1, description="share of entities kept from the generator")


class PrivacySpec(BaseModel):
    """The privacy budget of the table: what all fits on it may spend together, ever."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    epsilon: float = Field(gt=0, le=1000, description="the most that all fits may spend together")
    delta: float = Field(default=0.0, ge=0, lt=1, description="well below one over the number of entities")
    per_fit: float | None = Field(
        default=None, gt=0, description="the most epsilon of one fit; all of it when left out"
    )
    rows_per_entity: int | None = Field(
        default=None,
        ge=1,
        le=10**6,
        description="train is cut down to so many rows of each entity; left out, single rows are protected",
    )
    neighbouring: Neighbouring = Field(
        default=Neighbouring.ADD_OR_REMOVE, description="how two tables differ that must look alike"
    )

    @model_validator(mode="after")
    def _within(self) -> PrivacySpec:
        if self.per_fit is not None and self.per_fit > self.epsilon:
            raise ValueError("per_fit must not exceed epsilon")
        return self

    def terms(self, drawn: int | None) -> FitTerms:
        """The terms of one fit; ``drawn`` is the plan's number of synthetic rows."""
        return FitTerms(
            total=Budget(self.epsilon, self.delta),
            fit=Budget(self.per_fit or self.epsilon, self.delta),
            unit=Unit.ROW if self.rows_per_entity is None else Unit.ENTITY,
            neighbouring=self.neighbouring,
            rows=self.rows_per_entity or 1,
            drawn=drawn,
        )


class KnownAnswerSpec(BaseModel):
    """How leaks are planted to see whether the audits would find them."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    small: float = Field(
        default=0.01, gt=0, lt=0.5, description="share of copied rows in the small planted leak"
    )
    max_rows: int = Field(default=10_000, ge=100, description="most rows of any table a leak is planted in")


class FrontierSpec(BaseModel):
    """Which candidates `synth-audit frontier` tries and how it chooses among those that pass."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    vary: dict[str, tuple[Any, ...]] = Field(
        default_factory=dict,
        description="settings of the generator with the values to try; several make a grid",
    )
    generators: tuple[PluginConfig, ...] = Field((), description="further generators to try, as they stand")
    privacy: str | None = Field(
        None, description="measurement to judge privacy by, `name` or `name[scope]`; chosen when left out"
    )
    utility: str | None = Field(None, description="measurement to judge usefulness by; chosen when left out")
    alpha: float = Field(default=0.5, ge=0, le=1, description="weight of privacy against usefulness")

    @model_validator(mode="after")
    def _something_to_try(self) -> FrontierSpec:
        if empty := [name for name, values in self.vary.items() if not values]:
            raise ValueError(f"vary.{empty[0]} needs at least one value")
        return self


class Plan(BaseModel):
    """Everything public that decides an audit. The same plan, data and salt give the same evidence."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: str = Field(
        "table",
        pattern=r"^[\w.-]+$",
        max_length=_LONGEST_NAME,
        description="what the report calls the table; the plan file's name if left out",
    )
    source: Location | None = Field(None, description="where the sensitive table is")
    columns: dict[str, ColumnSpec] = Field(
        default_factory=dict, description="declared columns; the others are inferred and reported"
    )
    rules: Annotated[tuple[str, ...], _Listed, AfterValidator(_readable)] = Field(
        (), description=f"what every row obeys, beside bounds and categories: {FORMS}"
    )
    split: SplitSpec = Field(default_factory=SplitSpec)
    generator: PluginConfig | None = Field(None, description="what makes the synthetic table")
    privacy: PrivacySpec | None = Field(
        None, description="privacy budget of the table; gates then hold the release to it"
    )
    rows: int | None = Field(None, gt=0, le=10**9, description="synthetic rows; as many as train if left out")
    audits: tuple[PluginConfig, ...] = Field((), description="audits to run; the usual ones if left out")
    known_answer: KnownAnswerSpec = Field(default_factory=KnownAnswerSpec)
    gates: str = Field(DEFAULT_GATES, description="gate suite: a file, or a suite that ships with us")
    release: Location | None = Field(None, description="where a passing synthetic table goes")
    frontier: FrontierSpec | None = Field(
        None, description="what `synth-audit frontier` tries; decides nothing in an audit of the plan itself"
    )
    execution: ExecutionSpec = Field(
        default=ExecutionSpec.model_validate({}), description="where the work is done; decides no measurement"
    )
    seed: int = Field(
        0, ge=0, description="moves the draws of audits only; split, fits and draws rest on a secret salt"
    )
    level: float = Field(0.95, ge=0.9, lt=1, description="confidence level of every interval")
    suppression: int = Field(10, ge=1, description="no smaller count is ever shown")

    _base: Path = PrivateAttr(default_factory=Path.cwd)

    @model_validator(mode="after")
    def _distinct_audits(self) -> Plan:
        names = [choice.name for choice in self.audits]
        if twice := sorted({n for n in names if names.count(n) > 1}):
            raise ValueError(f"audit {twice[0]!r} is listed more than once")
        return self

    @model_validator(mode="after")
    def _rules_on_released_columns(self) -> Plan:
        for rule in self.stated_rules:
            for name in rule.columns:
                if name in self.columns and not RELEASED.issuperset(self.columns[name].roles):
                    raise ValueError(f"the rule {rule.text!r} names column {name!r}, which is never released")
        return self

    @property
    def stated_rules(self) -> tuple[Rule, ...]:
        """The rules under ``rules``, read; bounds and categories of columns are rules as well."""
        return parse_rules(self.rules)

    @property
    def fit_terms(self) -> FitTerms:
        """What a generator may spend; nothing when the plan declares no budget."""
        if self.privacy is None:
            return FitTerms(total=None, fit=None, unit=Unit.ROW, drawn=self.rows)
        return self.privacy.terms(self.rows)

    @property
    def base(self) -> Path:
        """The folder that relative paths start from: the plan file's, else the working folder."""
        return self._base

    @property
    def digest(self) -> str:
        """SHA-256 of the normalised plan; where the file lies does not matter, nor its layout."""
        text = json.dumps(self.plain(), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()

    def plain(self) -> dict[str, Any]:
        """The plan as JSON values, as it stands in the evidence.

        Without ``frontier``, which chooses among plans and decides nothing in any of them, and ``execution``,
        which says where the work is done.
        """
        return self.model_dump(
            mode="json", by_alias=True, exclude_defaults=True, exclude={"frontier", "execution"}
        )

    def build_source(self) -> Source:
        """The configured source; raises ``PlanError`` when the plan has none."""
        source: Source = self._build("source", self.source, "source")
        return source

    def build_generator(self) -> Generator:
        """The configured generator; raises ``PlanError`` when the plan has none."""
        generator: Generator = self._build("generator", self.generator, "generator")
        return generator

    def build_release(self) -> Source:
        """The configured target; raises ``PlanError`` when the plan has none."""
        target: Source = self._build("source", self.release, "release")
        return target

    def build_audits(self) -> dict[str, Audit]:
        """Every configured audit by name; all that run by default when the plan lists none."""
        choices = self.audits or tuple(PluginChoice(name=n) for n in registry.default_audits())
        return {c.name: registry.build("audit", c.name, c.config, where=f"audits.{c.name}") for c in choices}

    def check(self) -> Plan:
        """Build every plug-in the plan names, so that a mistake shows before any data is read."""
        for part in ("source", "generator", "release"):
            if getattr(self, part) is not None:
                getattr(self, f"build_{part}")()
        self.build_audits()
        for where, choice in self._candidates():
            self._build("generator", choice, where)
        return self

    def _candidates(self) -> Iterator[tuple[str, PluginChoice]]:
        """Every generator that ``frontier`` names, and where; what it tries unasked depends on the table."""
        if self.frontier is None:
            return
        if self.generator is not None and self.frontier.vary:
            for varied in combinations(self.frontier.vary):
                yield "frontier.vary", self.generator.with_settings(varied)
        for choice in self.frontier.generators:
            yield "frontier.generators", choice

    def located(self, base: Path) -> Plan:
        """The same plan with relative paths starting at ``base``."""
        plan = self.model_copy()
        plan._base = base
        return plan

    def _build(self, room: registry.PluginGroup, choice: PluginChoice | None, key: str) -> Any:
        if choice is None:
            raise PlanError(
                f"the plan has no {key}",
                where=key,
                expected=f"`{key}: ...`",
                fix="`synth-audit init` writes a plan to start from",
            )
        return registry.build(room, choice.name, choice.config, where=f"{key}.{choice.name}")


def load_plan(path: Path | str) -> Plan:
    """Read and validate a plan file, plug-ins included.

    Raises:
        PlanError: the file is missing, is no YAML mapping, or does not validate.
    """
    path = Path(path)
    try:
        text = read_text(path)
    except (OSError, ValueError) as error:
        raise PlanError(
            f"the plan cannot be read ({type(error).__name__})",
            where=str(path),
            expected="a YAML file in UTF-8",
            fix="check the path, or start one with `synth-audit init`",
        ) from None
    try:
        value = load_yaml(text)
    except Malformed as error:
        raise PlanError(
            "the plan is not valid YAML" + (f": {error.reason}" if error.reason else ""),
            where=f"{path}, line {error.line}" if error.line else str(path),
            expected="a YAML mapping without doubled keys",
            fix="put text in quotes that begins with a sign, such as a rule that begins with a backtick",
        ) from None
    if isinstance(value, Mapping):
        value = {"name": re.sub(r"[^\w.-]", "_", path.stem)[:_LONGEST_NAME]} | dict(value)
    return parse_plan(value, where=str(path)).located(path.resolve().parent).check()


def parse_plan(value: object, *, where: str = "plan") -> Plan:
    """Validate a plan given as plain values, without building its plug-ins.

    Raises:
        PlanError: naming each key that is wrong.
    """
    if not isinstance(value, Mapping):
        raise PlanError(
            "the plan is not a mapping",
            where=where,
            expected="`key: value` lines",
            fix="`synth-audit init` writes a plan to start from",
        )
    try:
        return Plan.model_validate(dict(value))
    except ValidationError as error:
        raise PlanError(
            problems_of(error),
            where=where,
            expected=f"keys {', '.join(Plan.model_fields)}",
            fix="`synth-audit schema` prints the plan's JSON Schema; `synth-audit init` writes an example",
        ) from None


def _label(value: object) -> object:
    """Text as :func:`.arrow_values.labels_of` has it; null is no label and stays, to be refused."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value if value is None else str(value)


def _number(value: float | date | datetime) -> float:
    return microseconds(value) if isinstance(value, date) else float(value)
