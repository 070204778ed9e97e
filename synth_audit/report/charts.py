"""Every chart as an SVG string that also stands alone, for example as an image in a data URI."""

from __future__ import annotations

from synth_audit.core.identity import MeasurementId
from synth_audit.core.sensitivity import DERIVED
from synth_audit.report.interval_plot import gate_chart_svg, gate_strip_svg, measurement_strip_svg
from synth_audit.report.series_plot import series_svg
from synth_audit.store.evidence import Evidence

__all__ = ["gate_chart_svg", "gate_strip_svg", "measurement_strip_svg", "series_svg", "units_of"]


def units_of(evidence: Evidence) -> dict[MeasurementId, str]:
    """Unit by quantity, for :func:`gate_chart_svg`."""
    declared = {
        MeasurementId(o.audit, q.name): q.unit
        for o in evidence.outcomes
        for q in (*(o.info.quantities if o.info else ()), *DERIVED)
    }
    return declared | {m.id.whole: m.unit for m in evidence.measurements}
