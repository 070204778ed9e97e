"""Fills in the templates of a ``defs.yaml``, ``{{ ... }}``, and refuses what cannot be filled in."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from synth_audit.errors import PlanError, keys_of, problems_of

M = TypeVar("M", bound=BaseModel)
_MARK = "{{"


def templated(value: object) -> bool:
    """Whether a value, or one inside it, holds a template."""
    match value:
        case str():
            return _MARK in value
        case Mapping():
            return any(map(templated, value.values()))
        case list():
            return any(map(templated, value))
    return False


def filled(value: Any, scope: Mapping[str, Any], where: str = "") -> Any:
    """A value with its templates filled in; text without a template stays as it is.

    As in Dagster, text that reads as a number or a list becomes one. Other than in Dagster, a variable that
    is not set is refused: it would become the word None, or leave a setting at its default.

    Args:
        scope: what templates may name, as Dagster has it for the component.
        where: key of the value.

    Raises:
        PlanError: naming the key whose template cannot be filled in.
    """
    match value:
        case str() if _MARK in value:
            return _rendered(value, scope, where)
        case Mapping():
            return {key: filled(v, scope, f"{where}.{key}".lstrip(".")) for key, v in value.items()}
        case list():
            return [filled(v, scope, f"{where}.{i}") for i, v in enumerate(value)]
    return value


def validated(model: type[M], written: Mapping[str, Any], scope: Mapping[str, Any]) -> M:
    """The model of values whose templates are filled in.

    Raises:
        PlanError: a template cannot be filled in, or the model refuses a value; no value is repeated.
    """
    try:
        return model.model_validate(filled(written, scope))
    except ValidationError as error:
        raise PlanError(
            problems_of(error, model),
            where="attributes",
            expected=keys_of(error, model) or "what the plan's JSON Schema allows",
            fix="check what the templates stand for; digits that are text take quotes: `'{{ env.PORT }}'`",
        ) from None


class _Environment:
    """The scope ``env``: ``env.NAME``, or ``env('NAME', default)``."""

    def __getattr__(self, name: str) -> str:
        try:
            return os.environ[name]
        except KeyError:
            raise AttributeError(name) from None  # which the template tells as undefined

    def __call__(self, name: str, *default: Any) -> Any:
        return os.environ.get(name, *default) if default else os.environ[name]


def _rendered(text: str, scope: Mapping[str, Any], where: str) -> Any:
    from jinja2 import StrictUndefined, Undefined  # lazy import: most tables have no template
    from jinja2.nativetypes import NativeEnvironment

    try:
        template = NativeEnvironment(undefined=StrictUndefined).from_string(text)
        found: Any = template.render({**scope, "env": _Environment()})
    except Exception as error:  # a template is the user's own code; what it raises may quote a variable
        raise _unfilled(where, type(error).__name__) from None
    if isinstance(found, Undefined) or templated(found):
        raise _unfilled(where, "undefined" if isinstance(found, Undefined) else f"it still holds {_MARK}")
    return found


def _unfilled(where: str, reason: str) -> PlanError:
    return PlanError(
        f"a template cannot be filled in ({reason})",
        where=where,
        expected="`{{ env.NAME }}` of a variable that is set, or `{{ env('NAME', 'default') }}`",
        fix="set the variable where Dagster loads this table, or write the value itself",
    )
