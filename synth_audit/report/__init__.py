"""From evidence to one HTML file."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from synth_audit.store.evidence import Evidence
    from synth_audit.store.workspace import Workspace

__all__ = ["render_report", "write_report"]


def render_report(evidence: Evidence) -> str:
    """The report as one self-contained HTML page, without scripts and without anything fetched.

    The same evidence gives the same text, byte for byte.
    """
    from synth_audit.report.render import render

    return render(evidence)


def write_report(workspace: Workspace) -> Path:
    """Render the report of a workspace from its evidence alone, into its review folder."""
    from synth_audit.store.evidence import read_evidence
    from synth_audit.store.workspace import write_text

    return write_text(workspace.report, render_report(read_evidence(workspace.evidence)))
