"""From evidence to one HTML file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from synth_audit.pipeline.check import Check
    from synth_audit.store.evidence import Evidence
    from synth_audit.store.locate import LocatedEvidence
    from synth_audit.store.workspace import Workspace

__all__ = ["file_report", "page_check", "render_report", "write_report"]


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
    from synth_audit.store.checked_evidence import checked_evidence
    from synth_audit.store.filed_audit import add_report
    from synth_audit.store.locate import LocatedEvidence

    folder = workspace.newest
    evidence = checked_evidence(LocatedEvidence(folder.evidence, folder, workspace))
    return add_report(workspace, folder, render_report(evidence).encode())


def file_report(found: LocatedEvidence) -> Path:
    """Render the report of evidence to a file beside it; one that is there stays.

    Raises:
        DataError: the evidence was altered, another report is there, or it cannot be written.
    """
    from synth_audit.core.errors import DataError
    from synth_audit.store.checked_evidence import checked_evidence
    from synth_audit.store.filed_audit import REPORT, add_report
    from synth_audit.store.journal import read_journal
    from synth_audit.store.workspace import write_bytes

    html = render_report(checked_evidence(found)).encode()
    if found.folder is not None and found.workspace is not None and read_journal(found.workspace) is not None:
        return add_report(found.workspace, found.folder, html)
    path = found.file.with_name(REPORT)
    if not os.path.lexists(path):
        return write_bytes(path, html)
    if not _holds(path, html):
        raise DataError(
            "there is another report beside the evidence",
            where=str(path),
            expected="none, or the same",
            fix="name another file with --to; the one that is there may have been signed",
        )
    return path


def _holds(path: Path, html: bytes) -> bool:
    """Whether a file, in a folder where others may write, is that page; a pipe or a link is not."""
    from synth_audit.store.untrusted_file import read_plain

    try:
        return read_plain(path) == html
    except OSError:
        return False


def page_check(evidence: Evidence, found: LocatedEvidence) -> tuple[Check, ...]:
    """Whether the page beside the evidence is its report to the last byte; nothing without a page.

    A page of another version of this package cannot be told so: its sentences may be others.
    """
    from synth_audit.pipeline.check import Check
    from synth_audit.report.render import check_page
    from synth_audit.store.filed_audit import REPORT
    from synth_audit.store.untrusted_file import read_plain

    what = "pictures and sentences of the report"
    if found.folder is None:
        return ()
    try:
        content = read_plain(found.folder.path / REPORT)
    except FileNotFoundError:
        return ()
    except OSError as error:
        return (Check(what, False, f"it cannot be read ({type(error).__name__})"),)
    same = check_page(evidence, content.decode(errors="replace"))
    told = "another version wrote it" if same is None else "rendered anew and compared byte for byte"
    return (Check(what, same, told),)
