"""A schema as plain JSON values, and back: for models that are saved."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from synth_audit.core.kind import Bounds, kind_named
from synth_audit.core.resolution import Resolution
from synth_audit.core.rule_text import parse_rules
from synth_audit.core.schema import Column, Role, Schema


def schema_to_plain(schema: Schema) -> dict[str, Any]:
    """Columns and rules; bounds and categories that were read off train are among them."""
    return {"columns": [_from_column(c) for c in schema], "rules": [rule.text for rule in schema.rules]}


def schema_from_plain(plain: Mapping[str, Any]) -> Schema:
    """The schema that :func:`schema_to_plain` wrote."""
    return Schema(tuple(_to_column(c) for c in plain["columns"]), parse_rules(plain["rules"]))


def range_to_plain(ends: Bounds | None) -> list[float | str] | None:
    """Two ends of a range, infinite ones as text."""
    return None if ends is None else [float_to_plain(x) for x in ends]


def range_from_plain(ends: list[float | str] | None) -> Bounds | None:
    """The range that :func:`range_to_plain` wrote."""
    return None if ends is None else (float(ends[0]), float(ends[1]))


def float_to_plain(x: float) -> float | str:
    """JSON knows no infinity and no NaN; ``float`` reads both from text."""
    return x if math.isfinite(x) else str(x)


def _from_column(column: Column) -> dict[str, Any]:
    storage = pa.schema([pa.field("x", column.storage)]).serialize().to_pybytes()
    return {
        "name": column.name,
        "kind": column.kind.name,
        "storage": base64.b64encode(storage).decode("ascii"),
        "roles": sorted(column.roles),
        "kind_declared": column.kind_declared,
        "nullable": column.nullable,
        "declared_bounds": range_to_plain(column.declared_bounds),
        "inferred_bounds": range_to_plain(column.inferred_bounds),
        "declared_categories": column.declared_categories,
        "inferred_categories": column.inferred_categories,
        "release_text": column.release_text,
        "declared_resolution": _resolution_to_plain(column.declared_resolution),
        "inferred_resolution": _resolution_to_plain(column.inferred_resolution),
    }


def _to_column(plain: Mapping[str, Any]) -> Column:
    storage = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(plain["storage"]))).field(0).type
    lists = {k: None if plain[k] is None else tuple(plain[k]) for k in plain if k.endswith("_categories")}
    bounds = {k: range_from_plain(plain[k]) for k in plain if k.endswith("_bounds")}
    resolutions = {
        k: None if plain[k] is None else Resolution.from_plain(plain[k])
        for k in plain
        if k.endswith("_resolution")
    }
    read = {
        "kind": kind_named(plain["kind"]),
        "storage": storage,
        "roles": frozenset(Role(r) for r in plain["roles"]),
    }
    return Column(**(dict(plain) | read | lists | bounds | resolutions))


def _resolution_to_plain(resolution: Resolution | None) -> dict[str, Any] | None:
    return None if resolution is None else resolution.plain()
