"""Commands that read evidence again: pages, checks and comparisons."""

from pathlib import Path
from typing import Unpack

import click

import synth_audit as api
from synth_audit.cli import shared, terminal
from synth_audit.cli.shared import FILE, CommandJob, main
from synth_audit.cli.terminal import Exit, say, say_json, say_whole, verify_code

JOB = CommandJob.INSPECT


@main.command(job=JOB)
@shared.evidence
@click.option("--to", type=FILE, help="HTML file; in the folder of the audit if left out.")
@click.option("--force", is_flag=True, help="With --to, replace a file that is no report.")
@click.option(
    "--certificate", is_flag=True, help="The certificate of two pages alone; the report is its annex."
)
@click.option("--full", is_flag=True, help="With --to or --pdf, write out all that was measured, unfolded.")
@click.option("--pdf", type=FILE, metavar="FILE", help="Write a PDF instead; with --to, too.")
@click.option("--open", "opened", is_flag=True, help="Show it in the browser.")
def report(
    evidence: Path,
    to: Path | None,
    force: bool,
    certificate: bool,
    full: bool,
    pdf: Path | None,
    opened: bool,
) -> Exit:
    """Render report and certificate of an audit.

    EVIDENCE is an evidence file, the folder of an audit, or a workspace, of which the newest audit is meant.
    The certificate of two pages is written beside the report.

    \b
    Example:
      synth-audit report audit --open
      synth-audit report audit --certificate --pdf certificate.pdf
    """
    pages = []
    if to is not None or pdf is None:
        if certificate:
            pages.append(api.write_certificate(evidence, to, force=force))
        elif to is None:
            pages.append(api.write_report(evidence))
        else:
            api.render_report(evidence, to, force=force, full=full)
            pages.append(to)
    if pdf is not None:
        pages.append(api.write_pdf(evidence, pdf, certificate=certificate, full=full))
    for page in pages:
        say_whole(str(page))
    if opened:
        click.launch(pages[0].absolute().as_uri())
    return Exit.PASS


@main.command(job=JOB)
@shared.evidence
@click.option("--source", type=FILE, help="The source table as a file.")
@click.option("--train", type=FILE, help="The training rows as a file.")
@click.option("--control", type=FILE, help="The control rows as a file.")
@click.option("--synthetic", type=FILE, help="The released table as a file.")
@click.option("--salt", type=FILE, help="The workspace's restricted/salt, when elsewhere.")
@shared.as_json
def verify(evidence: Path, salt: Path | None, as_json: bool, **tables: Path | None) -> Exit:
    """Recompute hashes and verdict of evidence.

    EVIDENCE is an evidence file, the folder of an audit, or a workspace, of which the newest audit is meant.
    Tables in its restricted folder are checked too, and any that are named. Outside the workspace the
    released table is compared by its hash. The other tables need --salt, a secret of the workspace. What
    cannot be checked here is listed, and ends in exit code 4.

    \b
    Examples:
      synth-audit verify tumours-audit
      synth-audit verify evidence.json --synthetic released.parquet
    """
    checks = api.verify(evidence, {n: path for n, path in tables.items() if path is not None}, salt=salt)
    terminal.show_checks(checks, as_json=as_json)
    return verify_code(checks)


@main.command(job=JOB)
@shared.plan
@shared.out
@shared.candidate
@shared.running
@shared.as_json
def rerun(
    plan: Path, out: Path | None, candidate: str | None, as_json: bool, **running: "Unpack[shared.Running]"
) -> Exit:
    """Repeat a run and compare it with its evidence.

    With the salt in restricted/, the split, seeded fits, draws and all measurements come out the same to the
    last digit. What cannot be repeated is compared by its hash and audited as it was kept. Nothing is
    written.

    \b
    Example:
      synth-audit rerun tumours.yaml --out audits/tumours
    """
    checks = terminal.watched(api.rerun, plan, out, candidate=candidate, **running)
    terminal.show_checks(checks, as_json=as_json)
    return verify_code(checks)


@main.command(job=JOB)
@click.argument("before", type=FILE)
@click.argument("after", type=FILE)
@click.option("--all", "every", is_flag=True, help="Also gates that did not change.")
@shared.as_json
def compare(before: Path, after: Path, every: bool, as_json: bool) -> Exit:
    """Show what changed from one audit to another.

    BEFORE and AFTER are evidence files, folders of audits, or workspaces, of which the newest audit is meant.
    Two numbers count as different where their intervals do not overlap, or where they have none. Needs no
    data and decides nothing.

    \b
    Example:
      synth-audit compare tumours-audit/review/audits/3f0c tumours-audit
    """
    found = api.compare(before, after)
    if as_json:
        say_json(found.to_frame().to_json(orient="records", indent=2))
        return Exit.PASS
    for caveat in found.caveats:
        say(f"note: {caveat}", fg="yellow")
    pairs = found.gates if every else found.changed
    width = max((len(p.gate) for p in pairs), default=0)
    for p in pairs:
        say(f"  {p.gate:<{width}}  {p.told(p.before)} → {p.told(p.after)}: {p.change}")
    if found.rest and not every:
        say(f"  {found.rest}; --all shows them")
    say(f"{found.before.verdict} → {found.after.verdict}", bold=True)
    return Exit.PASS


@main.command(job=JOB)
@click.argument("workspaces", type=FILE, nargs=-1, required=True)
@click.option("--out", type=FILE, default=Path("index.html"), help="HTML file to write.")
@click.option("--force", is_flag=True, help="Replace a file there that is no index.")
def index(workspaces: tuple[Path, ...], out: Path, force: bool) -> Exit:
    """Write a page over the audits of many tables.

    Verdicts, releases and approvals of the newest 30 audits of each of WORKSPACES, with links to certificates
    and reports, and how the numbers nearest to their limits moved. The journal counts earlier audits by
    month. It filters without scripts and without network.

    \b
    Example:
      synth-audit index audits/* --out audits/index.html
    """
    say_whole(str(api.write_index(workspaces, out, force=force)))
    return Exit.PASS
