"""What a reader must be told of tables made elsewhere and of audits whose settings were changed."""

from __future__ import annotations

import copy
from pathlib import Path

import pyarrow as pa
import pytest

from synth_audit.dp.accountant import PrivacyAccount
from synth_audit.pipeline.warnings import about_delta, about_external, about_settings, about_suite
from synth_audit.plan.plan import Plan, parse_plan
from synth_audit.store.evidence import GeneratorRecord
from synth_audit.table.schema_inference import ColumnSpec, infer_schema
from synth_audit.table.table import read_table
from synth_audit.verdict.suite import load_suite, parse_suite


@pytest.mark.parametrize(
    ("name", "config", "warned"),
    [
        ("external", {}, True),
        ("external", {"source": "made.parquet", "command": None}, True),
        ("external", {"source": None, "command": ["program"]}, False),
        ("external", {"source": None, "command": None, "recipe": "dpmm"}, False),
        ("vine", {}, False),
    ],
)
def test_only_a_finished_table_may_hold_control_rows(name, config, warned):
    found = about_external(GeneratorRecord(name, config, PrivacyAccount(guarantee=None, reason="a test")))
    assert bool(found) is warned


@pytest.mark.parametrize(
    ("rows_each", "delta", "told"),
    [(None, 0.049, ""), (None, 0.05, "20 rows"), (2, 0.05, ""), (2, 0.1, "10 people"), (None, 0.0, "")],
)
def test_a_delta_that_pays_for_somebodys_row_is_told_of(rows_each, delta, told):
    data = pa.table({"who": [f"p{i // 2}" for i in range(20)], "x": [i / 3 for i in range(20)]})
    train = read_table(data, infer_schema(data, {"who": ColumnSpec(role="identifier")}), where="train")
    privacy = {"epsilon": 1, "delta": delta, "rows_per_entity": rows_each}
    found = about_delta(parse_plan({"privacy": privacy}), train)
    assert len(found) == bool(told)
    assert told in "".join(found)
    assert about_delta(Plan(), train) == ()


def test_changed_settings_of_a_judged_audit_are_told():
    suite = load_suite(Plan().gates, Path())
    plan = parse_plan({"audits": [{"recognition": {"draws": 1}}, {"marginals": {"cells": 5}}]})
    [said] = about_settings(plan, suite)
    assert "changes draws of recognition" in said
    assert about_settings(parse_plan({"audits": ["recognition"]}), suite) == ()


@pytest.mark.parametrize("name", ["release", "sensitive", "health"])
def test_of_a_suite_that_ships_nothing_is_told(name):
    assert about_suite(Plan(), load_suite(name, Path())) == ()


def test_a_weaker_suite_is_told_of_whatever_its_name():
    usual = load_suite("release", Path())
    plain = copy.deepcopy(dict(usual.plain))
    assert about_suite(Plan(), parse_suite(plain | {"meta": {"notes": "ours"}})) == ()
    dropped, widened, idle, stricter = (plain["expectations"][i] for i in (0, 3, 2, 4))
    plain["expectations"].remove(dropped)
    widened["kwargs"]["maximum"] *= 2
    idle["severity"] = "warning"
    stricter["kwargs"]["maximum"] /= 2
    names = [x["meta"]["id"] for x in (dropped, idle, widened)]
    [said] = about_suite(Plan(), parse_suite(plain))
    assert "'release' is none that ships" in said
    assert said.endswith(f"widens 3: {', '.join(names)}")


def test_a_lower_level_and_smaller_counts_are_told():
    plan = parse_plan({"level": 0.9, "suppression": 1})
    level, counts = about_suite(plan, load_suite("release", Path()))
    assert "level of every interval to 0.9, from the usual 0.95" in level
    assert "smallest count shown to 1, from the usual 10" in counts
