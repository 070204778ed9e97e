"""Leaves out of a plan how its tables are reached, on which no measurement rests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from synth_audit.core import registry
from synth_audit.core.connection import CONNECTION


def without_transport(plain: Mapping[str, Any]) -> dict[str, Any]:
    """A plan's plain form without the options that its source and target declare as transport.

    An option of a connection is left out where all that use the connection declare it so.
    """
    choices = {key: plain[key] for key in ("source", "release") if plain.get(key)}
    transport = {key: _transport(choice["name"]) for key, choice in choices.items()}
    found = dict(plain) | {key: _without(choices[key], "config", transport[key]) for key in choices}
    for name, connection in plain.get("connections", {}).items():
        users = [transport[k] for k, c in choices.items() if c.get("config", {}).get(CONNECTION) == name]
        if users:
            kept = _without(connection, "options", frozenset.intersection(*users))
            found["connections"] = found["connections"] | {name: kept}
    return found


def _transport(name: str) -> frozenset[str]:
    known = registry.catalogue("source")
    return frozenset(vars(known[name].load())["info"].transport if name in known else ())


def _without(stated: Mapping[str, Any], part: str, names: frozenset[str]) -> dict[str, Any]:
    kept = {key: value for key, value in stated.get(part, {}).items() if key not in names}
    rest = {key: value for key, value in stated.items() if key != part}
    return rest | {part: kept} if kept else rest
