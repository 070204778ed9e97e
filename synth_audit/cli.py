"""The command line: the same verbs as the Python functions, and nothing that they do not do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import click

from synth_audit import __version__, api, console
from synth_audit.core import registry
from synth_audit.core.errors import PlanError
from synth_audit.core.plan import Plan, plan_schema
from synth_audit.exits import Exit, exit_code, guarded

_json = click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
_out = click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), help="Folder for restricted/ and review/."
)
_workers = click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Processes to spread the audits over; the numbers do not depend on it.",
)
_plan = click.argument("plan", type=click.Path(path_type=Path))
_evidence = click.argument("evidence", type=click.Path(path_type=Path))


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="synth-audit")
def main() -> None:
    """Decide whether a synthetic table may leave: attack it, measure it, gate it, report it.

    \b
    Start here:
      synth-audit demo                                        see it work on real data
      synth-audit audit train.csv control.csv synthetic.csv   judge files made elsewhere
      synth-audit init data.csv && synth-audit run data.yaml  the whole way for one table

    \b
    Exit codes: 0 pass, 1 not released (fail or not enough evidence), 2 bad input, 3 an audit errored.
    """


@main.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=Path("demo"))
@guarded
def demo(folder: Path) -> Exit:
    """See it work: two releases of a real medical table.

    Runs both through Dagster in FOLDER (./demo by default): a vine's release passes, a bootstrap of
    the training rows is refused.

    \b
    Example:
      synth-audit demo /tmp/synth-audit-demo
    """
    # A process of its own: the demo lives in the layer above this one, which may not be imported here.
    command = [sys.executable, "-m", "dagster_project.demo", str(folder)]
    code = subprocess.run(command, check=False).returncode  # noqa: S603 (no outside input)
    return Exit(code) if code in list(Exit) else Exit.AUDIT_ERROR


@main.command()
@click.argument("source", required=False)
@click.option("--table", help="Table inside a DuckDB file, for example clinical.tumours.")
@click.option("--plan", "plan_file", type=click.Path(path_type=Path), help="Plan file to write.")
@guarded
def init(source: str | None, table: str | None, plan_file: Path | None) -> Exit:
    """Write a plan to start from.

    With SOURCE, a file, the plan proposes a kind for each of its columns.

    \b
    Examples:
      synth-audit init patients.parquet
      synth-audit init warehouse.duckdb --table clinical.tumours --plan tumours.yaml
    """
    from synth_audit.workflow.starter import starter_plan
    from synth_audit.workflow.workspace import write_text

    stem = (table or source or "plan").rsplit("/", 1)[-1].split(".")[-1 if table else 0]
    path = plan_file or Path(f"{stem}.yaml")
    if path.exists():
        raise PlanError(
            "the plan file exists already",
            where=str(path),
            expected="a file that does not exist",
            fix="name another with --plan",
        )
    choice: dict[str, Any] = {"duckdb": {"path": "warehouse.duckdb", "table": "clinical.tumours"}}
    data = None
    if source:
        settings = {"path": source} | ({"table": table} if table else {})
        plugin = "duckdb" if table else _source_for(source)
        data = Plan.model_validate({"source": {plugin: settings}}).build_source().read(Path.cwd())
        choice = {plugin: settings | {"path": _seen_from(path.parent, source)}}
    write_text(path, starter_plan(choice, data, path.name))
    click.echo(f"wrote {path}; look it over, then: synth-audit run {path}")
    return Exit.PASS


def _seen_from(folder: Path, path: str) -> str:
    """A path as the plan must write it: relative ones start at the plan's folder."""
    own = Path(path).expanduser()
    return str(own) if own.is_absolute() else os.path.relpath(own, folder)


def _source_for(path: str) -> str:
    chosen = Plan.model_validate({"source": path}).source
    assert chosen is not None
    return chosen.name


