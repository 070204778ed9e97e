"""Sections of the plan: coarsen, execution, review."""

from pathlib import Path
from typing import Any

import jsonschema
import pytest

from synth_audit.errors import PlanError
from synth_audit.plan.plan import Plan, parse_plan, plan_schema
from synth_audit.plan.sections import ExecutionSpec, ReviewSpec, span_grid

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


@pytest.mark.parametrize(
    ("settings", "name", "workers"),
    [
        ({}, "serial", 1),
        ({"workers": 1}, "serial", 1),
        ({"workers": 8}, "processes", 8),
        ({"executor": "processes", "workers": 3}, "processes", 3),
        ({"executor": "dask"}, "dask", 2),
        ({"executor": "dask", "workers": 5}, "dask", 5),
        ({"scheduler": "tcp://10.0.0.5:8786"}, "dask", 2),
    ],
)
def test_what_is_left_out_is_implied(settings, name, workers):
    spec = ExecutionSpec.model_validate(settings)
    assert (spec.name, spec.n_workers) == (name, workers)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"executor": "serial", "workers": 2}, "one worker"),
        ({"executor": "processes", "scheduler": "tcp://a:1"}, "goes with the executor dask"),
        ({"executor": "threads"}, "executor"),
        ({"workers": 0}, "workers"),
        ({"deadline": 0}, "deadline"),
        ({"deadline": float("inf")}, "deadline"),
        ({"device": "tpu"}, "device"),
        ({"nodes": 3}, "unknown key 'execution.nodes'"),
    ],
)
def test_what_does_not_go_together_is_refused(settings, says):
    with pytest.raises(PlanError, match=says):
        parse_plan({"execution": settings})


@pytest.mark.parametrize(
    ("plan", "given", "expected"),
    [
        ({"workers": 4}, {}, ("processes", 4, None)),
        ({"workers": 4}, {"workers": None, "executor": None}, ("processes", 4, None)),
        ({"workers": 4}, {"workers": 1}, ("serial", 1, None)),
        ({"workers": 4}, {"executor": "serial"}, ("serial", 1, None)),
        ({"scheduler": "tcp://a:1"}, {"workers": 3}, ("processes", 3, None)),
        ({"scheduler": "tcp://a:1"}, {"executor": "dask"}, ("dask", 2, None)),
        ({"scheduler": "tcp://a:1"}, {"scheduler": "tcp://b:2"}, ("dask", 2, "tcp://b:2")),
        ({"executor": "processes", "workers": 4}, {"scheduler": "tcp://b:2"}, ("dask", 4, "tcp://b:2")),
    ],
)
def test_what_is_given_stands_above_the_plan(plan, given, expected):
    spec = ExecutionSpec.model_validate({"deadline": 60, **plan}).changed(given)
    assert (spec.name, spec.n_workers, spec.scheduler) == expected
    assert spec.deadline == 60


def test_what_is_given_must_go_together_too():
    with pytest.raises(PlanError, match="one worker") as caught:
        ExecutionSpec().changed({"executor": "serial", "workers": 2})
    assert caught.value.where == "execution"


def test_it_is_no_part_of_the_plans_digest():
    plain, other = (parse_plan({"seed": 3, **more}) for more in ({}, {"execution": {"workers": 8}}))
    assert other.execution.n_workers == 8
    assert other.digest == plain.digest
    assert other.plain() == plain.plain()


def test_it_stands_in_the_evidence_of_the_plan_and_is_part_of_its_digest() -> None:
    plan = parse_plan({"review": {"purpose": " teaching ", "valid_until": "2027-11-30"}})
    assert plan.plain()["review"] == {"purpose": "teaching", "valid_until": "2027-11-30"}
    assert Plan.model_validate(plan.plain()).digest == plan.digest
    assert plan.digest != Plan().digest


@pytest.mark.parametrize(
    "review", [{}, {"purpos": "x"}, {"purpose": ""}, {"valid_until": "soon"}, {"owner": "x" * 501}]
)
def test_what_says_nothing_or_is_misspelt_is_refused(review: dict[str, Any]) -> None:
    with pytest.raises(PlanError, match="review"):
        parse_plan({"review": review})


def test_who_decides_on_what_ground_and_when_it_is_judged_again_is_part_of_it() -> None:
    review = {
        "controller": "a hospital",
        "legal_basis": "GDPR article 9(2)(j)",
        "special_categories": "health",
        "reviewer": "data protection officer",
        "review_on": "2027-06-30",
    }
    assert parse_plan({"review": review}).plain()["review"] == review


def test_a_review_after_the_last_day_is_refused_in_plain_words() -> None:
    dates = {"review_on": "2027-12-01", "valid_until": "2027-11-30"}
    with pytest.raises(PlanError, match="review_on, 2027-12-01, is after valid_until, 2027-11-30"):
        parse_plan({"review": dates})
    assert parse_plan({"review": {**dates, "review_on": "2027-11-30"}})


@pytest.mark.parametrize("key", ["controller", "legal_basis", "special_categories", "reviewer"])
def test_an_empty_line_or_an_endless_one_is_refused(key: str) -> None:
    for text in ("", "x" * 501):
        with pytest.raises(PlanError, match=key):
            parse_plan({"review": {key: text}})


@pytest.mark.parametrize("key", ["review_on", "valid_until"])
def test_what_is_no_day_is_told_how_one_is_written(key: str) -> None:
    for text in ("soon", "2027"):
        with pytest.raises(PlanError, match="write a day, as in 2027-06-30"):
            parse_plan({"review": {key: text}})


def test_the_documentation_of_the_certificate_has_every_key() -> None:
    page = (Path(__file__).parents[2] / "docs" / "certificate.md").read_text()
    assert [key for key in ReviewSpec.model_fields if f"| `{key}` |" not in page] == []
