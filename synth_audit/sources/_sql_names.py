"""Names of tables as plans write them and as SQL quotes them."""

from __future__ import annotations

import re

_PART = r'"(?:[^"]|"")+"|[^."]+'
_NAME = re.compile(rf"(?:(?P<schema>{_PART})\.)?(?P<table>{_PART})")


def refuse_unless_one(table: str | None, query: str | None, example: str) -> None:
    """Raise ``ValueError`` unless exactly one of a table's name and a query is given, and the name is one."""
    if (table is None) == (query is None):
        raise ValueError(f"give exactly one of table and query: `{example}`")
    if table is not None and not _NAME.fullmatch(table):
        raise ValueError('table must read `table`, `schema.table` or `"quoted.schema"."quoted.table"`')


def parts_of(table: str, schema: str) -> tuple[str, str]:
    """Schema and table of a name; ``schema`` where it names none."""
    match = _NAME.fullmatch(table)
    assert match is not None
    return _unquote(match["schema"] or schema), _unquote(match["table"])


def quote(name: str) -> str:
    """A name as SQL takes it literally."""
    return '"' + name.replace('"', '""') + '"'


def _unquote(part: str) -> str:
    return part[1:-1].replace('""', '"') if part.startswith('"') else part
