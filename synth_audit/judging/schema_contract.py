"""The schema contract: what the declarations promise of a released table, as ordinary expectations."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from synth_audit.core.errors import GateError
from synth_audit.core.schema import Column, Schema
from synth_audit.core.table import Table
from synth_audit.judging.suite import key_of

if TYPE_CHECKING:
    import pandas as pd

COLUMNS_TYPE = "expect_table_columns_to_match_set"
FULLNESS_TYPE = "expect_cells_as_full_as_in_train"
"""Not Great Expectations' own: it compares the candidate with train."""

_PREFIX = "contract: "


def contract(schema: Schema) -> tuple[dict[str, Any], ...]:
    """The expectations that every release of this schema must meet.

    The released columns exist and no others; each holds its kind; no value is missing where the plan
    says so; declared bounds and categories are kept. Inferred ones are not used: they are private.

    Returns:
        Great Expectations' own form; they apply to the frame of :func:`gate_frame`.
    """
    names = sorted(c.name for c in schema.features)
    columns = _expectation(COLUMNS_TYPE, column_set=names, exact_match=True)
    return (columns, *(x for c in schema.features for x in _of_column(c)))


def contract_key(expectation: Mapping[str, Any]) -> str:
    """Key of a check of the contract, told apart from the suite's own by its first word."""
    return _PREFIX + key_of(expectation)


def contract_part(key: str) -> Mapping[str, Any] | None:
    """The expectation behind a contract's key; None for any other key."""
    if not key.startswith(_PREFIX):
        return None
    try:
        part = json.loads(key.removeprefix(_PREFIX))
    except ValueError:
        part = None
    if not isinstance(part, dict) or set(part) != {"type", "kwargs"} or not isinstance(part["kwargs"], dict):
        raise GateError("a check of the schema contract is damaged", where="table_checks")
    return part


def gate_frame(table: Table) -> pd.DataFrame:
    """The table as expectations see it, the same whatever file it came from.

    Continuous columns are float64; integer ones int64, or Int64 where values are missing; dates and
    times datetime64[us] in UTC; discrete ones text labels as in the plan. A column that does not
    hold its kind stays as it is, so that its type check fails.
    """
    import pandas as pd

    names = table.names
    return pd.DataFrame({n: _series(table, n) for n in names}, columns=list(names))


def _of_column(column: Column) -> list[dict[str, Any]]:
    name, kind = column.name, column.kind
    types = list(kind.info.frame_types)
    found = [_expectation("expect_column_values_to_be_in_type_list", column=name, type_list=types)]
    if not column.nullable:
        found.append(_expectation("expect_column_values_to_not_be_null", column=name))
    if column.declared_bounds is not None:
        low, high = (kind.framed_bound(x) for x in column.declared_bounds)
        found.append(
            _expectation("expect_column_values_to_be_between", column=name, min_value=low, max_value=high)
        )
    if column.declared_categories is not None:
        allowed = sorted(column.declared_categories)
        found.append(_expectation("expect_column_values_to_be_in_set", column=name, value_set=allowed))
    return found


def _expectation(kind: str, **kwargs: Any) -> dict[str, Any]:
    return {"type": kind, "kwargs": kwargs, "severity": "critical"}


def _series(table: Table, name: str) -> pd.Series[Any]:
    import pandas as pd

    column, values = table.schema[name], table.column(name)
    if not column.released or not column.kind.allows(values.type):
        return pd.Series(values.to_pandas().astype(object))
    return column.kind.framed(values)
