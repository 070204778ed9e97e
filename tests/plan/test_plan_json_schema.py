"""The plan's JSON Schema."""

import jsonschema
import pytest

from synth_audit.plan.plan import plan_schema


@pytest.fixture(scope="module")
def checker():
    jsonschema.Draft202012Validator.check_schema(plan_schema())
    return jsonschema.Draft202012Validator(plan_schema())


def references(value):
    if isinstance(value, dict):
        yield from (v for k, v in value.items() if k == "$ref" and isinstance(v, str))
        value = list(value.values())
    for inner in value if isinstance(value, list) else ():
        yield from references(inner)


def test_every_reference_leads_somewhere():
    schema = plan_schema()
    found = set(references(schema))
    assert "#/$defs/EmbeddingSettings" in found, "settings within settings"
    assert found <= {f"#/$defs/{name}" for name in schema["$defs"]}


@pytest.mark.parametrize(
    "wrong",
    [
        {"generator": "vines"},
        {"audits": ["exact_mach"]},
        {"source": "people"},
        {"release": "parkett"},
        {"frontier": {"generators": ["vines"]}},
        {"seed": "abc"},
    ],
)
def test_a_name_that_nothing_has_does_not_validate(wrong, checker):
    right = {"generator": "vine", "audits": ["exact_match"], "source": "a/people.PARQUET", "seed": 3}
    assert checker.is_valid(right)
    assert not checker.is_valid(right | wrong)
