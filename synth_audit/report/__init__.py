"""From evidence to one HTML file."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from synth_audit.errors import DataError
from synth_audit.files import read_plain
from synth_audit.pipeline.verify import Check
from synth_audit.store.evidence import Evidence
from synth_audit.store.files import refuse_unusable, write_bytes
from synth_audit.store.locate import LocatedEvidence, checked_evidence, locate_newest, release_before
from synth_audit.store.reports import keep_certificate_hash, read_marks, report_as_filed
from synth_audit.store.workspace import Workspace

__all__ = [
    "certificate_of",
    "file_certificate",
    "file_report",
    "page_check",
    "refuse_other_file",
    "render_report",
    "write_report",
]


def render_report(evidence: Evidence, *, full: bool = False) -> str:
    """The report as one self-contained HTML page, without scripts and without anything fetched.

    The same evidence gives the same text, byte for byte.

    Args:
        full: everything that was measured, unfolded; without it at most about 6,000 words.
    """
    from synth_audit.report.page import render

    return render(evidence, full=full)


def write_report(workspace: Workspace) -> Path:
    """Render the report of a workspace's newest audit from its evidence alone, into the audit's folder, and
    the certificate beside it.

    A report that is there stays as it is: it may have been signed.
    """
    return file_report(locate_newest(workspace))


def file_report(found: LocatedEvidence) -> Path:
    """Render the report of evidence to a file beside it, where one that is there stays, and the certificate.

    Raises:
        DataError: the evidence was altered, another report is there, or it cannot be written.
    """
    path = found.put_report(render_report(checked_evidence(found)).encode())
    file_certificate(found)
    return path


def certificate_of(found: LocatedEvidence) -> str:
    """The certificate of evidence as of today, with the approvals beside it and the table's last release.

    Raises:
        DataError: the evidence was altered.
    """
    from synth_audit.report.certificate import render_certificate

    evidence = checked_evidence(found)
    previous = release_before(found.workspace, evidence.digest) if found.workspace else None
    return render_certificate(evidence, found.approvals(), previous, datetime.now(UTC).date())


def file_certificate(found: LocatedEvidence) -> Path:
    """Render the certificate to a file beside its evidence, anew where one is there: approvals come later.

    Raises:
        DataError: the evidence was altered, a file that is no page of ours is there, or it cannot be written.
    """
    content = certificate_of(found).encode()
    refuse_other_file(found.certificate)
    keep_certificate_hash(found, content)
    return write_bytes(found.certificate, content)


def refuse_other_file(
    path: Path, kind: str = "report", option: str = "--to", known: Callable[[str], object] | None = None
) -> None:
    """Raise ``DataError`` if a page would overwrite a file of another kind.

    Args:
        option: of the command, to name another file.
        known: recognises a page of this kind by its content; by the marks of a report if left out.
    """
    refuse_unusable(path)
    try:
        page = read_plain(path).decode(errors="replace")
    except FileNotFoundError:
        return
    except OSError:  # a folder, a link, a device, or closed to this user
        page = ""
    if not (known or read_marks)(page):
        raise DataError(
            f"the file exists already and holds no {kind}",
            where=str(path),
            expected=f"a new file, or an earlier {kind}",
            fix=f"name another with {option}, or replace this one with --force",
        )


def page_check(evidence: Evidence, found: LocatedEvidence) -> Iterator[Check]:
    """Whether report and certificate beside the evidence are its own to the last byte; nothing without them.

    The sentences of another build may be others. A page that it wrote is compared with the hash recorded in
    the restricted folder; without one it cannot be checked here.
    """
    from synth_audit.report.certificate import check_certificate
    from synth_audit.report.page import check_page

    what = "pictures and sentences of the report"
    content = None if found.folder is None else found.filed().report
    if content is not None:
        same = check_page(evidence, content.decode(errors="replace"))
        told = "rendered anew and compared byte for byte"
        if same is None:
            same = report_as_filed(found, content)
            told = "another build wrote it" + ("; its bytes are as they were filed" if same else "")
            told += ", or somebody who altered it" if same is False else ""
        yield Check(what, same, told)
    try:
        page = read_plain(found.certificate).decode(errors="replace")
    except FileNotFoundError:
        return
    except OSError as error:
        yield Check("certificate", False, f"it cannot be read ({type(error).__name__})")
        return
    yield Check("certificate", *check_certificate(evidence, page, found))
