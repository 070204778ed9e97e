"""Audits as a reader sees them: question, threat model, numbers, pictures, limits of what was shown."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence

from markupsafe import Markup

from synth_audit.core.measurement import Direction, Measurement, Series
from synth_audit.core.outcome import AuditOutcome, Status
from synth_audit.core.plugin import AuditInfo
from synth_audit.report import charts, strips, words
from synth_audit.report.plots import full_title
from synth_audit.report.view import AuditView, Cells, Fact, GateView, NumberRow, Picture, ScopeTable

_OPEN_PICTURES = 4
_DIRECTIONS = {
    Direction.LOWER: {True: "lower is safer", False: "lower is better"},
    Direction.HIGHER: {True: "higher is safer", False: "higher is better"},
    Direction.NEUTRAL: {True: "descriptive", False: "descriptive"},
}


def audit_view(outcome: AuditOutcome, gates: Sequence[GateView], anchor: str) -> AuditView:
    """Everything one audit has to say."""
    info, privacy = outcome.info, outcome.family == "privacy"
    headline = [m for m in outcome.measurements if not m.scope]
    pictures = [_picture(s, f"{anchor}-series-{i}") for i, s in enumerate(outcome.series, 1)]
    whole = [p for p, s in zip(pictures, outcome.series, strict=True) if not s.scope]
    plain = (whole or pictures)[:_OPEN_PICTURES]
    return AuditView(
        anchor=anchor,
        name=outcome.audit,
        title=info.title if info else outcome.audit,
        status=str(outcome.status),
        reason=words.sentence(outcome.reason) or "No reason was recorded.",
        question=words.sentence(info.question, "?") if info else "",
        threat_label="What the attacker knows and does" if privacy else "Who would be let down",
        threat_model=words.sentence(info.threat_model) if info else "",
        not_covered=words.sentence(info.not_covered) if info else "",
        source=info.source if info else "",
        numbers=tuple(
            _row(m, info, privacy, gates, f"{anchor}-number-{i}") for i, m in enumerate(headline, 1)
        ),
        scopes=_scope_tables(outcome, gates),
        pictures=tuple(plain),
        more_pictures=tuple(p for p in pictures if p not in plain),
        notes=tuple(words.sentence(n) for n in outcome.notes),
        config=tuple(
            Fact(k, json.dumps(v, ensure_ascii=False, default=str)) for k, v in outcome.config.items()
        ),
    )


def has_numbers(outcome: AuditOutcome) -> bool:
    """True when the audit measured something."""
    return outcome.status is Status.MEASURED and any(math.isfinite(m.value) for m in outcome.measurements)


def _quantity(m: Measurement, info: AuditInfo | None) -> tuple[str, str]:
    name = m.name.rpartition(".")[2]
    if info is not None:
        for quantity in info.quantities:
            if quantity.name == name:
                return quantity.title, words.sentence(quantity.help)
    return name.replace("_", " ").capitalize(), ""


def _row(
    m: Measurement, info: AuditInfo | None, privacy: bool, gates: Sequence[GateView], anchor: str
) -> NumberRow:
    title, explained = _quantity(m, info)
    value, interval = _texts(m)
    drawing = None
    if strips.Strip.of_measurement(m).anything:
        drawing = Markup(charts.measurement_strip_svg(m, title=title, anchor=anchor))  # noqa: S704
    level = ""
    if m.interval is not None:
        level = f"{words.percent_level(m.interval.level)} interval ({m.interval.method}): "
    return NumberRow(
        title=title,
        help=explained,
        direction=_DIRECTIONS[m.direction][privacy],
        value=value,
        interval=level + interval if interval else "no interval",
        reference=_reference(m),
        meaning=m.reference.meaning if m.reference else "",
        attempts=_attempts(m),
        short=m.short,
        missing=not math.isfinite(m.value),
        gates=tuple(g for g in gates if (g.measurement, g.scope) == (m.name, m.scope)),
        picture=drawing,
    )


def _texts(m: Measurement) -> tuple[str, str]:
    if m.interval is None:
        return words.number(m.value, m.unit), ""
    low, high = m.interval.low, m.interval.high
    places = words.decimals(m.unit, m.value, low=low, high=high)
    return words.number(m.value, m.unit, places), words.interval(low, high, m.unit, places)


def _reference(m: Measurement) -> str:
    if m.reference is None:
        return ""
    text = words.number(m.reference.value, m.unit)
    if m.reference.interval is not None:
        text += f" ({words.interval(m.reference.interval.low, m.reference.interval.high, m.unit)})"
    return text


def _attempts(m: Measurement) -> str:
    if m.n_achieved is None and m.n_requested is None:
        return ""
    done = "unknown" if m.n_achieved is None else f"{m.n_achieved:,}"
    text = done if m.n_requested in (None, m.n_achieved) else f"{done} of {m.n_requested:,} wanted"
    return text + (f", fewer than the {m.n_minimum:,} needed" if m.short else "")


def _scope_tables(outcome: AuditOutcome, gates: Sequence[GateView]) -> tuple[ScopeTable, ...]:
    groups: dict[str, list[Measurement]] = {}
    for m in outcome.measurements:
        if m.scope:
            groups.setdefault(m.name, []).append(m)
    return tuple(_scope_table(group, outcome.info, gates) for group in groups.values())


def _scope_table(group: list[Measurement], info: AuditInfo | None, gates: Sequence[GateView]) -> ScopeTable:
    title, explained = _quantity(group[0], info)
    ordered = worst_first(group)
    judged = {g.scope: g for g in gates if g.measurement == group[0].name}
    columns = {"Reference": _reference, "Based on": _attempts}
    kept = {name: say for name, say in columns.items() if any(say(m) for m in group)}
    header = ["Column or setting", "Value", "Interval", *kept, *(["Gate"] if judged else [])]
    rows = []
    for m in ordered:
        row = [m.scope, *_texts(m), *(say(m) for say in kept.values())]
        if judged:
            gate = judged.get(m.scope)
            row.append(f"{gate.sign.word}, {gate.limit}" if gate else "")
        rows.append(tuple(x or "–" for x in row))
    ranked = group[0].direction is not Direction.NEUTRAL
    summary = words.counted(len(group), "value") + (", worst first" if ranked else "")
    if ranked:
        summary += f"; worst: {words.number(ordered[0].value, ordered[0].unit)} ({ordered[0].scope})"
    return ScopeTable(title, summary, Cells(explained or title, tuple(header), tuple(rows)))


def worst_first(group: Iterable[Measurement]) -> list[Measurement]:
    """Not computed first, then by value in the direction of harm; descriptive numbers keep their order."""

    def harm(m: Measurement) -> tuple[bool, float]:
        if math.isnan(m.value):
            return (False, 0.0)
        return (True, {Direction.LOWER: -m.value, Direction.HIGHER: m.value}.get(m.direction, 0.0))

    return sorted(group, key=harm)


def _picture(series: Series, anchor: str) -> Picture:
    title = full_title(series)
    labels = tuple(label or series.y_label for label in series.lines)
    xs: Sequence[float | str] = series.x
    rows = tuple(
        (_position(x), *(words.number(ys[i]) for ys in series.lines.values())) for i, x in enumerate(xs)
    )
    drawing = Markup(charts.series_svg(series, anchor=anchor, heading=False))  # noqa: S704
    return Picture(title, drawing, Cells(title, (series.x_label, *labels), rows))


def _position(x: float | str) -> str:
    return x if isinstance(x, str) else words.number(float(x))
