"""How a run of Dagster ends: released, refused, or failed, with no cell value in any message.

A refusal is something that a run found out, not something that broke it. A failure says of what kind it is.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import dagster as dg
from dagster_shared.record import copy

from synth_audit import errors
from synth_audit.dagster import messages, metadata
from synth_audit.dagster.entry import TableEntry
from synth_audit.store.locate import newest_evidence

REFUSED = (errors.ReleaseRefused, errors.BudgetSpent)
"""What a stage may say instead of leaving anything; ``without_values`` lets only the decided ones through."""

OUTCOME, VERDICT = "synth_audit/outcome", "synth_audit/verdict"
"""How the tags of a run begin, by which lists of runs can be filtered; the table's name ends them."""

RELEASED, NOT_RELEASED, OPEN = "released", "not released", "open"

_TOLD_BY = ".dagster/synth_audit_told_by"
"""Tag: id of the run that the others are about; Dagster's pages leave out tags that begin so."""

_TAG = 55
"""Letters of a table's name in a tag: Dagster takes 63 behind the slash."""

WAITING, OPEN_EVIDENCE, REFUSAL = "waiting for approval", "insufficient evidence", "refusal"
"""What is no failure: people have yet to sign, nothing could be decided, or we decided so."""

MISMATCH, OUTAGE, INPUT, FAULT = "mismatch", "outage", "input", "fault"
"""What a failure is: what is there is not what was audited, something may be there later, the plan or the
data are mistaken, or a bug."""

RETRY = dg.RetryPolicy(max_retries=3, delay=60.0)
"""How often a stage that met a lock or a lost server is tried again, and after how many seconds."""


class GateCheckResult(dg.AssetCheckResult):
    """The result of a gate, which ends no run.

    The check is a blocking one for whoever depends on the report and for automation. Dagster would also
    end the run in which it does not pass, by an error with a trace; here the run goes on to ``release``,
    which judges the evidence anew and leaves nothing.
    """

    __slots__ = ()

    def to_asset_check_evaluation(self, step_context: Any) -> dg.AssetCheckEvaluation:
        """As Dagster makes it, without what ends the run."""
        return copy(super().to_asset_check_evaluation(step_context), blocking=False)


def tell_refusal(
    table: TableEntry, stage: str, error: errors.SynthAuditError, context: dg.AssetExecutionContext
) -> None:
    """Leave the refusal on the asset, in the log and in the run's tags."""
    kind, grounds = kind_of_failure(error), _grounds(table, stage)
    context.log_event(
        dg.AssetObservation(
            table.asset(stage),
            partition=context.partition_key if table.partitions is not None else None,
            description=str(error),
            metadata={
                "released": "no",
                "kind": kind,
                "reason": error.what,
                "what to do": error.fix,
                **grounds,
            },
        )
    )
    told = (str(grounds[name].value) for name in ("reasons", "report link") if name in grounds)
    context.log.warning("\n".join((f"{stage}: {error}", *told)))
    if problem := messages.send_event(messages.refused(table, stage, error.what, context.run.run_id)):
        context.log.warning(problem)
    tag(context, table, OUTCOME, f"{NOT_RELEASED}: {'refused' if kind == REFUSAL else kind}")


def tag(context: dg.AssetExecutionContext, table: TableEntry, name: str, value: str) -> None:
    """Set a table's tag of the run, which may be about several tables."""
    run = context.run.run_id
    context.instance.add_run_tags(run, {f"{name}.{table.key[:_TAG]}": value, _TOLD_BY: run})


def disown(context: dg.AssetExecutionContext) -> None:
    """Call open what the run that this one repeats came to: Dagster hands on the tags of that one, and this
    one may end otherwise, or break off."""
    run = context.instance.get_run_by_id(context.run.run_id)  # as it is now: earlier stages may have told
    if run is not None and (tags := run.tags).get(_TOLD_BY) != run.run_id:
        old = dict.fromkeys((name for name in tags if name.startswith((OUTCOME, VERDICT))), OPEN)
        if old:
            context.instance.add_run_tags(run.run_id, old | {_TOLD_BY: run.run_id})


def _grounds(table: TableEntry, stage: str) -> dict[str, Any]:
    """What a refused release rests on, and where it can be read."""
    if stage != "release":
        return {}
    try:
        evidence = newest_evidence(table.workspace)
    except errors.SynthAuditError:  # there is none, or none to be trusted: the refusal itself says so
        return {}
    return metadata.refusal(evidence, metadata.pages(table, evidence))


@contextmanager
def without_values(stage: str, fits: Callable[[], bool] = lambda: True) -> Iterator[None]:
    """Turn any error but a refusal into a ``Failure`` that shows no cell value.

    The project's own errors are written to be shown and keep their text. Of any other error only
    kind and place remain: its text, its cause and its context may quote the data. Only what may be there
    later is tried again, and never a fit, whose second run would spend its privacy budget once more.

    Args:
        fits: whether the stage fits a generator.
    """
    try:
        yield
    except errors.SynthAuditError as error:
        if (kind := kind_of_failure(error)) in (REFUSAL, OPEN_EVIDENCE, WAITING):
            raise
        name, told = type(error).__name__, str(error)
    except dg.DagsterExecutionInterruptedError:  # nothing broke: no trace of where the work stood
        raise dg.DagsterExecutionInterruptedError from None
    except Exception as error:  # anything else may quote a cell: none may pass as it is
        from synth_audit.examination.audit_runner import describe_error

        kind = OUTAGE if errors.may_pass(error) else FAULT
        name, told = type(error).__name__, describe_error(error)
    else:
        return
    failure = dg.Failure(
        description=f"{stage}: {told}",
        metadata={"stage": stage, "kind": kind, "error": name},
        allow_retries=kind == OUTAGE and not fits(),
    )
    raise failure from None


def kind_of_failure(error: errors.SynthAuditError) -> str:
    """Waiting, insufficient evidence, refusal, mismatch, outage or input."""
    if isinstance(error, (errors.NotAsAudited, errors.Altered)):
        return MISMATCH
    if isinstance(error, errors.ApprovalMissing):
        return WAITING
    if isinstance(error, errors.EvidenceInsufficient):
        return OPEN_EVIDENCE
    if isinstance(error, (errors.ReleaseRefused, errors.BudgetSpent)):
        return REFUSAL
    return OUTAGE if errors.may_pass(error) else INPUT
