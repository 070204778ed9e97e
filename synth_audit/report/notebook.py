"""Evidence in a notebook: verdict, criteria and gates as a piece of a page, and the pictures of an audit."""

from __future__ import annotations

from synth_audit.plugins.audit import Status
from synth_audit.report.charts import series_svg
from synth_audit.report.gates import gate_views, verdict_view
from synth_audit.report.page import alerts_of, fragment
from synth_audit.store.evidence import Evidence, Pictures


class ReportNotebookPage:
    """Draws evidence as the report does."""

    def html(self, evidence: Evidence) -> str:
        """The first screen in short, with the gates that passed behind a fold."""
        sound = not alerts_of(evidence)
        gates = gate_views(evidence)
        return fragment(
            "notebook.html.j2",
            evidence=evidence,
            verdict=verdict_view(evidence, unmeasured=(), sound=sound),
            held=[g for g in gates if g.sign.kind != "pass"],
            passed=[g for g in gates if g.sign.kind == "pass"],
        )

    def pictures(self, evidence: Evidence, audit: str) -> Pictures:
        """One for each series of the audit."""
        (outcome,) = [o for o in evidence.outcomes if o.audit == audit]
        if not outcome.series:
            measured = outcome.status is Status.MEASURED
            why = "it draws none" if measured else f"{outcome.status}: {outcome.reason}"
            return Pictures.none(f"{audit} has no picture; {why}")
        return Pictures(series_svg(s, anchor=f"{audit}-{i}") for i, s in enumerate(outcome.series))


def shown(evidence: Evidence) -> Evidence:
    """The same evidence, which notebooks draw from now on."""
    Evidence.page = ReportNotebookPage()
    return evidence
