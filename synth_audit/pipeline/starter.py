"""Writes a plan to start from: a commented example, or one that fits a given table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import yaml

from synth_audit.core.arrow_types import is_text
from synth_audit.core.arrow_values import n_distinct
from synth_audit.core.column_spec import ColumnSpec
from synth_audit.core.registry import catalogue
from synth_audit.core.rules import nameable
from synth_audit.core.schema import RELEASED, Role
from synth_audit.core.schema_inference import infer_schema, kind_of
from synth_audit.core.storage_types import plain
from synth_audit.core.table import Table, read_table
from synth_audit.pipeline.role_proposals import proposed_roles

_HEAD = """\
# A plan decides everything about one table. `synth-audit schema` prints its JSON Schema,
# `synth-audit list` every source, generator and audit, `synth-audit describe NAME` their settings.
# Relative paths start at this file. Run it with: synth-audit run {file}
"""

_COLUMNS = """
# Kinds: {kinds}.
# Roles: feature, target, sensitive, identifier, split_key; a list gives a column several. Those below are
# guesses from names and from how values repeat: correct them before you run the plan.
# What you declare (bounds, categories) is taken to be public knowledge. Columns left out are inferred.
"""

_RULES = """
# Rules that every row obeys, such as `age >= 18`, `admitted <= discharged` or `zip, street -> city`; audit
# `constraints` counts what breaks them, and bounds and categories above. Limits and categories are never
# proposed here: the ends of a range are somebody's values. Declare what everybody may know.
"""

_NO_RULES = """\
# rules:
# - admitted <= discharged
"""

_FOUND = """\
# These held on all rows of the source: look them over, and keep what must hold. Behind each stands how many
# rows would break it if its columns had nothing to do with each other.
rules:
"""

_REST = """
split: {control: 0.2}            # share of people kept from the generator, to test against

generator: {vine: {}}            # see `synth-audit describe vine`

# audits: [exact_match, closest_record]   # the usual ones when left out
gates: expectations/release.json # the suite that ships; copy it to make your own

# release: {parquet: {path: released.parquet}}   # where a passing table goes
# review: {purpose: teaching, recipient: who gets it, owner: who answers for it}   # for the certificate
"""


def starter_plan(
    source: Mapping[str, Any], data: pa.Table | None, file: str, *, schema: str | None = None
) -> str:
    """YAML text of a plan.

    Args:
        source: the source choice to write.
        data: the table it reads, to propose columns from; None for an example.
        file: name of the plan file, for the comment on how to run it.
        schema: the JSON Schema of plans, as it is reached from there, for editors.

    Raises:
        DataError: no column of the table, or none of its rows, can be audited.
    """
    table = None if data is None else _read(data)
    kinds = ", ".join(catalogue("kind"))
    editors = f"# yaml-language-server: $schema={schema}\n" if schema else ""
    parts = [
        editors,
        _HEAD.format(file=file),
        "\n",
        _yaml({"source": dict(source)}),
        _COLUMNS.format(kinds=kinds),
    ]
    parts.append(_yaml({"columns": _EXAMPLE}) if table is None else _columns(table))
    parts += [_RULES, _NO_RULES if table is None else _rules(table), _REST]
    return "".join(parts)


_EXAMPLE = {
    "patient_id": {"role": "identifier"},
    "diagnosis": {"role": "target"},
    "income": {"role": "sensitive", "bounds": [0, 500000]},
}


def _read(data: pa.Table) -> Table:
    """The table, with text that has too many values for a category taken for identifiers."""
    data = plain(data, where="source")
    crowded = {
        field.name: ColumnSpec.model_validate({"role": Role.IDENTIFIER})
        for field, values in zip(data.schema, data.columns, strict=True)
        if _too_many_labels(values)
    }
    return read_table(data, infer_schema(data, crowded, where="source"), where="source")


def _too_many_labels(values: pa.ChunkedArray) -> bool:
    stored = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
    kind = kind_of(values) if is_text(stored) else None
    return kind is not None and bool(kind.too_many_labels(n_distinct(values)))


def _columns(table: Table) -> str:
    """A line for each column: its kind, and the role that it seems to have with the reason."""
    proposals = proposed_roles(table)
    lines = []
    for column in table.schema:
        said, proposal = {"kind": str(column.kind)}, proposals.get(column.name)
        if proposal:
            said["role"] = str(proposal.role)
        text = _yaml({column.name: said}, flow=None).rstrip("\n")
        lines.append("  " + text.replace("\n", "\n  ") + (f"   # {proposal.reason}" if proposal else ""))
    return "\n".join(["columns:", *lines, ""])


def _rules(table: Table) -> str:
    """The rules found on the columns that are not proposed as identifiers, a comment where there are none."""
    from synth_audit.encoding.rule_discovery import discover

    keys = {name for name, p in proposed_roles(table).items() if p.role not in RELEASED}
    found = discover(table, [c for c in table.schema if c.name not in keys and nameable(c.name)])
    if not found:
        return _NO_RULES
    lines = [(_yaml([p.rule.text], flow=False).rstrip("\n"), f"{p.chance:.0%}") for p in found]
    width = max(len(text) for text, _ in lines)
    return _FOUND + "".join(f"{text:<{width}}  # {share}\n" for text, share in lines)


def _yaml(value: object, *, flow: bool | None = None) -> str:
    width = 100 if flow is None else float("inf")
    return yaml.safe_dump(value, sort_keys=False, default_flow_style=flow, allow_unicode=True, width=width)
