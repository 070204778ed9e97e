"""Every verb as a function, on pandas frames, Arrow tables or files; the command line calls these."""

# ruff: noqa: PT028  (the verb is called test-mechanism; it is no test)

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Unpack

import yaml

from synth_audit import inputs
from synth_audit import report as pages
from synth_audit.dp.guarantee import Neighbouring
from synth_audit.errors import DataError, PlanError
from synth_audit.execution import telemetry
from synth_audit.execution.context import Progress, RunContext
from synth_audit.execution.seeds import Salt
from synth_audit.files import load_yaml, place, temporary_folder
from synth_audit.findings.verdict import Result
from synth_audit.generators.external.recipe import RecipeEnvironment, Setting, recipe_named, trial
from synth_audit.generators.external.recipe import recipes as known_recipes
from synth_audit.inputs import Frame, PlanLike
from synth_audit.inputs import Running as Running
from synth_audit.mechanism_test.examination import Claim, Effort, MechanismResult, examine_claim
from synth_audit.mechanism_test.subjects import MechanismChoice, claimed_mechanism
from synth_audit.pipeline import approval, making, stages
from synth_audit.pipeline import attestation as attesting
from synth_audit.pipeline import release as releasing
from synth_audit.pipeline import rerun as repeating
from synth_audit.pipeline import verify as checking
from synth_audit.pipeline.coarsening import refuse_coarsening
from synth_audit.pipeline.warnings import about_formulas, about_metadata, about_unused_labels
from synth_audit.plan.plan import Plan, parse_plan
from synth_audit.report import index, page, study_pages
from synth_audit.report.dcat import dcat as dcat_of
from synth_audit.report.page import shown
from synth_audit.report.ro_crate import ro_crate as ro_crate_of
from synth_audit.samples import sample as sample
from synth_audit.sources.csv import Csv
from synth_audit.sources.parquet import Parquet
from synth_audit.store import approvals
from synth_audit.store import purge as purging
from synth_audit.store.evidence import Evidence as Evidence
from synth_audit.store.evidence_store import evidence_store
from synth_audit.store.files import write_bytes, write_text
from synth_audit.store.locate import checked_evidence, locate_evidence, table_history
from synth_audit.store.salts import read_salt, workspace_salt
from synth_audit.store.scratch import in_use
from synth_audit.store.workspace import Workspace
from synth_audit.studies import calibration, run_estimate
from synth_audit.studies import mend as mending
from synth_audit.studies.frontier import FrontierRecord, read_frontier
from synth_audit.studies.sweep import sweep
from synth_audit.table.table import Table
from synth_audit.verdict import comparison
from synth_audit.verdict.judge import judge_again
from synth_audit.verdict.suite import load_suite


