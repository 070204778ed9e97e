"""YAML and JSON in which a key may occur once only: the last of two limits must not win in silence."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import yaml


def load_yaml(text: str) -> Any:
    """Values of a YAML text.

    Raises:
        yaml.YAMLError: it is no YAML. ValueError: a key occurs twice, or a date does not exist.
        TypeError: a key cannot be one.
    """
    return yaml.load(text, Loader=_StrictLoader)  # noqa: S506  (a SafeLoader)


def load_json(text: str) -> Any:
    """Values of a JSON text; raises ``ValueError`` when it is no JSON or a key occurs twice.

    NaN and the infinities are no JSON, however many programs write them.
    """
    return json.loads(text, object_pairs_hook=_distinct, parse_constant=_refused)


class _StrictLoader(yaml.SafeLoader):
    """The safe loader, refusing doubled keys."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        return _distinct(
            (self.construct_object(k, deep=True), self.construct_object(v, deep=True)) for k, v in node.value
        )


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def _distinct(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError("a key occurs twice")
        found[key] = value
    return found
