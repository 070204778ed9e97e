"""Gates of the suites that ship say what they found."""

from __future__ import annotations

import json
import re

import pytest

from synth_audit.build import resource_folder
from synth_audit.errors import GateError
from synth_audit.verdict.suite import parse_suite

SUITES = sorted(path.name for path in resource_folder("expectations").glob("*.json"))


@pytest.mark.parametrize("name", SUITES)
def test_each_gate_has_a_finding_with_its_number_in_it(name: str) -> None:
    suite = json.loads((resource_folder("expectations") / name).read_text(encoding="utf-8"))
    for meta in (x["meta"] for x in suite["expectations"]):
        found = re.findall(r"\{(\w+)\}", meta.get("finding", ""))
        assert {"value", "percent"} & set(found), meta["id"]
        assert set(found) <= {"value", "percent", "column"}, meta["id"]


def test_a_finding_is_text_and_its_key_is_not_misspelt() -> None:
    limit = {"name": "exact_match.excess", "maximum": 0.02}
    for wrong in ({"finding": 3}, {"findings": "{value}"}):
        meta = {"id": "copies", "reason": "because", **wrong}
        suite = {
            "name": "s",
            "expectations": [{"type": "expect_measurement_to_be_within", "kwargs": limit, "meta": meta}],
        }
        with pytest.raises(GateError, match="finding"):
            parse_suite(suite)
