"""What the command line prints: verdicts, gates, catalogues, errors and progress, for people or machines."""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import groupby
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING

from synth_audit.cli.exits import plain, say, say_json, say_whole
from synth_audit.text import one_line, shortened

if TYPE_CHECKING:
    from synth_audit.pipeline.verify import Check
    from synth_audit.report.view import GateView, VerdictQuestion
    from synth_audit.run.context import Progress
    from synth_audit.store.evidence import Evidence
    from synth_audit.store.purge import PurgeItem, PurgeRecord
    from synth_audit.studies.calibration import Calibration
    from synth_audit.studies.frontier import CandidateResult, FrontierRecord, Number


SIGNS = {"pass": ("✓", "green"), "fail": ("✗", "red"), "open": ("?", "yellow"), "advice": ("!", "yellow")}
_HEAD = ("gate", "value", "interval", "allowed")
_LONGEST_NAME = 40
_OFF_TERMINAL = 110
"""Columns where the output is no terminal."""


def show_gates(evidence: Evidence) -> None:
    """Print a line for each gate: those that passed first, so that what did not stands beside the verdict.

    Under a gate that did not pass stands why, and what to do. Gates of audits that were not run are one
    line. The limit gives way first where the terminal is narrow, then the interval.
    """
    from synth_audit.report.gates import gate_views

    every, ran = gate_views(evidence), {outcome.audit for outcome in evidence.outcomes}
    left_out = [g for g in every if g.measurement and g.measurement.partition(".")[0] not in ran]
    _tell_left_out(left_out)
    alike = groupby((g for g in every if g not in left_out), lambda g: (g.blocking, g.sign.kind))
    gates = [g for group in reversed([list(found) for _, found in alike]) for g in group]
    rows = [_cells(g) for g in gates]
    widths = [max(len(row[i]) for row in (_HEAD, *rows)) for i in range(len(_HEAD))]
    shown = _fitting(widths)
    if gates:
        say(_line(_HEAD, widths, shown), sign="    ")
    for gate, row in zip(gates, rows, strict=True):
        sign, colour = SIGNS[gate.sign.kind]
        note = "" if gate.blocking else f"  ({'advice' if gate.role == 'advisory' else gate.role})"
        said = f"{row[0]:<{widths[0]}}  {gate.explanation}" if not row[1] else _line(row, widths, shown)
        say(said + note, sign=f"  {sign} ", fg=colour)
        if gate.sign.kind != "pass":
            _explain(gate if row[1] else replace(gate, explanation=""))


def _tell_left_out(gates: Sequence[GateView]) -> None:
    """Say of which audits nothing was asked, and that their gates hold the table."""
    if gates:
        audits = ", ".join(sorted({g.measurement.partition(".")[0] for g in gates}))
        n = f"{len(gates)} gate{'s' if len(gates) > 1 else ''}"
        told = f"{n} not computed, since these audits were not part of this run: {audits}"
        sign, colour = SIGNS["open"]
        say(one_line(told), sign=f"  {sign} ", fg=colour)


def width() -> int:
    """Columns to print on."""
    return shutil.get_terminal_size((_OFF_TERMINAL, 24)).columns if sys.stdout.isatty() else _OFF_TERMINAL


def _cells(gate: GateView) -> tuple[str, str, str, str]:
    measured = gate.about is not None or bool(gate.interval)
    name = shortened(one_line(gate.gate), _LONGEST_NAME)
    return (name, gate.value, gate.interval, gate.limit) if measured else (name, "", "", "")


def _fitting(widths: list[int]) -> int:
    """How many columns fit beside the sign; at least gate and value."""
    shown = len(widths)
    while shown > 2 and 4 + sum(widths[:shown]) + 2 * (shown - 1) > width():
        shown -= 1
    return shown


def _line(row: tuple[str, ...], widths: list[int], shown: int) -> str:
    first, *others = (f"{cell:>{n}}" for cell, n in zip(row[1:shown], widths[1:shown], strict=True))
    return "  ".join([f"{row[0]:<{widths[0]}}", first, *others]).rstrip()


def _explain(gate: GateView) -> None:
    for text in (gate.explanation, gate.advice and f"→ {gate.advice}"):
        if text:
            told = shortened(one_line(text))
            say_whole(textwrap.fill(told, width(), initial_indent=" " * 6, subsequent_indent=" " * 8))


