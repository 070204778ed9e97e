"""YAML and JSON as strict as a decision needs: no key twice, no value that breaks or outgrows the program."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable
from typing import Any

import yaml

MOST_LEVELS = 64
"""Lists and mappings within each other; a plan or a suite needs five."""

MOST_VALUES = 1_000_000
"""Values, each alias counted as all that it stands for: nine lines of aliases can stand for a billion."""

_TWICE = "a key occurs twice"
_NOT_ITS_TAG = "a value is not what its form or tag says"
_TOO_DEEP = f"it nests more than {MOST_LEVELS} levels deep"
_TOO_MANY = f"it stands for more than {MOST_VALUES:,} values"
_NO_VALUE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What the loader raises on texts such as `!!timestamp x`, `!!bool x` or `!!int ""`."""


class Malformed(ValueError):
    """A text that is no YAML or JSON, or none that may be used.

    Attributes:
        reason: what is wrong, in words that repeat nothing of the text; empty where only its form is wrong.
        line: counted from one; 0 when it is not known.
    """

    def __init__(self, reason: str = "", line: int = 0) -> None:
        super().__init__(reason or "the text is malformed")
        self.reason = reason
        self.line = line


def load_yaml(text: str) -> Any:
    """Values of a YAML text; raises :class:`Malformed`."""
    try:
        return yaml.load(text, Loader=_StrictLoader)  # noqa: S506  (a SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise Malformed(line=mark.line + 1 if mark else 0) from None
    except _NO_VALUE as error:
        raise error if isinstance(error, Malformed) else Malformed(_NOT_ITS_TAG) from None


def load_json(text: str) -> Any:
    """Values of a JSON text; raises :class:`Malformed`, also for NaN, which is no JSON."""
    try:
        value = json.loads(text, object_pairs_hook=_distinct, parse_constant=_refused)
    except RecursionError:
        raise Malformed(_TOO_DEEP) from None
    except json.JSONDecodeError as error:
        raise Malformed(line=error.lineno) from None
    except ValueError as error:  # such as a number of 5,000 digits
        raise error if isinstance(error, Malformed) else Malformed(_NOT_ITS_TAG) from None
    _refuse_depth(value)
    return value


class _StrictLoader(yaml.SafeLoader):
    """The safe loader, refusing doubled keys, values that are none, and what grows without end.

    Depth and size are known while the text is composed, before any value is made of it.
    """

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._level = 0
        self._extents: dict[int, tuple[int, int]] = {}

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        line = self.line + 1  # of the scanner, which is at most one token ahead
        self._level += 1
        if self._level > MOST_LEVELS:
            raise Malformed(_TOO_DEEP, line)
        alias = self.check_event(yaml.AliasEvent)
        node = super().compose_node(parent, index)
        self._level -= 1
        if node is not None and id(node) not in self._extents:
            if alias:
                raise Malformed("an alias stands for what it is a part of", line)
            self._extents[id(node)] = self._extent(node, line)
        return node

    def _extent(self, node: yaml.Node, line: int) -> tuple[int, int]:
        """Levels and values of a node whose parts are known."""
        parts: list[yaml.Node] = []
        if isinstance(node, yaml.MappingNode):
            parts = [part for pair in node.value for part in pair]
        elif isinstance(node, yaml.SequenceNode):
            parts = node.value
        extents = [self._extents[id(part)] for part in parts]
        levels = 1 + max((level for level, _ in extents), default=0)
        values = 1 + sum(n for _, n in extents)
        if levels > MOST_LEVELS:
            raise Malformed(_TOO_DEEP, line)
        if values > MOST_VALUES:
            raise Malformed(_TOO_MANY, line)
        return levels, values

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except _NO_VALUE as error:
            if isinstance(error, Malformed):
                raise
            raise Malformed(_NOT_ITS_TAG, node.start_mark.line + 1) from None

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                raise Malformed("a list or mapping stands for a key", key_node.start_mark.line + 1)
            if key in found:
                raise Malformed(_TWICE, key_node.start_mark.line + 1)
            found[key] = self.construct_object(value_node, deep=True)
        return found


def _refused(constant: str) -> None:
    raise Malformed(f"{constant} is no JSON")


def _distinct(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise Malformed(_TWICE)
    return found


def _refuse_depth(value: object) -> None:
    level: list[object] = [value]
    for _ in range(MOST_LEVELS + 1):
        level = [part for whole in level for part in _parts(whole)]
        if not level:
            return
    raise Malformed(_TOO_DEEP)


def _parts(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
