"""A check of the synthetic table as a sentence, in place of the JSON that identifies it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from synth_audit.core.verdict import TableCheck
from synth_audit.judging.schema_contract import contract_part
from synth_audit.report import words

_MOST_NAMES = 40


def check_sentence(check: TableCheck) -> str:
    """What was checked: ``Column age holds int64 or Int64Dtype``; what is no expectation stays as it is."""
    part = contract_part(check.key) or _expectation(check.key)
    if part is None:
        return words.sentence(check.key, end="")
    kwargs = part["kwargs"]
    about = f"Column {kwargs['column']}" if "column" in kwargs else "The table"
    return f"{about} {_asked(str(part['type']), kwargs)}"


def _expectation(key: str) -> Mapping[str, Any] | None:
    try:
        found = json.loads(key)
    except ValueError:
        return None
    known = isinstance(found, dict) and isinstance(found.get("kwargs"), dict) and "type" in found
    return found if known else None


def _asked(kind: str, kwargs: Mapping[str, Any]) -> str:
    match kind, kwargs:
        case "expect_table_columns_to_match_set", {"column_set": list(names)}:
            listed = ", ".join(map(str, names[:_MOST_NAMES])) + (", …" if len(names) > _MOST_NAMES else "")
            return f"has exactly these {words.counted(len(names), 'column')}: {listed}"
        case "expect_column_values_to_be_in_type_list", {"type_list": list(types)}:
            return f"holds {' or '.join(map(str, types))}"
        case "expect_column_values_to_be_between", _:
            return f"lies within its bounds, {_bounds(kwargs)}"
        case "expect_column_values_to_be_in_set", {"value_set": list(values)}:
            return f"holds none but its declared categories ({len(values):,})"
        case "expect_column_values_to_not_be_null", _:
            return "has no missing values"
        case "expect_cells_as_full_as_in_train", {"column_margin": column, "table_margin": table}:
            return (
                f"has at most {column:.0%} more missing cells in a column than train, {table:.0%} in all "
                "columns together, beyond chance"
            )
    return kind.removeprefix("expect_").removeprefix("column_").replace("_", " ")


def _bounds(kwargs: Mapping[str, Any]) -> str:
    low, high = kwargs.get("min_value"), kwargs.get("max_value")
    if low is None or high is None:
        return f"at least {low}" if high is None else f"at most {high}"
    return f"{low} to {high}"
