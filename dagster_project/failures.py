"""Errors on their way into the run database, where no cell value may appear."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg

from synth_audit.core.errors import ApprovalMissing, SynthAuditError

WAITING = "waiting for approval"
"""Kind of the failure of a release that people still have to approve."""


@contextmanager
def without_values(stage: str) -> Iterator[None]:
    """Turn any error into a ``Failure`` that shows no cell value and is never retried.

    The project's own errors are written to be shown and keep their text. Of any other error only
    kind and place remain: its text, its cause and its context may quote the data.
    """
    try:
        yield
    except SynthAuditError as error:
        waits = isinstance(error, ApprovalMissing)  # nothing is wrong: somebody has to sign
        raise _failure(stage, WAITING if waits else type(error).__name__, str(error)) from None
    except Exception as error:  # anything else may quote a cell: none may pass as it is
        from synth_audit.examination.audit_runner import describe_error

        raise _failure(stage, type(error).__name__, describe_error(error)) from None


def _failure(stage: str, kind: str, text: str) -> dg.Failure:
    return dg.Failure(
        description=f"{stage}: {text}", metadata={"stage": stage, "kind": kind}, allow_retries=False
    )
