"""Where a newcomer starts: the demo, a plan to edit, and recipes for generators of others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import click

from synth_audit import api
from synth_audit.cli import exits
from synth_audit.cli.exits import CommandGroup, Exit, guarded, say, say_json, say_whole
from synth_audit.errors import PlanError


@click.command()
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
    command = [sys.executable, "-m", "synth_audit.dagster.demo", str(folder)]
    code = subprocess.run(command, check=False).returncode  # noqa: S603 (no outside input)
    return Exit(code) if code in list(Exit) else Exit.AUDIT_ERROR


@click.command()
@click.argument("source", required=False)
@click.option("--table", help="Table inside a DuckDB file, for example clinical.tumours.")
@click.option("--plan", "plan_file", type=click.Path(path_type=Path), help="Plan file to write.")
@click.option("--schema", "with_schema", is_flag=True, help="Also write plan.schema.json, for editors.")
@click.option("--force", is_flag=True, help="Replace a plan that is there.")
@guarded
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
    from synth_audit.pipeline.starter import starter_plan
    from synth_audit.plan.plan import Plan
    from synth_audit.plugins.source import read
    from synth_audit.store.files import write_text

    stem = (table or source or "plan").rsplit("/", 1)[-1].split(".")[-1 if table else 0]
    path = plan_file or Path(f"{stem}.yaml")
    if os.path.lexists(path) and not (force and path.is_file()):
        raise PlanError(
            "the plan file exists already",
            where=str(path),
            expected="a file that does not exist",
            fix="name another with --plan, or replace a file with --force",
        )
    choice: dict[str, Any] = {"duckdb": {"path": "warehouse.duckdb", "table": "clinical.tumours"}}
    data = None
    if source:
        settings = {"path": source} | ({"table": table} if table else {})
        plugin = "duckdb" if table else _source_for(source)
        data = read(Plan.model_validate({"source": {plugin: settings}}).build_source(), Path.cwd())
        choice = {plugin: settings | {"path": _seen_from(path.parent, source)}}
    schema = write_schema(path.parent) if with_schema else None
    write_text(path, starter_plan(choice, data, path.name, schema=schema))
    say_whole(f"wrote {path}; look it over, then: synth-audit run {path}")
    return Exit.PASS


def write_schema(folder: Path) -> str:
    """Write the JSON Schema of plans into a folder, for editors; return the file's name."""
    from synth_audit.plan.plan import plan_schema
    from synth_audit.store.files import write_text

    name = "plan.schema.json"
    write_text(folder / name, json.dumps(plan_schema(), indent=2) + "\n")
    return name


def _seen_from(folder: Path, path: str) -> str:
    """A path as the plan must write it: relative ones start at the plan's folder."""
    own = os.path.expanduser(path)
    return own if os.path.isabs(own) else os.path.relpath(own, folder)


def _source_for(path: str) -> str:
    from synth_audit.plan.plan import Plan

    chosen = Plan.model_validate({"source": path}).source
    assert chosen is not None
    return chosen.name


@click.group(cls=CommandGroup)
def recipes() -> None:
    """Run generators of others, each in its own environment.

    A recipe is named in a plan as `generator: {external: {recipe: NAME}}`. Its packages are never ours: they
    are fetched on request, into a folder of their own, and used under their own licence.

    \b
    Examples:
      synth-audit recipes list
      synth-audit recipes install dpmm
      synth-audit recipes try dpmm
    """


@recipes.command("list")
@exits.as_json
@guarded
def list_recipes(as_json: bool) -> Exit:
    """List every recipe with its licence.

    \b
    Example:
      synth-audit recipes list
    """
    found = api.recipes()
    if as_json:
        plain = {
            s.recipe.name: s.recipe.info.model_dump() | {"version": s.version, "folder": str(s.folder)}
            for s in found
        }
        say_json(json.dumps(plain, indent=2))
        return Exit.PASS
    for state in found:
        info = state.recipe.info
        say(f"{state.recipe.name}: {info.title}", bold=True)
        say(f"  licence    {info.licence}{f'; {info.terms}' if info.terms else ''}")
        say(f"  installed  {f'{info.package} {state.version}' if state.version else 'no'}")
        say(f"  settings   {', '.join(f'{n}={v}' for n, v in info.settings.items()) or 'none'}")
        if info.claims:
            say(f"  claims     {state.recipe.claim({})} (its word; no gate passes by it)")
    return Exit.PASS


@recipes.command()
@click.argument("name")
@click.option("--python", type=click.Path(path_type=Path), help="An interpreter that its packages run on.")
@guarded
def install(name: str, python: Path | None) -> Exit:
    """Fetch a recipe's packages into their own environment.

    It goes under SYNTH_AUDIT_RECIPES, or ~/.local/share/synth-audit/recipes.

    \b
    Example:
      synth-audit recipes install dpmm
    """
    state = api.install_recipe(name, python)
    info = state.recipe.info
    say_whole(f"installed {info.package} {state.version} ({info.licence}) in {state.folder}")
    if info.terms:
        say(f"note: {info.terms}", err=True)
    return Exit.PASS


@recipes.command("try")
@click.argument("name")
@guarded
def try_recipe(name: str) -> Exit:
    """Run an installed recipe on a made-up table.

    What it prints is shown, which it is not when it runs on real rows.

    \b
    Example:
      synth-audit recipes try dpmm
    """
    rows = api.try_recipe(name, shown=True)
    say(f"{name} drew {rows:,} rows from a made-up table")
    return Exit.PASS
