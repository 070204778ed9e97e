"""A page over the audits of many tables: what was found, released and approved, and how numbers moved."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from synth_audit.errors import DataError
from synth_audit.findings.verdict import GateResult, Result
from synth_audit.report import svg, words
from synth_audit.report.certificate import counting_approvals, wanted_approvals
from synth_audit.report.criteria import nearest_first
from synth_audit.report.gates import GateView, gates_of, obstacles, sign_of, verdict_sign
from synth_audit.report.page import page
from synth_audit.report.svg import result_mark
from synth_audit.report.view import Fact, Panel, Sign
from synth_audit.report.words import RESULT_WORDS
from synth_audit.store.files import read_plain
from synth_audit.store.history import PastAudit, TableHistory
from synth_audit.verdict.criteria import answers

WIDTH, HEIGHT = 300.0, 96.0
_TOP, _BOTTOM, _RIGHT = 8.0, 78.0, 10.0

_MARK = '<main id="main" data-index="audits">'

_MOST_TRENDS = 12
"""Charts of one table, those nearest to their limits first."""

_MOST_AUDITS = 30
"""Audits in one chart, the newest."""

STATES = {"released": "Released", "pass": "Passed, not released", "fail": "Failed", "open": "Not decided"}


@dataclass(frozen=True)
class TrendPoint:
    """A gate in one audit.

    Attributes:
        day: of the audit, in words. released: the table went out on it.
    """

    gate: GateResult
    day: str
    released: bool


def trend_svg(points: Sequence[TrendPoint], *, title: str, unit: str, anchor: str) -> str:
    """The audits from left to right, the oldest first; a line under those that were released."""
    shown = [p for p in points if svg.drawable(p.gate.value)]
    ends = [x for p in shown for x in _numbers(p.gate) if x is not None and svg.drawable(x)]
    if not ends:
        body = svg.text(0, 20, "No number to draw", muted=True)
        return svg.document(WIDTH, HEIGHT, body, anchor=anchor, title=title, description="No number.")
    marks, step = svg.outer_ticks(*svg.domain(ends), 3)
    names = [words.tick(v, step, unit) for v in marks]
    left = max(svg.text_width(name, 10) for name in names) + 6
    y = svg.Linear(marks[0], marks[-1], _BOTTOM, _TOP)
    body = ""
    for value, name in zip(marks, names, strict=True):
        body += svg.line(left, y(value), WIDTH, y(value), rule=True)
        body += svg.text(left - 4, y(value) + 3, name, size=10, anchor="end", muted=True)
    for limit in {shown[-1].gate.minimum, shown[-1].gate.maximum} - {None}:
        body += svg.line(left, y(limit), WIDTH, y(limit), dash="4 3", width=1.5)  # type: ignore[arg-type]
    gap = (WIDTH - _RIGHT - left - 14) / max(len(shown) - 1, 1)
    for i, point in enumerate(shown):
        body += _point(point, left + 14 + i * gap, y)
    body += svg.text(left + 4, HEIGHT - 4, shown[0].day, size=10, muted=True)
    if len(shown) > 1:
        body += svg.text(WIDTH, HEIGHT - 4, shown[-1].day, size=10, anchor="end", muted=True)
    told = "; ".join(_told(p, unit) for p in shown)
    return svg.document(WIDTH, HEIGHT, body, anchor=anchor, title=title, description=told)


def _numbers(gate: GateResult) -> tuple[float | None, ...]:
    return gate.value, gate.low, gate.high, gate.minimum, gate.maximum


def _point(point: TrendPoint, x: float, y: svg.Linear) -> str:
    gate, out = point.gate, ""
    assert gate.value is not None
    if gate.low is not None and gate.high is not None and svg.drawable(gate.low) and svg.drawable(gate.high):
        out = svg.line(x, y(gate.low), x, y(gate.high), width=2)
    if point.released:
        out += svg.line(x - 5, _BOTTOM + 4, x + 5, _BOTTOM + 4, width=3)
    return out + result_mark(gate.result, x, y(gate.value), 5)


def _told(point: TrendPoint, unit: str) -> str:
    gate = point.gate
    known = gate.low is not None and gate.high is not None
    span = f" ({words.interval(gate.low, gate.high, unit)})" if known else ""  # type: ignore[arg-type]
    out = ", released" if point.released else ""
    return f"{point.day}: {words.number(gate.value, unit)}{span}, {RESULT_WORDS[gate.result].lower()}{out}"


@dataclass(frozen=True)
class AuditRow:
    """One audit; ``state`` is a key of :data:`STATES`."""

    state: str
    sign: Sign
    when: str
    attempt: str
    generator: str
    reason: str
    criteria: str
    fitness: str
    released: str
    approvals: str
    digest: str
    certificate: str
    report: str
    doubt: str


@dataclass(frozen=True)
class TableRow:
    """One table with its audits, the newest first; ``state`` is that of the newest."""

    key: str
    table: str
    place: str
    state: str
    facts: tuple[Fact, ...]
    audits: tuple[AuditRow, ...]
    trends: tuple[Panel, ...]
    note: str


def render_index(histories: Sequence[TableHistory], base: Path) -> str:
    """The page, filtered by style sheet alone: it runs nothing and fetches nothing.

    Args:
        base: the folder of the page, which links start from.
    """
    tables = tuple(_table(h, base, f"t{i}") for i, h in enumerate(histories, 1))
    return page("index.html.j2", extra_style=_filters(tables), tables=tables, states=STATES)


def refuse_no_index(path: Path) -> None:
    """Raise ``DataError`` where the page would take the place of a file that is none of its kind."""
    try:
        known = _MARK in read_plain(path).decode(errors="replace")
    except OSError:  # a folder, a link, a device, or closed to this user
        known = False
    if not known:
        raise DataError(
            "the file is there already and is no index",
            where=str(path),
            expected="a new file, or an earlier index",
            fix="name another with --out, or replace this one with --force",
        )


def _filters(tables: Sequence[TableRow]) -> str:
    """One rule for each choice: what is chosen hides all else; names of tables stand in no rule."""
    choices = [("state", state) for state in STATES] + [("table", t.key) for t in tables]
    return "\n".join(
        f'body:has(#{name} option[value="{key}"]:checked) .entry:not(.{key}) {{ display: none; }}'
        for name, key in choices
    )


def _table(history: TableHistory, base: Path, key: str) -> TableRow:
    rows = tuple(_audit(a, base) for a in history.audits)
    out = next((a for a in reversed(history.audits) if a.out), None)
    facts = (
        Fact("Audits", f"{len(rows):,}"),
        Fact("Releases", f"{sum(a.released is not None for a in history.audits):,}"),
        Fact("Out there", _released(out) if out else "nothing"),
    )
    left = {"cannot be read": history.unread, "purged": history.purged}
    note = ", ".join(f"{words.counted(n, 'audit')} {what}" for what, n in left.items() if n)
    return TableRow(
        key, history.table, history.place, rows[-1].state if rows else "open", facts, rows[::-1],
        _trends(history, key), words.sentence(note),
    )  # fmt: skip


def _audit(audit: PastAudit, base: Path) -> AuditRow:
    evidence = audit.evidence
    stopped = obstacles(evidence)
    state = {Result.PASS: "pass", Result.FAIL: "fail", Result.INSUFFICIENT: "open"}[evidence.verdict]
    asked = answers(evidence.outcomes, evidence.gates.results)
    open_ = [f"{a.criterion} {a.state}" for a in asked if a.reason]
    return AuditRow(
        state="released" if audit.released and audit.sound else state if audit.sound else "open",
        sign=verdict_sign(evidence) if audit.sound else sign_of(Result.INSUFFICIENT),
        when=words.moment(evidence.created),
        attempt=f"{evidence.attempt:,}" if evidence.attempt else "–",
        generator=evidence.generator.name,
        reason=next((f"{o}." for o in stopped), words.sentence("; ".join(evidence.gates.blockers))),
        criteria=", ".join(open_) or "all four answered",
        fitness=str(evidence.fitness),
        released=_released(audit),
        approvals=_approvals(audit),
        digest=evidence.digest[:12],
        certificate=_link(audit.certificate, base),
        report=_link(audit.report, base),
        doubt="" if audit.sound else "not as it was filed: see `synth-audit verify`",
    )


def _released(audit: PastAudit) -> str:
    if audit.released is None:
        return "–"
    return words.moment(audit.released.time, day_only=True) + (", out there" if audit.out else "")


def _approvals(audit: PastAudit) -> str:
    wanted = wanted_approvals(audit.evidence)
    counting = counting_approvals(audit.evidence, audit.approvals)
    told = f"{len({a.by for a in counting})} of {wanted}" if wanted else str(len(audit.approvals) or "–")
    until = min((a.until for a in counting), default="")
    return told + (f", until {words.moment(until)}" if until else "")


def _link(path: Path | None, base: Path) -> str:
    return "" if path is None else Path(os.path.relpath(path.absolute(), base.absolute())).as_posix()


def _trends(history: TableHistory, key: str) -> tuple[Panel, ...]:
    """Deciding gates of the newest audit, those nearest to their limits first."""
    sound = [a for a in history.audits if a.sound][-_MOST_AUDITS:]
    if len(sound) < 2:
        return ()
    deciding = [g for g in gates_of(sound[-1].evidence) if g.result.blocking]
    nearest = nearest_first(deciding)[:_MOST_TRENDS]
    return tuple(_trend(g, sound, f"{key}-{i}") for i, g in enumerate(nearest, 1))


def _trend(gate: GateView, audits: Sequence[PastAudit], anchor: str) -> Panel:
    points = [
        TrendPoint(g, words.moment(a.evidence.created, day_only=True), a.released is not None)
        for a in audits
        for g in a.evidence.gates.results
        if g.gate == gate.result.gate
    ]
    drawing = trend_svg(points, title=gate.result.title, unit=gate.unit, anchor=anchor)
    return Panel(f"{gate.sentence}.", Markup(drawing))  # noqa: S704  (built from escaped parts)