@main.command()
@_plan
@_out
@click.option("--no-release", is_flag=True, help="Stop after the report.")
@_workers
@_json
@guarded
def run(plan: Path, out: Path | None, no_release: bool, workers: int, as_json: bool) -> Exit:
    """Go the whole way for one table.

    Pull, split, generate, audit, gate, report and, on a pass, release.

    \b
    Example:
      synth-audit run tumours.yaml --out audits/tumours
    """
    workspace = api.workspace_of(plan, out)
    with console.progress_bar() as progress:
        evidence = api.run(plan, workspace.root, release=False, progress=progress, workers=workers)
    console.show_evidence(evidence, [workspace.report, workspace.evidence], as_json=as_json)
    code = exit_code(evidence)
    if code is Exit.PASS and not no_release and api.as_plan(plan).release is not None:
        record = api.release(plan, workspace.root)
        click.echo(f"released {record.table.rows:,} rows to {record.where}", err=as_json)
    return code


@main.command()
@click.argument("train", type=click.Path(path_type=Path))
@click.argument("control", type=click.Path(path_type=Path))
@click.argument("synthetic", type=click.Path(path_type=Path))
@click.option("--plan", type=click.Path(path_type=Path), help="Plan with columns, audits and gates.")
@click.option("--only", multiple=True, metavar="NAME", help="Run only this audit; repeatable.")
@click.option("--seed", type=click.IntRange(min=0), help="Instead of the plan's seed.")
@_out
@_workers
@_json
@guarded
def audit(
    train: Path,
    control: Path,
    synthetic: Path,
    plan: Path | None,
    only: tuple[str, ...],
    seed: int | None,
    out: Path | None,
    workers: int,
    as_json: bool,
) -> Exit:
    """Audit a synthetic file made elsewhere.

    TRAIN holds the real rows that SYNTHETIC was made from, CONTROL real rows of the same population
    that the generator never saw: what is true of them too is no leak. Parquet or CSV.

    \b
    Examples:
      synth-audit audit train.parquet control.parquet synthetic.parquet --out audit
      synth-audit audit train.csv control.csv synthetic.csv --plan plan.yaml --only exact_match
    """
    with console.progress_bar() as progress:
        evidence = api.audit(
            train, control, synthetic, plan, only=only, seed=seed, out=out, progress=progress, workers=workers
        )
    files = [out / "review" / name for name in ("report.html", "evidence.json")] if out else []
    console.show_evidence(evidence, files, as_json=as_json)
    if out is None:
        click.echo("nothing was written; --out FOLDER keeps the report and the evidence", err=True)
    return exit_code(evidence)


@main.command()
@click.argument("train", type=click.Path(path_type=Path))
@click.argument("control", type=click.Path(path_type=Path))
@click.option("--plan", type=click.Path(path_type=Path), help="Plan with columns and audits.")
@click.option("--only", multiple=True, metavar="NAME", help="Calibrate only this audit; repeatable.")
@click.option("--steps", type=click.IntRange(min=2), default=10, show_default=True, help="Sizes of the leak.")
@click.option("--noise/--no-noise", default=True, help="With all kinds of noise, eight times the work.")
@click.option("--seed", type=click.IntRange(min=0), help="Instead of the plan's seed.")
@_out
@_workers
@_json
@guarded
def calibrate(
    train: Path,
    control: Path,
    plan: Path | None,
    only: tuple[str, ...],
    steps: int,
    noise: bool,
    seed: int | None,
    out: Path | None,
    workers: int,
    as_json: bool,
) -> Exit:
    """Show how the privacy audits answer leaks.

    Copies of real rows are planted among people never seen, from none to all rows, with and without noise;
    every audit measures each. TRAIN and CONTROL hold real rows of one population.

    \b
    Example:
      synth-audit calibrate train.parquet control.parquet --only closest_record --no-noise --out audit
    """
    with console.progress_bar() as progress:
        found = api.calibrate(
            train,
            control,
            plan,
            steps=steps,
            noise=noise,
            only=only,
            seed=seed,
            out=out,
            progress=progress,
            workers=workers,
        )
    files = [out / "review" / name for name in ("calibration.html", "calibration.json")] if out else []
    console.show_calibration(found, files, as_json=as_json)
    return Exit.PASS


