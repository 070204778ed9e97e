"""The plan's JSON Schema, for editors and for Dagster's form."""

from __future__ import annotations

from typing import Any

from synth_audit.core import registry
from synth_audit.core.plan import Plan


def plan_schema() -> dict[str, Any]:
    """JSON Schema of the plan, with the configuration of every plug-in that is installed."""
    schema = Plan.model_json_schema(by_alias=True)
    rooms: dict[registry.PluginGroup, tuple[str, ...]] = {
        "source": ("source", "release"),
        "generator": ("generator",),
        "audit": ("audits",),
    }
    for room, keys in rooms.items():
        configs = {name: registry.config_schema(ref) for name, ref in registry.catalogue(room).items()}
        for config in configs.values():  # a reference is looked up at the root, not where it stands
            schema["$defs"] |= config.pop("$defs", {})
        variants = [_variant(name, config) for name, config in configs.items()]
        schema["$defs"][f"{room}_plugin"] = {"anyOf": [*variants, *_words(room, list(configs))]}
        for key in keys:
            link = {"$ref": f"#/$defs/{room}_plugin"}
            old = schema["properties"][key]
            new = {"type": "array", "items": link} if key == "audits" else link
            schema["properties"][key] = {k: old[k] for k in ("description",) if k in old} | new
    schema["$defs"]["release_plugin"] = _release_plugin(schema["$defs"])
    schema["properties"]["release"]["$ref"] = "#/$defs/release_plugin"
    listed = schema["$defs"]["FrontierSpec"]["properties"]["generators"]
    listed["items"] = {"$ref": "#/$defs/generator_plugin"}
    kind = schema["$defs"]["ColumnSpec"]["properties"]["kind"]
    kind["anyOf"] = [{"enum": list(registry.catalogue("kind"))}, {"type": "null"}]
    schema["$defs"].pop("PluginChoice", None)
    return schema


def _release_plugin(defs: dict[str, Any]) -> dict[str, Any]:
    """A target as a source, and beside its settings whose approval it waits for."""
    own = {k: v for k, v in defs.pop("ReleaseChoice")["properties"].items() if k not in ("name", "config")}
    named = [v for v in defs["source_plugin"]["anyOf"] if "properties" in v]
    variants = [{**v, "properties": {**v["properties"], **own}} for v in named]
    return {"anyOf": [*variants, *(v for v in defs["source_plugin"]["anyOf"] if "properties" not in v)]}


def _words(room: registry.PluginGroup, names: list[str]) -> list[dict[str, Any]]:
    """What may stand for a plug-in without settings: its name, or the path of a file that it reads."""
    path = {"type": "string", "pattern": r"[.][A-Za-z0-9]+$"}
    return [{"enum": names}, *([path] if room == "source" else [])]


def _variant(name: str, config: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {name: {"anyOf": [config, {"type": "null"}]}},
        "required": [name],
        "additionalProperties": False,
    }
