"""The plan's key ``review``."""

from __future__ import annotations

from typing import Any

import pytest

from synth_audit.errors import PlanError
from synth_audit.plan.plan import Plan, parse_plan


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