@main.command()
@_evidence
@click.option("--suite", required=True, help="Gate suite: a file, or one that ships.")
@_json
@guarded
def gate(evidence: Path, suite: str, as_json: bool) -> Exit:
    """Judge existing evidence by another suite.

    Needs no data and writes nothing.

    \b
    Example:
      synth-audit gate audit/review/evidence.json --suite strict.json
    """
    judged = api.gate(evidence, suite)
    console.show_evidence(judged, [], as_json=as_json, trial=True)
    return exit_code(judged)


@main.command()
@_evidence
@click.option("--to", type=click.Path(path_type=Path), help="HTML file; report.html beside the evidence.")
@guarded
def report(evidence: Path, to: Path | None) -> Exit:
    """Render the HTML report of existing evidence.

    \b
    Example:
      synth-audit report audit/review/evidence.json --to report.html
    """
    path = to or evidence.parent / "report.html"
    api.render_report(evidence, path)
    click.echo(str(path))
    return Exit.PASS


@main.command()
@_evidence
@click.option("--source", type=click.Path(path_type=Path), help="The source table as a file.")
@click.option("--train", type=click.Path(path_type=Path), help="The training rows as a file.")
@click.option("--control", type=click.Path(path_type=Path), help="The control rows as a file.")
@click.option("--synthetic", type=click.Path(path_type=Path), help="The released table as a file.")
@_json
@guarded
def verify(evidence: Path, as_json: bool, **tables: Path | None) -> Exit:
    """Recompute hashes and verdict of evidence.

    Tables in the restricted folder beside EVIDENCE are checked too, and any that are named.

    \b
    Example:
      synth-audit verify audit/review/evidence.json --synthetic released.parquet
    """
    checks = api.verify(evidence, {name: path for name, path in tables.items() if path is not None})
    console.show_checks(checks, as_json=as_json)
    return Exit.PASS if all(c.holds for c in checks) else Exit.NOT_RELEASED


@main.command()
@_plan
@_out
@click.option("--synthetic", type=click.Path(path_type=Path), help="The audited file, when made elsewhere.")
@guarded
def release(plan: Path, out: Path | None, synthetic: Path | None) -> Exit:
    """Release the audited table, or refuse.

    The evidence must pass and be about exactly these bytes and this plan.

    \b
    Example:
      synth-audit release tumours.yaml --out audits/tumours
    """
    record = api.release(plan, out, synthetic)
    click.echo(f"released {record.table.rows:,} rows to {record.where}")
    return Exit.PASS


@main.command("list")
@_json
@guarded
def list_plugins(as_json: bool) -> Exit:
    """List every source, generator and audit.

    \b
    Example:
      synth-audit list --json
    """
    console.show_catalogue(as_json=as_json)
    return Exit.PASS


@main.command()
@click.argument("name")
@_json
@guarded
def describe(name: str, as_json: bool) -> Exit:
    """Show a plug-in's settings and measurements.

    \b
    Example:
      synth-audit describe closest_record
    """
    rooms: tuple[registry.Room, ...] = ("source", "generator", "audit")
    refs = [r for room in rooms if (r := registry.catalogue(room).get(name))]
    if not refs:
        known = sorted({n for room in rooms for n in registry.catalogue(room)})
        raise PlanError(
            f"there is no plug-in {name!r}",
            where="describe",
            expected=f"one of {', '.join(known)}",
            fix="`synth-audit list` shows every plug-in",
        )
    for ref in refs:
        console.show_plugin(ref, as_json=as_json)
    return Exit.PASS


@main.command()
@click.argument("what", type=click.Choice(["plan", "evidence"]), default="plan")
@guarded
def schema(what: str) -> Exit:
    """Print the JSON Schema of plan or evidence.

    \b
    Example:
      synth-audit schema plan > plan.schema.json
    """
    from synth_audit.workflow.evidence import evidence_schema

    click.echo(json.dumps(plan_schema() if what == "plan" else evidence_schema(), indent=2))
    return Exit.PASS
