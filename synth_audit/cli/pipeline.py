"""Commands that make and audit releases as a plan says, from the first plan to a choice among generators."""

from __future__ import annotations

import importlib.util
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import click

import synth_audit as api
from synth_audit.cli import shared, terminal
from synth_audit.cli.shared import FILE, CommandJob, main
from synth_audit.cli.terminal import Exit, exit_code, say, say_json, say_whole, short
from synth_audit.errors import PlanError
from synth_audit.text import shortened

if TYPE_CHECKING:
    from synth_audit.studies.frontier import FrontierRecord, Number
    from synth_audit.studies.mend import MendRecord

JOB = CommandJob.PIPELINE


@main.command(job=JOB)
@click.argument("folder", type=shared.FOLDER, default=Path("demo"))
def demo(folder: Path) -> Exit:
    """See it work: two releases of a real medical table.

    Runs both through Dagster in FOLDER (./demo by default): a vine's release passes, a bootstrap of
    the training rows is refused.

    \b
    Example:
      synth-audit demo /tmp/synth-audit-demo
    """
    if importlib.util.find_spec("dagster") is None:
        raise PlanError(
            "the demo runs in Dagster, which is not installed", fix="pip install 'synth-audit[dagster]'"
        )
    # A process of its own: the demo lives in the layer above this one, which may not be imported here.
    command = [sys.executable, "-m", "synth_audit.dagster.demo", str(folder)]
    code = subprocess.run(command, check=False).returncode  # noqa: S603 (no outside input)
    return Exit(code) if code in list(Exit) else Exit.AUDIT_ERROR


@main.command(job=JOB)
@click.argument("source", required=False)
@click.option("--table", help="Table inside a DuckDB file, for example clinical.tumours.")
@click.option("--plan", "plan_file", type=FILE, help="Plan file to write.")
@click.option("--schema", "with_schema", is_flag=True, help="Also write plan.schema.json, for editors.")
@click.option("--force", is_flag=True, help="Replace a plan that is there.")
def init(
    source: str | None, table: str | None, plan_file: Path | None, with_schema: bool, force: bool
) -> Exit:
    """Write a plan to start from.

    With SOURCE, a file, the plan proposes a kind for each of its columns, roles with the reasons for them,
    and rules that all rows obey.

    \b
    Examples:
      synth-audit init patients.parquet
      synth-audit init patients.parquet --schema --force
      synth-audit init warehouse.duckdb --table clinical.tumours --plan tumours.yaml
    """
    from synth_audit.pipeline.starter import write_starter_plan

    path = write_starter_plan(source, table, plan_file, with_schema=with_schema, force=force)
    say_whole(f"wrote {path}; look it over")
    terminal.say_next(f"synth-audit run {path}")
    return Exit.PASS


@main.command(job=JOB)
@shared.plan
@shared.running
@shared.as_json
def estimate(plan: Path, as_json: bool, **running: Unpack[shared.Running]) -> Exit:
    """Say how long a run of a plan should take.

    Runs it on small parts of its table, of 1,000 and 4,000 rows, and extrapolates. Nothing is kept,
    and no privacy budget is debited.

    \b
    Example:
      synth-audit estimate tumours.yaml --workers 4
    """
    found = terminal.watched(api.estimate, plan, **running)
    if as_json:
        say_json({**asdict(found), "expected": found.expected})
        return Exit.PASS
    small, large = found.sizes
    say(f"{'stage':<14}{small:>9,} rows{large:>9,} rows{found.rows:>12,} rows")
    for s in found.stages:
        first, second = s.measured
        say(f"{s.name:<14}{first:>12.1f} s{second:>12.1f} s{s.expected:>15,.0f} s")
    seconds = found.expected
    told = f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
    told = f"{seconds:.0f} seconds" if seconds < 90 else told
    say(f"about {told}, and less where audits look at a part of the rows", bold=True)
    return Exit.PASS


