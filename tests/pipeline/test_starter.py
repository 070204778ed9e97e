"""The plan that `init` writes: rules it found, that load and hold, and no value of the table."""

import datetime
import re

import numpy as np
import pyarrow as pa
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from made_tables import table_of  # made importable by conftest.py

from synth_audit.audits.fidelity.constraints import put
from synth_audit.pipeline.starter import (
    FEWEST_ROWS_OF_RULE,
    FEWEST_SPARED,
    LEAST_CHANCE,
    discover,
    starter_plan,
)
from synth_audit.plan.plan import parse_plan
from synth_audit.table.rules import Determines, Ordered
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


START = datetime.datetime(2020, 1, 1)
WEEK = np.arange(400) % 7


def found(most=50, **columns):
    table = table_of(columns)
    return {p.rule.text: p for p in discover(table, table.schema.features, most)}


def hospital(n=400, seed=0):
    rng = np.random.default_rng(seed)
    day = rng.integers(0, 1000, n)
    stay = rng.poisson(4, n)
    ward = rng.integers(0, 12, n)
    low = rng.normal(75, 10, n)

    def dates(days):
        return pa.array([START + datetime.timedelta(days=int(d)) for d in days], pa.timestamp("us"))

    return {
        "admitted": dates(day),
        "discharged": dates(day + stay),
        "ward": [f"w{w}" for w in ward],
        "building": [f"b{w // 4}" for w in ward],
        "floor": pa.array([float(w % 4) for w in ward]),
        "diastolic": low,
        "systolic": low + rng.exponential(45, n),
        "grams": rng.normal(70_000, 9_000, n),
        "sex": rng.choice(["f", "m"], n),
    }


def test_the_rules_of_a_made_table_are_found_and_no_others():
    rules = found(**hospital())
    assert set(rules) == {
        "admitted <= discharged",
        "diastolic <= systolic",
        "ward -> building",
        "ward -> floor",
    }
    assert rules["admitted <= discharged"].chance == pytest.approx(0.5, abs=0.05)
    assert rules["admitted <= discharged"].rows == 400
    spared = [p.spared for p in rules.values()]
    assert spared == sorted(spared, reverse=True)


def test_one_exception_is_enough_to_propose_nothing():
    columns = hospital()
    columns["building"][7] = "b9"
    columns["systolic"][7] = columns["diastolic"][7] - 1e-9
    left = found(**columns)
    assert set(left) == {"admitted <= discharged", "ward -> floor"}


def test_missing_values_break_nothing_but_count_for_nothing():
    rng = np.random.default_rng(1)
    columns = hospital(1000)
    gaps = {n: pa.array(columns[n], mask=rng.random(1000) < 0.3) for n in ("diastolic", "systolic")}
    rules = found(**columns | gaps)
    assert 400 < rules["diastolic <= systolic"].rows < 600
    few = pa.array(columns["systolic"], mask=np.arange(1000) >= FEWEST_ROWS_OF_RULE - 1)
    assert "diastolic <= systolic" not in found(**columns | {"systolic": few})


@pytest.mark.parametrize(
    "columns",
    [
        {"age": np.arange(400) % 70 + 20, "score": np.arange(400) % 19},  # disjoint ranges
        {"a": WEEK, "b": np.where(WEEK == 0, 0.0, 1e6 + np.sqrt(np.arange(400)))},  # no common scale
        {"a": np.arange(400) % 100, "b": np.arange(400) % 90 + 97},  # hardly overlapping
        {"k": [f"k{i % 100}" for i in range(400)], "v": [f"v{i % 50}" for i in range(400)]},  # small groups
        {"k": [f"k{i % 4}" for i in range(400)], "v": ["same"] * 400},  # constant
        {"k": [f"k{i % 4}" for i in range(400)], "v": ["odd" if i == 0 else "same" for i in range(400)]},
        {"k": ["one"] * 400, "v": [f"v{i % 5}" for i in range(400)]},
        {"a": np.arange(49.0), "b": np.arange(49.0) + 1},  # too few rows
        {"x": pa.nulls(400), "y": pa.nulls(400, pa.float64()), "z": np.arange(400.0)},
        {"x": np.arange(400.0)},
    ],
)  # fmt: skip
def test_accidents_are_not_proposed(columns):
    assert found(**columns) == {}


