"""The plan's key ``review``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from synth_audit.errors import PlanError
from synth_audit.plan.plan import Plan, parse_plan
from synth_audit.plan.sections import ReviewSpec


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
