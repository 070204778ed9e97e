"""Audits as a reader sees them: question, threat model, numbers, pictures, limits of what was shown."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from synth_audit import registry
from synth_audit.errors import SynthAuditError
from synth_audit.findings.measurement import Direction, Measurement, MeasurementId, Series, is_share
from synth_audit.findings.sensitivity import LEAK_EQUIVALENT, REFERENCE_RATIO
from synth_audit.plugins.audit import AuditInfo, AuditOutcome, Status
from synth_audit.report import words
from synth_audit.report.charts import Beside, picture_of
from synth_audit.report.panels import PANELS, panels_picture
from synth_audit.report.svg import Cells, Picture

_FIRST_PICTURES = 1
"""Pictures of an audit on the short page: each takes about a hundred words of 6,000."""
_WORST = 3
"""Columns or settings that are named where a table of all would be too long."""
_MOST_PICTURES = 40
"""Pictures of an audit on the full page, which stays below 10 MB."""


def pictures_of(
    series: Sequence[Series], measurements: Sequence[Measurement], anchor: str
) -> tuple[tuple[Picture, bool], ...]:
    """The figures of an audit in order, each with whether it shows the whole table rather than a part.

    Series of one quantity whose kind has panels become panels of one figure, at the place of the first.
    Their settings say which table they show.
    """
    together: dict[tuple[str, str, int], list[Series]] = {}
    for i, s in enumerate(series):
        together.setdefault((s.kind, s.id.quantity, -1 if s.kind in PANELS else i), []).append(s)
    return tuple(
        (panels_picture(group, PANELS[group[0].kind], f"{anchor}-{i}"), True)
        if group[0].kind in PANELS
        else (
            picture_of(group[0], f"{anchor}-{i}", beside=references(group[0], measurements)),
            group[0].id == group[0].id.whole,
        )
        for i, group in enumerate(together.values(), 1)
    )


def references(series: Series, measurements: Iterable[Measurement]) -> Beside:
    """Reference values of the measurements that a series pictures, at each place or the same for all."""
    known = {m.id: m.reference.value for m in measurements if m.reference is not None}
    own = [known.get(place) for place in series.places or (series.id,) * len(series.x)]
    return Beside({"reference": own})


@dataclass(frozen=True)
class ScopeTable:
    """One quantity for each column or setting, worst first; ``worst`` names a few with their values.

    It is empty where no direction is worse.
    """

    title: str
    summary: str
    worst: str
    table: Cells


@dataclass(frozen=True)
class AuditView:
    """One audit and what is said of its numbers; what planted leaks say of them stands elsewhere."""

    outcome: AuditOutcome
    anchor: str

    @property
    def title(self) -> str:
        """As a reader knows it."""
        return self.outcome.info.title if self.outcome.info else self.outcome.audit

    @property
    def privacy(self) -> bool:
        """True where an attacker is asked for, and not a user."""
        return self.outcome.family == registry.PRIVACY

    @property
    def numbers(self) -> list[Measurement]:
        """The numbers about the whole table."""
        return [m for m in self._own if m.id == m.id.whole]

    @property
    def scopes(self) -> list[ScopeTable]:
        """One table for each quantity that was measured by column or setting."""
        groups: dict[MeasurementId, list[Measurement]] = {}
        for m in self._own:
            if m.id != m.id.whole:
                groups.setdefault(m.id.whole, []).append(m)
        return [self._scope_table(group) for group in groups.values()]

    def pictures(self, *, full: bool) -> tuple[tuple[Picture, ...], int]:
        """Those that are shown, whole tables first, and how many more are only in the evidence."""
        figures = pictures_of(self.outcome.series, self.outcome.measurements, f"{self.anchor}-series")
        ordered = [picture for picture, _ in sorted(figures, key=lambda figure: not figure[1])]
        most = _MOST_PICTURES if full else _FIRST_PICTURES
        return tuple(ordered[:most]), max(0, len(ordered) - most)

    def texts(self, m: Measurement) -> tuple[str, str]:
        """Title of a number, and how to read it."""
        return words.quantity_texts(self.outcome, m.id)

    def direction(self, m: Measurement) -> str:
        """Which way is harm."""
        if m.direction is Direction.NEUTRAL:
            return "descriptive"
        return f"{m.direction.name.lower()} is {'safer' if self.privacy else 'better'}"

    def ratio(self, m: Measurement) -> str:
        """How many times the reference it is, with the number at its size; nothing where that is open."""
        found = self._ratios.get(m.id)
        if found is None or not found.finite:
            return ""
        value, interval = words.of_measurement(found)
        text = f"{value} times the reference" + (f" ({interval})" if interval else "")
        alike = m.reference.candidate if m.reference else None
        return text if alike is None else f"{words.number(alike.value, m.unit)} on as many rows: {text}"

    @property
    def _own(self) -> list[Measurement]:
        """All but leak-equivalents, told of with the planted leaks, and ratios, told beside their numbers."""
        planted, ratios = {r.id for r in self.outcome.responses}, set(self._ratios.values())

        def apart(m: Measurement) -> bool:
            return m in ratios or (m.id.quantity == LEAK_EQUIVALENT.name and m.id.derived_from in planted)

        return [m for m in self.outcome.measurements if not apart(m)]

    @cached_property
    def _ratios(self) -> dict[MeasurementId, Measurement]:
        """By what they are derived from."""
        return {
            m.id.derived_from: m
            for m in self.outcome.measurements
            if m.id.quantity == REFERENCE_RATIO.name and m.id.derived_from
        }

    def _scope_table(self, group: list[Measurement]) -> ScopeTable:
        title, explained = self.texts(group[0])
        ordered = worst_first(group)
        columns: dict[str, Callable[[Measurement], str]] = {
            "Reference": reference,
            "At the size of the reference": self.ratio,
            "Based on": attempts,
        }
        kept = {name: say for name, say in columns.items() if any(say(m) for m in group)}
        header = ("Column or setting", "Value", "Interval", *kept)
        cells = ((m.id.label, *words.of_measurement(m), *(say(m) for say in kept.values())) for m in ordered)
        rows = tuple(tuple(x or "–" for x in row) for row in cells)
        harmful = group[0].direction is not Direction.NEUTRAL
        told = [f"{m.id.label} {words.number(m.value, m.unit)}" for m in ordered[:_WORST] if harmful]
        summary = words.counted(len(group), "value") + (", worst first" if harmful and len(group) > 1 else "")
        return ScopeTable(title, summary, ", ".join(told), Cells(explained or title, header, rows))


def spread(m: Measurement) -> str:
    """The interval of a number with how it was made."""
    interval = words.of_measurement(m)[1]
    if m.interval is None or not interval:
        return "no interval"
    return f"{words.percent_level(m.interval.level)} interval ({m.interval.method}): {interval}"


def reference(m: Measurement) -> str:
    """The reference value of a number; empty without one."""
    if m.reference is None:
        return ""
    if m.reference.interval is None:
        return words.number(m.reference.value, m.unit)
    say = words.number if is_share(m.unit) else words.bare_number  # a unit in words is said once
    span = words.interval(m.reference.interval.low, m.reference.interval.high, m.unit)
    return f"{say(m.reference.value, m.unit)} ({span})"


def attempts(m: Measurement) -> str:
    """How many attempts a number rests on; empty where they were not counted."""
    if m.n_achieved is None and m.n_requested is None:
        return ""
    done = "unknown" if m.n_achieved is None else f"{m.n_achieved:,}"
    text = done if m.n_requested in (None, m.n_achieved) else f"{done} of {m.n_requested:,} wanted"
    return text + (f", fewer than the {m.n_minimum:,} needed" if m.short else "")


def declared(audit: str) -> AuditInfo | None:
    """What an audit says of itself; None where it is not installed here, or does not load."""
    ref = registry.catalogue("audit").get(audit)
    try:
        return ref.load().info if ref else None  # type: ignore[attr-defined]
    except SynthAuditError:
        return None


def has_numbers(outcome: AuditOutcome) -> bool:
    """True when the audit measured something."""
    return outcome.status is Status.MEASURED and any(math.isfinite(m.value) for m in outcome.measurements)


def worst_first(group: Iterable[Measurement]) -> list[Measurement]:
    """Not computed first, then by value in the direction of harm; descriptive numbers keep their order."""

    def harm(m: Measurement) -> tuple[bool, float]:
        if math.isnan(m.value):
            return (False, 0.0)
        return (True, {Direction.LOWER: -m.value, Direction.HIGHER: m.value}.get(m.direction, 0.0))

    return sorted(group, key=harm)
