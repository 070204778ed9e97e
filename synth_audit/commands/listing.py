"""What there is: plug-ins, their settings and measurements, and the schemas of files."""

from __future__ import annotations

import json
import textwrap
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from synth_audit.commands import completing, options
from synth_audit.core.errors import PlanError
from synth_audit.exits import Exit, guarded
from synth_audit.terminal import say, say_json, say_whole

if TYPE_CHECKING:
    from synth_audit.core.registry import PluginGroup, PluginRef


@click.command("list")
@options.as_json
@guarded
def list_plugins(as_json: bool) -> Exit:
    """List every source, generator and audit.

    \b
    Example:
      synth-audit list --json
    """
    show_catalogue(as_json=as_json)
    return Exit.PASS


@click.command()
@click.argument("name", shell_complete=completing.plugins)
@options.as_json
@guarded
def describe(name: str, as_json: bool) -> Exit:
    """Show how a plan names a plug-in, its settings and measurements.

    \b
    Example:
      synth-audit describe closest_record
    """
    from synth_audit.core import registry

    rooms: tuple[PluginGroup, ...] = ("source", "generator", "audit")
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
        show_plugin(ref, as_json=as_json)
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
    from synth_audit.core.plan_json_schema import plan_schema
    from synth_audit.store.evidence import evidence_schema

    say_json(json.dumps(plan_schema() if what == "plan" else evidence_schema(), indent=2))
    return Exit.PASS


def show_catalogue(*, as_json: bool) -> None:
    """Print every plug-in with its one-line description."""
    from synth_audit.core import registry

    rooms: tuple[PluginGroup, ...] = ("source", "generator", "audit")
    catalogues = {room: registry.catalogue(room) for room in rooms}
    if as_json:
        titles = {
            room: {n: str(_info(ref).title) for n, ref in refs.items()} for room, refs in catalogues.items()
        }
        say_json(json.dumps(titles, indent=2))
        return
    found = {room: {n: _description(ref) for n, ref in refs.items()} for room, refs in catalogues.items()}
    usual = registry.default_audits()
    for room, plugins in found.items():
        say(f"{room}s", bold=True)
        for name, description in plugins.items():
            request = (
                " (only when a plan or a gate names it)" if room == "audit" and name not in usual else ""
            )
            say(f"  {name:<24} {description}{request}")
        say()
    say("`synth-audit describe NAME` shows the settings and, for audits, what they measure.")


def show_plugin(ref: PluginRef, *, as_json: bool) -> None:
    """Print how a plan names a plug-in, its settings, its quantities, and what it says of itself."""
    from synth_audit.core import registry
    from synth_audit.core.audit import AuditInfo
    from synth_audit.core.generator import GeneratorInfo
    from synth_audit.core.plugin_docs import plugin_doc
    from synth_audit.core.sensitivity import derived_of

    cls, doc = ref.load(), plugin_doc(ref)
    if as_json:
        plain = {"name": ref.name, "room": ref.room, "config": registry.config_schema(ref), **asdict(doc)}
        say_json(json.dumps(plain, indent=2, ensure_ascii=False))
        return
    info: Any = vars(cls)["info"]
    say(f"{ref.name} ({ref.room}): {info.title}", bold=True)
    if isinstance(info, AuditInfo):
        for label in ("question", "threat_model", "not_covered"):
            _paragraph(label.replace("_", " "), getattr(info, label))
        _paragraph("needs", ", ".join(info.needs) or "nothing beside train and the release")
    else:
        _paragraph("summary", info.summary)
    if isinstance(info, GeneratorInfo):
        _paragraph("needs", info.needs.words)
    say()
    say("in a plan", bold=True)
    say_whole(f"  {doc.example}")
    if doc.settings:
        say()
        say("settings", bold=True)
    for setting in doc.settings:
        default = "required" if setting.default is None else f"default {setting.default}"
        say(f"  {setting.name}: {setting.accepts}; {default}")
        say_whole(textwrap.fill(setting.meaning, 100, initial_indent=" " * 6, subsequent_indent=" " * 6))
    if isinstance(info, AuditInfo):
        say()
        say("measurements", bold=True)
        derived = derived_of(ref.family)
        for q in (*info.quantities, *derived):
            say(f"  {ref.name}.{q.name:<18} {q.title} ({q.unit}, {q.direction})")
    say()
    say("how it works", bold=True)
    say_whole(textwrap.indent(doc.text, "  "))


def _info(ref: PluginRef) -> Any:
    return vars(ref.load())["info"]


def _description(ref: PluginRef) -> str:
    """Title, and what it is or asks, in the first sentence."""
    info = _info(ref)
    said: str = info.question if ref.room == "audit" else info.summary
    return f"{info.title}: {said.partition('. ')[0].rstrip('.')}"


def _paragraph(label: str, text: str) -> None:
    indent = " " * 16
    say_whole(textwrap.fill(text, 100, initial_indent=f"  {label + ':':<14}", subsequent_indent=indent))
