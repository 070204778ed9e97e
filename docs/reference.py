"""Makes the reference from the code while mkdocs builds the site, so that no page is missing or stale."""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
from markdown.extensions.toc import slugify
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import synth_audit
from synth_audit import registry
from synth_audit.cli import main
from synth_audit.findings.sensitivity import derived_of
from synth_audit.plan.plan import Plan
from synth_audit.plugins.audit import AuditInfo
from synth_audit.plugins.plugin_config import PluginChoice, plugin_doc
from synth_audit.registry import PluginRef

ROOMS: tuple[registry.PluginGroup, ...] = ("source", "generator", "audit")
SUITES = ("release", "health", "sensitive")
PACKAGE = Path(synth_audit.__file__).parent
EXPECTATIONS = PACKAGE.parent / "expectations"
_SECTION = re.compile(r"#/\$defs/(\w+)")
SECTION = "Reference"
"""Entry of the navigation that the pages of plug-ins and gates are added to."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages; mkdocs calls it once it knows the pages of the folder."""
    refs = {room: registry.catalogue(room) for room in ROOMS}
    gates = gates_of(SUITES)
    pages = {
        "reference/cli.md": "\n".join(command_line(main)),
        "reference/plan.md": "\n".join(plan_keys(Plan.model_json_schema(by_alias=True))),
        "reference/python.md": "\n".join(python_api()),
        "reference/environment.md": "\n".join(environment()),
        "reference/metadata.md": "\n".join(metadata()),
        "reference/gates.md": "\n".join(_gate_overview(gates)),
        "plugins.md": "\n".join(_overview(refs)),
    }
    listed: dict[str, list[dict[str, str]]] = {}
    for room, found in refs.items():
        for name, ref in found.items():
            judged = [gate for gate, told in gates.items() if _audit_of(told) == name]
            pages[_place(room, name)] = page(ref, judged if room == "audit" else ())
            listed.setdefault(f"{room.capitalize()}s", []).append({name: _place(room, name)})
    for name, told in gates.items():
        pages[_gate_place(name)] = "\n".join(gate_page(name, told))
        listed.setdefault("Gates", []).append({name: _gate_place(name)})
    for place, content in pages.items():
        files.append(File.generated(config, place, content=content))
    for entry in config.nav or []:
        if isinstance(entry, dict) and SECTION in entry:
            entry[SECTION] += [{title: items} for title, items in listed.items()]
    return files


def page(ref: PluginRef, gates: Sequence[str] = ()) -> str:
    """What a plug-in says of itself, as Markdown, and the gates that judge it."""
    info, doc = _info(ref), plugin_doc(ref)
    lines = [f"# {ref.name}", "", f"{info.title}.", ""]
    if isinstance(info, AuditInfo):
        lines += [f"**{info.question}**", "", info.threat_model, "", f"*Not covered.* {info.not_covered}", ""]
    else:
        lines += [info.summary, ""]
    if gates:
        links = ", ".join(f"[{gate}](../{_gate_place(gate)})" for gate in gates)
        lines += [f"*Gates.* {links}", ""]
    lines += ["```yaml", doc.example, "```", ""]
    if doc.settings:
        lines += ["## Settings", "", "| setting | accepts | default | meaning |", "|---|---|---|---|"]
        for s in doc.settings:
            default = "required" if s.default is None else f"`{s.default}`"
            lines.append(f"| `{s.name}` | {_cell(s.accepts)} | {_cell(default)} | {_cell(s.meaning)} |")
        lines.append("")
    if isinstance(info, AuditInfo):
        lines += ["## Measurements", "", "| name | what it is | unit | |", "|---|---|---|---|"]
        lines += [
            f"| `{ref.name}.{q.name}` | {_cell(q.title)} | {q.unit} | {q.direction} |"
            for q in (*info.quantities, *derived_of(ref.family))
        ]
        lines.append("")
    return "\n".join([*lines, "## How it works", "", "```text", doc.text, "```", ""])


def command_line(group: click.Group, name: str = "synth-audit") -> Iterator[str]:
    """The help of each command, as the shell prints it."""
    if name == "synth-audit":
        yield from ("# Command line", "", "Each command as its `--help` prints it.", "")
    for verb, command in group.commands.items():
        if command.hidden:
            continue
        full = f"{name} {verb}"
        context = click.Context(command, info_name=full, max_content_width=100)
        yield from (f"## {full}", "", "```text", command.get_help(context), "```", "")
        if isinstance(command, click.Group):
            yield from command_line(command, full)


def plan_keys(schema: Mapping[str, Any]) -> Iterator[str]:
    """A table of keys for the plan and each of its sections, from the plan's JSON Schema."""
    yield from (
        "# Keys of a plan",
        "",
        "`synth-audit schema` prints the JSON Schema that this page is made from.",
    )
    sections = schema.get("$defs", {})
    names: dict[str, str] = {}
    _name_sections("", schema, sections, names)
    yield from _keys("", schema, names)
    for section, name in names.items():
        yield from _keys(name, sections[section], names)


