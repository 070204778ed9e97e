"""The assets of a table: its stages, each of which calls the library and describes what it left, and the
tables before and behind them.

Where others made the table, a vendor or dbt, nothing is fitted here, and all else is as for our own.
"""

# Without `from __future__ import annotations`: Dagster reads the annotations of what it decorates.

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import dagster as dg
import pyarrow as pa

import synth_audit as api
from synth_audit.dagster import messages, metadata, outcomes
from synth_audit.dagster.entry import ROLES, MadeElsewhere, TableEntry, fits, pool_of
from synth_audit.errors import PlanError, SynthAuditError
from synth_audit.execution import telemetry
from synth_audit.execution.context import RunContext
from synth_audit.inputs import run_context
from synth_audit.plugins.source import read_whole
from synth_audit.store.evidence_store import evidence_store
from synth_audit.store.locate import newest_evidence
from synth_audit.store.scratch import in_use

WORKERS = "SYNTH_AUDIT_WORKERS"
"""Environment variable: processes that an audit is spread over; the numbers do not depend on it."""

Told = tuple[dict[str, Any], str]
"""Metadata, and the content hash, under the salt, that tells Dagster whether anything changed."""

_FOLLOWS = dg.AutomationCondition.eager() & dg.AutomationCondition.all_deps_blocking_checks_passed()
"""When ``release`` follows by itself, once Dagster's automation sensor is switched on."""


@dataclass(frozen=True)
class Stage:
    """One step of the way through the house; the assets follow one another in the order given here."""

    name: str
    does: str
    kind: str
    run: Callable[[TableEntry, RunContext], Told]


def places(table: TableEntry) -> list[dg.AssetSpec]:
    """What others make: the source, or the three tables."""
    plan, made = table.plan, table.settings.made_elsewhere
    before = [dg.AssetKey.from_user_string(name) for name in table.settings.deps]
    found: dict[str, tuple[str, str]] = {}
    if made is not None:
        found = {n: (getattr(made, n).name, MadeElsewhere.model_fields[n].description or "") for n in ROLES}
    if plan.source is not None:
        found["source"] = (plan.source.name, "The sensitive table.")
    return [
        _described(table, table.asset(name), what, {kind, "table"}, before)
        for name, (kind, what) in found.items()
    ]


def _described(
    table: TableEntry, key: dg.AssetKey, what: str, kinds: set[str], deps: list[dg.AssetKey]
) -> dg.AssetSpec:
    return dg.AssetSpec(
        key,
        deps=deps,
        group_name=table.key,
        kinds=kinds,
        partitions_def=table.partitions,
        owners=list(table.settings.owners),
        tags=dict(table.settings.tags),
        description="\n\n".join(filter(None, [what, table.settings.description])),
    )


def stage_assets(table: TableEntry) -> list[dg.AssetsDefinition]:
    """The table's assets in order; ``release`` and ``frontier`` only where the plan has such a key.

    A sweep hangs on the split alone, which it makes itself when there is none of this plan.
    """
    made_here = table.settings.made_elsewhere is None
    known = STAGES if made_here else [s for s in STAGES if s.name not in ("split", "synthetic")]
    stages = [s for s in known if s.name != "release" or table.plan.release is not None]
    first = ("source",) if made_here else ROLES
    deps = [[table.asset(name) for name in first], *([table.asset(s.name)] for s in stages)]
    assets = [_asset(table, stage, before) for stage, before in zip(stages, deps, strict=False)]
    if table.plan.frontier is not None:
        assets.append(_asset(table, FRONTIER, [table.asset("split")]))
    return assets


