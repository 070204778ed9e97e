"""One audited table as the assets and checks see it, and its snapshots as Dagster's partitions: each is
split, audited and released by itself."""

# Without `from __future__ import annotations`: pydantic reads them, and Dagster those of what it decorates.

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import dagster as dg
from pydantic import BaseModel, ConfigDict, Field, model_validator

from synth_audit.build import build_version
from synth_audit.errors import NotAsAudited, PlanError
from synth_audit.plan.plan import Plan, parse_plan
from synth_audit.plugins.audit import Need
from synth_audit.plugins.generator import Generator, Needs, needs_of
from synth_audit.plugins.plugin_config import Location
from synth_audit.store.evidence import Evidence
from synth_audit.store.workspace import Workspace
from synth_audit.verdict.suite import Suite

if TYPE_CHECKING:
    from synth_audit.dagster.component import TableSettings

GPU = "gpu"
"""Pool of stages with a fit that needs a GPU; its limit is set in the deployment, see ``docs/dagster.md``."""

MEMORY = "memory"
"""Pool of stages with a fit that needs much memory, and no GPU."""

ROLES = ("train", "control", "synthetic")
"""The tables that an audit is about."""

PLACEHOLDER = "{snapshot}"
"""Stands in ``source`` and ``release`` for the key of the snapshot."""

_KEY = re.compile(r"[\w-][\w.-]{0,99}", re.ASCII)
"""What may stand for a snapshot in paths and names."""

_TAKEN = ("restricted", "review", "candidates")
"""Folders of the table itself, beside which its snapshots have theirs."""

_PARTITIONS: dict[str, Any] = {
    "day": dg.DailyPartitionsDefinition,
    "week": dg.WeeklyPartitionsDefinition,
    "month": dg.MonthlyPartitionsDefinition,
}


class MadeElsewhere(BaseModel):
    """Where the three tables are that an audit is about."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    train: Location = Field(description="real rows that the synthetic ones were made from")
    control: Location = Field(description="real rows of the same population that the maker never had")
    synthetic: Location = Field(description="the table that was made")

    @model_validator(mode="after")
    def _three_places(self) -> "MadeElsewhere":
        if len({getattr(self, role).model_dump_json() for role in ROLES}) < len(ROLES):
            raise ValueError("two of train, control and synthetic are the same table")
        return self


class Snapshots(BaseModel):
    """When there is a new snapshot of the table."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    every: Literal["day", "week", "month", "file"] = Field(
        description="a snapshot for each day, week or month from `start` on, or for each file of the source"
    )
    start: date | None = Field(None, description="first day of the first snapshot")

    @model_validator(mode="after")
    def _started(self) -> "Snapshots":
        if (self.start is None) != (self.every == "file"):
            raise ValueError("snapshots of days, weeks and months have a `start`, those of files have none")
        return self

    def partitions(self, table: str, timezone: str) -> dg.PartitionsDefinition[str]:
        """Dagster's partitions; a day ends at midnight of the schedule's time zone."""
        if self.start is None:
            return dg.DynamicPartitionsDefinition(name=f"{table}_snapshots")
        made: dg.PartitionsDefinition[str] = _PARTITIONS[self.every](
            start_date=self.start.isoformat(), timezone=timezone
        )
        return made


@dataclass(frozen=True)
class TableEntry:
    """A table's plan, gates and files, and how the catalogue shows it.

    Attributes:
        key: first part of every asset key, and the group.
        settings: as its ``defs.yaml`` states them.
        partitions: one for each snapshot, where the table has such; None where it is one table.
    """

    key: str
    plan: Plan
    suite: "Suite"
    workspace: Workspace
    settings: "TableSettings"
    partitions: dg.PartitionsDefinition[str] | None = None

    def at(self, context: dg.AssetExecutionContext | dg.AssetCheckExecutionContext) -> "TableEntry":
        """The table of the snapshot that a run is about, or the table itself where it has none."""
        return self if self.partitions is None else self.snapshot(context.partition_key)

    def snapshot(self, key: str) -> "TableEntry":
        """The table of one snapshot, with files of its own."""
        plan = of_snapshot(self.plan, key)
        return replace(self, plan=plan, workspace=Workspace(self.workspace.root / key, table=self.workspace))

    def refuse_foreign(self, evidence: "Evidence") -> None:
        """Raise ``NotAsAudited`` for evidence of another plan or suite than today's: a run must not bear the
        verdict of another."""
        if (evidence.plan_sha256, evidence.gates.suite_sha256) == (self.plan.digest, self.suite.sha256):
            return
        raise NotAsAudited(
            "the newest evidence is of another plan or gate suite",
            where=str(self.workspace.root),
            expected="evidence of today's plan and suite",
            fix="run the table from its split",
        )

    @property
    def released(self) -> dg.AssetKey:
        """Asset key of the released table."""
        return dg.AssetKey.from_user_string(self.settings.released_key or f"{self.key}/released")

    def asset(self, stage: str) -> dg.AssetKey:
        """Asset key of a stage."""
        return dg.AssetKey([self.key, stage])

    def code_version(self, stage: str) -> str:
        """Changes with the build of the package, the plan and, where gates are judged, the suite.

        Dagster shows from it which stages are out of date.
        """
        version = f"{build_version()}+{self.plan.digest[:12]}"
        if stage == "frontier" and self.plan.frontier is not None:
            version += f"+{self.plan.frontier.model_dump_json()}"
        return version if stage in ("split", "synthetic") else f"{version}+{self.suite.sha256[:12]}"


