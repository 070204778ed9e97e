"""A fitted vine as text, and back to the last bit."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from synth_audit.core.schema_json import float_to_plain, schema_from_plain, schema_to_plain
from synth_audit.encoding.margin_json import margin_from_plain, margin_to_plain
from synth_audit.generators.vine.column_codec import Decoder
from synth_audit.generators.vine.joint_distribution import Joint
from synth_audit.kernels.cvine import CVine
from synth_audit.kernels.rvine import RVine

if TYPE_CHECKING:
    from synth_audit.generators.vine.model import VineModel

FORMAT = 2
"""Version of the layout; a text of another one is refused."""

_COPULAS: Mapping[str, type[CVine] | type[RVine]] = {"CVine": CVine, "RVine": RVine}


def dumps(model: VineModel) -> str:
    """The model as JSON; floats are written so that they read back equal."""
    plain = {
        "format": FORMAT,
        "schema": schema_to_plain(model.schema),
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
        "schema": schema_from_plain(plain["schema"]),
        "decoders": tuple(_to_decoder(d) for d in plain["decoders"]),
        "order": tuple(plain["order"]),
        "joints": tuple(_to_joint(j) for j in plain["joints"]),
        "level": plain["level"],
    }


def _from_decoder(decoder: Decoder) -> dict[str, Any]:
    return {
        "name": decoder.name,
        "labels": None if decoder.labels is None else decoder.labels.tolist(),
        "constant": float_to_plain(decoder.constant),
        "variable": decoder.variable,
        "gap": decoder.gap,
    }


def _to_decoder(plain: Mapping[str, Any]) -> Decoder:
    labels = None if plain["labels"] is None else np.array(plain["labels"], dtype=object)
    return Decoder(**(dict(plain) | {"labels": labels, "constant": float(plain["constant"])}))


def _from_joint(joint: Joint) -> dict[str, Any]:
    return {
        "margins": [margin_to_plain(m) for m in joint.margins],
        "linked": list(joint.linked),
        "kind": type(joint.copula).__name__,
        "copula": json.loads(joint.copula.to_json()),
        "known": list(joint.known),
        "share": joint.share,
    }


def _to_joint(plain: Mapping[str, Any]) -> Joint:
    return Joint(
        margins=tuple(margin_from_plain(m) for m in plain["margins"]),
        linked=tuple(plain["linked"]),
        copula=_COPULAS[plain["kind"]].from_json(json.dumps(plain["copula"])),
        known=tuple(plain["known"]),
        share=plain["share"],
    )
