"""Checks that imports point down only, that plug-ins know neither each other nor the layers above, that what
a column kind alone may know is asked of nobody else, and that a module stands in the room that uses it."""

import ast
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# From the bottom up. A module may import its own layer and every layer below it.
LAYERS = (
    tuple(
        f"synth_audit.{name}"
        for name in ("text", "errors", "arrays", "files", "hashing", "build", "registry")
    ),
    ("synth_audit.findings",),
    ("synth_audit.table",),
    ("synth_audit.execution",),
    ("synth_audit.stats",),
    ("synth_audit.dp",),
    ("synth_audit.neighbours",),
    ("synth_audit.plugins",),
    ("synth_audit.plan",),
    ("synth_audit.encode", "synth_audit.column_kinds"),
    ("synth_audit.sources", "synth_audit.generators", "synth_audit.audits"),
    ("synth_audit.store",),
    ("synth_audit.examination",),
    ("synth_audit.verdict",),
    ("synth_audit.pipeline",),
    ("synth_audit.studies", "synth_audit.mechanism_test"),
    ("synth_audit.report",),
    ("synth_audit.inputs", "synth_audit.api", "synth_audit"),
    ("synth_audit.cli",),
    ("synth_audit.dagster",),
    ("dagster_project",),
)
PLUGIN_LAYER = next(level for level, names in enumerate(LAYERS) if "synth_audit.audits" in names)
ROOMS = ("recognition",)

# Rooms that take arrays, and leave reading tables to the rooms above.
ARRAY_ROOMS = ("synth_audit.stats.", "synth_audit.neighbours.")
TABLES = ("synth_audit.table",)

# Packages that one layer alone may import.
RESERVED = {"dagster": ("synth_audit.dagster", "dagster_project")}


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


@lru_cache(maxsize=1)  # of the file that is looked at, by all who look
def nodes(path: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Line and full name of everything a file imports, inside functions and for typing too."""
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level:
            yield node.lineno, "." * node.level + (node.module or "")
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


# The layers below which rows are read and kept; above them a table is asked for columns, batches and samples.
KEEPERS = (
    "synth_audit.table.",
    "synth_audit.plugins.source",
    "synth_audit.sources.",
    "synth_audit.store.",
)


def whole_tables(module: str, path: Path) -> Iterator[int]:
    """Lines on which a module takes all rows of a table at once, which only those that keep tables may."""
    if module.startswith("synth_audit.") and not module.startswith(KEEPERS):
        for node in nodes(path):
            if isinstance(node, ast.Attribute) and node.attr == "data":
                yield node.lineno


# Where it may be asked which kind a column is of: in the kinds, and in selections by scale of measurement.
KINDS = ("synth_audit.column_kinds.", "synth_audit.table.kind", "synth_audit.table.schema")
KIND_NAMES = {p.stem for p in (ROOT / "synth_audit/column_kinds").glob("[!_]*.py")}
# What once told kinds apart, and the scale, which whoever selects columns leaves to the schema.
TOLD_APART = {"numeric", "whole", "instants", "ranked_labels", "own_labels", "most_labels", "scale"}


def branches_on_kind(module: str, path: Path) -> Iterator[int]:
    """Lines on which a module asks which kind a column is of, instead of asking that for what it needs."""
    if module.startswith(KINDS):
        return
    tested = {"kind"} if module.startswith("synth_audit.encode.") else {"kind", "part"}
    for node in nodes(path):
        match node:
            case ast.Attribute(attr=attr, value=ast.Attribute(attr="kind")) if attr in TOLD_APART:
                yield node.lineno
            case ast.Attribute(attr=attr, value=ast.Name(id="kind")) if attr in TOLD_APART - {"scale"}:
                yield node.lineno
            case ast.Call(
                func=ast.Name(id="isinstance"),
                args=[ast.Attribute(attr=attr) | ast.NamedExpr(value=ast.Attribute(attr=attr)), _],
            ) if attr in tested:
                yield node.lineno
            case ast.Compare() if any(
                isinstance(part, ast.Constant) and part.value in KIND_NAMES for part in ast.walk(node)
            ):
                yield node.lineno
            case ast.MatchValue(value=ast.Constant(value=name)) if name in KIND_NAMES:
                yield node.lineno


def fault(importer: str, imported: str) -> str:
    """Why an import is not allowed, or nothing."""
    if imported.startswith("."):
        return "relative import"
    if (keepers := RESERVED.get(imported.split(".")[0])) and not f"{importer}.".startswith(
        tuple(f"{keeper}." for keeper in keepers)
    ):
        return f"only {keepers[0]} may"
    here, there = layer_of(importer), layer_of(imported)
    if here is None or there is None:
        return ""
    if there > here:
        return "points up"
    if importer.startswith(ARRAY_ROOMS) and imported.startswith(TABLES):
        return "it takes arrays"
    if here == there == PLUGIN_LAYER and not shared(importer, imported):
        return "plug-in knows another plug-in"
    return ""


def shared(importer: str, imported: str) -> bool:
    """True for a part of the importing plug-in itself, or a module of its room named with an underscore."""
    room, other = importer.split(".")[1], imported.split(".")[1]
    # Audits live in families, but for those that are a room of their own.
    depth = 4 if other == "audits" and imported.split(".")[2] not in ROOMS else 3
    mine, theirs = importer.split(".")[:depth], imported.split(".")[:depth]
    helper = any(part.startswith("_") for part in theirs)
    return room == other and len(theirs) > 2 and (helper or (mine == theirs and len(mine) == depth))


# Rooms whose modules call a verb by its name: that it has one caller says nothing about where it belongs.
CALLERS = ("synth_audit.api", "synth_audit.cli.", "synth_audit.dagster.")
ONE_CALLER = {"synth_audit.examination.examine": "the stages call it, as the whole examination"}
MOST_FILES = 25


def misplaced(root: Path) -> Iterator[str]:
    """Modules that one module of another room alone imports, and folders of too many files."""
    known = dict(modules(root))
    importers: dict[str, set[str]] = {}
    for module, path in known.items():
        for _, name in imports(path):
            found = name if name in known else name.rpartition(".")[0]
            importers.setdefault(found, set()).add(module)
    for module, found in sorted(importers.items()):
        if module not in known or len(found) > 1 or module in ONE_CALLER or module.count(".") < 2:
            continue
        (importer,) = found
        if importer.split(".")[1:2] != module.split(".")[1:2] and not importer.startswith(CALLERS):
            yield f"{known[module].relative_to(root)} is imported by {importer} alone: it belongs there"
    for folder in sorted({path.parent for path in known.values()}):
        if len(list(folder.glob("*.py"))) > MOST_FILES:
            yield f"{folder.relative_to(root)} holds more than {MOST_FILES} files"


def faults(root: Path = ROOT) -> list[str]:
    nodes.cache_clear()
    pointing, whole, asking = [], [], []
    for module, path in modules(root):
        at = path.relative_to(root)
        pointing += [
            f"{at}:{line} imports {imported}: {why}"
            for line, imported in imports(path)
            if (why := fault(module, imported))
        ]
        whole += [
            f"{at}:{line} takes a table's data: ask for columns, batches or a sample"
            for line in whole_tables(module, path)
        ]
        asking += [
            f"{at}:{line} asks which kind a column is of: ask the kind for what is needed"
            for line in branches_on_kind(module, path)
        ]
    return pointing + whole + asking + [*misplaced(root)]


if __name__ == "__main__":
    found = faults()
    print("\n".join(found) or "imports point down")  # noqa: T201
    sys.exit(bool(found))
