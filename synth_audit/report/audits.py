"""Audits as a reader sees them: question, threat model, numbers, pictures, limits of what was shown."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from synth_audit import registry
from synth_audit.findings.measurement import Direction, Measurement, MeasurementId, Series
from synth_audit.findings.sensitivity import REFERENCE_RATIO
from synth_audit.plugins.audit import AuditOutcome, Status
from synth_audit.report import interval_charts, words
from synth_audit.report.gates import GateView
from synth_audit.report.known_answer import leak_sentence, sensitivity_sign, sensitivity_text
from synth_audit.report.plot_kinds import (
    Beside,
    Comparison,
    PanelKind,
    full_title,
    line_rows,
    plot_kind,
    series_svg,
)
from synth_audit.report.sensitivity import MeasurementSensitivity
from synth_audit.report.view import AuditView, Cells, Fact, NumberRow, Panel, Picture, ScopeTable

_OPEN_PICTURES = 4
_FOLDED_PICTURES = 36
_DIRECTIONS = {
    Direction.LOWER: {True: "lower is safer", False: "lower is better"},
    Direction.HIGHER: {True: "higher is safer", False: "higher is better"},
    Direction.NEUTRAL: {True: "descriptive", False: "descriptive"},
}


def pictures_of(
    series: Sequence[Series], measurements: Sequence[Measurement], anchor: str
) -> tuple[tuple[Picture, bool], ...]:
    """The figures of an audit in order, each with whether it shows the whole table rather than a part.

    Series of one quantity whose kind has panels become panels of one figure, at the place of the first.
    Their settings say which table they show.
    """
    together: dict[tuple[str, str, int], list[Series]] = {}
    for i, s in enumerate(series):
        joined = isinstance(plot_kind(s.kind), PanelKind)
        together.setdefault((s.kind, s.id.quantity, -1 if joined else i), []).append(s)
    return tuple(
        (panels_picture(group, kind, f"{anchor}-{i}"), True)
        if isinstance(kind := plot_kind(group[0].kind), PanelKind)
        else (
            picture_of(group[0], f"{anchor}-{i}", beside=references(group[0], measurements)),
            group[0].id == group[0].id.whole,
        )
        for i, group in enumerate(together.values(), 1)
    )


def picture_of(series: Series, anchor: str, *, beside: Beside | None = None) -> Picture:
    """The figure of one series with axes.

    Args:
        anchor: prefix of the ids inside; must be unique on a page.
    """
    beside, kind = beside or Beside(), plot_kind(series.kind)
    title = full_title(series)
    drawing = series_svg(series, anchor=anchor, heading=False, beside=beside)
    rows_of = line_rows if kind is None or isinstance(kind, PanelKind) else kind.rows
    header, rows = rows_of(series, beside)
    return Picture(title, Markup(drawing), Cells(title, header, rows))  # noqa: S704  (escapes its texts)


def panels_picture(series: Sequence[Series], kind: PanelKind, anchor: str) -> Picture:
    """The figure of several series of one quantity side by side.

    Args:
        anchor: prefix of the ids inside; must be unique on a page.
    """
    title, most = series[0].title, kind.most(series)
    panels = tuple(
        Panel(
            words.sentence(s.id.label, "") or title,
            Markup(kind.draw(s, most, f"{anchor}-{i}", f"{title}: {s.id.label}")),  # noqa: S704
        )
        for i, s in enumerate(series, 1)
    )
    scale = Markup(kind.scale(series, most, f"{anchor}-scale"))  # noqa: S704  (escapes its texts)
    narrow = bool(kind.narrow) and len(series) >= kind.narrow
    return Picture(title, scale, kind.table(series, title), kind.note, panels, narrow)


def references(series: Series, measurements: Iterable[Measurement]) -> Beside:
    """Reference values of the measurements that a series pictures, at each place or the same for all."""
    known = {m.id: m.reference.value for m in measurements if m.reference is not None}
    own = tuple(known.get(place) for place in series.places or (series.id,) * len(series.x))
    return Beside((Comparison("reference", own),))


def audit_view(
    outcome: AuditOutcome, found: Sequence[MeasurementSensitivity], gates: Sequence[GateView], anchor: str
) -> AuditView:
    """Everything one audit has to say.

    Args:
        found: what the known-answer check found out about its measurements.
    """
    info, said = outcome.info, _Said(outcome, found, gates)
    privacy = outcome.family == registry.PRIVACY
    headline = [m for m in said.own if m.id == m.id.whole]
    figures = pictures_of(outcome.series, outcome.measurements, f"{anchor}-series")
    pictures = [picture for picture, _ in figures]
    plain = ([picture for picture, whole in figures if whole] or pictures)[:_OPEN_PICTURES]
    folded = [p for p in pictures if p not in plain]
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
        numbers=tuple(_row(m, said, f"{anchor}-number-{i}") for i, m in enumerate(headline, 1)),
        scopes=_scope_tables(said),
        pictures=tuple(plain),
        more_pictures=tuple(folded[:_FOLDED_PICTURES]),
        pictures_left=max(0, len(folded) - _FOLDED_PICTURES),
        notes=tuple(words.sentence(n) for n in outcome.notes),
        config=tuple(
            Fact(k, json.dumps(v, ensure_ascii=False, default=str)) for k, v in outcome.config.items()
        ),
        gates=tuple(
            g
            for g in gates
            if g.result.measurement is not None and g.result.measurement.audit == outcome.audit
        ),
    )


def has_numbers(outcome: AuditOutcome) -> bool:
    """True when the audit measured something."""
    return outcome.status is Status.MEASURED and any(math.isfinite(m.value) for m in outcome.measurements)


@dataclass(frozen=True)
class _Said:
    """An audit's measurements with what the known-answer check and the gates say of them."""

    outcome: AuditOutcome
    found: Sequence[MeasurementSensitivity]
    gates: Sequence[GateView]

    @property
    def own(self) -> list[Measurement]:
        """All but the leak-equivalents and ratios that stand beside the measurements they restate."""
        beside = {id(w.restated) for w in self.found if w.measurement is not None}
        beside |= {id(r) for r in self._ratios.values()}
        return [m for m in self.outcome.measurements if id(m) not in beside]

    @property
    def _ratios(self) -> dict[MeasurementId, Measurement]:
        """By what they are derived from."""
        return {
            m.id.derived_from: m
            for m in self.outcome.measurements
            if m.id.quantity == REFERENCE_RATIO.name and m.id.derived_from
        }

    def ratio(self, m: Measurement) -> str:
        """How many times the reference it is, with the number at its size; nothing where that is open."""
        found = self._ratios.get(m.id)
        if found is None or not found.finite:
            return ""
        value, interval = words.of_measurement(found)
        text = f"{value} times the reference" + (f" ({interval})" if interval else "")
        alike = m.reference.candidate if m.reference else None
        return text if alike is None else f"{words.number(alike.value, m.unit)} on as many rows: {text}"

    def sensitivity(self, m: Measurement) -> MeasurementSensitivity | None:
        """What is known of how it answers leaks."""
        return next((w for w in self.found if w.measurement is m), None)

    def leak(self, m: Measurement) -> str:
        """The share of copied rows that it behaves like."""
        w = self.sensitivity(m)
        return leak_sentence(w.restated) if w is not None and w.restated is not None else ""

    def sensitivity_text(self, m: Measurement) -> str:
        """Whether it sees a full copy."""
        w = self.sensitivity(m)
        return words.sentence(sensitivity_text(w)) if w is not None else ""

    def judging(self, m: Measurement) -> tuple[GateView, ...]:
        """The gates that judge exactly this number."""
        return tuple(g for g in self.gates if g.result.measurement == m.id)