def test_noise_gives_no_rule():
    rng = np.random.default_rng(0)
    columns = {f"x{i}": rng.normal(size=60) for i in range(40)}
    columns |= {f"c{i}": rng.choice(["a", "b", "c"], 60) for i in range(40)}
    columns |= {f"n{i}": rng.poisson(1, 60) for i in range(40)}
    assert found(**columns) == {}


def test_what_follows_from_others_is_left_out():
    rng = np.random.default_rng(0)
    first = rng.exponential(size=300)
    steps = {f"s{i}": first + i * 0.1 for i in range(12)}
    assert set(found(**steps)) == {f"s{i} <= s{i + 1}" for i in range(11)}
    code = rng.integers(0, 24, 300)
    parts = {
        "street": [f"s{c}" for c in code],
        "quarter": [f"q{c // 3}" for c in code],
        "town": [f"t{c // 6}" for c in code],
    }
    assert set(found(**parts)) == {"street -> quarter", "quarter -> town"}


def test_equal_columns_are_said_to_be_equal_once():
    rng = np.random.default_rng(0)
    a = rng.integers(0, 9, 300)
    assert set(found(a=a, b=a.astype(float), c=a + 1)) == {"a == b", "a <= c", "a -> c", "c -> a"}
    names = {"code": [f"c{x}" for x in a], "name": [f"n{x}" for x in a]}
    assert set(found(**names)) == {"code -> name", "name -> code"}


def test_a_pair_equal_in_the_sample_alone_is_looked_at_whole():
    n = 5001
    a = np.random.default_rng(0).normal(size=n)
    b = a.copy()
    b[1] += 1.0
    assert set(found(a=a, b=b)) == {"a <= b"}
    b[2] -= 1.0
    assert found(a=a, b=b) == {}


def test_missing_in_step_with_values_is_seen_through():
    """b is known only where a is small: over all rows the two overlap, on the rows with both they do not."""
    a = np.concatenate([np.linspace(0, 1, 200), np.linspace(5, 9, 200)])
    b = np.concatenate([np.linspace(2, 3, 200), np.full(200, np.nan)])
    assert found(a=a, b=b) == {}


def test_at_most_so_many_are_proposed_and_none_without_columns():
    rng = np.random.default_rng(0)
    steps = {f"s{i}": rng.exponential(size=200) for i in range(1)}
    for i in range(1, 30):
        steps[f"s{i}"] = steps[f"s{i - 1}"] + rng.exponential(0.05, size=200)
    table = table_of(steps)
    assert len(discover(table, table.schema.features)) == 20
    assert discover(table, ()) == ()


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 5), st.booleans())
def test_whatever_is_proposed_holds_and_is_worth_it(seed, levels, gaps):
    rng = np.random.default_rng(seed)
    n = 120
    base = rng.integers(0, levels * 3, n)
    raw = {
        "a": base.astype(float), "b": (base // levels).astype(float), "c": base + rng.integers(0, 2, n),
        "d": rng.integers(0, levels, n), "e": base * 2.0 + rng.random(n),
    }  # fmt: skip
    mask = rng.random((5, n)) < (0.2 if gaps else 0.0)
    table = table_of({k: pa.array(v, mask=m) for (k, v), m in zip(raw.items(), mask, strict=True)})
    for p in discover(table, table.schema.features):
        question = put(p.rule, table, table)
        assert not question.broken.any()
        assert int(question.asked.sum()) == p.rows >= FEWEST_ROWS_OF_RULE
        assert p.chance >= LEAST_CHANCE
        assert p.spared >= FEWEST_SPARED
        assert isinstance(p.rule, (Ordered, Determines))


def test_row_order_and_column_order_change_no_rule():
    columns = hospital()
    table = table_of(columns)
    rng = np.random.default_rng(0)
    order = rng.permutation(400)
    turned = table_of(
        {n: pa.array(table.data.column(n).take(pa.array(order))) for n in reversed(table.names)}
    )
    one, other = ({p.rule for p in discover(t, t.schema.features)} for t in (table, turned))
    assert one == other


def test_its_chance_is_the_share_that_columns_shuffled_one_by_one_break():
    rng = np.random.default_rng(0)
    columns = hospital(2000)
    shuffled = {n: pa.array(c).take(pa.array(rng.permutation(2000))) for n, c in columns.items()}
    table, broken = table_of(columns), table_of(shuffled)
    proposals = discover(table, table.schema.features)
    assert len(proposals) == 4
    for p in proposals:
        assert put(p.rule, broken, table).broken.mean() == pytest.approx(p.chance, abs=0.04)