def _asset(table: TableEntry, stage: Stage, deps: list[dg.AssetKey]) -> dg.AssetsDefinition:
    hours = table.settings.fresh_hours
    if isinstance(table.partitions, dg.TimeWindowPartitionsDefinition):
        hours = None  # a check of its own looks at the newest snapshot: see `freshness_of`
    fresh = None if hours is None else dg.FreshnessPolicy.time_window(fail_window=timedelta(hours=hours))
    plan = table.plan
    choice = {"split": plan.source, "synthetic": plan.generator, "release": plan.release}.get(stage.name)
    kinds = {stage.kind} | ({choice.name} if choice else set())
    does = _described(table, table.asset(stage.name), stage.does, kinds, deps).replace_attributes(
        skippable=True,
        code_version=table.code_version(stage.name),
        automation_condition=_FOLLOWS if stage.name == "release" else None,
        freshness_policy=fresh if stage.name == "release" else None,
    )
    specs = [does]
    if stage.name == "release" and plan.release is not None:
        what, kinds = "The table that was released.", {plan.release.name, "table"}
        released = _described(table, table.released, what, kinds, [does.key])
        specs.append(released.replace_attributes(skippable=True))

    @dg.multi_asset(
        name=f"{table.key}__{stage.name}",
        specs=specs,
        can_subset=len(specs) > 1,
        pool=pool_of(table, stage.name),
        retry_policy=outcomes.RETRY if stage.name in ("split", "audit", "release") else None,
    )
    def run_stage(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult[None]]:
        here = table
        outcomes.disown(context)
        try:
            with outcomes.without_values(stage.name, lambda: fits(here, stage.name)):
                telemetry.switch_on(context.run.run_id)
                here = table.at(context)
                told, digest = _left(here, stage, context)
        except outcomes.REFUSED as refusal:  # decided so: the run is well, and skips what hangs on this
            outcomes.tell_refusal(here, stage.name, refusal, context)
            return
        for key, left in {spec.key: told if spec is does else _as_released(told) for spec in specs}.items():
            if key in context.selected_asset_keys:
                yield dg.MaterializeResult(asset_key=key, metadata=left, data_version=dg.DataVersion(digest))
            else:  # a run of `release` alone changes the released table, too
                partition = context.partition_key if table.partitions is not None else None
                tags = {"dagster/data_version": digest}
                context.log_event(dg.AssetMaterialization(key, metadata=left, tags=tags, partition=partition))

    return run_stage


def _left(table: TableEntry, stage: Stage, context: dg.AssetExecutionContext) -> Told:
    """What the stage made, having told of places that are not its own."""

    def progress(what: str, done: int, total: int) -> None:
        context.log.info(f"{stage.name}: {what} ({done} of {total})")

    with (
        in_use(table.workspace, write_rows=table.plan.execution.write_real_rows) as scratch,
        run_context(table.plan, scratch, workers=_workers(), progress=progress) as how,
    ):
        told, digest = stage.run(table, how)
        if stage.name == "release":
            outcomes.tag(context, table, outcomes.OUTCOME, outcomes.RELEASED)
        if stage.name == "split" and table.plan.source is not None:
            context.log_event(_as_pulled(table, told, context))
        if stage.name == "report":
            outcomes.tag(context, table, outcomes.VERDICT, str(told["verdict"]))
        if stage.name == "report" or (stage.name == "release" and os.environ.get(messages.TARGET)):
            for problem in _sent(table, stage.name, context.run.run_id):
                context.log.warning(problem)
    return told, digest


def _sent(table: TableEntry, stage: str, run: str) -> Iterator[str]:
    """Send the verdict to whom it may concern, and each event to OpenLineage's readers.

    Yields:
        Why something could not be sent, which changes nothing else.
    """

    try:
        evidence = newest_evidence(table.workspace)
    except SynthAuditError as error:  # altered since: what was released stays released
        yield f"nothing was sent: {error.what}"
        return
    told = messages.released
    if stage == "report":
        told, path = messages.judged, evidence_store(table.workspace).where(evidence.digest)["report"]
        if problem := messages.send_verdict(messages.message(table, evidence, path)):
            yield f"{problem}; the verdict stands"
    if problem := messages.send_event(told(table, evidence, run)):
        yield problem


