"""Planted leaks: what saw them, how likely a leak is to show, and what the candidate's numbers amount to."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from synth_audit import registry
from synth_audit.findings import sensitivity
from synth_audit.findings.measurement import Measurement
from synth_audit.findings.verdict import Result
from synth_audit.plugins.audit import AuditOutcome
from synth_audit.report import words
from synth_audit.report.gates import GateView, Sign, gate_views, sign_of
from synth_audit.store.evidence import Evidence

DETECTION_LIMIT = "detection_limit"
"""The quantity by which an audit states from which share of the people on it finds a class of leak."""


def leak_name(limit: Measurement) -> sensitivity.LeakName:
    """The class of leak that a detection limit is about."""
    setting = limit.id.setting
    return sensitivity.LEAK_NAMES.get(setting, sensitivity.LeakName(setting.replace("_", " ").capitalize()))


class SensitivityLine(NamedTuple):
    """What the audit would have seen, in one line; ``kind`` as of a sign, ``warning`` may be empty."""

    kind: str
    text: str
    warning: str = ""


class Shown(NamedTuple):
    """A number with its interval, whether that was called a leak, and whether wrongly."""

    value: str
    interval: str
    verdict: str
    wrong: bool


@dataclass(frozen=True)
class MeasurementSensitivity:
    """One measurement, how it answers planted leaks, and who relies on it.

    Attributes:
        measurement: on the candidate; None where the evidence holds a response without one.
        restated: the same as a share of copied rows; None where that cannot be said.
        proportional: it moves in proportion to the share of copied rows.
    """

    outcome: AuditOutcome
    response: sensitivity.SensitivityCurve
    title: str
    measurement: Measurement | None
    restated: Measurement | None
    proportional: bool
    gates: tuple[GateView, ...]

    @property
    def audit_title(self) -> str:
        """The audit as a reader knows it."""
        return self.outcome.info.title if self.outcome.info else self.outcome.audit

    @property
    def name(self) -> str:
        """Quantity, setting and column."""
        return f"{self.title} ({self.response.id.label})" if self.response.id.label else self.title

    @property
    def sees(self) -> bool:
        """True when it tells a full copy from new people."""
        return self.response.sensitivity is sensitivity.Sensitivity.SENSITIVE

    @property
    def least(self) -> float | None:
        """Smallest share of copies that shows; None where blind, too uncertain, or out of proportion."""
        least = self.response.minimum_detectable
        if not self.sees or not self.proportional or least is None or not math.isfinite(least):
            return None
        return least

    @property
    def sign(self) -> Sign:
        """Shape and word of seeing and blindness."""
        sign = sign_of(Result.PASS if self.sees else Result.INSUFFICIENT)
        return Sign(sign.kind, "Sees" if self.sees else "Blind", sign.icon)

    @property
    def leak(self) -> str:
        """The share of copied rows that it behaves like; empty where that cannot be said."""
        if self.restated is None:
            return ""
        share = words.cut_share(self.restated)
        if not share:
            return "As a share of copied rows it could not be computed."
        return f"Behaves like a release in which {share} of the rows were copied."

    @property
    def shows(self) -> str:
        """From which leak on it shows one."""
        if not self.sees:
            return "none"
        if not self.proportional:
            return "not in proportion, so not known"
        if self.least is None:
            half = self.response.half_width
            return "none with certainty" if half is not None and math.isfinite(half) else words.NOT_COMPUTED
        return f"from {words.detectable(self.least)}"

    def shown(self, share: float) -> Shown:
        """What it showed where this share of the rows was copied."""
        answer = next((a for a in self.response.answers if a.share == share), None)
        if answer is None:
            return Shown("–", "", "", False)
        unit = self.measurement.unit if self.measurement else ""
        numbers = words.measured(unit, answer.value, answer.low, answer.high)
        if not self.sees:
            return Shown(*numbers, "", False)
        called = self.response.flags(answer)
        if share == 0:
            return Shown(*numbers, "false alarm" if called else "no alarm", called)
        return Shown(*numbers, "noticed" if called else "not noticed", share == 1 and not called)

    @property
    def decides(self) -> bool:
        """True when a deciding gate rests on it."""
        return any(g.result.blocking for g in self.gates)


def sensitivities(evidence: Evidence) -> tuple[MeasurementSensitivity, ...]:
    """Every measurement with a response, in the order of the evidence."""
    gates = gate_views(evidence)
    return tuple(
        _sensitivity(outcome, r, tuple(g for g in gates if _rests_on(g, r, outcome)))
        for outcome in evidence.outcomes
        for r in outcome.responses
    )


def sharpest(found: Sequence[MeasurementSensitivity]) -> MeasurementSensitivity | None:
    """The one that shows the smallest leak; None when none shows any with certainty."""
    known = [(w.least, i) for i, w in enumerate(found) if w.least is not None]
    return found[min(known)[1]] if known else None


def sensitivity_line(evidence: Evidence, found: Sequence[MeasurementSensitivity]) -> SensitivityLine:
    """What this audit would have seen, in one line for the first screen."""
    relied = [w for w in found if w.decides]
    if evidence.planting.reason or not found:
        return SensitivityLine("open", _unknown(evidence))
    if not relied:
        return SensitivityLine("open", "No deciding gate rests on a number that was tried on planted leaks.")
    best, blind = sharpest(relied), [w for w in relied if not w.sees]
    if len(blind) == len(relied):
        text = "This audit would not have seen even a full copy of the training rows: what decides is blind."
        return SensitivityLine("fail", text)
    if best is None or best.least is None:
        text = "This audit can see a full copy of the training rows, but no smaller leak with certainty."
    elif best.least <= 0:
        text = "This audit would have seen even a single copied row."
    else:
        least = words.detectable(best.least)
        text = f"Had {least} of the rows or more been copies, this audit would have seen it."
    if not blind:
        return SensitivityLine("pass" if best else "open", text)
    names = "; ".join(f"{w.audit_title}: {w.name}" for w in blind[:3]) + ("; …" if len(blind) > 3 else "")
    warning = (
        f"{len(blind)} of {words.counted(len(relied), 'measurement')} behind its deciding gates "
        f"{'is' if len(blind) == 1 else 'are'} blind here ({names})."
    )
    return SensitivityLine("open", text, warning)


def _unknown(evidence: Evidence) -> str:
    if evidence.planting.reason:
        return (
            f"No leak could be planted ({evidence.planting.reason}), so it is not known whether this audit "
            "would have seen one."
        )
    if any(o.family == registry.PRIVACY for o in evidence.outcomes):
        return "No measurement was tried on a planted leak, so it is not known whether one would have shown."
    return "No audit of privacy was part of this run: it would not have seen any leak."


def _sensitivity(
    outcome: AuditOutcome, response: sensitivity.SensitivityCurve, gates: tuple[GateView, ...]
) -> MeasurementSensitivity:
    measurement = next((m for m in outcome.measurements if m.id == response.id), None)
    declared = outcome.info.quantities if outcome.info else ()
    copies = (m for m in outcome.measurements if m.id.quantity == sensitivity.LEAK_EQUIVALENT.name)
    return MeasurementSensitivity(
        outcome=outcome,
        response=response,
        title=words.quantity_texts(outcome, response.id)[0],
        measurement=measurement,
        restated=next((m for m in copies if m.id.derived_from == response.id), None),
        proportional=all(q.proportional for q in declared if q.name == response.id.quantity),
        gates=gates,
    )


def _rests_on(gate: GateView, response: sensitivity.SensitivityCurve, outcome: AuditOutcome) -> bool:
    """True when the gate judges the measurement itself or what is derived from it."""
    about = gate.result.measurement
    if about is None:
        return False
    judged = [about]
    if gate.result.every:  # its result names only the worst
        judged += [m.id for m in outcome.measurements if m.id.whole == about.whole]
    return any((x.derived_from or x) == response.id for x in judged)


def best_of_audits(found: Sequence[MeasurementSensitivity]) -> list[MeasurementSensitivity]:
    """The sharpest measurement of each audit that has one, sharpest first."""
    audits = dict.fromkeys(w.outcome.audit for w in found)
    best = [sharpest([w for w in found if w.outcome.audit == a]) for a in audits]
    return sorted((w for w in best if w is not None), key=lambda w: w.least or 0.0)


def known_answer(evidence: Evidence, found: Sequence[MeasurementSensitivity]) -> dict[str, Any]:
    """The section; it stands in every report, for a check that was not made is worth saying too."""
    shares = evidence.planting.shares or tuple(sorted({a.share for w in found for a in w.response.answers}))
    labels = {0.0: "New people", 1.0: "All rows copied"}
    return {
        "headline": _headline(found),
        "planted": _planted(evidence),
        "alarm": _alarm(evidence, found),
        "limits": detection_limits(evidence),
        "no_limits": _no_limits(evidence),
        "shares": [(share, labels.get(share, f"{words.number(share, 'share')} copied")) for share in shares],
        "rows": sorted(found, key=_rank),
        "best": best_of_audits(found),
    }


def _rank(w: MeasurementSensitivity) -> tuple[bool, float]:
    """Blind ones first, then the sharpest; those without a smallest leak last."""
    return (w.sees, math.inf if w.least is None else w.least)


def _headline(found: Sequence[MeasurementSensitivity]) -> str:
    if not found:
        return "No measurement of this audit was tried on a planted leak."
    seeing = sum(w.sees for w in found)
    numbers = words.counted(len(found), "privacy number")
    which = f"All {numbers}" if seeing == len(found) > 1 else f"{seeing or 'None'} of {numbers}"
    return f"A full copy of the training set was planted. {which} noticed it."


def _no_limits(evidence: Evidence) -> str:
    """Why no detection limit by class of leak is known; for evidence without any."""
    for o in evidence.outcomes:
        mine = [g for g in evidence.gates.results if g.measurement and g.measurement.audit == o.audit]
        states_limits = o.info is not None and any(q.name == DETECTION_LIMIT for q in o.info.quantities)
        if o.info and states_limits and any(g.result is Result.FAIL for g in mine):
            title = o.info.title
            return f"“{title}” found a leak in the release itself. So no smaller leaks were planted for it."
    return "Detection limits by class of leak were not part of this run."


def _planted(evidence: Evidence) -> str:
    p = evidence.planting
    if p.reason:
        return f"No leak could be planted: {p.reason}. What these numbers would have shown is not known."
    if not p.shares:
        return "No leak was planted in this run."
    *some, last = (words.number(s, "share") for s in p.shares)
    control = f"{words.counted(p.control_rows, 'control row')} stayed control"
    return (
        f"{words.counted(p.train_rows, 'training row')} stood in for the training table, other training rows "
        f"for people the generator never saw, and {control if p.control_rows else 'there was no control'}. "
        f"{words.counted(len(p.shares), 'release')} of {words.counted(p.release_rows, 'row')} "
        f"{'was' if len(p.shares) == 1 else 'were'} made from them, with {', '.join(some)}"
        f"{' and ' if some else ''}{last} of the rows copied. Every privacy audit ran on each."
    )


def _alarm(evidence: Evidence, found: Sequence[MeasurementSensitivity]) -> str:
    blind = [w for w in found if not w.sees]
    if not blind or evidence.planting.reason:
        return ""
    relied = sum(w.decides for w in blind)
    text = (
        f"{len(blind)} would not notice a full copy on this table. No gate passes on a number that is blind."
    )
    return f"{text} {words.counted(relied, 'deciding gate')} relied on one." if relied else text


def sharpness(evidence: Evidence) -> str:
    """What a leak would have had to be to stay unseen, in a sentence or two."""
    if detection_limits(evidence):
        return _without_limit(evidence)
    line = sensitivity_line(evidence, sensitivities(evidence))
    return f"{line.text} {line.warning}".strip()


def detection_limits(evidence: Evidence) -> dict[sensitivity.LeakName, float]:
    """Share of the training people by class of leak; 1 where none is established."""
    stated = (m for m in evidence.measurements if m.id.quantity == DETECTION_LIMIT and m.id.setting)
    return {leak_name(m): m.value for m in stated if m.finite}


def _without_limit(evidence: Evidence) -> str:
    left = [leak.title.lower() for leak, share in detection_limits(evidence).items() if share >= 1]
    return f"No detection limit is established for: {', '.join(left)}." if left else ""


def first_line(evidence: Evidence, found: Sequence[MeasurementSensitivity]) -> SensitivityLine:
    """What would have been found, in one line: the detection limit, or else what known answers say."""
    stated = (m for m in evidence.measurements if m.id.quantity == DETECTION_LIMIT and not m.id.setting)
    limit = next((m.value for m in stated if m.finite), None)
    if limit is None:
        return sensitivity_line(evidence, found)
    if limit >= 1:
        unknown = "No detection limit is established."
        return SensitivityLine("open", _without_limit(evidence) or unknown)
    told = words.found(words.share_of_people(limit, evidence))
    return SensitivityLine("pass", told, _without_limit(evidence))
