"""Keys and values of a validated model, by the place where a mistake was found."""

from __future__ import annotations

from collections.abc import Sequence
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel


def keys_at(model: object, place: Sequence[object]) -> tuple[str, ...]:
    """Names of the keys that a model has at a place, such as ``("columns", "age")``; empty if it has none."""
    level = _members(model)
    for part in place:
        level = [member for known in level for member in _within(known, str(part))]
    return tuple(dict.fromkeys(name for known in level for name in _fields(known)))


def _members(annotation: object) -> list[object]:
    if get_origin(annotation) in (Union, UnionType, Annotated):
        return [member for inner in get_args(annotation) for member in _members(inner)]
    return [annotation]


def _within(known: object, part: str) -> list[object]:
    if not _is_model(known):
        return [member for inner in get_args(known) for member in _members(inner)]
    fields = _fields(known)
    return _members(fields[part]) if part in fields else [known]  # a union's member is named in a place too


def _fields(known: object) -> dict[str, Any]:
    if not _is_model(known):
        return {}
    fields: dict[str, Any] = getattr(known, "model_fields")  # noqa: B009 (of a subclass of BaseModel)
    return {field.alias or name: field.annotation for name, field in fields.items()}


def _is_model(known: object) -> bool:
    return isinstance(known, type) and issubclass(known, BaseModel)
