"""All gates of a suite in one picture that stands alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from synth_audit.core.identity import MeasurementId
from synth_audit.core.sensitivity import DERIVED
from synth_audit.core.verdict import GateResult, Result
from synth_audit.judging.criteria import ANSWERS
from synth_audit.report import svg
from synth_audit.report.interval_and_limit import MIDDLE, PAD, IntervalPlot, drawing
from synth_audit.report.result_marks import RESULT_WORDS, result_mark
from synth_audit.store.evidence import Evidence


def suite_overview_svg(
    gates: Sequence[GateResult], *, units: Mapping[MeasurementId, str] | None = None, anchor: str = "gates"
) -> str:
    """All gates of a suite below each other, as a picture that stands alone.

    Args:
        gates: in the order in which they are drawn.
        units: unit by quantity, see :func:`units_of`; plain numbers without it.
    """
    units = units or {}
    width, row, label = 880.0, 66.0, 490.0
    height = max(len(gates), 1) * row + 8
    body = svg.element("rect", class_="f-paper", width=width, height=height, fill=svg.PAPER)
    for i, gate in enumerate(gates):
        y = i * row + 4
        plot = IntervalPlot.of_gate(gate, units.get(gate.measurement.whole, "") if gate.measurement else "")
        if i:
            body += svg.line(8, y - 3, width - 8, y - 3, rule=True)
        word = RESULT_WORDS[gate.result] + ("" if gate.blocking else " (advisory)")
        body += result_mark(gate.result, 20, y + 28, 8)
        body += svg.text(38, y + 24, svg.fitted(gate.title, label - 50, 13), size=13, weight="600")
        body += svg.text(38, y + 42, word, size=12, muted=True)
        where = "Follows from the other gates" if gate.gate == ANSWERS else "Checked on the table itself"
        content = svg.text(PAD, MIDDLE + 4, where, muted=True)
        if gate.measurement:
            content = drawing(plot, width - label, f"{anchor}-{i + 1}")
        body += svg.element("g", content, transform=f"translate({label:g} {y:g})")
    if not gates:
        body += svg.text(12, row / 2, "The suite has no gates.", muted=True)
    tally = [f"{RESULT_WORDS[r]}: {n}" for r in Result if (n := sum(g.result is r for g in gates))]
    listed = [f"{g.title}: {RESULT_WORDS[g.result].lower()}" for g in gates[:40]]
    return svg.document(
        width,
        height,
        body,
        anchor=anchor,
        title="Gates: " + (", ".join(tally) or "none"),
        description="; ".join(listed) or "No gates.",
    )


def units_of(evidence: Evidence) -> dict[MeasurementId, str]:
    """Unit by quantity, for :func:`suite_overview_svg`."""
    declared = {
        MeasurementId(o.audit, q.name): q.unit
        for o in evidence.outcomes
        for q in (*(o.info.quantities if o.info else ()), *DERIVED)
    }
    return declared | {m.id.whole: m.unit for m in evidence.measurements}