_SIGNS = {"pass": ("✓", "green"), "fail": ("✗", "red"), "insufficient evidence": ("?", "yellow")}
_COLOURS = {"pass": "green", "fail": "red", "open": "yellow"}
_HOLDS = {True: ("✓", "green"), False: ("✗", "red"), None: ("·", "yellow")}
_SENTENCES = {
    "pass": "PASS: this table may leave.",
    "fail": "FAIL: this table must not leave.",
    "insufficient evidence": "NOT ENOUGH EVIDENCE: this table must not leave yet.",
}


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """A progress bar on the terminal's error stream; a line now and then where it is none, such as a log."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        from synth_audit.run.context import spoken

        yield spoken(partial(say, err=True))
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    layout = (SpinnerColumn(), TextColumn("{task.description:<18}"), BarColumn(), TimeElapsedColumn())
    with Progress(*layout, console=Console(stderr=True, no_color=plain()), transient=True) as bars:
        task = bars.add_task("", total=1)
        yield lambda what, done, total: bars.update(task, description=what, completed=done, total=total)


def tell_scratch() -> None:
    """Say where temporary files were when no workspace has a place for them."""
    where = f"temporary files, which hold real rows, were in {gettempdir()}, in folders of mode 0700"
    say(f"note: {where}, and are deleted; with --out FOLDER they are in its restricted/scratch", err=True)


def show_evidence(evidence: Evidence, files: Sequence[Path], *, as_json: bool, trial: bool = False) -> None:
    """Print the verdict with one line per gate and where to read more.

    Args:
        trial: the gates are not the plan's own, so they decide nothing and the words must not say so.
    """
    if as_json:
        say_json(json.dumps(_plain_evidence(evidence, files), indent=2))
        return
    rows = ", ".join(f"{name} {t.rows:,}" for name, t in evidence.tables.items())
    attempt = f"; attempt {evidence.attempt}" if evidence.attempt else ""
    say(f"{evidence.table} ({evidence.generator.name}; rows: {rows}{attempt})")
    say()
    show_gates(evidence)
    for state, criteria in _criteria(evidence).items():
        say(f"  {state}: {', '.join(criteria)}", fg=None if state == "answered" else "yellow")
    for blocker in evidence.gates.blockers:
        say(f"  ! {blocker}", fg="red")
    for warning in evidence.notices:
        say(f"  warning: {warning}", fg="yellow")
    _show_cost(evidence)
    say()
    for question in _two_answers(evidence):
        say(f"{question.label}: {question.answer}", fg=_COLOURS[question.kind])
    sentence, unfit = _SENTENCES[evidence.verdict], evidence.fitness == "no" and evidence.verdict == "pass"
    if unfit:
        sentence = "PASS: this table may leave, but it is not fit for purpose."
    if trial:
        suite = evidence.gates.suite_name
        sentence = (
            f"Under the suite {suite!r}: {evidence.verdict}. Only the plan's own suite decides a release."
        )
    say(sentence, fg="yellow" if unfit else _SIGNS[evidence.verdict][1], bold=True)
    for path in files:
        say_whole(f"  {path}")


def _two_answers(evidence: Evidence) -> tuple[VerdictQuestion, ...]:
    from synth_audit.report.gates import Outcomes, two_answers

    return two_answers(Outcomes.of(evidence))


def _show_cost(evidence: Evidence) -> None:
    from synth_audit.verdict.privacy_budget import proven_cost

    proved = proven_cost(evidence.outcomes)
    if proved is not None:
        say_whole(textwrap.fill(proved.sentence, width(), initial_indent="  ", subsequent_indent="  "))


def show_calibration(found: Calibration, files: Sequence[Path], *, as_json: bool) -> None:
    """Print how straight each measurement follows the leak, without noise, and where the curves are."""
    if as_json:
        say_json(found.to_json())
        return
    plain = [c for c in found.curves if c.noise.none]
    width = max((len(_short(str(c.id))) for c in plain), default=0)
    say(f"{'measurement':<{width}}  no copy  full copy  R² of a line")
    for c in plain:
        first, last = c.points[0].value, c.points[-1].value
        say(f"{_short(str(c.id)):<{width}}  {first:>7.3f}  {last:>9.3f}  {c.r_squared:>12.4f}")
    for name, reason in found.silent.items():
        say(f"  {name} gave no number on some leak: {reason}", fg="yellow")
    for path in files:
        say_whole(f"  {path}")


def show_frontier(found: FrontierRecord, files: Sequence[Path], command: str, *, as_json: bool) -> None:
    """Print one line per candidate, what was chosen and why, and what to do next.

    Args:
        command: releases the plan's own table; with ``--candidate`` a candidate. Empty without a target.
    """
    if as_json:
        say_json(found.to_json())
        return
    head = (
        "candidate",
        str(found.privacy or "privacy"),
        str(found.utility or "utility"),
        "gates",
        "verdict",
        "PU",
    )
    rows = [_frontier_row(c) for c in found.candidates]
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    for row in (head, *rows):
        say("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())
    for c in found.candidates:
        if c.problem:
            say(f"  {c.name}: {c.problem}", fg="yellow")
    n = len(found.candidates)
    say()
    say(f"Intervals at {100 * found.level:.6g} %: each of {n} candidates is a chance of a wrong pass.")
    say(
        f"PU = {found.alpha:g} × privacy + {1 - found.alpha:g} × usefulness, each from 0 (worst) to 1 (best "
        "of these candidates)."
    )
    say()
    say(found.reason, fg="green" if found.chosen else "yellow", bold=True)
    for path in files:
        say_whole(f"  {path}")
    if found.split_kept:
        say(f"the split of {found.split_kept[:10]} is kept; --fresh pulls the source again")
    say_whole(_next_step(found, command))


def _frontier_row(c: CandidateResult) -> tuple[str, ...]:
    counts = [sum(g.result == result for g in c.gates) for result in _SIGNS]
    gates = " ".join(f"{n} {sign}" for n, (sign, _) in zip(counts, _SIGNS.values(), strict=True) if n)
    score = "" if c.score is None else f"{c.score:.3f}"
    verdict = f"{c.verdict} (kept)" if c.kept else c.verdict
    return _short(c.name), _span(c.privacy), _span(c.utility), gates, verdict, score


def _span(number: Number | None) -> str:
    return "" if number is None else f"{number.value:.3f} [{number.low:.3f}, {number.high:.3f}]"


def _next_step(found: FrontierRecord, command: str) -> str:
    best = found.best
    if best is None and any(c.passed for c in found.candidates):
        return "next: name measurements that they have under `frontier` in the plan; finished ones are kept"
    if best is None:
        return "next: the page says what held each candidate; try others under `frontier` in the plan"
    if not command:
        return "next: name a target under `release` in the plan and sweep again"
    return f"next: {command} --candidate {best.slug}"


def show_checks(checks: Sequence[Check], *, as_json: bool) -> None:
    """Print what ``verify`` recomputed."""
    if as_json:
        say_json(json.dumps([vars(c) for c in checks], indent=2))
        return
    for check in checks:
        sign, colour = _HOLDS[check.holds]
        told = check.detail if check.holds is not None else f"not checkable here: {check.detail}"
        say(f"{check.what}: {told}", sign=f"  {sign} ", fg=colour)


def show_purge(record: PurgeRecord, *, as_json: bool) -> None:
    """Print what goes and what stays, and why."""
    if as_json:
        say_json(json.dumps({"done": record.done, **{n: _plain_items(record, n) for n in ("goes", "stays")}}))
        return
    verb = "gone" if record.done else "would go"
    say(f"{verb}: {len(record.goes)} ({_bytes(record.size)})", bold=True)
    for item in record.goes:
        _show_item(item)
    say(f"stays: {len(record.stays)}, and the ledger, the journal, the salt, train and control", bold=True)
    for item in record.stays:
        _show_item(item)


def _show_item(item: PurgeItem) -> None:
    made = f", {item.made[:10]}" if item.made else ""
    why = f": {item.reason}" if item.reason else ""
    say(f"  {shortened(item.name, 40)}  {item.told}{made}, {_bytes(item.size)}{why}")


def _plain_items(record: PurgeRecord, name: str) -> list[dict[str, object]]:
    items = record.goes if name == "goes" else record.stays
    keys = ("name", "told", "made", "size", "reason")
    return [{key: getattr(item, key) for key in keys} for item in items]


def _bytes(size: float) -> str:
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def _short(name: str) -> str:
    """A name as it may stand in a column of a table."""
    return shortened(one_line(name), 60)


def _finite(x: float | None) -> float | None:
    """JSON has no word for a number that is none."""
    return x if x is not None and math.isfinite(x) else None


def _criteria(evidence: Evidence) -> dict[str, list[str]]:
    """Criteria by what became of them, with the reason where they are not answered."""
    from synth_audit.verdict.criteria import AnswerState, answers

    found: dict[str, list[str]] = {state: [] for state in AnswerState}
    for a in answers(evidence.outcomes, evidence.gates.results):
        found[a.state].append(a.criterion + (f" ({a.reason})" if a.reason else ""))
    return {state: criteria for state, criteria in found.items() if criteria}


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
        "gates": [
            {
                "gate": g.gate,
                "result": str(g.result),
                "blocking": g.blocking,
                "value": _finite(g.value),
                "low": _finite(g.low),
                "high": _finite(g.high),
                "explanation": g.explanation,
            }
            for g in evidence.gates.results
        ],
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
