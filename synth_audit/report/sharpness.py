"""What a leak would have had to be to stay unseen: detection limits, or what known answers say."""

from __future__ import annotations

import math
from collections.abc import Sequence

from synth_audit.report import words
from synth_audit.report.measurement_sensitivity import (
    MeasurementSensitivity,
    sensitivities,
    sensitivity_line,
    sharpest,
)
from synth_audit.report.residual_risk import people
from synth_audit.report.view import GateView, SensitivityLine
from synth_audit.store.evidence import Evidence


def sharpness(evidence: Evidence, gates: Sequence[GateView]) -> tuple[str, ...]:
    """What a leak would have had to be to stay unseen, in two or three sentences."""
    if limits := detection_limits(evidence):
        return limits
    found = sensitivities(evidence, gates)
    line = sensitivity_line(evidence, found)
    relied = [w for w in found if w.decides]
    best, widest = sharpest(relied), _widest(relied)
    told = [" ".join(filter(None, (line.text, line.warning)))]
    if best is not None and best.least is not None and best.least > 0 and "synthetic" in evidence.tables:
        rows = evidence.tables["synthetic"].rows
        told.append(f"That is {people(best.least, rows, evidence.suppression)} of {rows:,} rows.")
    if best is not None and widest is not None and best is not widest:
        told.append(_bridge(best, widest))
    return tuple(told)


DETECTION_LIMIT = "detection_limit"
"""The quantity by which an audit states from which share of the people on it finds a class of leak."""


def detection_limits(evidence: Evidence) -> tuple[str, ...]:
    """From which share of the people on each class of leak is found; empty where nobody measured it."""
    limits = {
        m.id.setting.replace("_", " "): m.value
        for m in evidence.measurements
        if m.id.quantity == DETECTION_LIMIT and m.id.setting and m.finite
    }
    known = {name: share for name, share in limits.items() if share < 1}
    told = []
    if known:
        shares = ", ".join(f"{name} {words.number(share, 'share')}" for name, share in known.items())
        told.append(
            "A leak would have been found, with 95 % probability, from these shares of the training people "
            f"on: {shares}. A smaller one may be there unseen."
        )
    if left := [name for name in limits if name not in known]:
        told.append(f"No such share is established for: {', '.join(left)}.")
    return tuple(told)


def first_line(evidence: Evidence, found: Sequence[MeasurementSensitivity]) -> SensitivityLine:
    """What would have been found, in one line: the detection limit, or else what known answers say."""
    limit = next(
        (m.value for m in evidence.measurements if m.id.quantity == DETECTION_LIMIT and not m.id.setting),
        None,
    )
    if limit is None:
        return sensitivity_line(evidence, found)
    if limit >= 1:
        return SensitivityLine("open", detection_limits(evidence)[-1])
    share = words.number(limit, "share")
    text = f"Had {share} of the people left a trace in a row each, this audit would have found it with 95 % "
    return SensitivityLine("pass", f"{text}probability.")


def _widest(relied: Sequence[MeasurementSensitivity]) -> MeasurementSensitivity | None:
    """The one whose number, taken alone, is compatible with the most copied rows."""
    known = [
        (w.restated.interval.high, i) for i, w in enumerate(relied) if w.restated and w.restated.interval
    ]
    known = [pair for pair in known if math.isfinite(pair[0])]
    return relied[max(known)[1]] if known else None


def _bridge(best: MeasurementSensitivity, widest: MeasurementSensitivity) -> str:
    restated = widest.restated
    assert restated is not None
    assert restated.interval is not None
    most = words.behaves_like(restated.value, restated.interval.low, restated.interval.high)
    return (
        f"These two numbers go together: {best.audit_title} ({best.name}) is the sharpest instrument and "
        f"sets the smallest leak that shows. {widest.audit_title} ({widest.name}) is the bluntest: by itself "
        f"it says no more than that {most}, which is how little it can tell and not how much was found. A "
        "leak of that size would have to be of a kind that the sharper ones do not see."
    )
