"""A page over the audits of many tables: what was found, released and approved, and how numbers moved."""

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from markupsafe import Markup

from synth_audit.findings.verdict import GateResult, Result
from synth_audit.report import refuse_other_file, svg, words
from synth_audit.report.assessment import nearest_first
from synth_audit.report.gates import gates_of, obstacles, sign_of, two_answers, verdict_sign
from synth_audit.report.page import page
from synth_audit.report.signatures import counting_approvals, wanted_approvals
from synth_audit.store.locate import NEWEST, PastAudit, TableHistory
from synth_audit.verdict.criteria import AnswerState, answers

WIDTH, HEIGHT = 300.0, 96.0
_TOP, _BOTTOM, _RIGHT = 8.0, 78.0, 10.0

_MARK = '<main id="main" data-index="audits">'

_MOST_TRENDS = 12
"""Charts of one table, those nearest to their limits first."""

Point = tuple[GateResult, PastAudit]
"""A gate in one audit."""


def trend_svg(points: Sequence[Point], *, title: str, unit: str, anchor: str) -> Markup:
    """The audits from left to right, the oldest first; a line under those that were released."""
    shown = [p for p in points if svg.drawable(p[0].value)]
    numbers = [x for g, _ in shown for x in (g.value, g.low, g.high, g.minimum, g.maximum)]
    ends = [x for x in numbers if x is not None and svg.drawable(x)]
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
    for limit in {shown[-1][0].minimum, shown[-1][0].maximum} - {None}:
        body += svg.line(left, y(limit), WIDTH, y(limit), dash="4 3", width=1.5)  # type: ignore[arg-type]
    gap = (WIDTH - _RIGHT - left - 14) / max(len(shown) - 1, 1)
    body += "".join(_point(point, left + 14 + i * gap, y) for i, point in enumerate(shown))
    days = [words.day(audit.evidence.created) for _, audit in shown]
    body += svg.text(left + 4, HEIGHT - 4, days[0], size=10, muted=True)
    if len(shown) > 1:
        body += svg.text(WIDTH, HEIGHT - 4, days[-1], size=10, anchor="end", muted=True)
    told = "; ".join(f"{day}: {_told(point, unit)}" for day, point in zip(days, shown, strict=True))
    return svg.document(WIDTH, HEIGHT, body, anchor=anchor, title=title, description=told)


def _point(point: Point, x: float, y: svg.Linear) -> str:
    (gate, audit), out = point, ""
    assert gate.value is not None
    if gate.low is not None and gate.high is not None and svg.drawable(gate.low) and svg.drawable(gate.high):
        out = svg.line(x, y(gate.low), x, y(gate.high), width=2)
    if audit.released is not None:
        out += svg.line(x - 5, _BOTTOM + 4, x + 5, _BOTTOM + 4, width=3)
    return out + svg.result_mark(gate.result, x, y(gate.value), 5)


def _told(point: Point, unit: str) -> str:
    gate, audit = point
    known = gate.low is not None and gate.high is not None
    span = f" ({words.interval(gate.low, gate.high, unit)})" if known else ""  # type: ignore[arg-type]
    out = ", released" if audit.released is not None else ""
    return f"{words.number(gate.value, unit)}{span}, {words.RESULT_WORDS[gate.result].lower()}{out}"


def render_index(histories: Sequence[TableHistory], base: Path) -> str:
    """The page, filtered by style sheet alone: it runs nothing and fetches nothing.

    Args:
        base: the folder of the page, which links start from.
    """
    tables = tuple((f"t{i}", history) for i, history in enumerate(histories, 1))
    return page(
        "index.html.j2",
        extra_style=_filters([key for key, _ in tables]),
        tables=tables,
        states=words.STATES,
        results=words.RESULT_WORDS,
        state=_state,
        states_of=lambda history: dict.fromkeys(_state(a) for a in reversed(history.audits)),
        sign=lambda audit: verdict_sign(audit.evidence) if audit.sound else sign_of(Result.INSUFFICIENT),
        reason=_reason,
        unanswered=_unanswered,
        fit=lambda evidence: two_answers(evidence)[1].answer,
        approvals=_approvals,
        link=partial(_link, base=base),
        trends=_trends,
    )


def refuse_no_index(path: Path) -> None:
    """Raise ``DataError`` where the page would take the place of a file that is none of its kind."""
    refuse_other_file(path, "index", "--out", lambda page: _MARK in page)


def _filters(keys: Sequence[str]) -> str:
    """One rule for each choice: what is chosen hides all else; names of tables stand in no rule."""
    choices = [("state", state) for state in words.STATES] + [("table", key) for key in keys]
    return "\n".join(
        f'body:has(#{name} option[value="{key}"]:checked) .entry:not(.{key}) {{ display: none; }}'
        for name, key in choices
    )


def _state(audit: PastAudit) -> str:
    """A key of :data:`words.STATES`."""
    if not audit.sound:
        return "open"
    return "released" if audit.released else svg.RESULT_CLASSES[audit.evidence.verdict]


def _reason(audit: PastAudit) -> str:
    """What keeps the table in first of all; empty where nothing does."""
    stopped = (f"{g.told}." for g in obstacles(audit.evidence))
    return next(stopped, words.sentence("; ".join(audit.evidence.gates.blockers)))


def _unanswered(audit: PastAudit) -> str:
    asked = answers(audit.evidence.outcomes, audit.evidence.gates.results)
    return ", ".join(f"{a.criterion} {a.state}" for a in asked if a.state is not AnswerState.WITHIN)


def _approvals(audit: PastAudit) -> str:
    wanted = wanted_approvals(audit.evidence)
    counting = counting_approvals(audit.evidence, audit.approvals)
    told = f"{len({a.by for a in counting})} of {wanted}" if wanted else str(len(audit.approvals) or "–")
    until = min((a.until for a in counting), default="")
    return told + (f", until {words.moment(until)}" if until else "")


def _link(path: Path | None, *, base: Path) -> str:
    return "" if path is None else Path(os.path.relpath(path.absolute(), base.absolute())).as_posix()


def _trends(history: TableHistory, key: str) -> tuple[svg.Panel, ...]:
    """Deciding gates of the newest audit, those nearest to their limits first."""
    sound = [a for a in history.audits if a.sound][-NEWEST:]
    if len(sound) < 2:
        return ()
    deciding = [g for g in gates_of(sound[-1].evidence) if g.result.blocking]
    panels = []
    for i, gate in enumerate(nearest_first(deciding)[:_MOST_TRENDS], 1):
        points = [(g, a) for a in sound for g in a.evidence.gates.results if g.gate == gate.result.gate]
        drawing = trend_svg(points, title=gate.result.title, unit=gate.unit, anchor=f"{key}-{i}")
        panels.append(svg.Panel(f"{gate.sentence}.", drawing))
    return tuple(panels)
