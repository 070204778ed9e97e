"""Commands that show what there is: plug-ins, schemas, audits beside one another, and pages."""

from __future__ import annotations

import json
import textwrap
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from synth_audit import api
from synth_audit.cli import exits
from synth_audit.cli.exits import Exit, guarded, say, say_json, say_whole
from synth_audit.errors import PlanError

if TYPE_CHECKING:
    from synth_audit.findings.verdict import GateResult
    from synth_audit.registry import PluginGroup, PluginRef
    from synth_audit.studies.comparison import EvidenceComparison


def plugins(_: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of audits for options about audits, else of every plug-in, each with its title."""
    from synth_audit import registry

    rooms: tuple[registry.PluginGroup, ...] = ("audit",)
    if param.name == "name":
        rooms = ("source", "generator", "audit")
    return [
        CompletionItem(name, help=str(vars(ref.load())["info"].title))
        for room in rooms
        for name, ref in registry.catalogue(room).items()
        if name.startswith(incomplete)
    ]


def suites(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Suites that ship, beside files."""
    from synth_audit.verdict.suite import shipped_suites

    found = [CompletionItem(name) for name in shipped_suites() if name.startswith(incomplete)]
    return found or [CompletionItem(incomplete, type="file")]


@click.command("list")
@exits.as_json
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
@click.argument("name", shell_complete=plugins)
@exits.as_json
@guarded
def describe(name: str, as_json: bool) -> Exit:
    """Show how a plan names a plug-in, its settings and measurements.

    \b
    Example:
      synth-audit describe closest_record
    """
    from synth_audit import registry

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
    from synth_audit.plan.plan import plan_schema
    from synth_audit.store.evidence import evidence_schema

    say_json(json.dumps(plan_schema() if what == "plan" else evidence_schema(), indent=2))
    return Exit.PASS


def show_catalogue(*, as_json: bool) -> None:
    """Print every plug-in with its one-line description."""
    from synth_audit import registry

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
    from synth_audit import registry
    from synth_audit.findings.sensitivity import derived_of
    from synth_audit.plugins.audit import AuditInfo
    from synth_audit.plugins.generator import GeneratorInfo
    from synth_audit.plugins.plugin_config import plugin_doc

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


@click.command()
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("after", type=click.Path(path_type=Path))
@click.option("--all", "every", is_flag=True, help="Also gates that did not change.")
@exits.as_json
@guarded
def compare(before: Path, after: Path, every: bool, as_json: bool) -> Exit:
    """Show what changed from one audit to another.

    BEFORE and AFTER are evidence files, folders of audits, or workspaces, of which the newest audit is meant.
    Numbers whose intervals have a point in common are not told apart. Needs no data; decides nothing.

    \b
    Example:
      synth-audit compare tumours-audit/review/audits/3f0c tumours-audit
    """
    show_comparison(api.compare(before, after), every=every, as_json=as_json)
    return Exit.PASS


def show_comparison(found: EvidenceComparison, *, every: bool, as_json: bool) -> None:
    """Print the gates that changed, or all of them, or everything as JSON."""
    if as_json:
        say_json(found.to_frame().to_json(orient="records", indent=2))
        return
    for caveat in found.caveats:
        say(f"note: {caveat}", fg="yellow")
    pairs = found.gates if every else found.changed
    width = max((len(p.gate) for p in pairs), default=0)
    for p in pairs:
        say(f"  {p.gate:<{width}}  {_told(p.before)} → {_told(p.after)}: {p.change}")
    alike = len(found.gates) - len(pairs)
    if alike:
        say(f"  {alike} gates did not change; --all shows them")
    say(f"{found.before.verdict} → {found.after.verdict}", bold=True)


def _told(gate: GateResult | None) -> str:
    if gate is None:
        return "no such gate"
    if gate.value is None:
        return str(gate.result)
    span = "" if gate.low is None or gate.high is None else f" [{gate.low:.3g}, {gate.high:.3g}]"
    return f"{gate.result} {gate.value:.3g}{span}"


@click.command()
@click.argument("workspaces", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("index.html"), help="HTML file to write."
)
@click.option("--force", is_flag=True, help="Replace a file there that is no index.")
@guarded
def index(workspaces: tuple[Path, ...], out: Path, force: bool) -> Exit:
    """Write a page over the audits of many tables.

    Verdicts, releases and approvals of every audit that is kept in WORKSPACES, with links to certificates
    and reports, and how the numbers nearest to their limits moved. It filters without scripts and without
    network.

    \b
    Example:
      synth-audit index audits/* --out audits/index.html
    """
    say_whole(str(api.write_index(workspaces, out, force=force)))
    return Exit.PASS
