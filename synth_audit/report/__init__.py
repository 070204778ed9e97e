"""From evidence to one HTML file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from synth_audit.core.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path

    from synth_audit.pipeline.check import Check
    from synth_audit.store.evidence import Evidence
    from synth_audit.store.locate import LocatedEvidence
    from synth_audit.store.workspace import Workspace

__all__ = ["file_report", "page_check", "refuse_other_file", "render_report", "write_report"]


def render_report(evidence: Evidence) -> str:
    """The report as one self-contained HTML page, without scripts and without anything fetched.

    The same evidence gives the same text, byte for byte.
    """
    from synth_audit.report.render import render

    return render(evidence)


def write_report(workspace: Workspace) -> Path:
    """Render the report of a workspace's newest audit from its evidence alone, into the audit's folder.

    One that is there stays as it is: it may have been signed.
    """
    from synth_audit.store.checked_evidence import newest_evidence
    from synth_audit.store.evidence_store import evidence_store

    evidence = newest_evidence(workspace)
    return evidence_store(workspace).put_report(evidence.digest, render_report(evidence).encode())


def file_report(found: LocatedEvidence) -> Path:
    """Render the report of evidence to a file beside it; one that is there stays.

    Raises:
        DataError: the evidence was altered, another report is there, or it cannot be written.
    """
    from synth_audit.store.checked_evidence import checked_evidence

    return found.put_report(render_report(checked_evidence(found)).encode())


def refuse_other_file(path: Path) -> None:
    """Raise ``DataError`` where a report would take the place of a file that is none."""
    from synth_audit.store.report_marks import read_marks
    from synth_audit.store.untrusted_file import read_plain
    from synth_audit.store.workspace_files import refuse_unusable

    refuse_unusable(path)
    try:
        page = read_plain(path).decode(errors="replace")
    except FileNotFoundError:
        return
    except OSError:  # a folder, a link, a device, or closed to this user
        page = ""
    if read_marks(page) is None:
        raise DataError(
            "the file is there already and is no report",
            where=str(path),
            expected="a new file, or an older report",
            fix="name another with --to, or replace this one with --force",
        )


def page_check(evidence: Evidence, found: LocatedEvidence) -> tuple[Check, ...]:
    """Whether the page beside the evidence is its report to the last byte; nothing without a page.

    A page of another version of this package cannot be told so: its sentences may be others.
    """
    from synth_audit.pipeline.check import Check
    from synth_audit.report.render import check_page

    what = "pictures and sentences of the report"
    try:
        content = found.report()
    except OSError as error:
        return (Check(what, False, f"it cannot be read ({type(error).__name__})"),)
    if content is None:
        return ()
    same = check_page(evidence, content.decode(errors="replace"))
    told = "another version wrote it" if same is None else "rendered anew and compared byte for byte"
    return (Check(what, same, told),)
