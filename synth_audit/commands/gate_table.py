"""The gates of evidence as lines of a terminal: what was measured, its interval and the limit in one unit."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

from synth_audit.core.text import one_line, shortened
from synth_audit.terminal import say, say_whole

if TYPE_CHECKING:
    from synth_audit.report.view import GateView
    from synth_audit.store.evidence import Evidence

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
