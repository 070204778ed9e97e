"""What commands print, and how they end: exit codes, lines, JSON, errors, verdicts and progress."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from enum import IntEnum
from functools import partial
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING, Any, TypeVar

import click

from synth_audit.errors import SynthAuditError, may_pass
from synth_audit.text import clean, one_line, shortened

if TYPE_CHECKING:
    from synth_audit.execution.context import Progress
    from synth_audit.pipeline.verify import Check
    from synth_audit.report.gates import GateView
    from synth_audit.store.evidence import Evidence

T = TypeVar("T")

_LONGEST_LINE = 2000
"""Characters of a line: more is a text of another program that nobody reads in a terminal."""

_UNSEEN = re.compile("[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
_REPORT_IT = "this is a fault of the program or of a plug-in, not of the data; report it with this line"


class Exit(IntEnum):
    """Exit codes, worst last where several apply; an unexpected error counts as an audit's."""

    PASS = 0
    NOT_RELEASED = 1
    BAD_INPUT = 2
    AUDIT_ERROR = 3
    NOT_CHECKABLE = 4
    DOUBTFUL = 5
    """A claimed ε was not refuted, but its 95 % bound is above it."""
    MAY_PASS = 75
    """What failed may succeed later: a lock, a server that does not answer, a full disk (EX_TEMPFAIL)."""
    PIPE_CLOSED = 141
    """The reader of the output has left; a shell reports other programs so: 128 + SIGPIPE."""


def exit_code(evidence: Evidence) -> Exit:
    """3 when an audit errored, 0 on a pass, else 1."""
    if evidence.errored:
        return Exit.AUDIT_ERROR
    return Exit.PASS if evidence.verdict == "pass" else Exit.NOT_RELEASED


def verify_code(checks: Sequence[Check]) -> Exit:
    """1 when something does not hold, else 4 when something, or all of it, could not be checked, else 0."""
    if any(c.holds is False for c in checks):
        return Exit.NOT_RELEASED
    return Exit.PASS if checks and all(c.holds for c in checks) else Exit.NOT_CHECKABLE


class OutputFailed(SynthAuditError):
    """What should be printed cannot be: the disk behind the output is full, for example."""

    def __init__(self, error: OSError) -> None:
        super().__init__(
            f"the output cannot be written ({type(error).__name__}: {os.strerror(error.errno or 0)})",
            where="standard output",
            expected="a terminal, pipe or file that takes what is printed",
            fix="free space, or send the output elsewhere",
        )


class PipeClosed(Exception):
    """Who reads the output has read enough, such as ``head``; no fault of anybody."""


def say(
    text: str = "", *, sign: str = "", fg: str | None = None, bold: bool = False, err: bool = False
) -> None:
    """Print one line, cleaned and cut, since it may repeat a name as others wrote it.

    Args:
        sign: printed before the text; it alone is coloured then.
    """
    line = shortened(one_line(text), _LONGEST_LINE)
    coloured = click.style(sign or line, fg=fg, bold=bold or None)
    _print(coloured + line if sign else coloured, err=err)


def say_whole(text: str, *, err: bool = False) -> None:
    """Print text uncut, such as a path or several lines, cleaned."""
    _print(clean(text), err=err)


def say_json(value: Any) -> None:
    """Print JSON: text that is JSON, a record that can write itself, or plain values.

    Characters that a terminal acts on, which its strings may hold, are written as escapes.
    """
    text = value if isinstance(value, str) else value.to_json() if hasattr(value, "to_json") else None
    text = json.dumps(value, indent=2) if text is None else text
    _print(_UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text.rstrip("\n")), err=False)


def _print(text: str, *, err: bool) -> None:
    try:
        click.echo(text, err=err, color=False if plain() else None)
    except BrokenPipeError:
        raise PipeClosed from None
    except OSError as error:
        raise OutputFailed(error) from None


def plain() -> bool:
    """True where colour is unwanted: ``NO_COLOR`` is set to something, or the terminal is a dumb one."""
    return bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"


def take_any_letter() -> None:
    """Let what the terminal's encoding lacks be printed as a question mark instead of raising."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):  # closed, or another object in its place
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]


def give_up_output() -> None:
    """Let what is still to be printed vanish, so that the interpreter does not stumble over it at its end."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):
            try:
                stream.flush()
            except OSError:
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, stream.fileno())
                os.close(nowhere)