def _name_sections(
    path: str, section: Mapping[str, Any], sections: Mapping[str, Any], names: dict[str, str]
) -> None:
    """Name each section by the keys that lead to it, such as `coarsen.columns.NAME`."""
    for key, value in section.get("properties", {}).items():
        for used in _SECTION.findall(json.dumps(value)):
            if used not in (*names, PluginChoice.__name__) and "properties" in sections.get(used, {}):
                names[used] = f"{path}{key}" + (".NAME" if "additionalProperties" in value else "")
                _name_sections(f"{names[used]}.", sections[used], sections, names)


def _keys(name: str, section: Mapping[str, Any], names: Mapping[str, str]) -> Iterator[str]:
    if name:
        yield from ("", f"## {name}", "", _first(section.get("description", "")))
    yield from ("", "| key | accepts | default | meaning |", "|---|---|---|---|")
    required = section.get("required", ())
    for key, value in section.get("properties", {}).items():
        default = "required" if key in required else _code(value.get("default"))
        if isinstance(value.get("default"), dict):
            default = ""  # the section's own table has it
        meaning = _cell(_first(value.get("description", "")))
        yield f"| `{key}` | {_cell(_accepts(value, names))} | {_cell(default)} | {meaning} |"


def _accepts(value: Mapping[str, Any], names: Mapping[str, str]) -> str:
    """What a key of a JSON Schema takes, in a few words."""
    if "$ref" in value:
        section = value["$ref"].rsplit("/", 1)[-1]
        if section == PluginChoice.__name__:
            return "[plug-in](../plugins.md)"
        return f"[{names[section]}](#{slugify(names[section], '-')})" if section in names else "text"
    if "enum" in value or "const" in value:
        options = value.get("enum", [value.get("const")])
        shown = ", ".join(_code(option) for option in options[:8])
        return shown if len(options) <= 8 else f"{shown}, …"
    if "anyOf" in value or "oneOf" in value:
        several = dict.fromkeys(_accepts(each, names) for each in value.get("anyOf", value.get("oneOf")))
        return " or ".join(several)
    if value.get("type") == "array":
        return f"list of {_accepts(value.get('items', {}), names)}"
    if value.get("type") == "object" and isinstance(value.get("additionalProperties"), dict):
        return f"name: {_accepts(value['additionalProperties'], names)}"
    return str(value.get("type", "any"))


def python_api() -> Iterator[str]:
    """Signature and docstring of each public function, and docstring of each public type."""
    yield from ("# Python", "", "`import synth_audit` offers these functions and types.", "")
    for name in synth_audit.__all__:
        offered = getattr(synth_audit, name)
        if not callable(offered):
            continue
        called = ""
        if not inspect.isclass(offered):  # nobody makes one of a type
            called = f"({', '.join(map(_parameter, inspect.signature(offered).parameters.values()))})"
        yield from (f"## {name}", "", "```text", f"synth_audit.{name}{called}", "")
        yield from (inspect.getdoc(offered) or "", "```", "")


def _parameter(p: inspect.Parameter) -> str:
    mark = "**" if p.kind is p.VAR_KEYWORD else "*" if p.kind is p.VAR_POSITIONAL else ""
    default = "" if p.default is inspect.Parameter.empty else f"={p.default!r}"
    return f"{mark}{p.name}{default}"


def environment() -> Iterator[str]:
    """Each environment variable: a constant whose docstring says that it is one."""
    yield from ("# Environment variables", "", "| variable | meaning |", "|---|---|")
    for name, meaning in sorted(_documented("Environment variable")):
        yield f"| `{name}` | {_cell(meaning)} |"


def _documented(start: str) -> Iterator[tuple[str, str]]:
    """Values of text constants whose docstring begins so, with what the docstring says."""
    for path in sorted(PACKAGE.rglob("*.py")):
        body = ast.parse(path.read_text(encoding="utf-8")).body
        for node, following in pairwise(body):
            match node, following:
                case (
                    ast.Assign(value=ast.Constant(value=str(name))),
                    ast.Expr(value=ast.Constant(value=str(meaning))),
                ) if meaning.startswith(start):
                    said = " ".join(meaning.removeprefix(start).lstrip(":").split())
                    yield name, f"{said[0].upper()}{said[1:]}"


