"""What needs evidence alone: to judge it by another suite, to report it, to verify it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from synth_audit.core.errors import DataError
from synth_audit.frames import hash_of

if TYPE_CHECKING:
    from synth_audit.frames import Frame
    from synth_audit.pipeline.check import Check
    from synth_audit.store.evidence import Evidence
    from synth_audit.studies.evidence_comparison import EvidenceComparison


def load_evidence(evidence: str | Path) -> Evidence:
    """Read evidence, for a notebook or a script; it draws itself in notebooks.

    Args:
        evidence: an evidence file, the folder of an audit, or a workspace, whose newest audit is meant.

    Raises:
        DataError: there is none, or it was altered after the audit.
    """
    from synth_audit.report.notebook import shown

    return shown(_evidence(evidence))


def compare(before: Evidence | str | Path, after: Evidence | str | Path) -> EvidenceComparison:
    """Two audits gate by gate: which results changed, and which numbers can be told apart.

    Args:
        before, after: evidence, its file, the folder of its audit, or a workspace (its newest audit).

    Raises:
        DataError: there is none, or it was altered after the audit.
    """
    from synth_audit.studies.evidence_comparison import compare as beside

    return beside(_evidence(before), _evidence(after))


def gate(evidence: Evidence | str | Path, suite: str) -> Evidence:
    """Judge existing evidence by another suite; needs no data. The result is no basis for a release."""
    from synth_audit.judging import judge as room
    from synth_audit.report.notebook import shown

    known = _evidence(evidence)
    if not known.intact:
        raise DataError(
            "the evidence was altered after the audit",
            where=str(evidence) if isinstance(evidence, (str, Path)) else "evidence",
            expected="evidence whose digest matches its content",
            fix="run the audit again; `synth-audit verify` shows what does not agree",
        )
    report = room.judge_again(room.load_suite(suite, Path.cwd()), known)
    return shown(replace(known, gates=report, verdict=report.verdict, fitness=report.fitness).sealed())


def render_report(
    evidence: Evidence | str | Path,
    path: str | Path | None = None,
    *,
    force: bool = False,
    full: bool = False,
) -> str:
    """Render the report from evidence alone; also write it to ``path`` if given.

    Args:
        force: replace whatever file is at ``path``; otherwise an older report alone is replaced.
        full: nothing is folded away, so that all of it is printed.
    """
    from synth_audit.report import refuse_other_file
    from synth_audit.report import render_report as render
    from synth_audit.store.workspace_files import write_text

    if path is not None and not force:
        refuse_other_file(Path(path))
    html = render(_evidence(evidence), full=full)
    if path is not None:
        write_text(Path(path), html)
    return html


def write_report(evidence: str | Path) -> Path:
    """Render the report of an audit into its folder, where one that is there stays: it may have been signed.

    Args:
        evidence: an evidence file, the folder of an audit, or a workspace, whose newest audit is meant.

    Returns:
        Where the report is.

    Raises:
        DataError: another report is there.
    """
    from synth_audit.report import file_report
    from synth_audit.store.locate import locate_evidence

    return file_report(locate_evidence(Path(evidence)))


def write_pdf(
    evidence: str | Path, path: str | Path, *, certificate: bool = False, full: bool = False
) -> Path:
    """Write the report, or the certificate, as PDF; takes the extra ``pdf`` (WeasyPrint), no browser.

    Args:
        evidence: an evidence file, the folder of an audit, or a workspace, whose newest audit is meant.
        full: nothing is folded away.

    Raises:
        PluginError: WeasyPrint is not installed.
    """
    from synth_audit.report import certificate_of, render_report
    from synth_audit.report.pdf import pdf_of
    from synth_audit.store.checked_evidence import checked_evidence
    from synth_audit.store.locate import locate_evidence
    from synth_audit.store.workspace_files import write_bytes

    found = locate_evidence(Path(evidence))
    page = certificate_of(found) if certificate else render_report(checked_evidence(found), full=full)
    return write_bytes(Path(path), pdf_of(page))


def write_certificate(evidence: str | Path, path: str | Path | None = None, *, force: bool = False) -> Path:
    """Render the certificate of an audit with the approvals beside it, into its folder or to ``path``.

    Args:
        evidence: an evidence file, the folder of an audit, or a workspace, whose newest audit is meant.
        force: replace whatever file is at ``path``; otherwise an older page alone is replaced.

    Returns:
        Where the certificate is.
    """
    from synth_audit.report import certificate_of, file_certificate, refuse_other_file
    from synth_audit.store.locate import locate_evidence
    from synth_audit.store.workspace_files import write_text

    found = locate_evidence(Path(evidence))
    if path is None:
        return file_certificate(found)
    if not force:
        refuse_other_file(Path(path))
    write_text(Path(path), certificate_of(found))
    return Path(path)


def verify(
    evidence: Evidence | str | Path,
    tables: Mapping[str, Frame] | None = None,
    *,
    salt: str | Path | None = None,
) -> tuple[Check, ...]:
    """Recompute hashes, values against limits and verdict; compare what lies beside the evidence with it.

    Args:
        evidence: evidence, its file, the folder of its audit, or a workspace, whose newest audit is meant.
        tables: any of ``source``, ``train``, ``control``, ``synthetic`` still at hand; those in the
            restricted folder beside the evidence are checked without being named.
        salt: file of the workspace's salt, where the evidence does not lie in its workspace. Without it only
            a synthetic table that passed can be compared.

    Returns:
        What holds, what does not, and what is not checkable here.

    Raises:
        DataError: the evidence or the salt cannot be read, or the salt is of another workspace.
    """
    from synth_audit.pipeline.approval import approval_checks
    from synth_audit.pipeline.verify import purged_check, refuse_foreign, verify_filed
    from synth_audit.pipeline.verify import verify as check
    from synth_audit.report import page_check
    from synth_audit.store.evidence import evidence_of
    from synth_audit.store.locate import locate_evidence
    from synth_audit.store.salts import read_salt

    secret = None if salt is None else read_salt(Path(salt))
    if not isinstance(evidence, (str, Path)):
        if secret is not None:
            refuse_foreign(secret, evidence)
        return check(evidence, _hashes(tables, evidence), secret)
    if (purged := purged_check(Path(evidence))) is not None:
        return (purged,)
    found = locate_evidence(Path(evidence))
    claimed = evidence_of(found.content()[0], found.file)  # of the workspace's evidence store
    known, checks = verify_filed(found, _hashes(tables, claimed), secret)
    return (*checks, *approval_checks(known, found.approvals()), *page_check(known, found))


def _hashes(tables: Mapping[str, Frame] | None, evidence: Evidence) -> dict[str, str]:
    declared = {c.name for c in evidence.columns}
    return {name: hash_of(table, name, declared) for name, table in (tables or {}).items()}


def _evidence(evidence: Evidence | str | Path) -> Evidence:
    from synth_audit.store.checked_evidence import checked_evidence
    from synth_audit.store.locate import locate_evidence

    if not isinstance(evidence, (str, Path)):
        return evidence
    return checked_evidence(locate_evidence(Path(evidence)))
