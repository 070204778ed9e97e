"""The command line: the same verbs as the Python functions, and nothing that they do not do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

from synth_audit import api
from synth_audit.build import build_version
from synth_audit.cli import console, exits, first_steps, inspect, studies
from synth_audit.cli.exits import CommandGroup, Exit, exit_code, guarded, say, say_whole, verify_code
from synth_audit.cli.inspect import describe, index, list_plugins, plugins, schema, suites
from synth_audit.cli.release import approve, exposure, mend, purge, rollback
from synth_audit.cli.studies import test_mechanism

if TYPE_CHECKING:
    from synth_audit.pipeline.release import ReleaseRecord
    from synth_audit.store.workspace import Workspace


def _tell_version(ctx: click.Context, option: click.Parameter, wanted: bool) -> None:
    if wanted:
        say(f"synth-audit, version {build_version()}")
        ctx.exit()


@click.group(
    cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_tell_version,
    help="Show the version and its build, and exit.",
)
def main() -> None:
    """Decide whether a synthetic table may leave: attack it, measure it, gate it, report it.

    \b
    Start here:
      synth-audit demo                                        see it work on real data
      synth-audit audit train.csv control.csv synthetic.csv   judge files made elsewhere
      synth-audit init data.csv && synth-audit run data.yaml  the whole way for one table

    \b
    Completion: eval "$(_SYNTH_AUDIT_COMPLETE=bash_source synth-audit)"   (or zsh_source; fish_source)

    \b
    Exit codes: 0 pass, 1 not released (fail or not enough evidence), 2 bad input, 3 an audit errored,
    4 not checkable here (verify, rerun), 5 doubtful (test-mechanism), 75 try again later: a lock, a server
    that does not answer, a full disk.
    """


@main.command()
@exits.plan
@exits.out
@click.option("--no-release", is_flag=True, help="Stop after the report.")
@exits.running
@exits.as_json
@guarded
def run(
    plan: Path, out: Path | None, no_release: bool, as_json: bool, **running: Unpack[api.Execution]
) -> Exit:
    """Go the whole way for one table.

    Pull, split, generate, audit, gate, report and, on a pass, release.

    \b
    Example:
      synth-audit run tumours.yaml --out audits/tumours
    """
    workspace = api.workspace_of(plan, out)
    with console.progress_bar() as progress:
        evidence = api.run(plan, workspace.root, release=False, progress=progress, **running)
    console.show_evidence(evidence, _files(workspace), as_json=as_json)
    code = exit_code(evidence)
    if code is Exit.PASS and not no_release and api.as_plan(plan).release is not None:
        record = api.release(plan, workspace.root)
        _tell_release(record, err=as_json)
    return code


@main.command()
@click.argument("train", type=click.Path(path_type=Path))
@click.argument("control", type=click.Path(path_type=Path))
@click.argument("synthetic", type=click.Path(path_type=Path))
@click.option("--plan", type=click.Path(path_type=Path), help="Plan with columns, audits and gates.")
@click.option(
    "--only",
    multiple=True,
    metavar="NAME",
    shell_complete=plugins,
    help="Run only this audit; repeatable.",
)
@exits.out
@exits.running
@exits.as_json
@guarded
def audit(
    train: Path,
    control: Path,
    synthetic: Path,
    plan: Path | None,
    only: tuple[str, ...],
    out: Path | None,
    as_json: bool,
    **running: Unpack[api.Execution],
) -> Exit:
    """Audit a synthetic file made elsewhere.

    TRAIN holds the real rows that SYNTHETIC was made from, CONTROL real rows of the same population
    that the generator never saw: what is true of them too is no leak. Parquet or CSV. Without --out,
    temporary files with real rows are in the system's place for them (TMPDIR), in folders of mode 0700.

    \b
    Examples:
      synth-audit audit train.parquet control.parquet synthetic.parquet --out audit
      synth-audit audit train.csv control.csv synthetic.csv --plan plan.yaml --only exact_match
    """
    from synth_audit.store.workspace import Workspace

    with console.progress_bar() as progress:
        evidence = api.audit(
            train, control, synthetic, plan, only=only, out=out, progress=progress, **running
        )
    console.show_evidence(evidence, _files(Workspace(out)) if out else [], as_json=as_json)
    if out is None:
        say("nothing was written; --out FOLDER keeps the report and the evidence", err=True)
        console.tell_scratch()
    code = exit_code(evidence)
    if code is Exit.PASS:
        say_whole(f"note: {_to_share(synthetic, out)}", err=True)
    return code


@main.command()
@exits.evidence
@click.option(
    "--suite",
    required=True,
    shell_complete=suites,
    help="Gate suite: a file, or one that ships.",
)
@exits.as_json
@guarded
def gate(evidence: Path, suite: str, as_json: bool) -> Exit:
    """Judge existing evidence by another suite.

    EVIDENCE is an evidence file, the folder of an audit, or a workspace, of which the newest audit is meant.
    Needs no data and writes nothing.

    \b
    Example:
      synth-audit gate audit --suite strict.json
    """
    judged = api.gate(evidence, suite)
    console.show_evidence(judged, [], as_json=as_json, trial=True)
    return exit_code(judged)


@main.command()
@exits.evidence
@click.option("--to", type=click.Path(path_type=Path), help="HTML file; else one beside the evidence.")
@click.option("--force", is_flag=True, help="With --to, replace a file that is no report.")
@click.option(
    "--certificate", is_flag=True, help="The certificate of two pages alone; the report is its annex."
)
@click.option("--full", is_flag=True, help="With --to or --pdf, fold nothing away: the whole annex in print.")
@click.option(
    "--pdf", type=click.Path(path_type=Path), metavar="FILE", help="Write a PDF instead; with --to, too."
)
@guarded
def report(
    evidence: Path, to: Path | None, force: bool, certificate: bool, full: bool, pdf: Path | None
) -> Exit:
    """Render the HTML report of existing evidence, and the certificate of two pages beside it.

    EVIDENCE is an evidence file, the folder of an audit, or a workspace, of which the newest audit is meant.

    \b
    Example:
      synth-audit report audit --to report.html
      synth-audit report audit --certificate --pdf certificate.pdf
    """
    if to is not None or pdf is None:
        say_whole(str(_page(evidence, to, force=force, certificate=certificate, full=full)))
    if pdf is not None:
        say_whole(str(api.write_pdf(evidence, pdf, certificate=certificate, full=full)))
    return Exit.PASS


@main.command()
@exits.evidence
@click.option("--source", type=click.Path(path_type=Path), help="The source table as a file.")
@click.option("--train", type=click.Path(path_type=Path), help="The training rows as a file.")
@click.option("--control", type=click.Path(path_type=Path), help="The control rows as a file.")
@click.option("--synthetic", type=click.Path(path_type=Path), help="The released table as a file.")
@click.option(
    "--salt", type=click.Path(path_type=Path), help="The workspace's restricted/salt, when elsewhere."
)
@exits.as_json
@guarded
def verify(evidence: Path, salt: Path | None, as_json: bool, **tables: Path | None) -> Exit:
    """Recompute hashes and verdict of evidence.

    EVIDENCE is an evidence file, the folder of an audit, or a workspace, of which the newest audit is meant.
    Tables in the restricted folder beside it are checked too, and any that are named. Elsewhere the
    released table is compared by its hash; the others take the salt, a secret of the workspace. What takes
    more than is at hand is told, and ends in exit code 4.

    \b
    Examples:
      synth-audit verify tumours-audit
      synth-audit verify evidence.json --synthetic released.parquet
    """
    checks = api.verify(evidence, {n: path for n, path in tables.items() if path is not None}, salt=salt)
    console.show_checks(checks, as_json=as_json)
    return verify_code(checks)


@main.command()
@exits.plan
@exits.out
@click.option(
    "--candidate", metavar="NAME", help="A candidate that `frontier` tried, instead of the plan's own."
)
@exits.running
@exits.as_json
@guarded
def rerun(
    plan: Path, out: Path | None, candidate: str | None, as_json: bool, **running: Unpack[api.Execution]
) -> Exit:
    """Repeat a run and compare it with its evidence.

    Under the salt in restricted/ the split, seeded fits and draws and all measurements come out the same,
    to the last digit. What cannot be repeated is compared by its hash and audited as it was kept. Nothing
    is written.

    \b
    Example:
      synth-audit rerun tumours.yaml --out audits/tumours
    """
    with console.progress_bar() as progress:
        checks = api.rerun(plan, out, candidate=candidate, progress=progress, **running)
    console.show_checks(checks, as_json=as_json)
    return verify_code(checks)


@main.command()
@exits.plan
@exits.out
@click.option("--synthetic", type=click.Path(path_type=Path), help="The audited file, when made elsewhere.")
@click.option(
    "--candidate", metavar="NAME", help="A candidate that `frontier` tried, instead of the plan's own."
)
@guarded
def release(plan: Path, out: Path | None, synthetic: Path | None, candidate: str | None) -> Exit:
    """Release the audited table, or refuse.

    The evidence must pass and be about exactly these bytes and this plan.

    \b
    Examples:
      synth-audit release tumours.yaml --out audits/tumours
      synth-audit release tumours.yaml --candidate vine-truncation-5
    """
    record = api.release(plan, out, synthetic, candidate=candidate)
    _tell_release(record)
    for warning in record.warnings:
        say(f"  warning: {warning}", fg="yellow")
    return Exit.PASS


def _page(evidence: Path, to: Path | None, *, force: bool, certificate: bool, full: bool) -> Path:
    if certificate:
        return api.write_certificate(evidence, to, force=force)
    if to is None:
        return api.write_report(evidence)
    api.render_report(evidence, to, force=force, full=full)
    return to


def _files(workspace: Workspace) -> list[Path]:
    from synth_audit.store.evidence_store import evidence_store

    where = evidence_store(workspace).where()
    table = [where["table"]] if where["table"].is_file() else []
    return [where["certificate"], where["report"], where["evidence"], *table]


def _to_share(synthetic: Path, out: Path | None) -> str:
    """Which file may leave after a pass: one of the audited rows and values, and never what was audited."""
    from synth_audit.store.evidence_store import evidence_store
    from synth_audit.store.workspace import Workspace

    if out is None:
        return f"do not share {synthetic}; --out FOLDER writes its audited rows and values alone, to share"
    table = evidence_store(Workspace(out)).where()["table"]
    return f"share {table if table.is_file() else 'what `release` writes'}, not {synthetic}"


def _tell_release(record: ReleaseRecord, *, err: bool = False) -> None:
    say_whole(f"released {record.table.rows:,} rows to {record.where}", err=err)


for command in (
    first_steps.demo,
    first_steps.init,
    approve,
    inspect.compare,
    exposure,
    studies.calibrate,
    studies.estimate,
    studies.frontier,
    mend,
    test_mechanism,
    index,
    purge,
    rollback,
    first_steps.recipes,
    list_plugins,
    describe,
    schema,
):
    main.add_command(command)