def metadata() -> Iterator[str]:
    """Keys of Dagster's metadata, stage by stage, read off the functions that make them."""
    yield from (
        "# Metadata in Dagster",
        "",
        "Numbers of gates and audits have the measurement's name as key.",
        "",
    )
    tree = ast.parse((PACKAGE / "dagster/metadata.py").read_text(encoding="utf-8"))
    for function in tree.body:
        if (
            not isinstance(function, ast.FunctionDef)
            or ast.unparse(function.returns or function) != "Metadata"
        ):
            continue
        keys = dict.fromkeys(_keys_made(function))
        if keys and not function.name.startswith("_"):
            yield from (f"## {function.name}", "", _first(ast.get_docstring(function) or ""), "")
            yield from (f"* `{key}`" for key in keys)
            yield ""


def _keys_made(function: ast.FunctionDef) -> Iterator[str]:
    for node in ast.walk(function):
        if isinstance(node, ast.Dict):
            yield from (str(key.value) for key in node.keys if isinstance(key, ast.Constant))
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "_bullets":
            yield from (str(arg.value) for arg in node.args[:1] if isinstance(arg, ast.Constant))


def gates_of(suites: Iterable[str]) -> dict[str, dict[str, dict[str, Any]]]:
    """Every gate by name, with what each suite that ships says of it."""
    gates: dict[str, dict[str, dict[str, Any]]] = {}
    for suite in suites:
        for gate in json.loads((EXPECTATIONS / f"{suite}.json").read_text(encoding="utf-8"))["expectations"]:
            gates.setdefault(gate["meta"]["id"], {})[suite] = gate
    return gates


def gate_page(name: str, suites: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """What a gate judges, its limits, what they rest on and what to do."""
    first = next(iter(suites.values()))
    measurement, meta = first["kwargs"]["name"], first["meta"]
    audit = _audit_of(suites)
    judged = f"`{measurement}`" + (f" of `{first['kwargs']['scope']}`" if "scope" in first["kwargs"] else "")
    yield from (f"# {name}", "", f"{meta['title']}.", "")
    yield from (f"Judges {judged} of the audit [{audit}](../../plugins/audit-{audit}.md).", "")
    yield from ("| suite | limit | compared | if missed |", "|---|---|---|---|")
    for suite, gate in suites.items():
        blocks = "holds the release" if gate["severity"] == "critical" else "warns"
        bound = {"upper": "upper bound", "lower": "lower bound"}.get(gate["kwargs"]["bound"], "the value")
        yield f"| `{suite}` | {_limit(gate['kwargs'])} | {bound} | {blocks} |"
    yield from ("", "## Reason for the limit", "")
    reasons = dict.fromkeys(gate["meta"]["reason"] for gate in suites.values())
    for reason in reasons:
        held = ", ".join(f"`{s}`" for s, gate in suites.items() if gate["meta"]["reason"] == reason)
        yield from (f"{held}: {reason}" if len(reasons) > 1 else reason, "")
    yield from ("## What to do", "", meta["advice"], "")


def _audit_of(suites: Mapping[str, Mapping[str, Any]]) -> str:
    """The audit that a gate judges."""
    name: str = next(iter(suites.values()))["kwargs"]["name"]
    return name.split(".", 1)[0]


def _limit(kwargs: Mapping[str, Any]) -> str:
    words = {"minimum": "at least {}", "maximum": "at most {}", "people": "surely not more than {} people"}
    return ", ".join(word.format(kwargs[key]) for key, word in words.items() if kwargs.get(key) is not None)


def _gate_overview(gates: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Iterator[str]:
    yield from ("# Gates", "", "Limits of the suites that ship. Each gate has a page with its reason.", "")
    yield f"| gate | measurement | {' | '.join(f'`{suite}`' for suite in SUITES)} |"
    yield f"|---|---|{'---|' * len(SUITES)}"
    for name, suites in gates.items():
        link = _gate_place(name).removeprefix("reference/")
        measured = next(iter(suites.values()))["kwargs"]["name"]
        limits = " | ".join(_limit(suites[s]["kwargs"]) if s in suites else "" for s in SUITES)
        yield f"| [`{name}`]({link}) | `{measured}` | {limits} |"


def _overview(refs: Mapping[registry.PluginGroup, Mapping[str, PluginRef]]) -> Iterator[str]:
    yield "# Plug-ins"
    for room, found in refs.items():
        yield f"\n## {room.capitalize()}s\n"
        for name, ref in found.items():
            yield f"* [`{name}`]({_place(room, name)}): {_info(ref).title}"


def _info(ref: PluginRef) -> Any:
    return vars(ref.load())["info"]


def _place(room: str, name: str) -> str:
    return f"plugins/{room}-{name}.md"


def _gate_place(name: str) -> str:
    return f"reference/gates/{name}.md"


def _first(text: str) -> str:
    """The first paragraph of a text, on one line."""
    return " ".join(text.split("\n\n", 1)[0].split())


def _code(value: Any) -> str:
    return "" if value is None else f"`{json.dumps(value, ensure_ascii=False)}`"


def _cell(text: str) -> str:
    """Text in a cell of a table, in which a bar would end it."""
    return text.replace("``", "`").replace("|", "\\|")
