"""How a command ends: its exit code, and errors without traceback or cell value."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from synth_audit.core.errors import ReleaseRefused, SynthAuditError

if TYPE_CHECKING:
    from synth_audit.pipeline.check import Check
    from synth_audit.store.evidence import Evidence
    from synth_audit.studies.frontier import FrontierRecord


class Exit(IntEnum):
    """Exit codes, worst last where several apply; an unexpected error counts as an audit's."""

    PASS = 0
    NOT_RELEASED = 1
    BAD_INPUT = 2
    AUDIT_ERROR = 3
    NOT_CHECKABLE = 4


def exit_code(evidence: Evidence) -> Exit:
    """3 when an audit errored, 0 on a pass, else 1."""
    if evidence.errored:
        return Exit.AUDIT_ERROR
    return Exit.PASS if evidence.verdict == "pass" else Exit.NOT_RELEASED


def verify_code(checks: Sequence[Check]) -> Exit:
    """1 when something does not hold, else 4 when something could not be checked, else 0."""
    if any(c.holds is False for c in checks):
        return Exit.NOT_RELEASED
    return Exit.PASS if all(c.holds for c in checks) else Exit.NOT_CHECKABLE


def sweep_code(record: FrontierRecord) -> Exit:
    """0 when a candidate was chosen, else 3 when one gave no table or an audit errored, else 1."""
    if record.chosen is not None:
        return Exit.PASS
    broken = any(c.problem for c in record.candidates)
    return Exit.AUDIT_ERROR if broken else Exit.NOT_RELEASED


_REPORT_IT = "this is a fault of the program or of a plug-in, not of the data; report it with this line"


def guarded(command: Callable[..., Exit]) -> Callable[..., None]:
    """End with the command's exit code; print errors without traceback or cell value."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            with _ending_in_order():
                code = command(*args, **kwargs)
        except ReleaseRefused as error:
            _complain(error)
            code = Exit.NOT_RELEASED
        except SynthAuditError as error:
            _complain(error)
            code = Exit.BAD_INPUT
        except Exception as error:  # its text may hold a cell value, so only kind and place are shown
            from synth_audit.examination.runner import describe_error

            _complain(SynthAuditError(f"unexpected {describe_error(error)}", fix=_REPORT_IT))
            code = Exit.AUDIT_ERROR
        sys.exit(code)

    return run


@contextmanager
def _ending_in_order() -> Iterator[None]:
    """Let a request to end (SIGTERM) act as Ctrl-C does, so that temporary folders are deleted.

    Not as an exit: that would be taken for an error of the audit at work.
    """

    def interrupt(signum: int, frame: object) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():  # only there may a handler be set
        yield
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _complain(error: SynthAuditError) -> None:
    click.echo(click.style("error: ", fg="red", bold=True) + str(error), err=True)
