"""What there is: plug-ins, their settings and measurements, and the schemas of files."""

from __future__ import annotations

import json

import click

from synth_audit import console
from synth_audit.commands import options
from synth_audit.core import registry
from synth_audit.core.errors import PlanError
from synth_audit.core.plan_json_schema import plan_schema
from synth_audit.exits import Exit, guarded
from synth_audit.terminal import say_json


@click.command("list")
@options.as_json
@guarded
def list_plugins(as_json: bool) -> Exit:
    """List every source, generator and audit.

    \b
    Example:
      synth-audit list --json
    """
    console.show_catalogue(as_json=as_json)
    return Exit.PASS


@click.command()
@click.argument("name")
@options.as_json
@guarded
def describe(name: str, as_json: bool) -> Exit:
    """Show a plug-in's settings and measurements.

    \b
    Example:
      synth-audit describe closest_record
    """
    rooms: tuple[registry.PluginGroup, ...] = ("source", "generator", "audit")
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


@click.command()
@click.argument("what", type=click.Choice(["plan", "evidence"]), default="plan")
@guarded
def schema(what: str) -> Exit:
    """Print the JSON Schema of plan or evidence.

    \b
    Example:
      synth-audit schema plan > plan.schema.json
    """
    from synth_audit.store.evidence import evidence_schema

    say_json(json.dumps(plan_schema() if what == "plan" else evidence_schema(), indent=2))
    return Exit.PASS
