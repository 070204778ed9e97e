"""Tables from plain columns, as a plan with these declarations reads them."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from synth_audit.table.schema_inference import ColumnSpec, infer_schema
from synth_audit.table.table import Table, read_table


def table_of(columns: Any, specs: Mapping[str, ColumnSpec] | None = None) -> Table:
    data = pa.table(columns) if isinstance(columns, dict) else columns
    return read_table(data, infer_schema(data, specs), where="train")