def pool_of(table: TableEntry, stage: str) -> str | None:
    """The pool in which a stage waits for its turn; None for what may run beside anything."""
    needs = Needs()
    for generator in _fitted(table, stage):
        needs |= needs_of(generator)
    return GPU if needs.gpu else MEMORY if needs.memory else None


def _fitted(table: TableEntry, stage: str) -> Iterator[Generator]:
    """The generators that a stage fits: games do so too, and a sweep all its candidates."""
    plan = table.plan
    if stage == "frontier":
        from synth_audit.studies.ranking import candidates_of

        yield from (candidate.plan.build_generator() for candidate in candidates_of(plan, sys.maxsize))
    elif plan.generator is not None and stage in ("synthetic", "audit"):
        generator = plan.build_generator()
        needs = needs_of(generator)
        # What waits for nothing is not asked about: that loads every audit.
        if stage == "synthetic" or ((needs.gpu or needs.memory) and fits(table, stage)):
            yield generator


def fits(table: TableEntry, stage: str) -> bool:
    """Whether a stage fits a generator; an audit does so in games."""
    if stage != "audit" or table.plan.generator is None:
        return stage in ("synthetic", "frontier")
    from synth_audit.pipeline.stages import audits_of

    return any(Need.GENERATOR in a.info.needs for a in audits_of(table.plan, table.suite).values())


def refuse_unmarked(plan: Plan, snapshots: Snapshots) -> None:
    """Raise ``PlanError`` where snapshots would be the same rows, or replace one another."""
    if plan.privacy is not None:
        raise PlanError(
            "a privacy budget is of one table, and each snapshot has a ledger of its own",
            where="privacy",
            expected="`snapshots` without `privacy`",
            fix="leave one of them out: a person in several snapshots would be charged in each alone",
        )
    for place in ("source", "release"):
        choice = getattr(plan, place)
        if choice is not None and PLACEHOLDER not in str(choice.config):
            raise PlanError(
                f"every snapshot would have the same {place}",
                where=place,
                expected=f"{PLACEHOLDER} where its key stands, as in `people-{PLACEHOLDER}.parquet`",
                fix=f"put {PLACEHOLDER} into its path or table",
            )
    if plan.source is None:
        raise PlanError(
            "snapshots are pulled from a source",
            where="snapshots",
            expected=f"a `source` with {PLACEHOLDER}",
            fix="leave out `snapshots`: tables that others made are audited one by one",
        )
    if snapshots.every == "file" and pattern_of(plan) is None:
        raise PlanError(
            "the source's snapshots are no files of one folder",
            where="source",
            expected=f"a `path` with {PLACEHOLDER} once, in the name of the file",
            fix="name such a path, or `every: day`, `week` or `month`",
        )
    pattern, path = pattern_of(plan), plan.release.config.get("path") if plan.release is not None else None
    if snapshots.every != "file" or pattern is None or not isinstance(path, str):
        return
    released = plan.base / path.replace(PLACEHOLDER, "0")
    # A release would lie where new files of the source are looked for.
    if released.parent.resolve() == pattern.parent.resolve() and key_of(released.name, pattern) is not None:
        raise PlanError(
            "a released file would be found as the next snapshot, or take the place of one",
            where="release",
            expected="a path whose name does not fit that of the source, or another folder",
            fix="let releases go to a folder of their own",
        )


def of_snapshot(plan: Plan, key: str) -> Plan:
    """The plan of one snapshot: its key stands in the places and in the table's name.

    Raises:
        PlanError: no path or name can hold such a key.
    """
    if not _KEY.fullmatch(key) or key in _TAKEN:
        raise PlanError("no key of a snapshot", where="partition", expected="letters, digits, `_`, `.`, `-`")
    values = plan.model_dump(mode="json", by_alias=True, exclude_unset=True)
    places = {place: _filled(values[place], key) for place in ("source", "release") if values.get(place)}
    named = {"name": f"{plan.name}-{key}"}
    return parse_plan(values | places | named, where=f"snapshot {key}").located(plan.base)


def _filled(value: Any, key: str) -> Any:
    if isinstance(value, str):
        return value.replace(PLACEHOLDER, key)
    if isinstance(value, dict):
        return {name: _filled(inner, key) for name, inner in value.items()}
    return [_filled(inner, key) for inner in value] if isinstance(value, list) else value


def pattern_of(plan: Plan) -> Path | None:
    """The source's path, with the placeholder in the name of the file; None where it is no such path."""
    path = plan.source.config.get("path") if plan.source is not None else None
    if not isinstance(path, str) or path.count(PLACEHOLDER) != 1 or PLACEHOLDER not in Path(path).name:
        return None
    return plan.base / path


def key_of(name: str, pattern: Path) -> str | None:
    """What stands in the place of the placeholder in a file's name; None where the name does not fit."""
    first, last = pattern.name.split(PLACEHOLDER)
    if not (name.startswith(first) and name.endswith(last) and len(name) > len(first) + len(last)):
        return None
    key = name[len(first) : len(name) - len(last)]
    return key if _KEY.fullmatch(key) and key not in _TAKEN else None