def audit(
    train: Frame,
    control: Frame | None,
    synthetic: Frame,
    plan: PlanLike | None = None,
    *,
    only: str | tuple[str, ...] = (),
    out: str | Path | None = None,
    **running: Unpack[Running],
) -> Evidence:
    """Audit a synthetic table made elsewhere and judge it by the plan's gates.

    Args:
        train: real rows the synthetic ones were made from. control: real rows of the same population
            that were kept from the generator; None leaves every audit that needs them not applicable.
        plan: a plan, its values, or its file; ``source``, ``split`` and ``generator`` are not used.
        only: run just these audits; the gates on the others then lack evidence.
        out: folder to write ``review/`` (evidence, measurements, report; on a pass also
            ``synthetic.parquet``, the file to share: audited rows and values alone) and ``restricted/``
            (positions of exposed training rows, the salt that tables are hashed under) into. The account
            remembers the salt and the audits of a training table, so that another folder draws alike.
            Without ``out`` nothing is kept, what the audits draw can be predicted, and of the tables only
            a synthetic one that passed can be compared with the evidence later.
        running: how the work is done, see :class:`Running`.

    Returns:
        The evidence; ``evidence.verdict`` says whether the table may leave.

    Raises:
        PlanError, DataError, GateError: see their messages for what to do.
    """
    given = inputs.as_plan(inputs.named_after(synthetic) if plan is None else plan)
    settled = inputs.narrowed(given, only)
    refuse_coarsening(settled)
    other = {} if control is None else {"control": control}
    tables = inputs.resolved({"train": train, **other, "synthetic": synthetic})
    audits = settled.build_audits() if only else None
    workspace = None if out is None else Workspace(Path(out))
    # Made before any rows lie there, which without it would be of a lost one.
    salt = Salt.fresh() if workspace is None else workspace_salt(workspace)
    held = in_use(workspace, write_rows=settled.execution.write_real_rows)
    # Rows are laid out once, in a folder as lasting as the audits are: all processes map the same pages.
    with (
        held as scratch,
        temporary_folder(scratch) as folder,
        inputs.run_context(settled, scratch, **running) as context,
    ):
        rows = {name: inputs.placed(table, Path(folder)) for name, table in tables.items()}
        subject = stages.anchored_subject(rows["train"], rows.get("control"), rows["synthetic"], settled)
        warnings = tuple(_about_file(settled, subject.synthetic, tables["synthetic"]))
        if workspace is None:
            with telemetry.stage("audit", settled.name) as reported:
                audited = stages.examine(
                    settled,
                    subject,
                    stages.MADE_ELSEWHERE,
                    context,
                    salt,
                    draws=None,
                    audits=audits,
                    warnings=warnings,
                )
                reported.status = audited.evidence.verdict
            return shown(audited.evidence)
        evidence = stages.attempt(
            settled,
            workspace,
            subject,
            stages.MADE_ELSEWHERE,
            context,
            salt,
            audits=audits,
            warnings=warnings,
        )
        context.progress("report and certificate", 0, 0)
        pages.write_report(workspace)
    return shown(evidence)


def _about_file(plan: Plan, synthetic: Table, source: object) -> Iterator[str]:
    """What a file holds beside its rows, unused labels, and CSV cells that a spreadsheet would run."""
    if isinstance(source, Parquet):
        yield from about_metadata(source.schema(Path.cwd()))
    yield from about_unused_labels(synthetic, plan.suppression)
    # With a target in CSV the plan itself makes them be looked for.
    if isinstance(source, Csv) and (plan.release is None or plan.release.name != "csv"):
        yield from about_formulas(plan, synthetic, as_csv=True)


def run(
    plan: PlanLike,
    out: str | Path | None = None,
    *,
    release: bool = True,
    **running: Unpack[Running],
) -> Evidence:
    """Go the whole way: pull, split, generate, audit, gate, report and, on a pass, release.

    Args:
        out: workspace folder; ``<plan's name>-audit`` beside the plan if left out.
        release: False stops before the release.
        running: how the work is done, see :class:`Running`.
    """
    with inputs.at_work(plan, out, running) as (settled, workspace, context):
        evidence = stages.produce(settled, workspace, context)
        context.progress("report and certificate", 0, 0)
        pages.write_report(workspace)
    if release and settled.release is not None and evidence.verdict is Result.PASS:
        stages.release_synthetic(settled, workspace)
    return shown(evidence)


def rerun(
    plan: PlanLike,
    out: str | Path | None = None,
    *,
    candidate: str | None = None,
    **running: Unpack[Running],
) -> checking.Checks:
    """Repeat a run under the salt of its workspace and compare it with its evidence; nothing is written.

    Split, seeded fits and draws and all measurements are made again. What cannot be repeated, such as a table
    made elsewhere or a fit that spent privacy budget, is compared by its hash and audited as it was kept.

    Args:
        out: workspace folder; ``<plan's name>-audit`` beside the plan if left out.
        candidate: name or folder of one that a sweep of this plan tried, to repeat that.
        running: how the work is done, see :class:`Running`.

    Returns:
        What agrees, what does not, and what is not checkable here.

    Raises:
        PlanError, DataError, GateError: see their messages for what to do.
    """
    with inputs.at_work(plan, out, running, candidate) as (settled, workspace, context):
        return checking.Checks(repeating.rerun(settled, workspace, context))


