"""Rows with their schema in a folder, for models that keep rows; types and order survive."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa

from synth_audit.core.schema_json import schema_from_plain, schema_to_plain
from synth_audit.core.table import Table


def save_table(table: Table, folder: Path, name: str) -> None:
    """Write ``name.arrow`` and ``name.json``."""
    with pa.ipc.new_file(folder / f"{name}.arrow", table.data.schema) as file:
        file.write_table(table.data)
    (folder / f"{name}.json").write_text(json.dumps(schema_to_plain(table.schema)), encoding="utf-8")


def load_table(folder: Path, name: str) -> Table:
    """The table that :func:`save_table` wrote."""
    schema = schema_from_plain(json.loads((folder / f"{name}.json").read_text(encoding="utf-8")))
    with pa.OSFile(str(folder / f"{name}.arrow")) as file:
        return Table(schema, pa.ipc.open_file(file).read_all())
