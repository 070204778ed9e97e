"""How records of the store are checked and written as JSON: worked out once for each type."""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import TypeAdapter


def json_form(kind: type) -> TypeAdapter[Any]:
    """What checks and writes records of a type; to make one takes longer than to use it."""
    return _made(kind)


@cache
def _made(kind: type) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
