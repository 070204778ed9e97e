"""Commands about plug-ins: what there is, how a plan names it, and recipes for generators of others."""

import textwrap
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import synth_audit as api
from synth_audit.cli import shared
from synth_audit.cli.shared import FILE, CommandJob, main
from synth_audit.cli.terminal import Exit, say, say_json, say_whole
from synth_audit.errors import PlanError

if TYPE_CHECKING:
    from synth_audit.registry import PluginGroup, PluginRef

JOB = CommandJob.PLUGINS
_ROOMS: "tuple[PluginGroup, ...]" = ("source", "generator", "audit")


@main.command("list", job=JOB)
@shared.as_json
def list_plugins(as_json: bool) -> Exit:
    """List every source, generator and audit.

    \b
    Example:
      synth-audit list --json
    """
    from synth_audit import registry

    found = {room: {n: ref.info for n, ref in registry.catalogue(room).items()} for room in _ROOMS}
    if as_json:
        say_json({room: {n: str(info.title) for n, info in infos.items()} for room, infos in found.items()})
        return Exit.PASS
    usual = registry.default_audits()
    for room, infos in found.items():
        say(f"{room}s", bold=True)
        for name, info in infos.items():
            asked = " (only when a plan or a gate names it)" if room == "audit" and name not in usual else ""
            said = info.question if room == "audit" else info.summary
            say(f"  {name:<24} {info.title}: {said.partition('. ')[0].rstrip('.')}{asked}")
        say()
    say("`synth-audit describe NAME` shows the settings and, for audits, what they measure.")
    return Exit.PASS


@main.command(job=JOB)
@click.argument("name", shell_complete=shared.plugin_names)
@shared.as_json
def describe(name: str, as_json: bool) -> Exit:
    """Show a plug-in: settings, measurements, use.

    \b
    Example:
      synth-audit describe closest_record
    """
    from synth_audit import registry

    refs = [r for room in _ROOMS if (r := registry.catalogue(room).get(name))]
    if not refs:
        known = sorted({n for room in _ROOMS for n in registry.catalogue(room)})
        raise PlanError(
            f"there is no plug-in {name!r}",
            where="describe",
            expected=f"one of {', '.join(known)}",
            fix="`synth-audit list` shows every plug-in",
        )
    for ref in refs:
        show_plugin(ref, as_json=as_json)
    return Exit.PASS


def show_plugin(ref: "PluginRef", *, as_json: bool) -> None:
    """Print how a plan names a plug-in, its settings, its quantities, and what it says of itself."""
    from synth_audit import registry
    from synth_audit.findings.sensitivity import derived_of
    from synth_audit.plugins.audit import AuditInfo
    from synth_audit.plugins.generator import GeneratorInfo
    from synth_audit.plugins.plugin_config import plugin_doc

    cls, doc = ref.load(), plugin_doc(ref)
    if as_json:
        plain = {"name": ref.name, "room": ref.room, "config": registry.config_schema(ref), **asdict(doc)}
        say_json(plain)
        return
    info: Any = vars(cls)["info"]
    say(f"{ref.name} ({ref.room}): {info.title}", bold=True)
    if isinstance(info, AuditInfo):
        for label in ("question", "threat_model", "not_covered"):
            _paragraph(label.replace("_", " "), getattr(info, label))
        _paragraph("needs", ", ".join(info.needs) or "nothing but train and the release")
    else:
        _paragraph("summary", info.summary)
    if isinstance(info, GeneratorInfo):
        _paragraph("needs", info.needs.words)
    _heading("in a plan")
    say_whole(f"  {doc.example}")
    if doc.settings:
        _heading("settings")
    for setting in doc.settings:
        default = "required" if setting.default is None else f"default {setting.default}"
        say(f"  {setting.name}: {setting.accepts}; {default}")
        say_whole(textwrap.fill(setting.meaning, 100, initial_indent=" " * 6, subsequent_indent=" " * 6))
    if isinstance(info, AuditInfo):
        _heading("measurements")
        for q in (*info.quantities, *derived_of(ref.family)):
            say(f"  {ref.name}.{q.name:<18} {q.title} ({q.unit}, {q.direction})")
    _heading("how it works")
    say_whole(textwrap.indent(doc.text, "  "))


def _heading(text: str) -> None:
    say()
    say(text, bold=True)


def _paragraph(label: str, text: str) -> None:
    indent = " " * 16
    say_whole(textwrap.fill(text, 100, initial_indent=f"  {label + ':':<14}", subsequent_indent=indent))


@main.command(job=JOB)
@click.argument("what", type=click.Choice(["plan", "evidence"]), default="plan")
def schema(what: str) -> Exit:
    """Print the JSON Schema of plan or evidence.

    \b
    Example:
      synth-audit schema plan > plan.schema.json
    """
    from synth_audit.plan.plan import plan_schema
    from synth_audit.store.evidence import evidence_schema

    say_json(plan_schema() if what == "plan" else evidence_schema())
    return Exit.PASS


@main.group(job=JOB)
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
@shared.as_json
def list_recipes(as_json: bool) -> Exit:
    """List every recipe with its licence.

    \b
    Example:
      synth-audit recipes list
    """
    found = api.recipes()
    if as_json:
        plain = {
            e.recipe.name: e.recipe.info.model_dump()
            | {"version": e.version if e.installed else "", "folder": str(e.folder)}
            for e in found
        }
        say_json(plain)
        return Exit.PASS
    for environment in found:
        recipe, info = environment.recipe, environment.recipe.info
        say(f"{recipe.name}: {info.title}", bold=True)
        say(f"  licence    {info.licence}{f'; {info.terms}' if info.terms else ''}")
        say(f"  installed  {f'{info.package} {environment.version}' if environment.installed else 'no'}")
        say(f"  settings   {', '.join(f'{n}={v}' for n, v in info.settings.items()) or 'none'}")
        if info.claims:
            say(f"  claims     {recipe.claim({})} (its word; no gate passes by it)")
    return Exit.PASS


@recipes.command()
@click.argument("name")
@click.option("--python", type=FILE, help="An interpreter that its packages run on.")
def install(name: str, python: Path | None) -> Exit:
    """Fetch a recipe's packages into their own environment.

    It goes under SYNTH_AUDIT_RECIPES, or ~/.local/share/synth-audit/recipes.

    \b
    Example:
      synth-audit recipes install dpmm
    """
    made = api.install_recipe(name, python)
    info = made.recipe.info
    say_whole(f"installed {info.package} {made.version} ({info.licence}) in {made.folder}")
    if info.terms:
        say(f"note: {info.terms}", err=True)
    return Exit.PASS


@recipes.command("try")
@click.argument("name")
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