def _row(m: Measurement, said: _Said, anchor: str) -> NumberRow:
    title, explained = words.quantity_texts(said.outcome, m.id)
    value, interval = words.of_measurement(m)
    drawing = None
    if interval_charts.IntervalPlot.of_measurement(m).anything:
        drawing = Markup(interval_charts.measurement_interval_svg(m, title=title, anchor=anchor))  # noqa: S704
    level = ""
    if m.interval is not None:
        level = f"{words.percent_level(m.interval.level)} interval ({m.interval.method}): "
    sensitivity = said.sensitivity(m)
    return NumberRow(
        title=title,
        help=explained,
        direction=_DIRECTIONS[m.direction][said.outcome.family == registry.PRIVACY],
        value=value,
        interval=level + interval if interval else "no interval",
        reference=_reference(m),
        ratio=said.ratio(m),
        meaning=m.reference.meaning if m.reference else "",
        attempts=_attempts(m),
        short=m.short,
        missing=not math.isfinite(m.value),
        gates=said.judging(m),
        picture=drawing,
        sensitivity=sensitivity_sign(sensitivity.response.sensitivity) if sensitivity else None,
        sensitivity_text=said.sensitivity_text(m),
        leak=said.leak(m),
        leak_gates=said.judging(sensitivity.restated) if sensitivity and sensitivity.restated else (),
    )


