"""A refusal in Dagster: something that a run found out, not something that broke it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import dagster as dg
from dagster_shared.record import copy

from synth_audit.dagster import metadata, openlineage
from synth_audit.dagster.entry import TableEntry
from synth_audit.dagster.failures import REFUSAL, kind_of
from synth_audit.dagster.verdict_message import report_link
from synth_audit.errors import BudgetSpent, ReleaseRefused, SynthAuditError

if TYPE_CHECKING:
    from dagster import AssetCheckEvaluation
    from dagster._core.execution.context.system import StepExecutionContext

REFUSED = (ReleaseRefused, BudgetSpent)
"""What a stage may say instead of leaving anything; ``without_values`` lets only the decided ones through."""

OUTCOME, VERDICT = "synth_audit/outcome", "synth_audit/verdict"
"""Tags of a run, by which lists of runs can be filtered."""

RELEASED, OPEN = "released", "open"

_TOLD_BY = "synth_audit_told_by"
"""Tag: id of the run that the others are about."""


class GateCheckResult(dg.AssetCheckResult):
    """The result of a gate, which ends no run.

    The check is a blocking one for whoever depends on the report and for automation. Dagster would also
    end the run in which it does not pass, by an error with a trace; here the run goes on to ``release``,
    which judges the evidence anew and leaves nothing.
    """

    __slots__ = ()

    def to_asset_check_evaluation(self, step_context: StepExecutionContext) -> AssetCheckEvaluation:
        """As Dagster makes it, without what ends the run."""
        return copy(super().to_asset_check_evaluation(step_context), blocking=False)


def tell_refusal(
    table: TableEntry, stage: str, error: SynthAuditError, context: dg.AssetExecutionContext
) -> None:
    """Leave the refusal on the asset, in the log and in the run's tags."""
    kind = kind_of(error)
    context.log_event(
        dg.AssetObservation(
            table.asset(stage),
            partition=context.partition_key if table.partitions is not None else None,
            description=str(error),
            metadata={"kind": kind, "reason": error.what, "what to do": error.fix, **_grounds(table, stage)},
        )
    )
    context.log.warning(f"{stage}: {error}")
    if problem := openlineage.send(openlineage.refused(table, stage, error.what, context.run.run_id)):
        context.log.warning(problem)
    tag(context, OUTCOME, "refused" if kind == REFUSAL else kind)


def tag(context: dg.AssetExecutionContext, name: str, value: str) -> None:
    """Set a tag of the run."""
    context.instance.add_run_tags(context.run.run_id, {name: value, _TOLD_BY: context.run.run_id})


def disown(context: dg.AssetExecutionContext) -> None:
    """Call open what the run that this one repeats came to: Dagster hands on the tags of that one, and this
    one may end otherwise, or break off."""
    run = context.instance.get_run_by_id(context.run.run_id)  # as it is now: earlier stages may have told
    tags = run.tags if run is not None else {}
    if tags.get(_TOLD_BY, context.run.run_id) != context.run.run_id:
        for name in {OUTCOME, VERDICT} & set(tags):
            tag(context, name, OPEN)


def _grounds(table: TableEntry, stage: str) -> dict[str, Any]:
    """What a refused release rests on, and where it can be read."""
    from synth_audit.store.evidence_store import evidence_store
    from synth_audit.store.locate import newest_evidence

    if stage != "release":
        return {}
    try:
        evidence = newest_evidence(table.workspace)
    except SynthAuditError:  # there is none, or none to be trusted: the refusal itself says so
        return {}
    path = evidence_store(table.workspace).where(evidence.digest)["report"]
    return metadata.refusal(evidence, report_link(table.plan.name, evidence.digest, path))
