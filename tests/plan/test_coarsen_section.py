"""The plan's key ``coarsen``: what it accepts, what it refuses, and what it does to level and digest."""

from __future__ import annotations

import jsonschema
import pytest

from synth_audit.errors import PlanError
from synth_audit.plan.plan import parse_plan, plan_schema
from synth_audit.plan.sections import span_grid

AGE = {"age": {"round_to": 5, "top": 85}}
CHOSEN = {"columns": AGE, "chosen_on": "real data", "tries": 4}


def test_what_is_written_stands_in_the_plan_and_moves_its_digest():
    value = {
        "coarsen": {
            "columns": {
                **AGE,
                "day": {"round_to": "7 days", "bottom": "2020-01-02"},
                "job": {"merge": ["cook", "baker"], "into": "food", "merge_rarer_than": 20},
            }
        }
    }
    plan = parse_plan(value)
    assert list(jsonschema.Draft202012Validator(plan_schema()).iter_errors(value)) == []
    assert plan.plain() == value | {"coarsen": {"columns": plan.plain()["coarsen"]["columns"]}}
    assert plan.digest != parse_plan({}).digest
    assert [rule.words for rule in plan.coarsen.columns.values()] == [
        "rounded to 5, at most 85",
        "rounded to 7 days, at least 2020-01-02",
        "2 labels merged into 'food', labels of fewer than 20 rows merged into 'food'",
    ]


def test_tries_share_the_level_among_them():
    assert parse_plan({"level": 0.9, "coarsen": CHOSEN}).corrected_level == pytest.approx(0.975)
    assert parse_plan({"coarsen": {"columns": AGE}}).corrected_level == 0.95
    assert parse_plan({}).corrected_level == 0.95


@pytest.mark.parametrize(
    ("coarsen", "says"),
    [
        ({"columns": {}}, "columns"),
        ({"columns": {"age": {}}}, "columns.age: Value error, give round_to"),
        ({"columns": {"age": {"round_to": 0}}}, "age.round_to: Value error, a step is above 0"),
        ({"columns": {"age": {"round_to": "five"}}}, "age.round_to: Value error, a span of time"),
        ({"columns": {"age": {"round_to": "3 months"}}}, "rounded to a single month"),
        ({"columns": {"age": {"top": float("inf")}}}, "must be finite"),
        ({"columns": {"age": {"bottom": 9, "top": 9}}}, "bottom must lie below top"),
        ({"columns": {"age": {"round_to": 5, "merge": ["a"]}}}, "for numbers and dates, merge and into"),
        ({"columns": {"age": {"round_to": 5, "into": "a"}}}, "for numbers and dates, merge and into"),
        ({"columns": {"age": {"into": "a"}}}, "give round_to"),
        ({"columns": {"age": {"merge": ["other"]}}}, "no label but the one"),
        ({"columns": {"age": {"merge_rarer_than": 1}}}, "merge_rarer_than"),
        ({"columns": {"age": {"drop": True}}}, "'coarsen.columns.age.drop'"),
        ({**CHOSEN, "tries": 1}, "at least the second try"),
        ({**CHOSEN, "chosen_on": "public knowledge"}, "go with `chosen_on: real data`"),
    ],
)
def test_what_says_nothing_or_two_things_is_refused(coarsen, says):
    with pytest.raises(PlanError) as caught:
        parse_plan({"coarsen": coarsen})
    assert says in str(caught.value)


def test_spans_of_time():
    assert span_grid("day") == span_grid("1 day") == span_grid("24 hours")
    assert span_grid("15 minutes").numerator == 900e6
    assert span_grid("1 month").calendar == "M"
