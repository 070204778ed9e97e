"""What several commands print: verdict, gates, checks and progress."""

from __future__ import annotations

import math
import os
import shlex
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING, Any, TypeVar

from synth_audit.cli.exits import plain, say, say_json, say_whole
from synth_audit.text import one_line, shortened

if TYPE_CHECKING:
    from synth_audit.execution.context import Progress
    from synth_audit.pipeline.verify import Check
    from synth_audit.report.gates import GateView
    from synth_audit.store.evidence import Evidence
    from synth_audit.store.workspace import Workspace

T = TypeVar("T")

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
        from synth_audit.execution.context import spoken

        yield spoken(partial(say, err=True))
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    layout = (SpinnerColumn(), TextColumn("{task.description:<18}"), BarColumn(), TimeElapsedColumn())
    with Progress(*layout, console=Console(stderr=True, no_color=plain()), transient=True) as bars:
        task = bars.add_task("", total=1)
        yield lambda what, done, total: bars.update(task, description=what, completed=done, total=total)


def watched(verb: Callable[..., T], *args: Any, **given: Any) -> T:
    """What a verb returns, whose progress is shown."""
    with progress_bar() as progress:
        return verb(*args, progress=progress, **given)


def tell_scratch() -> None:
    """Say where temporary files were when no workspace has a place for them."""
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
        told = check.detail if check.holds is not None else f"not checkable here: {check.detail}"
        say(f"{check.what}: {told}", sign=f"  {sign} ", fg=colour)


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

    rows = ", ".join(f"{name} {t.rows:,}" for name, t in evidence.tables.items())
    attempt = f"; attempt {evidence.attempt}" if evidence.attempt else ""
    say(f"{evidence.table} ({evidence.generator.name}; rows: {rows}{attempt})")
    say()
    show_gates(evidence)
    colours = {"within limit": None, "beyond limit": "red"}
    for state, criteria in _criteria(evidence).items():
        say(f"  {state}: {', '.join(criteria)}", fg=colours.get(state, "yellow"))
    for blocker in evidence.gates.blockers:
        say(f"  ! {blocker}", fg="red")
    for warning in evidence.notices:
        say(f"  warning: {warning}", fg="yellow")
    _show_cost(evidence)
    say()
    for question in two_answers(evidence):
        say(f"{question.label}: {question.answer}", fg=SIGNS[question.kind][1])
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


def _criteria(evidence: Evidence) -> dict[str, list[str]]:
    """Criteria by what became of them, with the reason where that is open."""
    from synth_audit.verdict.criteria import AnswerState, answers

    found: dict[str, list[str]] = {state: [] for state in AnswerState}
    for a in answers(evidence.outcomes, evidence.gates.results):
        found[a.state].append(a.criterion + (f" ({a.reason})" if a.reason else ""))
    return {state: criteria for state, criteria in found.items() if criteria}


def _show_cost(evidence: Evidence) -> None:
    from synth_audit.verdict.privacy_budget import proven_cost

    proved = proven_cost(evidence.outcomes)
    if proved is not None:
        say_whole(textwrap.fill(proved.sentence, width(), initial_indent="  ", subsequent_indent="  "))


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


def files_of(workspace: Workspace) -> list[Path]:
    """Certificate, report, evidence and the table to share of the newest audit."""
    from synth_audit.store.evidence_store import evidence_store

    where = evidence_store(workspace).where()
    table = [where["table"]] if where["table"].is_file() else []
    return [where["certificate"], where["report"], where["evidence"], *table]


def show_gates(evidence: Evidence) -> None:
    """Print a line for each gate that did not pass, with cause and next step, and one line for the others.

    Gates of audits that were not run are one line too. The limit gives way first where the terminal is
    narrow, then the interval.
    """
    from synth_audit.report.gates import gate_views

    every, ran = gate_views(evidence), {outcome.audit for outcome in evidence.outcomes}
    left_out = [g for g in every if g.result.measurement and g.result.measurement.audit not in ran]
    gates = [g for g in every if g not in left_out and g.sign.kind != "pass"]
    rows = [_cells(g) for g in gates]
    widths = [max(len(row[i]) for row in (_HEAD, *rows)) for i in range(len(_HEAD))]
    shown = _fitting(widths)
    if gates:
        say(_line(_HEAD, widths, shown), sign="    ")
    for gate, row in zip(gates, rows, strict=True):
        sign, colour = SIGNS[gate.sign.kind]
        note = "" if gate.result.blocking else f"  ({'advice' if gate.role == 'advisory' else gate.role})"
        said = f"{row[0]:<{widths[0]}}  {gate.explanation}" if not row[1] else _line(row, widths, shown)
        say(said + note, sign=f"  {sign} ", fg=colour)
        _explain(gate.explanation if row[1] else "", gate.advice)
    _tell_left_out(left_out)
    if passed := [g for g in every if g.sign.kind == "pass" and g not in left_out]:
        sign, colour = SIGNS["pass"]
        decided = sum(g.result.blocking for g in passed)
        others = f", and {len(passed) - decided} that only advise" if len(passed) > decided else ""
        say(f"{decided} deciding gate{'s' * (decided != 1)} passed{others}", sign=f"  {sign} ", fg=colour)


def _counted(gates: int) -> str:
    return f"{gates} gate{'s' if gates > 1 else ''}"


def _tell_left_out(gates: Sequence[GateView]) -> None:
    """Say of which audits nothing was asked, and that their gates hold the table."""
    if gates:
        audits = ", ".join(sorted({g.result.measurement.audit for g in gates if g.result.measurement}))
        told = f"{_counted(len(gates))} not computed, since these audits were not part of this run: {audits}"
        sign, colour = SIGNS["open"]
        say(one_line(told), sign=f"  {sign} ", fg=colour)


def _cells(gate: GateView) -> tuple[str, str, str, str]:
    measured = gate.result.measurement is not None or bool(gate.interval)
    name = shortened(one_line(gate.result.gate), _LONGEST_NAME)
    return (name, gate.value, gate.interval, gate.allowed) if measured else (name, "", "", "")


def _fitting(widths: list[int]) -> int:
    """How many columns fit beside the sign; at least gate and value."""
    shown = len(widths)
    while shown > 2 and 4 + sum(widths[:shown]) + 2 * (shown - 1) > width():
        shown -= 1
    return shown


def _line(row: tuple[str, ...], widths: list[int], shown: int) -> str:
    first, *others = (f"{cell:>{n}}" for cell, n in zip(row[1:shown], widths[1:shown], strict=True))
    return "  ".join([f"{row[0]:<{widths[0]}}", first, *others]).rstrip()


def _explain(explanation: str, advice: str) -> None:
    for text in (explanation, advice and f"→ {advice}"):
        if text:
            told = shortened(one_line(text))
            say_whole(textwrap.fill(told, width(), initial_indent=" " * 6, subsequent_indent=" " * 8))