def exposure(plan: PlanLike, out: str | Path | None = None, **running: Unpack[Running]) -> Evidence:
    """Audit the releases of a workspace as one table, against the rows that all of them were made from.

    Each release may pass and all together give somebody away. The answer is filed under ``together/`` in the
    workspace; it holds back and takes back nothing by itself.

    Raises:
        DataError: there are not two releases of the present training rows whose rows are kept.
        PlanError: the plan makes values coarser, which an audit of finished tables does not do.
    """
    settled = inputs.as_plan(plan)
    workspace = inputs.workspace_of(settled, out)
    with in_use(workspace, write_rows=settled.execution.write_real_rows):
        together = releasing.releases_together(workspace, *making.real_tables(settled, workspace))
    return audit(
        *together,
        releasing.plan_of_all(settled),
        out=workspace.root / "together",
        **running,
    )


def load_evidence(evidence: str | Path) -> Evidence:
    """Read evidence, for a notebook or a script; it draws itself in notebooks.

    Args:
        evidence: an evidence file, the folder of an audit, or a workspace, whose newest audit is meant.

    Raises:
        DataError: there is none, or it was altered after the audit.
    """
    return shown(_evidence(evidence))


def _evidence(evidence: Evidence | str | Path) -> Evidence:
    if not isinstance(evidence, (str, Path)):
        return evidence
    return checked_evidence(locate_evidence(Path(evidence)))


def compare(before: Evidence | str | Path, after: Evidence | str | Path) -> comparison.EvidenceComparison:
    """Two audits gate by gate: which results changed, and which numbers can be told apart.

    Args:
        before, after: evidence, its file, the folder of its audit, or a workspace (its newest audit).

    Raises:
        DataError: there is none, or it was altered after the audit.
    """
    return comparison.compare(_evidence(before), _evidence(after))


