"""The component behind ``type: synth_audit.dagster.AuditedTable`` in a ``defs.yaml``."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

import dagster as dg
from pydantic import (
    BaseModel,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    ValidationError,
    model_validator,
)
from pydantic_core import InitErrorDetails

from synth_audit.dagster import automation, entry
from synth_audit.dagster.asset_checks import gate_checks
from synth_audit.dagster.assets import places, stage_assets
from synth_audit.dagster.entry import MadeElsewhere, Snapshots, TableEntry
from synth_audit.errors import PlanError, keys_at, keys_of, problems_of
from synth_audit.inputs import workspace_of
from synth_audit.plan.plan import Plan, parse_plan, plan_schema
from synth_audit.text import meant
from synth_audit.verdict.suite import Suite, load_suite, locate

_LONGEST = "dagster/max_runtime"
"""Dagster's tag for the seconds that a run may take, which its run monitoring watches."""

_RETRIES = "dagster/max_retries"
"""Dagster's tag for how often a run that was killed is repeated."""

HOME = "SYNTH_AUDIT_HOME"
"""Environment variable: the folder that relative paths start from; the project's root without it."""

_MARK = "{{"


class TableSettings(Plan):
    """Every key of the plan, and what the schedule and the catalogue need.

    The plan's keys mean what they mean in a plan file, so a table moves between shell and schedule
    unchanged.
    """

    description: str = Field("", description="what the table holds, for the catalogue")
    owners: tuple[str, ...] = Field((), description="e-mail addresses, or `team:name`")
    tags: dict[str, str] = Field(default_factory=dict, description="tags of every asset of the table")
    deps: tuple[str, ...] = Field((), description="assets that make the source, such as `clinical/tumours`")
    schedule: str | None = Field(None, description="cron line; off until it is switched on")
    timezone: str = Field("UTC", description="time zone of the schedule, such as `Europe/Berlin`")
    timeout: int | None = Field(None, gt=0, description="seconds after which Dagster ends a run of the table")
    fresh_hours: float | None = Field(
        None, gt=0, description="hours after which a release counts as too old, in Dagster's catalogue"
    )
    released_key: str = Field(
        "", description="asset key of the released table, such as `released/tumours`, for what reads it"
    )
    made_elsewhere: MadeElsewhere | None = Field(
        None, description="audit a table that others made, instead of `source` and `generator`"
    )
    snapshots: Snapshots | None = Field(
        None, description="audit and release each snapshot of the table by itself"
    )
    workspace: str | None = Field(
        None, description="folder of the audit's files, as `--out` in the shell; `<table>-audit` if left out"
    )

    @classmethod
    def model_json_schema(cls, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """JSON Schema with every installed plug-in's configuration, for ``dg check yaml`` and editors."""
        own, plan = super().model_json_schema(*args, **kwargs), plan_schema()
        for place in own["$defs"]["MadeElsewhere"]["properties"].values():
            place.pop("anyOf", None)
            place["$ref"] = "#/$defs/source_plugin"
        return own | {
            "properties": own["properties"] | plan["properties"],
            "$defs": own.get("$defs", {}) | plan["$defs"],
        }


class AttributesAsWritten(TableSettings):
    """What stands under ``attributes:``; with templates it is validated as soon as they are filled in."""

    _written: Mapping[str, Any] | None = PrivateAttr(None)

    @model_validator(mode="wrap")
    @classmethod
    def _unless_templated(cls, value: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        if not templated(value):
            checked: Self = _with_nearest_key(value, validate)
            return checked
        made = cls.model_construct()
        made._written = value
        return made

    def filled(self, scope: Mapping[str, Any]) -> TableSettings:
        """The settings with their templates filled in.

        Raises:
            PlanError: a template cannot be filled in, or a value is refused; no value is repeated.
        """
        if self._written is None:
            return self
        try:
            return TableSettings.model_validate(filled(self._written, scope))
        except ValidationError as error:
            raise PlanError(
                problems_of(error, TableSettings),
                where="attributes",
                expected=keys_of(error, TableSettings) or "what the plan's JSON Schema allows",
                fix="check what the templates stand for; digits that are text take quotes: "
                "`'{{ env.PORT }}'`",
            ) from None


def _with_nearest_key(value: Any, validate: ModelWrapValidatorHandler[Any]) -> Any:
    """Validate, and name the known key that an unknown one may stand for."""
    try:
        return validate(value)
    except ValidationError as error:
        found: list[InitErrorDetails] = []
        for e in error.errors(include_url=False):
            kind, context = e["type"], e.get("ctx", {})
            if kind == "extra_forbidden":  # Dagster makes these errors anew: text of ours needs this type
                *place, key = e["loc"]
                said = f"unknown key{meant(str(key), keys_at(TableSettings, place))}"
                kind, context = "value_error", {"error": said}
            found.append(InitErrorDetails(type=kind, loc=e["loc"], input=e["input"], ctx=context))
        raise ValidationError.from_exception_data(error.title, found) from None


class TableScaffolder(dg.Scaffolder):
    """Writes the ``defs.yaml`` that ``dg scaffold defs AuditedTable <table>`` starts a table with."""

    def scaffold(self, request: dg.ScaffoldRequest) -> None:
        """Write the file; its source and columns are to be filled in."""
        attributes = {
            "description": "What the table holds",
            "owners": ["team:data-platform"],
            "source": {"duckdb": {"path": "warehouse.duckdb", "table": "schema.table"}},
            "columns": {"id": {"role": ["identifier"]}},
            "generator": "vine",
            "release": {"duckdb": {"path": "warehouse.duckdb", "table": "released.table"}},
            "seed": 1,
        }
        dg.scaffold_component(request, attributes)


@dg.scaffold_with(TableScaffolder)
@dataclass(kw_only=True)
class AuditedTable(dg.Component):
    """One sensitive table: split, synthesised, audited, reported and, if every gate allows it, released.

    Assets ``<table>/split``, ``synthetic``, ``audit``, ``report`` and, where the plan names a target,
    ``release``, and ``frontier`` where it names candidates; one asset check for each gate on ``report``; a
    job, one for the sweep, and, on request, schedules and sensors.
    """

    settings: TableSettings
    folder: str
    home: Path

    @classmethod
    def get_model_cls(cls) -> type[BaseModel]:
        """What may stand under ``attributes:``."""
        return AttributesAsWritten

    @classmethod
    def get_spec(cls) -> dg.ComponentTypeSpec:
        """How component listings describe this type."""
        return dg.ComponentTypeSpec(produces=["asset", "asset_check", "job", "schedule", "sensor"])

    @classmethod
    def load(cls, attributes: BaseModel | None, context: dg.ComponentLoadContext) -> AuditedTable:
        """Make the component of one ``defs.yaml``; its folder names the table unless ``name`` does."""
        written = AttributesAsWritten.model_validate(attributes or {})
        settings = written.filled(context.resolution_context.scope)
        home = Path(os.environ.get(HOME) or context.project_root).resolve()
        return cls(settings=settings, folder=context.path.name, home=home)

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """The table's assets, checks, job and schedule.

        Raises:
            PlanError: the plan is wrong; shown by ``dg check defs``.
            GateError: the gate suite is wrong.
        """
        table = self.table()
        swept = table.plan.frontier is not None
        hours, checks, hourly = self.settings.fresh_hours, [], []
        if hours is not None and isinstance(table.partitions, dg.TimeWindowPartitionsDefinition):
            check, schedule = automation.freshness_of(table, table.partitions, hours)
            checks, hourly = [check], [schedule]
        everything = dg.AssetSelection.groups(table.key) - dg.AssetSelection.checks(*checks)
        frontier = dg.AssetSelection.assets(table.asset("frontier"))
        job = dg.define_asset_job(
            f"{table.key}_audit",
            selection=everything - frontier if swept else everything,
            description=f"Audits {table.plan.name} and releases it if every gate allows it.",
            tags=self._run_tags,
        )
        sweep = dg.define_asset_job(
            f"{table.key}_frontier",
            selection=frontier,
            description=f"Tries several generators for {table.plan.name}; releases nothing.",
            tags=self._run_tags,
        )
        return dg.Definitions(
            assets=[*places(table), *stage_assets(table)],
            asset_checks=[gate_checks(table), *checks],
            jobs=[job, sweep] if swept else [job],
            schedules=[*self._schedules(table, job), *hourly],
            sensors=list(self._sensors(table, job)),
        )

    def _sensors(
        self, table: TableEntry, job: dg.UnresolvedAssetJobDefinition
    ) -> Iterator[dg.SensorDefinition]:
        if isinstance(table.partitions, dg.DynamicPartitionsDefinition):
            yield automation.sensor_of(table.key, table.plan, job, table.partitions)
        if table.plan.release is not None and table.plan.release.approvals:
            yield automation.approvals_of(table)

    def table(self) -> TableEntry:
        """The table with its plan, suite and workspace, all checked before any data is touched."""
        values = self.settings.model_dump(
            mode="json", by_alias=True, exclude_unset=True, include=set(Plan.model_fields)
        )
        plan = parse_plan({"name": self.folder} | values, where=self.folder).located(self.home).check()
        made = [key for key in ("source", "generator", "frontier") if getattr(plan, key) is not None]
        if self.settings.made_elsewhere is not None and made:
            raise PlanError(
                "a table that others made is neither split nor fitted here",
                where=made[0],
                expected="`made_elsewhere` without `source`, `generator` and `frontier`",
                fix=f"leave out {' and '.join(made)}, or `made_elsewhere`",
            )
        if self.settings.made_elsewhere is None:
            plan.build_source()
            plan.build_generator()
        partitions = self._partitions(plan)
        if plan.frontier is not None:
            from synth_audit.studies.ranking import candidates_of

            candidates_of(plan, sys.maxsize)
        chosen, suite = self.settings.workspace, locate(plan.gates, plan.base)
        return TableEntry(
            key=_key(plan),
            plan=plan,
            suite=_read_suite(suite, suite.read_bytes()),
            workspace=workspace_of(plan, self.home / chosen if chosen else None),
            settings=self.settings,
            partitions=partitions,
        )

    def _partitions(self, plan: Plan) -> dg.PartitionsDefinition[str] | None:
        chosen = self.settings.snapshots
        if chosen is None:
            return None
        entry.refuse_unmarked(plan, chosen)
        if chosen.every == "file" and self.settings.schedule is not None:
            raise PlanError(
                "files come when they come, and a sensor runs them",
                where="schedule",
                expected="`snapshots: {every: file}` without `schedule`",
                fix="leave out `schedule`, and switch the sensor on",
            )
        return chosen.partitions(_key(plan), self.settings.timezone)

    @property
    def _run_tags(self) -> dict[str, str]:
        limit = self.settings.timeout
        # A run that was killed is not repeated where its fit would spend privacy budget once more.
        once = {} if self.settings.privacy is None else {_RETRIES: "0"}
        return self.settings.tags | once | ({} if limit is None else {_LONGEST: str(limit)})

    def _schedules(
        self, table: TableEntry, job: dg.UnresolvedAssetJobDefinition
    ) -> list[dg.ScheduleDefinition]:
        settings = self.settings
        if settings.schedule is None:
            return []
        if table.partitions is not None:
            return [
                automation.schedule_of(table.key, job, table.partitions, settings.schedule, settings.timezone)
            ]
        return [
            dg.ScheduleDefinition(
                name=f"{table.key}_schedule",
                job=job,
                cron_schedule=settings.schedule,
                execution_timezone=settings.timezone,
            )
        ]


def _key(plan: Plan) -> str:
    return re.sub(r"\W", "_", plan.name)


@lru_cache(maxsize=16)
def _read_suite(path: Path, content: bytes) -> Suite:
    """A suite; tables that share one have it read once, as long as its file does not change."""
    return load_suite(str(path), path.parent)


def templated(value: object) -> bool:
    """Whether a value, or one inside it, holds a template."""
    match value:
        case str():
            return _MARK in value
        case Mapping():
            return any(map(templated, value.values()))
        case list():
            return any(map(templated, value))
    return False


def filled(value: Any, scope: Mapping[str, Any], where: str = "") -> Any:
    """A value with its templates filled in; text without a template stays as it is.

    As in Dagster, text that reads as a number or a list becomes one. Other than in Dagster, a variable that
    is not set is refused: it would become the word None, or leave a setting at its default.

    Args:
        scope: what templates may name, as Dagster has it for the component.
        where: key of the value.

    Raises:
        PlanError: naming the key whose template cannot be filled in.
    """
    match value:
        case str() if _MARK in value:
            return _rendered(value, scope, where)
        case Mapping():
            return {key: filled(v, scope, f"{where}.{key}".lstrip(".")) for key, v in value.items()}
        case list():
            return [filled(v, scope, f"{where}.{i}") for i, v in enumerate(value)]
    return value


class _Environment:
    """The scope ``env``: ``env.NAME``, or ``env('NAME', default)``."""

    def __getattr__(self, name: str) -> str:
        try:
            return os.environ[name]
        except KeyError:
            raise AttributeError(name) from None  # which the template tells as undefined

    def __call__(self, name: str, *default: Any) -> Any:
        return os.environ.get(name, *default) if default else os.environ[name]


def _rendered(text: str, scope: Mapping[str, Any], where: str) -> Any:
    from jinja2 import StrictUndefined, Undefined  # lazy import: most tables have no template
    from jinja2.nativetypes import NativeEnvironment

    try:
        template = NativeEnvironment(undefined=StrictUndefined).from_string(text)
        found: Any = template.render({**scope, "env": _Environment()})
    except Exception as error:  # a template is the user's own code; what it raises may quote a variable
        raise _unfilled(where, type(error).__name__) from None
    if isinstance(found, Undefined) or templated(found):
        raise _unfilled(where, "undefined" if isinstance(found, Undefined) else f"it still holds {_MARK}")
    return found


def _unfilled(where: str, reason: str) -> PlanError:
    return PlanError(
        f"a template cannot be filled in ({reason})",
        where=where,
        expected="`{{ env.NAME }}` of a variable that is set, or `{{ env('NAME', 'default') }}`",
        fix="set the variable where Dagster loads this table, or write the value itself",
    )