def _as_pulled(
    table: TableEntry, told: dict[str, Any], context: dg.AssetExecutionContext
) -> dg.AssetObservation:
    """What the source's own page tells of a split."""
    names = ("source, keyed hash", "dagster/row_count")
    return dg.AssetObservation(
        table.asset("source"),
        metadata={name: told[name] for name in names},
        tags={"dagster/data_version": told["source, keyed hash"]},
        partition=context.partition_key if table.partitions is not None else None,
    )


def _as_released(told: dict[str, Any]) -> dict[str, Any]:
    """What the released table's own page tells of a release."""
    names = ("table", "where", "certificate link", "released sha256", "dagster/row_count")
    return {name: told[name] for name in names if name in told}


def _rows(table: TableEntry, role: str) -> pa.Table:
    place = getattr(table.settings.made_elsewhere, role)
    source = table.plan.model_copy(update={"source": place}).build_source()
    return read_whole(source, table.plan.base)


def _split(table: TableEntry, context: RunContext) -> Told:
    from synth_audit.pipeline.stages import split_table

    record = split_table(table.plan, table.workspace)
    return metadata.split(record), metadata.joined(record.train.hmac, record.control.hmac)


def _synthetic(table: TableEntry, context: RunContext) -> Told:
    from synth_audit.pipeline.stages import make_synthetic

    record = make_synthetic(table.plan, table.workspace, context)
    return metadata.synthetic(record), record.table.hmac


def _audit(table: TableEntry, context: RunContext) -> Told:
    from synth_audit.pipeline.stages import audit_synthetic

    if table.settings.made_elsewhere is None:
        evidence = audit_synthetic(table.plan, table.workspace, context)
    else:
        train, control, synthetic = (_rows(table, role) for role in ROLES)
        evidence = api.audit(
            train,
            control,
            synthetic,
            table.plan,
            out=table.workspace.root,
            progress=context.progress,
            workers=_workers(),
        )
    return metadata.audit(evidence, table.workspace), evidence.digest


def _report(table: TableEntry, context: RunContext) -> Told:
    from synth_audit.report import write_report

    path = write_report(table.workspace)
    evidence = newest_evidence(table.workspace)
    table.refuse_foreign(evidence)
    return metadata.report(evidence, path, metadata.pages(table, evidence)), evidence.digest


def _release(table: TableEntry, context: RunContext) -> Told:
    from synth_audit.pipeline.stages import release_synthetic

    if table.settings.made_elsewhere is None:
        record = release_synthetic(table.plan, table.workspace)
    else:  # read once more where it lies: its content must be the same
        record = api.release(table.plan, table.workspace.root, _rows(table, "synthetic"))
    pages = metadata.pages(table, newest_evidence(table.workspace))
    return metadata.release(table.plan.name, record, pages), record.table.hmac


def _frontier(table: TableEntry, context: RunContext) -> Told:
    record = api.swept(table.plan, table.workspace, context)
    return metadata.frontier(record, table.workspace), record.digest


def _workers() -> int | None:
    """As many as the environment says, else as the plan does.

    Raises:
        PlanError: it says no number.
    """
    given = os.environ.get(WORKERS, "").strip()
    if given and not given.isdecimal():
        raise PlanError("no number of processes", where=WORKERS, expected="a whole number such as 4")
    return int(given) if given else None


STAGES = (
    Stage("split", "Pulls the sensitive table and sets control rows aside.", "parquet", _split),
    Stage("synthetic", "Fits the generator on train and draws the candidate.", "parquet", _synthetic),
    Stage("audit", "Attacks and measures the candidate; judges every gate.", "json", _audit),
    Stage("report", "Renders the report from the evidence; carries a check for each gate.", "html", _report),
    Stage("release", "Releases exactly the audited bytes, or refuses.", "table", _release),
)

FRONTIER = Stage(
    "frontier", "Tries every candidate of the plan and chooses among those that pass.", "html", _frontier
)
"""Stands beside the others and runs on request: it says which generator the plan should have."""
