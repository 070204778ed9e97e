"""Errors on their way into the run database, where no cell value may appear; each says of what kind it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import dagster as dg

from synth_audit.errors import (
    Altered,
    ApprovalMissing,
    BudgetSpent,
    NotAsAudited,
    ReleaseRefused,
    SynthAuditError,
    may_pass,
)

WAITING, REFUSAL = "waiting for approval", "refusal"
"""What is no failure: people have yet to sign, or we decided so."""

MISMATCH, OUTAGE, INPUT, FAULT = "mismatch", "outage", "input", "fault"
"""What a failure is: what is there is not what was audited, something may be there later, the plan or the
data are mistaken, or a bug."""

RETRIES, SECONDS = 3, 60.0
"""How often a stage that met a lock or a lost server is tried again, and after how long."""

_RETRIED = ("split", "release")
"""Stages that meet servers, and may run twice: neither fits a generator."""


@contextmanager
def without_values(stage: str) -> Iterator[None]:
    """Turn any error but a refusal into a ``Failure`` that shows no cell value.

    The project's own errors are written to be shown and keep their text. Of any other error only
    kind and place remain: its text, its cause and its context may quote the data. Only what may be there
    later is tried again, and never a fit, whose second run would spend its privacy budget once more.
    """
    try:
        yield
    except SynthAuditError as error:
        if (kind := kind_of(error)) in (REFUSAL, WAITING):
            raise
        _raise(_failure(stage, kind, type(error).__name__, str(error)))
    except Exception as error:  # anything else may quote a cell: none may pass as it is
        from synth_audit.examination.audit_runner import describe_error

        kind = OUTAGE if may_pass(error) else FAULT
        _raise(_failure(stage, kind, type(error).__name__, describe_error(error)))


def _raise(failure: dg.Failure) -> NoReturn:
    if failure.allow_retries:
        raise dg.RetryRequested(RETRIES, SECONDS) from failure
    raise failure from None


def kind_of(error: SynthAuditError) -> str:
    """Waiting, refusal, mismatch, outage or input."""
    if isinstance(error, (NotAsAudited, Altered)):
        return MISMATCH
    if isinstance(error, ApprovalMissing):
        return WAITING
    if isinstance(error, (ReleaseRefused, BudgetSpent)):
        return REFUSAL
    return OUTAGE if may_pass(error) else INPUT


def _failure(stage: str, kind: str, error: str, text: str) -> dg.Failure:
    return dg.Failure(
        description=f"{stage}: {text}",
        metadata={"stage": stage, "kind": kind, "error": error},
        allow_retries=kind == OUTAGE and stage in _RETRIED,
    )
