"""How likely a leak is to show, by its size: one line for each audit."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup

from synth_audit.kernels.sensitivity_curve import DETECTED, detection_probability
from synth_audit.report import svg, words
from synth_audit.report.axes import WIDTH, axis_title, position_labels, value_axis
from synth_audit.report.legend import legend
from synth_audit.report.line_styles import LineStyle
from synth_audit.report.measurement_sensitivity import MeasurementSensitivity, sharpest
from synth_audit.report.view import Cells, Picture

_TITLE = "How likely each audit is to notice a leak, by its size"
_DECADES = (0.0001, 0.001, 0.01, 0.1, 1.0)
_PER_DECADE = 24
_MOST_LINES = 8
_LISTED = (*(d * f for d in _DECADES[:-1] for f in (1, 2, 5)), 1.0)


def detection_picture(found: Sequence[MeasurementSensitivity], anchor: str) -> Picture | None:
    """The sharpest measurement of each audit, with the numbers; None when no audit has one."""
    best = [w for w in best_of_audits(found) if chance(w, 1.0) is not None]
    if not best:
        return None
    names = [w.audit_title for w in best]
    named = {
        w.outcome.audit: w.audit_title if names.count(w.audit_title) == 1 else w.outcome.audit for w in best
    }
    drawing = Markup(_svg(best[:_MOST_LINES], named, anchor))  # noqa: S704
    rows = tuple(
        (words.number(f, "share"), *(words.number(chance(w, f), "share", 1) for w in best)) for f in _LISTED
    )
    header = ("Rows copied", *(f"{named[w.outcome.audit]}: {w.name}" for w in best))
    return Picture(_TITLE, drawing, Cells("Probability that the leak is noticed", header, rows))


def best_of_audits(found: Sequence[MeasurementSensitivity]) -> list[MeasurementSensitivity]:
    """The sharpest measurement of each audit that has one, sharpest first."""
    audits = dict.fromkeys(w.outcome.audit for w in found)
    best = [sharpest([w for w in found if w.outcome.audit == a]) for a in audits]
    return sorted((w for w in best if w is not None), key=lambda w: w.least or 0.0)


def chance(sensitivity: MeasurementSensitivity, share: float) -> float | None:
    """Probability that a leak of this share is noticed; None where the check does not say."""
    span, half = sensitivity.span, sensitivity.response.half_width
    if not sensitivity.sees or span is None or span <= 0 or half is None or not math.isfinite(half):
        return None
    return detection_probability(share, span, half, sensitivity.level)


def _svg(best: Sequence[MeasurementSensitivity], named: dict[str, str], anchor: str) -> str:
    styles = {named[w.outcome.audit]: LineStyle(i, anchor) for i, w in enumerate(best)}
    head = legend(styles, 0.0)
    axis, y_scale, left = value_axis(0.0, 100.0, head.height, "probability that the leak is noticed, %")
    bottom = head.height + axis.height
    x_scale = svg.Linear(math.log10(_DECADES[0]), 0.0, left + 4, WIDTH - 14)
    body = head.body + axis.body + _x_axis(x_scale, y_scale(100.0), bottom)
    wanted = y_scale(100 * DETECTED)
    body += svg.line(left, wanted, WIDTH - 4, wanted, dash="2 3")
    body += svg.text(left + 4, wanted + 14, f"{100 * DETECTED:g} %", size=11, weight="600")
    body += axis_title("share of its rows that are copies of training rows", left, bottom + 36)
    for w, style in zip(best, styles.values(), strict=True):
        body += _line(w, style, x_scale, y_scale)
    likely = f"{100 * DETECTED:g} %"
    parts = [
        f"{named[w.outcome.audit]}: {likely} at {words.detectable(w.least)} copied"
        for w in best
        if w.least is not None
    ]
    return svg.document(
        WIDTH, bottom + 44, body, anchor=anchor, title=_TITLE, description="; ".join(parts) + "."
    )


def _x_axis(scale: svg.Linear, top: float, bottom: float) -> str:
    places = [scale(math.log10(d)) for d in _DECADES]
    names = [words.number(d, "share") for d in _DECADES]
    out = position_labels(names, places, bottom + 17, (scale.end - scale.start) / len(places))
    return out + "".join(svg.line(x, top, x, bottom + 4, rule=True) for x in places)


def _line(w: MeasurementSensitivity, style: LineStyle, x_scale: svg.Linear, y_scale: svg.Linear) -> str:
    logs = [i / _PER_DECADE - 4 for i in range(4 * _PER_DECADE + 1)]
    points = [(x_scale(x), y_scale(100 * (chance(w, 10**x) or 0.0))) for x in logs]
    d = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    place = math.log10(min(max(w.least or 0.0, _DECADES[0]), 1.0))
    return style.path(d) + style.marker(x_scale(place), y_scale(100 * (chance(w, 10**place) or 0.0)), 4.4)