def complain(error: SynthAuditError) -> None:
    """Print an error; where even that cannot be printed, its exit code must do."""
    what, *rest = str(error).split("\n")
    with suppress(OutputFailed, PipeClosed):
        say(what, sign="error: ", fg="red", bold=True, err=True)
        if rest:
            say_whole("\n".join(rest), err=True)


def complain_of_unexpected(error: Exception) -> Exit:
    """Tell of an error that nothing else has told of; a full disk is no fault of the program."""
    nowhere = False
    try:
        gettempdir()
    except FileNotFoundError:  # what Python tells of a full disk, where no folder takes a file
        nowhere = True
    if isinstance(error, OSError) and (may_pass(error) or nowhere):
        full = "the disk is full, or a quota is used up"
        fix = "free space, also where temporary files are made, and try again; what was there is intact"
        complain(SynthAuditError(full, expected="room for the workspace and its temporary files", fix=fix))
        return Exit.MAY_PASS
    from synth_audit.examination.audit_runner import describe_error

    complain(SynthAuditError(f"unexpected {describe_error(error)}", fix=_REPORT_IT))
    return Exit.AUDIT_ERROR


SIGNS = {"pass": ("✓", "green"), "fail": ("✗", "red"), "open": ("?", "yellow"), "advice": ("!", "yellow")}
RESULTS = {"pass": SIGNS["pass"], "fail": SIGNS["fail"], "insufficient evidence": SIGNS["open"]}
_HOLDS = {True: SIGNS["pass"], False: SIGNS["fail"], None: ("·", "yellow")}
_TOLD_OF_GATES = ("gate", "result", "blocking", "value", "low", "high", "explanation")
"""What JSON has of a gate."""

_HEAD = ("gate", "value", "interval", "allowed")
_LONGEST_NAME = 40
"""Characters of a gate's name: half of a terminal of 80, so that its result stands beside it."""

