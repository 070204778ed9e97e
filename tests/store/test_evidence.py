from __future__ import annotations

import json
import math
from dataclasses import replace

import jsonschema
import pytest

from synth_audit.build import build_version
from synth_audit.errors import DataError
from synth_audit.findings.measurement import Interval
from synth_audit.store.evidence import evidence_schema, parse_evidence, read_evidence, sha256_of


def test_a_round_trip_changes_nothing(complete):
    evidence = complete.evidence
    again = parse_evidence(evidence.to_json())
    assert again == evidence
    assert again.to_json() == evidence.to_json()
    assert again.intact


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 0.1 + 0.2, 1e-300])
def test_odd_numbers_survive_a_round_trip(finished, value):
    first, *rest = finished.evidence.outcomes
    odd = replace(first.measurements[0], value=value, interval=Interval(-math.inf, value, 0.95, "odd"))
    changed = replace(first, measurements=(odd,))
    evidence = replace(finished.evidence, outcomes=(changed, *rest)).sealed()
    text = evidence.to_json()
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    again = parse_evidence(text)
    assert again.intact
    found = again.outcomes[0].measurements[0].value
    assert found == value or (math.isnan(found) and math.isnan(value))


def test_the_file_follows_its_published_schema(complete):
    schema = evidence_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    plain = json.loads(complete.workspace.evidence.read_text())
    checker = jsonschema.Draft202012Validator(schema)
    checker.validate(plain)
    assert not checker.is_valid({k: v for k, v in plain.items() if k != "verdict"})


def test_the_digest_covers_everything_but_the_time(finished):
    plain = json.loads(finished.evidence.to_json())
    outside = {"digest", "created", "timings", "attempt", "ledger", "earlier"}
    assert sha256_of({k: v for k, v in plain.items() if k not in outside}) == plain["digest"]
    later = replace(finished.evidence, created="2031-01-01T00:00:00+00:00", timings={"audit": 1.0})
    assert later.intact


def test_versions_and_seeds_are_recorded(finished):
    evidence = finished.evidence
    assert {"numpy", "pyarrow", "great-expectations"} <= set(evidence.versions)
    assert evidence.versions["synth-audit"] == build_version()
    assert (evidence.seed, evidence.level, evidence.suppression) == (5, 0.95, 10)


def test_a_plan_and_the_evidence_hash_alike(finished):
    assert sha256_of(finished.plan.plain()) == finished.plan.digest == finished.evidence.plan_sha256


@pytest.mark.parametrize(
    "text",
    ["", "{}", "no json", '{"schema_version": "0.1"}', "[1, 2]", "\x00"],
)
def test_a_file_that_is_no_evidence_is_refused(tmp_path, text):
    path = tmp_path / "evidence.json"
    path.write_text(text)
    with pytest.raises(DataError, match=r"not evidence|of format 0\.1") as caught:
        read_evidence(path)
    assert caught.value.where == str(path)
    assert caught.value.fix


def test_evidence_of_another_version_is_refused(finished, tmp_path):
    path = tmp_path / "evidence.json"
    path.write_text(finished.evidence.to_json().replace('"schema_version": "1.0"', '"schema_version": "9.9"'))
    with pytest.raises(DataError, match=r"of format 9\.9"):
        read_evidence(path)


def test_missing_evidence_says_how_to_get_some(tmp_path):
    with pytest.raises(DataError, match="cannot be read") as caught:
        read_evidence(tmp_path / "evidence.json")
    assert "synth-audit run" in caught.value.fix


def test_looking_up_a_measurement(finished):
    assert finished.evidence.measurement("exact_match.share").value == 0
    assert finished.evidence.measurement("marginals.total_variation", "by age").id.column == "age"
    distance = finished.evidence.measurement("marginals.total_variation[by age]")
    assert finished.evidence.measurement(distance.id) == distance
    assert finished.evidence.measurement('marginals.total_variation[by "age"]') == distance
    with pytest.raises(KeyError, match="did you mean"):
        finished.evidence.measurement("marginals.total_variation", "age")
    with pytest.raises(KeyError, match="cannot be read"):
        finished.evidence.measurement("exact_match.share", "by the age")