@main.command(job=JOB)
@shared.plan
@shared.out
@click.option("--no-release", is_flag=True, help="Stop after the report.")
@shared.running
@shared.as_json
def run(
    plan: Path, out: Path | None, no_release: bool, as_json: bool, **running: Unpack[shared.Running]
) -> Exit:
    """Go the whole way for one table.

    Pull, split, generate, audit, gate, report and, on a pass, release.

    \b
    Example:
      synth-audit run tumours.yaml --out audits/tumours
    """
    from synth_audit.inputs import as_plan, workspace_of

    workspace = workspace_of(plan, out)
    evidence = terminal.watched(api.run, plan, workspace.root, release=False, **running)
    terminal.show_evidence(evidence, terminal.files_of(workspace.root), as_json=as_json)
    code, step = exit_code(evidence), terminal.next_step(evidence, workspace.root, plan)
    if code is Exit.PASS and as_plan(plan).release is not None:
        if no_release:
            step = shlex.join(["synth-audit", "release", str(plan), "--out", str(workspace.root)])
        else:
            record = api.release(plan, workspace.root)
            say_whole(f"released {record.table.rows:,} rows to {record.where}", err=as_json)
    terminal.say_next(step, aside=as_json)
    return code


@main.command(job=JOB)
@shared.plan
@shared.out
@click.option("--fresh", is_flag=True, help="Pull the source again and keep no candidate of earlier sweeps.")
@shared.running
@shared.as_json
def frontier(
    plan: Path, out: Path | None, fresh: bool, as_json: bool, **running: Unpack[shared.Running]
) -> Exit:
    """Try several generators and choose among those that pass.

    Sweeps the settings and generators under `frontier` in the plan; a vine without them climbs its
    truncation levels. Each candidate is audited in a folder of its own, at a level of confidence
    corrected for their number. What an interrupted sweep finished is kept. Nothing is released.

    \b
    Examples:
      synth-audit frontier tumours.yaml
      synth-audit frontier tumours.yaml --out audits/tumours --workers 2
      synth-audit release tumours.yaml --candidate vine-truncation-5
    """
    from synth_audit.inputs import as_plan, workspace_of

    settled = as_plan(plan)
    if settled.release is None:
        say("note: the plan names no `release`; to add one later means to sweep again", err=True)
    workspace = workspace_of(settled, out)
    found = terminal.watched(api.frontier, settled, workspace.root, fresh=fresh, **running)
    words = ["synth-audit", "release", str(plan), *(["--out", str(out)] if out else [])]
    files = [workspace.frontier_page, workspace.frontier]
    command = shlex.join(words) if settled.release is not None else ""
    if as_json:
        say_json(found)
    else:
        _show_frontier(found, files, command)
    if found.chosen is not None:
        return Exit.PASS
    return Exit.AUDIT_ERROR if any(c.problem for c in found.candidates) else Exit.NOT_RELEASED


def _show_frontier(found: FrontierRecord, files: Sequence[Path], command: str) -> None:
    """Print one line per candidate, what was chosen and why, and what to do next.

    Args:
        command: releases the plan's own table; with ``--candidate`` a candidate. Empty without a target.
    """
    measures = str(found.privacy or "privacy"), str(found.utility or "utility")
    rows = [("candidate", *measures, "gates", "verdict", "PU")]
    for c in found.candidates:
        counts = [sum(g.result == result for g in c.gates) for result in terminal.RESULTS]
        signs = [sign for sign, _ in terminal.RESULTS.values()]
        gates = " ".join(f"{n} {sign}" for n, sign in zip(counts, signs, strict=True) if n)
        score = "" if c.score is None else f"{c.score:.3f}"
        verdict = f"{c.verdict} (kept)" if c.kept else c.verdict
        rows.append((short(c.name), _span(c.privacy), _span(c.utility), gates, verdict, score))
    terminal.say_table(rows)
    for c in found.candidates:
        if c.problem:
            say(f"  {c.name}: {c.problem}", fg="yellow")
    n = len(found.candidates)
    say()
    say(f"Intervals at {100 * found.level:.6g} %: each of {n} candidates is a chance of a wrong pass.")
    say(
        f"PU = {found.alpha:g} × privacy + {1 - found.alpha:g} × usefulness, each from 0 (worst) to 1 (best "
        "of these candidates)."
    )
    say()
    say(found.reason, fg="green" if found.chosen else "yellow", bold=True)
    for path in files:
        say_whole(f"  {path}")
    if found.split_kept:
        say(f"the split of {found.split_kept[:10]} is kept; --fresh pulls the source again")
    terminal.say_next(_next_step(found, command))


