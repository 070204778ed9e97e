"""No error may show a cell value: not in its text, nor in anything printed with it."""

import traceback

import pyarrow as pa
import pytest

from synth_audit.column_kinds._bases import TextLabels
from synth_audit.errors import SynthAuditError
from synth_audit.table.schema_inference import ColumnSpec, infer_schema
from synth_audit.table.table import read_table

WORD = "Bartholomew-Quincy"
NUMBER = 918_273_645
GOOD = pa.table({"x": [1.0, 2.0, 3.0], "k": ["a", "b", "a"], "n": [1, 2, 3]})
SCHEMA = infer_schema(GOOD)


def specified(data, **spec):
    return lambda: infer_schema(pa.table({"x": data, "other": [1] * len(data)}), {"x": ColumnSpec(**spec)})


def against_good(**changed):
    columns = {name: GOOD.column(name) for name in GOOD.column_names} | changed
    return lambda: read_table(pa.table(columns), SCHEMA, where="synthetic")


FAULTS = {
    "outside categories": specified([WORD, "a"], categories=["a"]),
    "outside bounds": specified([1, 2, NUMBER], bounds=(0, 5)),
    "text declared numeric": specified([WORD, "a"], kind="continuous"),
    "bounds on text": specified([WORD, "a"], bounds=(0, 1)),
    "too many categories": specified([f"{WORD} {i}" for i in range(TextLabels.most_labels + 1)]),
    "nested": specified([[WORD], ["a"]]),
    "binary": specified([WORD.encode(), b"a"]),
    "text in a numeric column": against_good(x=[WORD, "1", "2"]),
    "infinite beside a value": against_good(x=[float(NUMBER), float("inf"), 1.0]),
    "infinite category": lambda: read_table(
        bad := pa.table({"x": [float(NUMBER), float("inf"), float("inf")]}), infer_schema(bad), where="train"
    ),
    "unknown column": against_good(extra=[WORD, "1", "2"]),
}


def everything_shown(error: BaseException) -> str:
    return "\n".join([str(error), repr(error), *traceback.format_exception(error)])


@pytest.mark.parametrize("name", FAULTS)
def test_no_value_is_shown(name):
    with pytest.raises(SynthAuditError) as caught:
        FAULTS[name]()
    shown = everything_shown(caught.value)
    assert WORD not in shown
    assert str(NUMBER) not in shown
    context = caught.value.__context__
    assert context is None or WORD not in str(context)
