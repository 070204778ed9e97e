"""Adds a page for each plug-in to the site, made from its code, so that none is missing and none is stale."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from synth_audit import registry
from synth_audit.findings.sensitivity import derived_of
from synth_audit.plugins.audit import AuditInfo
from synth_audit.plugins.plugin_config import plugin_doc
from synth_audit.registry import PluginRef

ROOMS: tuple[registry.PluginGroup, ...] = ("source", "generator", "audit")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Called by mkdocs once it knows the pages of the folder."""
    refs = {room: registry.catalogue(room) for room in ROOMS}
    for room, found in refs.items():
        for name, ref in found.items():
            files.append(File.generated(config, _place(room, name), content=page(ref)))
    files.append(File.generated(config, "plugins.md", content="\n".join(_overview(refs))))
    return files


def page(ref: PluginRef) -> str:
    """What a plug-in says of itself, as Markdown."""
    info, doc = _info(ref), plugin_doc(ref)
    lines = [f"# {ref.name}", "", f"{info.title}.", ""]
    if isinstance(info, AuditInfo):
        lines += [f"**{info.question}**", "", info.threat_model, "", f"*Not covered.* {info.not_covered}", ""]
    else:
        lines += [info.summary, ""]
    lines += ["```yaml", doc.example, "```", ""]
    if doc.settings:
        lines += ["## Settings", "", "| setting | accepts | default | meaning |", "|---|---|---|---|"]
        for s in doc.settings:
            default = "required" if s.default is None else f"`{s.default}`"
            lines.append(f"| `{s.name}` | {s.accepts} | {default} | {_cell(s.meaning)} |")
        lines.append("")
    if isinstance(info, AuditInfo):
        lines += ["## Measurements", "", "| name | what it is | unit | |", "|---|---|---|---|"]
        lines += [
            f"| `{ref.name}.{q.name}` | {_cell(q.title)} | {q.unit} | {q.direction} |"
            for q in (*info.quantities, *derived_of(ref.family))
        ]
        lines.append("")
    return "\n".join([*lines, "## How it works", "", "```text", doc.text, "```", ""])


def _overview(refs: dict[registry.PluginGroup, dict[str, PluginRef]]) -> Iterator[str]:
    yield "# Plug-ins"
    for room, found in refs.items():
        yield f"\n## {room.capitalize()}s\n"
        for name, ref in found.items():
            yield f"* [`{name}`]({_place(room, name)}): {_info(ref).title}"


def _info(ref: PluginRef) -> Any:
    return vars(ref.load())["info"]


def _place(room: str, name: str) -> str:
    return f"plugins/{room}-{name}.md"


def _cell(text: str) -> str:
    """Text in a cell of a table, in which a bar would end it."""
    return text.replace("``", "`").replace("|", "\\|")