_OFF_TERMINAL = 110
"""Columns where the output is no terminal."""


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """A progress bar on the terminal's error stream; a line now and then where it is none, such as a log."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        from synth_audit.execution.context import repeated, spoken

        with repeated(spoken(partial(say, err=True))) as tell:
            yield tell
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    layout = (SpinnerColumn(), TextColumn("{task.description:<18}"), BarColumn(), TimeElapsedColumn())
    with Progress(*layout, console=Console(stderr=True, no_color=plain()), transient=True) as bars:
        task = bars.add_task("", total=1)
        yield lambda what, done, total: bars.update(
            task, description=what, completed=done, total=total or None
        )


def watched(verb: Callable[..., T], *args: Any, **given: Any) -> T:
    """What a verb returns, whose progress is shown."""
    with progress_bar() as progress:
        return verb(*args, progress=progress, **given)


def tell_scratch(plan: Path | None) -> None:
    """Say where temporary files were when no workspace had a place for them and the plan allowed them."""
    from synth_audit.inputs import as_plan

    if plan is not None and not as_plan(plan).execution.write_real_rows:
        return
    where = f"temporary files, which hold real rows, were in {gettempdir()}, in folders of mode 0700"
    say(f"note: {where}, and are deleted; with --out FOLDER they are in its restricted/scratch", err=True)


def width() -> int:
    """Columns to print on."""
    return shutil.get_terminal_size((_OFF_TERMINAL, 24)).columns if sys.stdout.isatty() else _OFF_TERMINAL


def say_table(rows: Sequence[Sequence[str]]) -> None:
    """Print rows in columns as wide as their widest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        say("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())


def short(name: str) -> str:
    """A name as it may stand in a column of a table."""
    return shortened(one_line(name), 60)


def show_checks(checks: Sequence[Check], *, as_json: bool) -> None:
    """Print what ``verify`` recomputed."""
    if as_json:
        say_json([vars(c) for c in checks])
        return
    for check in checks:
        sign, colour = _HOLDS[check.holds]
        say(check.sentence, sign=f"  {sign} ", fg=colour)


def show_evidence(evidence: Evidence, files: Sequence[Path], *, as_json: bool, trial: bool = False) -> None:
    """Print the verdict with one line per gate and where to read more.

    Args:
        trial: the gates are not the plan's own, so they decide nothing and the words must not say so.
    """
    if as_json:
        say_json(_plain_evidence(evidence, files))
        return
    from synth_audit.report.gates import two_answers
    from synth_audit.report.words import headline
    from synth_audit.verdict.criteria import AnswerState, answers
    from synth_audit.verdict.privacy_budget import proven_cost

    rows = ", ".join(f"{name} {t.rows:,}" for name, t in evidence.tables.items())
    attempt = f"; attempt {evidence.attempt}" if evidence.attempt else ""
    say(f"{evidence.table} ({evidence.generator.name}; rows: {rows}{attempt})")
    say()
    show_gates(evidence)
    colours = {"within limit": None, "beyond limit": "red"}
    known = answers(evidence.outcomes, evidence.gates.results)
    for state in AnswerState:
        criteria = [a.criterion + (f" ({a.remark})" if a.remark else "") for a in known if a.state == state]
        if criteria:
            say(f"  {state}: {', '.join(criteria)}", fg=colours.get(state, "yellow"))
    for blocker in evidence.gates.blockers:
        say(f"  ! {blocker}", fg="red")
    for warning in _warnings(evidence):
        say(f"  warning: {warning}", fg="yellow")
    if (proved := proven_cost(evidence.outcomes)) is not None:
        say_whole(textwrap.fill(proved.sentence, width(), initial_indent="  ", subsequent_indent="  "))
    say()
    for question in two_answers(evidence):
        why = "" if question.kind else f". {question.detail}"
        colour = SIGNS[question.kind][1] if question.kind else None
        say(f"{question.label}: {question.answer}{why}", fg=colour)
    unfit = evidence.fitness == "no" and evidence.verdict == "pass"
    sentence = f"{evidence.verdict.upper()}: {headline(evidence.verdict, evidence.fitness)}"
    if trial:
        suite = evidence.gates.suite_name
        sentence = (
            f"Under the suite {suite!r}: {evidence.verdict}. Only the plan's own suite decides a release."
        )
    say(sentence, fg="yellow" if unfit else RESULTS[evidence.verdict][1], bold=True)
    for path in files:
        say_whole(f"  {path}")


def _warnings(evidence: Evidence) -> Iterator[str]:
    """Warnings, of which those about earlier audits are one line: the report has them all."""
    from synth_audit.pipeline.warnings import AUDITED_BEFORE

    before = [w for w in evidence.warnings if w.startswith(AUDITED_BEFORE)]
    if earlier := [*before, *(audit.sentence for audit in evidence.earlier)]:
        more = f", and {len(earlier) - 1} more" if len(earlier) > 1 else ""
        yield f"{earlier[-1].partition('. ')[0]} (the report has details{more})"
    yield from (w for w in evidence.warnings if w not in before)


def _plain_evidence(evidence: Evidence, files: Sequence[Path]) -> dict[str, object]:
    from synth_audit.verdict.criteria import answers
    from synth_audit.verdict.privacy_budget import proven_cost

    proved = proven_cost(evidence.outcomes)
    return {
        "table": evidence.table,
        "attempt": evidence.attempt or None,
        "verdict": str(evidence.verdict),
        "safe_to_release": evidence.gates.safe.answer,
        "fit_for_purpose": str(evidence.fitness),
        "gates": [{key: _finite(getattr(g, key)) for key in _TOLD_OF_GATES} for g in evidence.gates.results],
        "criteria": {
            a.criterion: {"state": str(a.state), "reason": a.reason}
            for a in answers(evidence.outcomes, evidence.gates.results)
        },
        "proven_cost": proved and {"epsilon": proved.epsilon, "ceiling": _finite(proved.ceiling)},
        "errors": list(evidence.gates.blockers),
        "warnings": list(evidence.notices),
        "digest": evidence.digest,
        "files": [str(path) for path in files],
    }


def _finite(x: Any) -> Any:
    """JSON has no word for a number that is none."""
    return None if isinstance(x, float) and not math.isfinite(x) else x


def next_step(evidence: Evidence, out: Path | None, plan: Path | None = None) -> str:
    """What to do after an audit, as a line to paste: coarsen the values, read the report, or look up a test.

    Args:
        out: where the report is; None if nothing was written.
        plan: of a run, whose refusal may be mended.
    """
    from synth_audit.inputs import as_plan
    from synth_audit.studies.mend import mendable

    if plan is not None and out is not None and mendable(as_plan(plan), evidence):
        return shlex.join(["synth-audit", "mend", str(plan), "--out", str(out)])
    if out is not None:
        return shlex.join(["synth-audit", "report", str(out), "--open"])
    audits = [g.measurement.audit for g in evidence.gates.held if g.measurement]
    return f"synth-audit describe {audits[0]}" if audits else "synth-audit list"


def say_next(step: str, *, aside: bool = False) -> None:
    """Print what to do next, the last line of a command; aside where the output is for machines."""
    say_whole(f"next: {step}", err=aside)


def files_of(root: Path) -> list[Path]:
    """Certificate, report, evidence and the table to share of the newest audit in a workspace."""
    from synth_audit.store.evidence_store import evidence_store
    from synth_audit.store.workspace import Workspace

    where = evidence_store(Workspace(root)).where()
    table = [where["table"]] if where["table"].is_file() else []
    return [where["certificate"], where["report"], where["evidence"], *table]


def show_gates(evidence: Evidence) -> None:
    """Print a line for each gate that did not pass, with cause and next step, and one line for the others.

    Gates of audits that were not run are one line too. The limit gives way first where the terminal is
    narrow, then the interval.
    """
    from synth_audit.report.gates import by_role, gate_views
    from synth_audit.report.words import counted

    every, audits = gate_views(evidence), evidence.left_out
    left_out = [g for g in every if g.result.measurement and g.result.measurement.audit in audits]
    gates = [g for g in every if g not in left_out and g.sign.kind != "pass"]
    rows = [_cells(g) for g in gates]
    widths = [max(len(row[i]) for row in (_HEAD, *rows)) for i in range(len(_HEAD))]
    shown = len(widths)
    while shown > 2 and 4 + sum(widths[:shown]) + 2 * (shown - 1) > width():
        shown -= 1
    if gates:
        say(_line(_HEAD, widths, shown), sign="    ")
    for gate, row in zip(gates, rows, strict=True):
        sign, colour = SIGNS[gate.sign.kind]
        note = "" if gate.result.blocking else f"  ({'advice' if gate.role == 'advisory' else gate.role})"
        said = f"{row[0]:<{widths[0]}}  {gate.explanation}" if not row[1] else _line(row, widths, shown)
        say(said + note, sign=f"  {sign} ", fg=colour)
        found = row[1] and f"{gate.found}. {gate.cause}".strip()
        for text in (found, gate.next_step and f"→ {gate.next_step}"):
            if text:
                told = shortened(one_line(text))
                say_whole(textwrap.fill(told, width(), initial_indent=" " * 6, subsequent_indent=" " * 8))
    if left_out:
        names = ", ".join(sorted({g.result.measurement.audit for g in left_out if g.result.measurement}))
        told = f"{len(left_out)} gate{'s' * (len(left_out) != 1)} not computed"
        sign, colour = SIGNS["open"]
        say(f"{told}, since these audits were not part of this run: {names}", sign=f"  {sign} ", fg=colour)
    if passed := [g for g in every if g.sign.kind == "pass" and g not in left_out]:
        sign, colour = SIGNS["pass"]
        say(f"{counted(len(passed), 'gate')} passed: {by_role(passed)}", sign=f"  {sign} ", fg=colour)


def _cells(gate: GateView) -> tuple[str, str, str, str]:
    measured = gate.result.measurement is not None or bool(gate.interval)
    name = shortened(one_line(gate.result.gate), _LONGEST_NAME)
    return (name, gate.value, gate.interval, gate.allowed) if measured else (name, "", "", "")


def _line(row: tuple[str, ...], widths: list[int], shown: int) -> str:
    first, *others = (f"{cell:>{n}}" for cell, n in zip(row[1:shown], widths[1:shown], strict=True))
    return "  ".join([f"{row[0]:<{widths[0]}}", first, *others]).rstrip()