def _reference(m: Measurement) -> str:
    if m.reference is None:
        return ""
    if m.reference.interval is None:
        return words.number(m.reference.value, m.unit)
    say = words.number if m.unit == "share" else words.bare_number  # a unit in words is said once
    span = words.interval(m.reference.interval.low, m.reference.interval.high, m.unit)
    return f"{say(m.reference.value, m.unit)} ({span})"


def _attempts(m: Measurement) -> str:
    if m.n_achieved is None and m.n_requested is None:
        return ""
    done = "unknown" if m.n_achieved is None else f"{m.n_achieved:,}"
    text = done if m.n_requested in (None, m.n_achieved) else f"{done} of {m.n_requested:,} wanted"
    return text + (f", fewer than the {m.n_minimum:,} needed" if m.short else "")


def _scope_tables(said: _Said) -> tuple[ScopeTable, ...]:
    groups: dict[MeasurementId, list[Measurement]] = {}
    for m in said.own:
        if m.id != m.id.whole:
            groups.setdefault(m.id.whole, []).append(m)
    return tuple(_scope_table(group, said) for group in groups.values())


def _scope_table(group: list[Measurement], said: _Said) -> ScopeTable:
    title, explained = words.quantity_texts(said.outcome, group[0].id)
    ordered = worst_first(group)
    columns: dict[str, Callable[[Measurement], str]] = {
        "Reference": _reference,
        "At the size of the reference": said.ratio,
        "Based on": _attempts,
        "As copied rows": said.leak,
        "Known-answer check": said.sensitivity_text,
        "Gate": lambda m: ", ".join(f"{g.sign.word}, {g.allowed}" for g in said.judging(m)),
    }
    kept = {name: say for name, say in columns.items() if any(say(m) for m in group)}
    header = ("Column or setting", "Value", "Interval", *kept)
    rows = tuple(
        tuple(x or "–" for x in (m.id.label, *words.of_measurement(m), *(say(m) for say in kept.values())))
        for m in ordered
    )
    worst = f"{words.number(ordered[0].value, ordered[0].unit)} ({ordered[0].id.label})"
    summary = words.counted(len(group), "value")
    if len(group) == 1:
        summary += f": {worst}"
    elif group[0].direction is not Direction.NEUTRAL:
        summary += f", worst first; worst: {worst}"
    return ScopeTable(title, summary, Cells(explained or title, header, rows))


def worst_first(group: Iterable[Measurement]) -> list[Measurement]:
    """Not computed first, then by value in the direction of harm; descriptive numbers keep their order."""

    def harm(m: Measurement) -> tuple[bool, float]:
        if math.isnan(m.value):
            return (False, 0.0)
        return (True, {Direction.LOWER: -m.value, Direction.HIGHER: m.value}.get(m.direction, 0.0))

    return sorted(group, key=harm)
