"""The plan that `init` writes: rules it found, that load and hold, and no value of the table."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import yaml

from synth_audit.core.plan_file import parse_plan
from synth_audit.core.schema_inference import infer_schema
from synth_audit.pipeline.starter import starter_plan

SOURCE = {"parquet": {"path": "x.parquet"}}


def clinic(n=300):
    rng = np.random.default_rng(0)
    ward = rng.integers(0, 9, n)
    came = rng.integers(50_001, 59_999, n)
    return pa.table(
        {
            "person": [f"Person-{i}" for i in range(n)],
            "came in": came,
            "went # out": came + rng.integers(0, 3_000, n),
            "ward": [f"Ward-{w}" for w in ward],
            "wing: code": [f"Wing-{w // 3}" for w in ward],
            'no`"name': [f"Wing-{w // 3}" for w in ward],
        }
    )


def test_rules_that_hold_are_proposed_and_load():
    text = starter_plan(SOURCE, clinic(), "clinic.yaml")
    plan = parse_plan(yaml.safe_load(text))
    assert set(plan.rules) == {"`came in` <= `went # out`", "ward -> `wing: code`"}
    assert infer_schema(clinic(), plan.columns, rules=plan.stated_rules).rules == plan.stated_rules
    assert "look them over" in text
    assert re.search(r"ward -> `wing: code`'? +# \d+%\n", text)


def test_no_value_of_the_table_is_written():
    text = starter_plan(SOURCE, clinic(), "clinic.yaml")
    assert not re.search(r"Person-|Ward-|Wing-|5\d{4}|bounds:|categories:", text)


def test_without_rules_there_is_an_example_to_uncomment():
    for data in (None, pa.table({"x": [1.0, 2.0], "y": [0.5, 7.0]})):
        text = starter_plan(SOURCE, data, "x.yaml")
        assert parse_plan(yaml.safe_load(text)).rules == ()
        shown = text.replace("# rules:\n# - ", "rules:\n- ")
        assert parse_plan(yaml.safe_load(shown)).rules == ("admitted <= discharged",)
