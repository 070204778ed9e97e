"""From evidence to one HTML file."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from synth_audit.workflow.evidence import Evidence

__all__ = ["render_report"]


def render_report(evidence: Evidence) -> str:
    """The report as one self-contained HTML page, without scripts and without anything fetched.

    The same evidence gives the same text, byte for byte.
    """
    from synth_audit.report.render import render

    return render(evidence)
