"""The plan that `init` writes: rules it found, that load and hold, and no value of the table."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import yaml

from synth_audit.pipeline.starter import starter_plan
from synth_audit.plan.plan import parse_plan
from synth_audit.table.schema_inference import infer_schema

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


def keyed(n=300):
    rng = np.random.default_rng(1)
    return pa.table(
        {
            "PatientID": rng.integers(0, 120, n),
            "row_id": np.arange(n),
            "hospital_id": rng.integers(0, 4, n),
            "measured id": rng.normal(size=n),
            "Income": rng.normal(size=n),
            "outcome": rng.choice(["a", "b"], n),
            "status": rng.choice(["a", "b"], n),
            "a: b #": rng.normal(size=n),
        }
    )


def test_roles_are_proposed_with_reasons_and_without_values():
    text = starter_plan(SOURCE, keyed(), "x.yaml")
    plan = parse_plan(yaml.safe_load(text))
    roles = {name: spec.roles for name, spec in plan.columns.items()}
    assert roles == {
        "PatientID": ("split_key",),
        "row_id": ("identifier",),
        "hospital_id": ("feature",),  # four values name no people
        "measured id": ("feature",),
        "Income": ("sensitive",),
        "outcome": ("target",),
        "status": ("feature",),  # there is one target
        "a: b #": ("feature",),
    }
    for name, reason in {
        "PatientID": "values repeat",
        "row_id": "own value",
        "Income": "keep to themselves",
    }.items():
        (line,) = [row for row in text.splitlines() if row.startswith(f"  {name}:")]
        assert reason in line.partition("#")[2]


def visits(n=300):
    """Rows of a hundred people under a key that has no key's name, and of towns in two counties."""
    rng = np.random.default_rng(4)
    who, town = np.repeat(np.arange(n // 3), 3), rng.integers(0, 40, n)
    born, height, left = rng.integers(1930, 2005, n), rng.integers(150, 200, n), rng.random(n) < 0.3
    return pa.table(
        {
            "zper": 1000 + 7 * who,
            "born": born[who],
            "height": height[who],
            "left_handed": left[who],
            "pulse": rng.integers(50, 120, n),
            "town": town,
            "county": np.where(town < 20, "north", "south"),
        }
    )


def roles_in(data):
    made = yaml.safe_load(starter_plan(SOURCE, data, "x.yaml"))
    return {name: spec["role"] for name, spec in made["columns"].items() if "role" in spec}


def test_a_key_without_a_name_is_known_by_what_its_rows_share():
    assert roles_in(visits()) == {"zper": "split_key"}
    alone = visits().take(pa.array(np.arange(0, 300, 3)))
    assert "split_key" not in roles_in(alone).values()


def test_categories_of_pandas_and_columns_without_a_value_have_a_line():
    labels = pa.array([f"nobody-{i // 2}" for i in range(30_000)])
    table = pa.table(
        {
            "ward": pa.array(["North", "South"] * 15_000).dictionary_encode(),
            "name": labels.dictionary_encode(),
            "empty": pa.nulls(30_000),
        }
    )
    text = starter_plan(SOURCE, table, "x.yaml")
    assert set(parse_plan(yaml.safe_load(text)).columns) == {"ward", "name", "empty"}
    assert "name: {kind: categorical, role: identifier}" in text
    assert not re.search("North|South|nobody", text)


def test_text_of_dates_that_each_row_has_alone_is_told_from_keys():
    days = np.datetime64("2020-01-01T07:00:11", "s") + np.arange(400) * 7919
    table = pa.table(
        {"seen": [str(day).replace("T", " ") for day in days], "code": [f"{i:06d}x" for i in range(400)]}
    )
    lines = starter_plan(SOURCE, table, "x.yaml").splitlines()
    assert [("reads as dates" in line) for line in lines if "role: identifier" in line] == [True, False]


def test_moments_that_several_rows_share_are_nobodys_key():
    hours = np.repeat(np.datetime64("2013-01-01T00", "h") + np.arange(150) * 53, 3)
    texts = [str(hour).replace("T", " ") + ":00:00" for hour in hours]
    parts = {
        name: [int(t[at]) for t in texts] for name, at in (("month", slice(5, 7)), ("day", slice(8, 10)))
    }
    clock = {"hour": [int(t[11:13]) for t in texts], "airport": ["A", "B", "C"] * 150}
    table = pa.table({"when": texts} | parts | clock | {"wind": np.random.default_rng(1).normal(size=450)})
    assert roles_in(table).get("when") is None
    named = table.rename_columns(["who", *table.column_names[1:]]).set_column(
        0, "who", [[f"x{t}" for t in texts]]
    )
    assert roles_in(named) == {"who": "split_key"}


def test_editors_are_told_of_the_schema():
    assert "yaml-language-server" not in starter_plan(SOURCE, None, "x.yaml")
    text = starter_plan(SOURCE, None, "x.yaml", schema="plan.schema.json")
    assert text.startswith("# yaml-language-server: $schema=plan.schema.json\n")
    parse_plan(yaml.safe_load(text))
