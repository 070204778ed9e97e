"""A fitted vine as text, and back to the last bit."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from synth_audit.core.arrays import Floats
from synth_audit.core.kind import kind_named
from synth_audit.core.schema import Column, Role, Schema
from synth_audit.generators._coding import Decoder
from synth_audit.generators._vine_joint import Joint
from synth_audit.kernels.cvine import CVine
from synth_audit.kernels.margins import Margin
from synth_audit.kernels.rvine import RVine

if TYPE_CHECKING:
    from synth_audit.generators._vine_model import VineModel

FORMAT = 1
"""Version of the layout; a text of another one is refused."""

_COPULAS: Mapping[str, type[CVine] | type[RVine]] = {"CVine": CVine, "RVine": RVine}


def dumps(model: VineModel) -> str:
    """The model as JSON; floats are written so that they read back equal."""
    plain = {
        "format": FORMAT,
        "schema": [_from_column(c) for c in model.schema],
        "decoders": [_from_decoder(d) for d in model.decoders],
        "order": list(model.order),
        "joints": [_from_joint(j) for j in model.joints],
        "level": model.level,
    }
    return json.dumps(plain, allow_nan=False)


def loads(text: str) -> dict[str, Any]:
    """The fields of the model that :func:`dumps` wrote.

    Raises:
        ValueError: the text is no JSON, or of another version.
    """
    plain = json.loads(text)
    if not isinstance(plain, dict) or plain.get("format") != FORMAT:
        raise ValueError(f"not a vine of format {FORMAT}")
    return {
        "schema": Schema(tuple(_to_column(c) for c in plain["schema"])),
        "decoders": tuple(_to_decoder(d) for d in plain["decoders"]),
        "order": tuple(plain["order"]),
        "joints": tuple(_to_joint(j) for j in plain["joints"]),
        "level": plain["level"],
    }


def _from_column(column: Column) -> dict[str, Any]:
    storage = pa.schema([pa.field("x", column.storage)]).serialize().to_pybytes()
    return {
        "name": column.name,
        "kind": column.kind.name,
        "storage": base64.b64encode(storage).decode("ascii"),
        "roles": sorted(column.roles),
        "kind_declared": column.kind_declared,
        "nullable": column.nullable,
        "declared_bounds": _from_range(column.declared_bounds),
        "inferred_bounds": _from_range(column.inferred_bounds),
        "declared_categories": column.declared_categories,
        "inferred_categories": column.inferred_categories,
    }


def _to_column(plain: Mapping[str, Any]) -> Column:
    storage = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(plain["storage"]))).field(0).type
    lists = {k: None if plain[k] is None else tuple(plain[k]) for k in plain if k.endswith("_categories")}
    bounds = {k: _to_range(plain[k]) for k in plain if k.endswith("_bounds")}
    read = {
        "kind": kind_named(plain["kind"]),
        "storage": storage,
        "roles": frozenset(Role(r) for r in plain["roles"]),
    }
    return Column(**(dict(plain) | read | lists | bounds))


def _from_decoder(decoder: Decoder) -> dict[str, Any]:
    return {
        "name": decoder.name,
        "labels": None if decoder.labels is None else decoder.labels.tolist(),
        "constant": _from_float(decoder.constant),
        "variable": decoder.variable,
        "gap": decoder.gap,
    }


def _to_decoder(plain: Mapping[str, Any]) -> Decoder:
    labels = None if plain["labels"] is None else np.array(plain["labels"], dtype=object)
    return Decoder(**(dict(plain) | {"labels": labels, "constant": float(plain["constant"])}))


def _from_joint(joint: Joint) -> dict[str, Any]:
    return {
        "margins": [_from_margin(m) for m in joint.margins],
        "linked": list(joint.linked),
        "kind": type(joint.copula).__name__,
        "copula": json.loads(joint.copula.to_json()),
        "known": list(joint.known),
        "share": joint.share,
    }


def _to_joint(plain: Mapping[str, Any]) -> Joint:
    return Joint(
        margins=tuple(_to_margin(m) for m in plain["margins"]),
        linked=tuple(plain["linked"]),
        copula=_COPULAS[plain["kind"]].from_json(json.dumps(plain["copula"])),
        known=tuple(plain["known"]),
        share=plain["share"],
    )


def _from_margin(margin: Margin) -> dict[str, Any]:
    return {
        "knots": _from_floats(margin.knots),
        "levels": _from_floats(margin.levels),
        "step": margin.step,
        "limits": _from_range(margin.limits),
    }


def _to_margin(plain: Mapping[str, Any]) -> Margin:
    low, high = plain["limits"]
    return Margin(
        np.array(plain["knots"], dtype=np.float64),
        np.array(plain["levels"], dtype=np.float64),
        plain["step"],
        (float(low), float(high)),
    )


def _from_floats(values: Floats) -> list[float]:
    found: list[float] = values.tolist()
    return found


def _from_range(ends: tuple[float, float] | None) -> list[float | str] | None:
    return None if ends is None else [_from_float(x) for x in ends]


def _to_range(ends: list[float | str] | None) -> tuple[float, float] | None:
    return None if ends is None else (float(ends[0]), float(ends[1]))


def _from_float(x: float) -> float | str:
    """JSON knows no infinity and no NaN; ``float`` reads both from text."""
    return x if math.isfinite(x) else str(x)
