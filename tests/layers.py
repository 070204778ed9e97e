"""Checks that imports point down only and that plug-ins know neither each other nor the layers above."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# From the bottom up. A module may import its own layer and every layer below it.
LAYERS = (
    ("synth_audit.core", "synth_audit.resources"),
    ("synth_audit.kernels",),
    ("synth_audit.sources", "synth_audit.generators", "synth_audit.audits"),
    ("synth_audit.workflow",),
    ("synth_audit.report",),
    ("synth_audit.api", "synth_audit"),
    ("synth_audit.cli", "synth_audit.console"),
    ("dagster_project",),
)
PLUGIN_LAYER = 2

# Rendering is a stage of the workflow, and the stage calls the renderer when it runs.
ALLOWED = {("synth_audit.workflow.pipeline", "synth_audit.report")}


def layer_of(module: str) -> int | None:
    """Position of the layer with the longest matching name."""
    matches = [
        (len(name), level)
        for level, names in enumerate(LAYERS)
        for name in names
        if module == name or module.startswith(f"{name}.")
    ]
    return max(matches)[1] if matches else None


def modules(root: Path) -> Iterator[tuple[str, Path]]:
    for package in ("synth_audit", "dagster_project"):
        for path in sorted((root / package).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Line and full name of everything a file imports, inside functions and for typing too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            if node.level:
                yield node.lineno, "." * node.level + node.module
            for alias in node.names:
                yield node.lineno, f"{node.module}.{alias.name}"


def fault(importer: str, imported: str) -> str:
    """Why an import is not allowed, or nothing."""
    if imported.startswith("."):
        return "relative import"
    if (importer, imported.rpartition(".")[0]) in ALLOWED or (importer, imported) in ALLOWED:
        return ""
    here, there = layer_of(importer), layer_of(imported)
    if here is None or there is None:
        return ""
    if there > here:
        return "points up"
    if here == there == PLUGIN_LAYER and not imported.rpartition(".")[0].startswith(importer):
        room, other = (name.split(".")[1] for name in (importer, imported))
        own_helper = room == other and any(part.startswith("_") for part in imported.split("."))
        return "" if own_helper else "plug-in knows another plug-in"
    return ""


def faults(root: Path = ROOT) -> list[str]:
    return [
        f"{path.relative_to(root)}:{line} imports {imported}: {why}"
        for module, path in modules(root)
        for line, imported in imports(path)
        if (why := fault(module, imported))
    ]


if __name__ == "__main__":
    found = faults()
    print("\n".join(found) or "imports point down")  # noqa: T201
    sys.exit(bool(found))