def gate(evidence: Evidence | str | Path, suite: str) -> Evidence:
    """Judge existing evidence by another suite; needs no data. The result is no basis for a release."""
    known = _evidence(evidence)
    if not known.intact:
        raise DataError(
            "the evidence was altered after the audit",
            where=str(evidence) if isinstance(evidence, (str, Path)) else "evidence",
            expected="evidence whose digest matches its content",
            fix="run the audit again; `synth-audit verify` shows what does not agree",
        )
    gates = judge_again(load_suite(suite, Path.cwd()), known)
    return shown(replace(known, gates=gates, verdict=gates.verdict, fitness=gates.fitness).sealed())


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
        full: everything that was measured, unfolded; without it at most about 6,000 words.
    """
    if path is not None and not force:
        pages.refuse_other_file(Path(path))
    html = pages.render_report(_evidence(evidence), full=full)
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
    return pages.file_report(locate_evidence(Path(evidence)))


def write_pdf(
    evidence: str | Path, path: str | Path, *, certificate: bool = False, full: bool = False
) -> Path:
    """Write the report, or the certificate, as PDF; takes the extra ``pdf`` (WeasyPrint), no browser.

    Args:
        evidence: an evidence file, the folder of an audit, or a workspace, whose newest audit is meant.
        full: everything that was measured, unfolded.

    Raises:
        PluginError: WeasyPrint is not installed.
    """
    found = locate_evidence(Path(evidence))
    if certificate:
        html = pages.certificate_of(found)
    else:
        html = pages.render_report(checked_evidence(found), full=full)
    return write_bytes(Path(path), page.pdf_of(html))


def write_certificate(evidence: str | Path, path: str | Path | None = None, *, force: bool = False) -> Path:
    """Render the certificate of an audit with the approvals beside it, into its folder or to ``path``.

    Args:
        evidence: an evidence file, the folder of an audit, or a workspace, whose newest audit is meant.
        force: replace whatever file is at ``path``; otherwise an older page alone is replaced.

    Returns:
        Where the certificate is.
    """
    found = locate_evidence(Path(evidence))
    if path is None:
        return pages.file_certificate(found)
    if not force:
        pages.refuse_other_file(Path(path))
    write_text(Path(path), pages.certificate_of(found))
    return Path(path)


def write_index(workspaces: Sequence[str | Path], path: str | Path, *, force: bool = False) -> Path:
    """Write a page over the audits of these workspaces, from their evidence alone.

    Args:
        force: replace whatever file is at ``path``; otherwise an earlier index alone is replaced.

    Returns:
        Where the page is.

    Raises:
        DataError: a folder is no workspace, or another file is at ``path``.
    """
    to = Path(path)
    if not force and os.path.lexists(to):
        index.refuse_no_index(to)
    histories = [table_history(Path(root)) for root in workspaces]
    write_text(to, index.render_index(histories, to.absolute().parent))
    return to


def verify(
    evidence: Evidence | str | Path,
    tables: Mapping[str, Frame] | None = None,
    *,
    salt: str | Path | None = None,
) -> checking.Checks:
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
    secret = None if salt is None else read_salt(Path(salt))
    if not isinstance(evidence, (str, Path)):
        if secret is not None:
            checking.refuse_foreign(secret, evidence)
        return checking.Checks(checking.verify(evidence, _hashes(tables, evidence), secret))
    if (purged := checking.purged_check(Path(evidence))) is not None:
        return checking.Checks([purged])
    found = locate_evidence(Path(evidence))
    known, checks = checking.verify_filed(found, partial(_hashes, tables), secret)
    signed = approval.approval_checks(known, found.approvals())
    return checking.Checks((*checks, *signed, *pages.page_check(known, found)))


def _hashes(tables: Mapping[str, Frame] | None, evidence: Evidence) -> dict[str, str]:
    declared = {c.name for c in evidence.columns}
    return {name: inputs.hash_of(table, name, declared) for name, table in (tables or {}).items()}


def new_key(path: str | Path) -> str:
    """Make a private Ed25519 key in a new file of mode 0600.

    Returns:
        The public key, as a plan names it under ``release.approvers``.

    Raises:
        DataError: something is there already, or it cannot be written.
    """
    return approvals.new_key(Path(path))


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
    found = locate_evidence(Path(evidence))
    _, path = approval.approve(found, by=by, key=Path(key), until=until, note=note)
    pages.file_certificate(found)
    return path


def attest(
    evidence: str | Path,
    *,
    by: str,
    key: str | Path,
    to: str | Path,
    file: str | Path | None = None,
    ro_crate: str | Path | None = None,
    dcat: str | Path | None = None,
    url: str = "",
    licence: str = "",
) -> tuple[Path, ...]:
    """Sign the outcome of an audit, for people without this program; also describe the release.

    Args:
        evidence: an evidence file, the folder of an audit, or a workspace, whose newest audit is meant.
        by: the person who signs. key: file of the private key.
        to: file to write the attestation to, an in-toto statement in a DSSE envelope.
        file: the released file, byte for byte. None names its rows by content hash alone.
        ro_crate: ZIP file to write an RO-Crate to. dcat: file to write DCAT-AP in JSON-LD to.
        url: where the release is to be had. licence: address of its licence. Both descriptions take them.

    Returns:
        The files that were written.

    Raises:
        ReleaseRefused: a file is named, and the evidence does not pass, or is not about its bytes. Or a pass
            may not be released today.
        PlanError: a description lacks the file, its address or its licence.
        DataError: evidence, file or key cannot be used, or a file to write is there already.
    """
    described = ro_crate is not None or dcat is not None
    addresses = all(address.startswith(("https://", "http://")) for address in (url, licence))
    if described and not (file is not None and addresses):
        raise PlanError(
            "a description of a release takes the released file, its address and that of its licence",
            where="attest",
            expected="--file, and --url and --licence that start with https://",
            fix="`synth-audit attest --help` shows an example",
        )
    found = locate_evidence(Path(evidence))
    made = attesting.attest(found, by=by, key=Path(key), file=None if file is None else Path(file))
    written = [(Path(to), made.envelope)]
    if ro_crate is not None:
        terms, now = approval.release_choice(made.evidence), datetime.now(UTC)
        counted = [a for a in found.approvals() if not approval.fault_today(a, made.evidence, terms, now)]
        written.append((Path(ro_crate), ro_crate_of(made, counted, url, licence)))
    if dcat is not None:
        written.append((Path(dcat), dcat_of(made, url, licence)))
    places = [place(path) for path, _ in written]
    for path, _ in written:
        if os.path.lexists(path) or places.count(place(path)) > 1:
            raise DataError(
                "there is a file already",
                where=str(path),
                expected="a new file for each",
                fix="name another, or move this one away",
            )
    return tuple(write_bytes(path, content) for path, content in written)


def release(
    plan: PlanLike,
    out: str | Path | None = None,
    synthetic: Frame | None = None,
    *,
    candidate: str | None = None,
) -> releasing.ReleaseRecord:
    """Release the audited table of a workspace to the plan's target, or refuse.

    Args:
        synthetic: the table that was audited, when it was made elsewhere and is not in the workspace.
        candidate: name or folder of one that a sweep of this plan tried, to release that.
    """
    settled, workspace = inputs.place_of(plan, out, candidate)
    if synthetic is None:
        return stages.release_synthetic(settled, workspace)
    with telemetry.stage("release", settled.name), in_use(workspace):
        return releasing.release(settled, workspace, inputs.as_arrow(synthetic, "synthetic"))


def rollback(plan: PlanLike, out: str | Path | None = None) -> releasing.ReleaseRecord:
    """Put the release before the last of a workspace back, or refuse."""
    settled = inputs.as_plan(plan)
    return releasing.rollback(settled, inputs.workspace_of(settled, out))


def purge(
    table: PlanLike,
    *,
    keep: int | None = None,
    older_than: str | timedelta | None = None,
    monthly: bool = False,
    dry_run: bool = True,
    only: Collection[str] | None = None,
) -> purging.PurgeRecord:
    """Delete old audits of a table, and old candidates of its sweeps, or say what would be deleted.

    The newest audit stays, and so does each that was ever released or approved, or whose release was
    interrupted. Ledger, journal and salt stay. The journal says when an audit was purged.

    Args:
        table: its workspace folder, or its plan if the workspace has the place that goes with it.
        keep: so many of the newest audits, and the candidates of the newest sweep, are not old.
        older_than: nothing is old that was made less than this ago, such as ``90d``, ``12w`` or ``36h``. With
            both, what is old by both goes.
        monthly: the last audit of each month is not old.
        dry_run: False deletes.
        only: names of what may go, as an earlier dry run gave them.

    Raises:
        PlanError: neither of the two is given, or one that would keep nothing.
        DataError: there is no journal, another run is at work, or something cannot be deleted.
    """
    retention = purging.Retention.of(keep, older_than, monthly)
    folder = isinstance(table, (str, Path)) and os.path.isdir(table)
    workspace = Workspace(Path(str(table))) if folder else inputs.workspace_of(table, None)
    newest = None
    if os.path.isfile(workspace.kept_frontier):
        record = read_frontier(workspace.kept_frontier)
        best = record.best
        newest = purging.Sweep({c.slug for c in record.candidates}, None if best is None else best.slug)
    if dry_run:
        return purging.survey(workspace, retention, newest)
    return purging.purge(workspace, retention, newest, only)


def frontier(
    plan: PlanLike,
    out: str | Path | None = None,
    *,
    fresh: bool = False,
    **running: Unpack[Running],
) -> FrontierRecord:
    """Audit every candidate that the plan's ``frontier`` asks for and choose among those that pass.

    Each gets a workspace of its own under ``candidates/``, with a report; a candidate that an earlier call
    finished is kept. Nothing is released: see :func:`release` and its ``candidate``.

    Args:
        out: workspace folder; ``<plan's name>-audit`` beside the plan if left out.
        fresh: pull the source again and keep nothing of earlier calls.
        running: how the work is done, see :class:`Running`.

    Raises:
        PlanError, DataError, GateError: see their messages for what to do.
    """

    with inputs.at_work(plan, out, running) as (settled, workspace, context):
        return swept(settled, workspace, context, fresh=fresh)


def swept(plan: Plan, workspace: Workspace, context: RunContext, *, fresh: bool = False) -> FrontierRecord:
    """Sweep as :func:`frontier` does, in a context at hand, and write the pages."""
    record = sweep(plan, workspace, context, fresh=fresh)
    for found in record.candidates:
        own = workspace.candidate(found.slug)
        store = evidence_store(own)
        if store.newest_digest() and store.newest().report is None:
            pages.write_report(own)
    study_pages.write_frontier(record, workspace.frontier_page)
    return record


def mend(
    plan: PlanLike, out: str | Path | None = None, *, tries: int = 5, **running: Unpack[Running]
) -> mending.MendRecord:
    """Try coarser values on the refused release of a plan, and judge each at a level corrected for all.

    Nothing is released: run the plan with the ``coarsen`` of the record's ``mended``.

    Args:
        out: workspace folder of the run; ``<plan's name>-audit`` beside the plan if left out.
        tries: the most candidates to judge, 1 to 5.
        running: how the work is done, see :class:`Running`.

    Raises:
        PlanError, DataError, GateError: see their messages for what to do.
    """
    with inputs.at_work(plan, out, running) as (settled, workspace, context):
        return mending.mend(settled, workspace, context, tries=tries)


def refuse_mended_place(plan: Path, to: Path) -> None:
    """Raise ``PlanError`` where the mended plan may not be written: paths in it start where the plan lies."""
    if os.path.lexists(to) or to.resolve().parent != plan.resolve().parent:
        raise PlanError(
            "the mended plan cannot be written there",
            where=str(to),
            expected=f"a file that does not exist, in {plan.resolve().parent}, where its paths start",
            fix="name another with --write",
        )


def write_mended_plan(plan: Path, found: mending.MendRecord, to: Path) -> None:
    """Write the plan that carries the mend, and how many candidates it was chosen among.

    The plan's own text is kept where keys can be added below it.

    Raises:
        PlanError: nothing was mended, or the file may not be written there.
    """
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
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True)


def calibrate(
    train: Frame,
    control: Frame,
    plan: PlanLike | None = None,
    *,
    steps: int = 10,
    noise: bool = True,
    only: str | tuple[str, ...] = (),
    seed: int | None = None,
    out: str | Path | None = None,
    **running: Unpack[Running],
) -> calibration.Calibration:
    """Plant leaks of every size in real rows and measure them with every privacy audit.

    Args:
        train: real rows; half of them play the training rows, the other half people never seen.
        control: real rows kept apart from both.
        steps: leaks at 0, 1/steps, … 1 of the rows.
        noise: repeat with all settings of the published leaky evaluation, eight times the work.
        out: folder to write ``review/calibration.json`` and ``.html`` into, with temporary files in its
            ``restricted/``; nothing is written without it.
        running: how the work is done, see :class:`Running`.

    Raises:
        DataError: train has too few rows to plant a leak in.
        PlanError: no privacy audit is chosen, or there are fewer than two steps.
    """
    given = inputs.as_plan(inputs.named_after(train) if plan is None else plan)
    settled = inputs.narrowed(given, only, seed)
    if steps < 2:
        raise PlanError(
            "a calibration needs leaks of more than one size",
            where="steps",
            expected="2 or more",
            fix="try 10",
        )
    real = inputs.as_arrow(train, "train")
    subject = stages.anchored_subject(real, inputs.as_arrow(control, "control"), real, settled)
    workspace = None if out is None else Workspace(Path(out)).prepare()
    held = in_use(workspace, write_rows=settled.execution.write_real_rows)
    with held as scratch, inputs.run_context(settled, scratch, **running) as context:
        found = calibration.calibrate(
            settled.build_audits(),
            subject,
            context,
            table=settled.name,
            shares=[i / steps for i in range(steps + 1)],
            noises=calibration.LOUD if noise else calibration.QUIET,
            max_rows=settled.known_answer.max_rows,
        )
    if workspace is not None:
        write_text(workspace.calibration, found.to_json())
        write_text(workspace.calibration_page, study_pages.render_calibration(found))
    return found


def estimate(plan: PlanLike, **running: Unpack[Running]) -> run_estimate.RunEstimate:
    """How long a run of a plan should take here: two small parts of its table are run, and nothing is kept.

    Args:
        running: how the work is done, see :class:`Running`; a run is expected to be done alike.

    Raises:
        PlanError, DataError, GateError: what a run of the plan would raise, or there are too few rows.
    """
    settled = inputs.as_plan(plan)
    with (
        in_use(None, write_rows=settled.execution.write_real_rows) as memory,
        temporary_folder(memory) as scratch,
        inputs.run_context(settled, Path(scratch), **running) as context,
    ):
        return run_estimate.estimate(settled, context, Path(scratch))


def test_mechanism(
    *,
    plan: PlanLike | None = None,
    epsilon: float | None = None,
    delta: float = 0.0,
    replace: bool = False,
    rows: int = 20,
    runs: int = 1000,
    seconds: float | None = 1500.0,
    workers: int | None = None,
    progress: Progress | None = None,
    **subject: Unpack[MechanismChoice],
) -> MechanismResult:
    """Whether a claimed (ε, δ) can be refuted by telling worst-case neighbouring tables apart.

    Args:
        plan: its generator is tested under its budget; with another subject it declares the columns alone.
        epsilon, delta: the claim; left out, that of a plan's generator or of a step is its accountant's.
        replace: neighbours differ in one entity replaced, not added or removed.
        rows: of the tables that are made up.
        runs: of the mechanism in all. seconds: about how long at most.
        workers: processes to spread the runs over.
        progress: called with what is under way and how many pieces are done.
        subject: what is tested, see :class:`~synth_audit.mechanism_test.subjects.MechanismChoice`.

    Raises:
        PlanError: not exactly one subject, or nothing is claimed. DataError, PluginError: it cannot be run.
    """
    effort = Effort(runs, seconds)
    relation = Neighbouring.REPLACE if replace else Neighbouring.ADD_OR_REMOVE
    claim = None if epsilon is None else Claim(epsilon, delta, relation)
    settled = None if plan is None else inputs.as_plan(plan)
    found = claimed_mechanism(settled, claim, relation, delta=delta, rows=rows, **subject)
    with inputs.run_context(inputs.as_plan({}), workers=workers, progress=progress) as context:
        return examine_claim(found, effort, context)


test_mechanism.__test__ = False  # type: ignore[attr-defined]  # a verb; test runners collect by its name


def recipes() -> tuple[RecipeEnvironment, ...]:
    """The environment of every recipe, made or not, in alphabetical order of the recipes."""
    return tuple(RecipeEnvironment.of(recipe) for recipe in known_recipes().values())


def install_recipe(name: str, python: str | Path | None = None) -> RecipeEnvironment:
    """Fetch a recipe's packages into an environment of its own, outside this one.

    Args:
        python: an interpreter for it, where this one is too new or too old.

    Raises:
        PlanError: there is no such recipe, or no interpreter fits.
        DataError: the packages do not install.
    """
    place = RecipeEnvironment.of(recipe_named(name))
    place.install(None if python is None else Path(python))
    return place


def try_recipe(name: str, settings: Mapping[str, Setting] | None = None, *, shown: bool = False) -> int:
    """Run an installed recipe on a made-up table; the number of rows that it drew.

    Args:
        settings: those that the recipe names for a trial if None.
        shown: what it prints goes to standard error.

    Raises:
        PlanError: there is no such recipe or setting.
        DataError: it is not installed, or does not do what a recipe must.
    """
    recipe = recipe_named(name)
    try:
        recipe.settled(settings or {})
    except ValueError as error:
        raise PlanError(str(error), where=f"recipe {name!r}", fix="`synth-audit recipes list`") from None
    return trial(recipe, settings, shown=shown).n_rows
