"""Errors on their way into the run database, where no cell value may appear; each says of what kind it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import dagster as dg

from synth_audit.core.errors import (
    ApprovalMissing,
    BudgetSpent,
    ReleaseRefused,
    ReleaseUncertain,
    SynthAuditError,
    Unavailable,
)

WAITING = "waiting for approval"
REFUSAL, OUTAGE, INPUT, FAULT = "refusal", "outage", "input", "fault"
"""What a failure is: people have yet to sign, we decided so, something may be there later, the plan or the
data are mistaken, or a bug."""

RETRIES, SECONDS = 3, 60.0
"""How often a stage that met a lock or a lost server is tried again, and after how long."""

_RETRIED = ("split", "release")
"""Stages that meet servers, and may run twice: neither fits a generator."""


Told = Callable[[], Mapping[str, Any]]


def _nothing() -> Mapping[str, Any]:
    return {}


@contextmanager
def without_values(stage: str, refused: Told = _nothing) -> Iterator[None]:
    """Turn any error into a ``Failure`` that shows no cell value.

    The project's own errors are written to be shown and keep their text. Of any other error only
    kind and place remain: its text, its cause and its context may quote the data. Only what may be there
    later is tried again, and never a fit, whose second run would spend its privacy budget once more.

    Args:
        refused: metadata that say of a refusal what it rests on.
    """
    try:
        yield
    except SynthAuditError as error:
        kind = kind_of(error)
        more = refused() if kind in (REFUSAL, WAITING) else {}
        failure = _failure(stage, kind, type(error).__name__, str(error), more)
        if failure.allow_retries:
            raise dg.RetryRequested(RETRIES, SECONDS) from failure
        raise failure from None
    except Exception as error:  # anything else may quote a cell: none may pass as it is
        from synth_audit.examination.audit_runner import describe_error

        raise _failure(stage, FAULT, type(error).__name__, describe_error(error)) from None


def kind_of(error: SynthAuditError) -> str:
    """Waiting, refusal, outage or input."""
    if isinstance(error, ApprovalMissing):
        return WAITING
    if isinstance(error, (ReleaseRefused, BudgetSpent)):
        return REFUSAL
    return OUTAGE if isinstance(error, (Unavailable, ReleaseUncertain)) else INPUT


def _failure(
    stage: str, kind: str, error: str, text: str, more: Mapping[str, Any] | None = None
) -> dg.Failure:
    return dg.Failure(
        description=f"{stage}: {text}",
        metadata={"stage": stage, "kind": kind, "error": error, **(more or {})},
        allow_retries=kind == OUTAGE and stage in _RETRIED,
    )
