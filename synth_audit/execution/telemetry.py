"""What operations see of a run: log lines, a file of metrics, and spans. No cell value and no error's text.

The command line and Dagster switch log and metrics on. Spans go to OpenTelemetry where its API is installed.
"""

import json
import logging
import os
import re
import resource
import secrets
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from synth_audit.build import VERSION
from synth_audit.errors import PlanError

LOG = "SYNTH_AUDIT_LOG"
"""Environment variable: file that gets a JSON line for each stage and audit; `-` for the error output."""

METRICS = "SYNTH_AUDIT_METRICS"
"""Environment variable: folder of node_exporter's textfile collector, which gets a file for each stage of a
table."""

_LOGGER = logging.getLogger("synth_audit")

_BILLION = 10**9
"""Nanoseconds of a second."""

_RSS_UNIT = 1 if sys.platform == "darwin" else 1024
"""Bytes of the unit in which the system counts memory."""


@dataclass
class ReportedStage:
    """A stage of a table that is under way.

    Attributes:
        run: names the process, or Dagster's run.
        attempt: number of the audit on the table; 0 where none is counted.
        status: how it ended: ``done``, the verdict of an audit, or the class of an error.
    """

    run: str
    table: str
    name: str
    attempt: int = 0
    status: str = "done"


_PROCESS = secrets.token_hex(6)
_RUN: ContextVar[str] = ContextVar("run", default=_PROCESS)
_STAGE: ContextVar[ReportedStage | None] = ContextVar("stage", default=None)


@contextmanager
def stage(name: str, table: str) -> Iterator[ReportedStage]:
    """Report how a stage ends, and the audits in it as parts of it."""
    now, start = ReportedStage(_RUN.get(), table, name), time.perf_counter()
    before = _STAGE.set(now)
    tracer = _tracer()
    # An exception's text may hold a cell value, so the span must not record it.
    silent = {"record_exception": False, "set_status_on_exception": False}
    with tracer.start_as_current_span(f"{name} {table}", **silent) if tracer else nullcontext() as span:
        try:
            yield now
        except BaseException as error:
            now.status = type(error).__name__
            raise
        finally:
            _STAGE.reset(before)
            event = _reported(now, "", now.status, time.perf_counter() - start, peak_memory())
            if span is not None:
                span.set_attributes(event)


def audit_ended(audit: str, status: str, seconds: float, rss: int) -> None:
    """Report an audit of the stage that is under way; without a stage nothing is reported.

    Args:
        audit: its name, and the planted share where leaks were planted.
        rss: most bytes of memory that its process has held.
    """
    if (now := _STAGE.get()) is None:
        return
    event = _reported(now, audit, status, seconds, rss)
    if tracer := _tracer():
        end = time.time_ns()
        begun = end - round(seconds * _BILLION)
        tracer.start_span(audit, start_time=begun, attributes=event).end(end)


def peak_memory() -> int:
    """Most bytes of memory that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _RSS_UNIT


def switch_on(run: str = "") -> None:
    """Write what the environment asks for: a log, metrics, both or none.

    Args:
        run: what to name this process by; a random name if left out.

    Raises:
        PlanError: the log cannot be written, or the metrics' folder does not exist.
    """
    if run:
        _RUN.set(run)
    for old in [h for h in _LOGGER.handlers if isinstance(h.formatter, _JsonLine) or type(h) is _Textfile]:
        _LOGGER.removeHandler(old)
        old.close()
    if log := os.environ.get(LOG):
        try:
            handler = logging.StreamHandler() if log == "-" else logging.FileHandler(log)
        except OSError as error:
            raise _unusable(LOG, error, "`-`, or a file that can be written") from None
        handler.setFormatter(_JsonLine())
        _add(handler)
    if folder := os.environ.get(METRICS):
        if not os.path.isdir(folder):
            raise _unusable(METRICS, NotADirectoryError(), "a folder that exists")
        _add(_Textfile(Path(folder)))


def _add(handler: logging.Handler) -> None:
    handler.addFilter(lambda record: hasattr(record, "event"))
    _LOGGER.addHandler(handler)
    _LOGGER.setLevel(logging.INFO)


def _unusable(variable: str, error: OSError, expected: str) -> PlanError:
    what = f"the run cannot be reported ({type(error).__name__})"
    return PlanError(what, where=variable, expected=expected, fix="change the variable, or unset it")


def _reported(now: ReportedStage, audit: str, status: str, seconds: float, rss: int) -> dict[str, Any]:
    event = {
        "run": now.run,
        "table": now.table,
        "stage": now.name,
        "attempt": now.attempt,
        "audit": audit,
        "seconds": round(seconds, 3),
        "rss": rss,
        "status": status,
    }
    _LOGGER.info("%s %s: %s", now.name, audit or now.table, status, extra={"event": event})
    return event


@cache
def _tracer() -> Any:
    try:
        from opentelemetry import trace
    except ImportError:
        return None
    return trace.get_tracer("synth_audit", VERSION)


class _JsonLine(logging.Formatter):
    def format(self, record: Any) -> str:
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created))
        return json.dumps({"time": at, **record.event})


class _Textfile(logging.Handler):
    """Writes a stage's metrics when it ends, whole or not at all."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self.audits: list[dict[str, Any]] = []

    def emit(self, record: Any) -> None:
        if record.event["audit"]:
            self.audits.append(record.event)
            return
        event, audits, self.audits = record.event, self.audits, []
        lines = [
            *_metric("stage_end_timestamp_seconds", "When the stage ended.", [event], int(record.created)),
            *_metric("stage_seconds", "How long the stage took.", [event], "seconds", "status"),
            *_metric("stage_rss_bytes", "Most memory of the stage's process.", [event], "rss"),
            *_metric("audit_seconds", "How long an audit took.", audits, "seconds", "audit", "status"),
            *_metric("audit_rss_bytes", "Most memory of the audit's process.", audits, "rss", "audit"),
        ]
        name = re.sub(r"\W", "_", f"{event['table']}_{event['stage']}")
        try:
            from synth_audit.files import replacing  # here: `--help` must not load it

            with replacing(self.folder / f"synth_audit_{name}.prom") as temporary:
                temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")
        except OSError:
            self.handleError(record)


def _metric(
    name: str, meaning: str, events: list[dict[str, Any]], value: str | int, *labels: str
) -> Iterator[str]:
    """Lines of one metric in the text format of Prometheus."""
    yield f"# HELP synth_audit_{name} {meaning}"
    yield f"# TYPE synth_audit_{name} gauge"
    for event in events:
        # JSON writes quotes, backslashes and line breaks as the format does.
        shown = [f"{n}={json.dumps(event[n], ensure_ascii=False)}" for n in ("table", "stage", *labels)]
        number = event[value] if isinstance(value, str) else value
        yield f"synth_audit_{name}{{{','.join(shown)}}} {number}"
