"""What needs evidence: to judge, report, verify, sign, release, purge and mend it, and list many tables."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from synth_audit.api.auditing import Running, run_context
from synth_audit.api.frames import as_arrow, hash_of
from synth_audit.api.plans import PlanLike, as_plan, workspace_of
from synth_audit.errors import DataError, PlanError

if TYPE_CHECKING:
    from synth_audit.api.frames import Frame
    from synth_audit.pipeline.release import ReleaseRecord
    from synth_audit.pipeline.verify import Check
    from synth_audit.store.evidence import Evidence
    from synth_audit.store.purge import PurgeRecord, Sweep
    from synth_audit.store.workspace import Workspace
    from synth_audit.studies.comparison import EvidenceComparison
    from synth_audit.studies.mend import MendRecord


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
    from synth_audit.studies.comparison import compare as beside

    return beside(_evidence(before), _evidence(after))


def gate(evidence: Evidence | str | Path, suite: str) -> Evidence:
    """Judge existing evidence by another suite; needs no data. The result is no basis for a release."""
    from synth_audit.report.notebook import shown
    from synth_audit.verdict.judge import judge_again
    from synth_audit.verdict.suite import load_suite

    known = _evidence(evidence)
    if not known.intact:
        raise DataError(
            "the evidence was altered after the audit",
            where=str(evidence) if isinstance(evidence, (str, Path)) else "evidence",
            expected="evidence whose digest matches its content",
            fix="run the audit again; `synth-audit verify` shows what does not agree",
        )
    report = judge_again(load_suite(suite, Path.cwd()), known)
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
    from synth_audit.store.files import write_text

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
    from synth_audit.report.page import pdf_of
    from synth_audit.store.files import write_bytes
    from synth_audit.store.locate import checked_evidence, locate_evidence

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
    from synth_audit.store.files import write_text
    from synth_audit.store.locate import locate_evidence

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
    from synth_audit.store.locate import checked_evidence, locate_evidence

    if not isinstance(evidence, (str, Path)):
        return evidence
    return checked_evidence(locate_evidence(Path(evidence)))


def new_key(path: str | Path) -> str:
    """Make a private Ed25519 key in a new file of mode 0600.

    Returns:
        The public key, as a plan names it under ``release.approvers``.

    Raises:
        DataError: something is there already, or it cannot be written.
    """
    from synth_audit.store.approvals import new_key as make

    return make(Path(path))


def approve(evidence: str | Path, *, by: str, key: str | Path, until: date, note: str = "") -> Path:
    """Sign evidence that passed; the approval is put beside it and the certificate rendered anew.

    Args:
        evidence: an evidence file, the folder of an audit, or a workspace, whose newest audit is meant.
        by: the person, as the plan names them. key: file of the private key.
        until: last day, in UTC, on which a release may rest on it.

    Returns:
        Where the approval is.

    Raises:
        ReleaseRefused: the evidence does not pass.
        PlanError: the plan does not know this person with this key.
        DataError: evidence or key cannot be used.
    """
    from synth_audit.pipeline.approval import approve as sign
    from synth_audit.report import file_certificate
    from synth_audit.store.locate import locate_evidence

    found = locate_evidence(Path(evidence))
    _, path = sign(found, by=by, key=Path(key), until=until, note=note)
    file_certificate(found)
    return path


def write_index(workspaces: Sequence[str | Path], path: str | Path, *, force: bool = False) -> Path:
    """Write a page over the audits of these workspaces, from their evidence alone.

    Args:
        force: replace whatever file is at ``path``; otherwise an earlier index alone is replaced.

    Returns:
        Where the page is.

    Raises:
        DataError: a folder is no workspace, or another file is at ``path``.
    """
    from synth_audit.report.index import refuse_no_index, render_index
    from synth_audit.store.files import write_text
    from synth_audit.store.history import table_history

    to = Path(path)
    if not force and os.path.lexists(to):
        refuse_no_index(to)
    histories = [table_history(Path(root)) for root in workspaces]
    write_text(to, render_index(histories, to.absolute().parent))
    return to


def release(
    plan: PlanLike,
    out: str | Path | None = None,
    synthetic: Frame | None = None,
    *,
    candidate: str | None = None,
) -> ReleaseRecord:
    """Release the audited table of a workspace to the plan's target, or refuse.

    Args:
        synthetic: the table that was audited, when it was made elsewhere and is not in the workspace.
        candidate: name or folder of one that a sweep of this plan tried, to release that.
    """
    from synth_audit.pipeline import stages
    from synth_audit.pipeline.release import release as leave
    from synth_audit.store.scratch import in_use
    from synth_audit.studies.ranking import candidate_of

    settled = as_plan(plan)
    workspace = workspace_of(settled, out)
    if candidate is not None:
        chosen, workspace = candidate_of(settled, workspace, candidate)
        settled = chosen.plan
    if synthetic is None:
        return stages.release_synthetic(settled, workspace)
    with in_use(workspace):
        return leave(settled, workspace, as_arrow(synthetic, "synthetic"))


def rollback(plan: PlanLike, out: str | Path | None = None) -> ReleaseRecord:
    """Put the release before the last of a workspace back, or refuse."""
    from synth_audit.pipeline.release import rollback as lead_back

    settled = as_plan(plan)
    return lead_back(settled, workspace_of(settled, out))


def purge(
    table: PlanLike,
    *,
    keep: int | None = None,
    older_than: str | timedelta | None = None,
    dry_run: bool = True,
    only: Collection[str] | None = None,
) -> PurgeRecord:
    """Delete old audits of a table, and old candidates of its sweeps, or say what would be deleted.

    The newest audit stays, and one that was released or whose release was interrupted, and so do the ledger,
    the journal and the salt. The journal says when an audit was purged.

    Args:
        table: its workspace folder, or its plan if the workspace has the place that goes with it.
        keep: so many of the newest audits, and the candidates of the newest sweep, are not old.
        older_than: nothing is old that was made less than this ago, such as ``90d``, ``12w`` or ``36h``. With
            both, what is old by both goes.
        dry_run: False deletes.
        only: names of what may go, as an earlier dry run gave them.

    Raises:
        PlanError: neither of the two is given, or one that would keep nothing.
        DataError: there is no journal, another run is at work, or something cannot be deleted.
    """
    from synth_audit.store.purge import Retention, survey
    from synth_audit.store.purge import purge as delete
    from synth_audit.store.workspace import Workspace

    retention = Retention.of(keep, older_than)
    folder = isinstance(table, (str, Path)) and os.path.isdir(table)
    workspace = Workspace(Path(str(table))) if folder else workspace_of(table, None)
    sweep = _newest_sweep(workspace)
    return survey(workspace, retention, sweep) if dry_run else delete(workspace, retention, sweep, only)


def _newest_sweep(workspace: Workspace) -> Sweep | None:
    from synth_audit.store.purge import Sweep
    from synth_audit.studies.frontier import read_frontier

    if not os.path.isfile(workspace.kept_frontier):
        return None
    record = read_frontier(workspace.kept_frontier)
    best = record.best
    return Sweep({c.slug for c in record.candidates}, None if best is None else best.slug)


def mend(
    plan: PlanLike, out: str | Path | None = None, *, tries: int = 5, **running: Unpack[Running]
) -> MendRecord:
    """Try coarser values on the refused release of a plan, and judge each at a level corrected for all.

    Nothing is released: run the plan with the ``coarsen`` of the record's ``mended``.

    Args:
        out: workspace folder of the run; ``<plan's name>-audit`` beside the plan if left out.
        tries: the most candidates to judge, 1 to 5.
        running: how the work is done, see :class:`Running`.

    Raises:
        PlanError, DataError, GateError: see their messages for what to do.
    """
    from synth_audit.store.scratch import in_use
    from synth_audit.studies.mend import mend as search

    settled = as_plan(plan)
    workspace = workspace_of(settled, out)
    with in_use(workspace) as scratch, run_context(settled, scratch, **running) as context:
        return search(settled, workspace, context, tries=tries)


def refuse_mended_place(plan: Path, to: Path) -> None:
    """Raise ``PlanError`` where the mended plan may not be written: paths in it start where the plan lies."""
    if os.path.lexists(to) or to.resolve().parent != plan.resolve().parent:
        raise PlanError(
            "the mended plan cannot be written there",
            where=str(to),
            expected=f"a file that does not exist, in {plan.resolve().parent}, where its paths start",
            fix="name another with --write",
        )


def write_mended_plan(plan: Path, found: MendRecord, to: Path) -> None:
    """Write the plan that carries the mend, and how many candidates it was chosen among.

    The plan's own text is kept where keys can be added below it.

    Raises:
        PlanError: nothing was mended, or the file may not be written there.
    """
    from synth_audit.files import load_yaml
    from synth_audit.plan.plan import parse_plan
    from synth_audit.store.files import write_text

    refuse_mended_place(plan, to)
    if found.mended is None:
        raise PlanError("nothing was mended", where="mend", expected="a try that passed", fix=found.reason)
    text = plan.read_text(encoding="utf-8")
    more: dict[str, Any] = {"coarsen": dict(found.mended.coarsen)}
    value = load_yaml(text)
    if "name" not in value:  # the file's, and that is another now
        more = {"name": found.table} | more
    block = f"# Written by `synth-audit mend`: chosen on real data.\n{_yaml(more)}"
    both = f"{text.rstrip()}\n\n{block}"
    try:
        kept = load_yaml(both) == value | more
    except ValueError:
        kept = False
    parse_plan(value | more)
    write_text(to, both if kept else _yaml(value | more))


def _yaml(value: object) -> str:
    import yaml

    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True)