def _span(number: Number | None) -> str:
    return "" if number is None else f"{number.value:.3f} [{number.low:.3f}, {number.high:.3f}]"


def _next_step(found: FrontierRecord, command: str) -> str:
    best = found.best
    if best is None and any(c.passed for c in found.candidates):
        return "name measurements that they have under `frontier` in the plan; finished ones are kept"
    if best is None:
        return "the page says what held each candidate; try others under `frontier` in the plan"
    if not command:
        return "name a target under `release` in the plan and sweep again"
    return f"{command} --candidate {best.slug}"


@main.command(job=JOB)
@shared.plan
@shared.out
@click.option(
    "--tries",
    type=click.IntRange(min=1, max=5),
    default=5,
    show_default=True,
    help="Most candidates to judge; each that may be judged widens every interval.",
)
@click.option("--write", type=FILE, help="Plan file to write on success, in the folder of PLAN.")
@shared.running
@shared.as_json
def mend(
    plan: Path,
    out: Path | None,
    tries: int,
    write: Path | None,
    as_json: bool,
    **running: Unpack[shared.Running],
) -> Exit:
    """Find the smallest coarsening that passes, and verify it.

    Starts from the newest audit of PLAN, if it was refused for exact values of single columns or for novel
    content. Rounds, top-codes and groups values of the columns that the refusal names, from small changes to
    large. Each try is judged at a level corrected for their number, against an adversary who knows the rule.
    The generator is not fitted again, and nothing is released: run the plan that --write leaves. It says how
    many candidates were tried. Memorised people cannot be mended by coarser values: then nothing is tried.

    \b
    Examples:
      synth-audit mend tumours.yaml
      synth-audit mend tumours.yaml --out audits/tumours --write tumours-coarser.yaml
    """
    from synth_audit.inputs import workspace_of

    if write is not None:
        api.refuse_mended_place(plan, write)
    workspace = workspace_of(plan, out)
    found = terminal.watched(api.mend, plan, workspace.root, tries=tries, **running)
    if as_json:
        say_json(found)
    else:
        _show_mend(found, workspace.mend)
    if found.mended is None:
        return Exit.NOT_RELEASED
    if write is not None:
        api.write_mended_plan(plan, found, write)
        words = ["synth-audit", "run", str(write), "--out", str(workspace.root)]
        say_whole(f"wrote {write}", err=as_json)
        terminal.say_next(shlex.join(words), aside=as_json)
    return Exit.PASS


def _show_mend(found: MendRecord, file: Path) -> None:
    """Print one line per try, and what came of them."""
    held = ", ".join(found.refused_by)
    rows = [
        ("try", "change", "verdict", "refused by", "total variation"),
        ("0", "as it was refused", "refused", held, _variation(found.total_variation)),
    ]
    for number, tried in enumerate(found.tries, 1):
        refused = ", ".join(tried.refused_by)
        told = [shortened(words, 60) for words in tried.words] or [""]
        rows.append((str(number), told[0], tried.verdict, refused, _variation(tried.total_variation)))
        rows += [("", words, "", "", "") for words in told[1:]]
    terminal.say_table(rows)
    say()
    say(f"{found.tries_counted} candidates are counted: each that may be judged is a chance of a wrong pass.")
    say(found.reason, fg="green" if found.mended else "yellow", bold=True)
    say_whole(f"  {file}")


def _variation(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
