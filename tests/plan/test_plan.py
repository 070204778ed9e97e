"""The plan: what it accepts, what it refuses, and that a mistake is named."""

import datetime

import jsonschema
import pytest
import yaml

from synth_audit import registry
from synth_audit.errors import PlanError
from synth_audit.plan.plan import Plan, load_plan, parse_plan, plan_schema

EXAMPLE = """
name: patients
source: {duckdb: {path: warehouse.duckdb, table: patients}}
columns:
  patient_id: {role: identifier}
  diagnosis: {role: [target, sensitive]}
  income: {kind: continuous, bounds: [0, 500000]}
  admitted: {kind: datetime, bounds: [2020-01-01, 2024-12-31]}
  smoker: {categories: [true, false]}
split: {control: 0.25}
generator: {vine: {}}
rows: 1000
audits: [exact_match, closest_record: {alpha: 0.05}, prediction: ]
gates: expectations/release.json
release: released.parquet
seed: 7
level: 0.9
suppression: 5
"""


def test_the_example_validates_against_the_code_and_the_published_schema():
    value = yaml.safe_load(EXAMPLE)
    plan = parse_plan(value).check()
    schema = plan_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    checker = jsonschema.Draft202012Validator(schema)
    as_json = yaml.safe_load(
        EXAMPLE.replace("2020-01-01", "'2020-01-01'").replace("2024-12-31", "'2024-12-31'")
    )
    assert list(checker.iter_errors(as_json)) == []
    assert [c.name for c in plan.audits] == ["exact_match", "closest_record", "prediction"]
    assert plan.build_audits()["closest_record"].alpha == 0.05
    assert plan.columns["income"].bounds == (0, 500_000)


def test_a_template_that_only_dagster_fills_in_is_refused_by_its_key(tmp_path):
    file = tmp_path / "plan.yaml"
    file.write_text("source: '{{ env.FOLDER }}/people.parquet'\nrows: '{{env(\"ROWS\", 5)}}'\n")
    with pytest.raises(PlanError) as caught:
        load_plan(file)
    assert "source: a template is not filled in" in caught.value.what
    assert "rows: a template is not filled in" in caught.value.what
    with pytest.raises(PlanError) as caught:
        parse_plan({"audits": ["exact_match", {"marginals": {"columns": ["{{ env.COLUMN }}"]}}]})
    assert caught.value.where == "audits.1.marginals.columns.0"


def test_braces_that_no_template_begins_with_are_text():
    plan = parse_plan({"columns": {"letter": {"categories": ["Dear {{ name }}", "{{envelope}}"]}}})
    assert plan.columns["letter"].categories == ("Dear {{ name }}", "{{envelope}}")


@pytest.mark.parametrize(
    "bad",
    [
        {"unknown": 1},
        {"audits": [{"closest_record": {"alpah": 0.1}}]},
        {"audits": "exact_match"},
        {"generator": {"vine": {"no_such_field": 1}}},
        {"columns": {"x": {"kind": "prose"}}},
        {"columns": {"x": {"colour": "red"}}},
        {"level": 1.5},
        {"seed": -1},
    ],
)
def test_the_published_schema_refuses_what_the_code_refuses(bad):
    assert list(jsonschema.Draft202012Validator(plan_schema()).iter_errors(bad))
    with pytest.raises(PlanError):
        parse_plan(bad).check()


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ({"colour": 1}, "'colour'"),
        ({"columns": {"x": {"colour": 1}}}, "columns.x.colour"),
        ({"columns": {"x": {"kind": "prose"}}}, "columns.x.kind"),
        ({"columns": {"x": {"role": "boss"}}}, "columns.x.role"),
        ({"columns": {"x": {"kind": "boolean", "bounds": [0, 1]}}}, "bounds do not go"),
        ({"columns": {"x": {"bounds": [2, 1]}}}, "lowest, highest"),
        ({"columns": {"x": {"bounds": [1]}}}, "columns.x.bounds"),
        ({"columns": {"x": {"bounds": [float("nan"), 1]}}}, "lowest, highest"),
        ({"columns": {"x": {"kind": "integer", "categories": ["a"]}}}, "categories do not go"),
        ({"columns": {"x": {"categories": ["a", None]}}}, "columns.x.categories.1"),
        ({"split": {"control": 0}}, "split.control"),
        ({"split": {"control": 1}}, "split.control"),
        ({"split": {"test": 0.2}}, "split.test"),
        ({"level": 0.5}, "level"),
        ({"level": 1}, "level"),
        ({"seed": -1}, "seed"),
        ({"seed": "one"}, "seed"),
        ({"rows": 0}, "rows"),
        ({"suppression": 0}, "suppression"),
        ({"name": "../etc"}, "name"),
        ({"audits": ["exact_match", {"exact_match": {}}]}, "'exact_match' is listed more than once"),
        ({"audits": [{"a": {}, "b": {}}]}, "audits.0"),
    ],
)
def test_a_bad_key_is_named(value, named):
    with pytest.raises(PlanError) as caught:
        parse_plan(value)
    assert named in str(caught.value)
    assert caught.value.where == "plan"


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ({"generator": "no_such"}, "unknown generator 'no_such'"),
        ({"source": "no_such"}, "unknown source 'no_such'"),
        ({"audits": ["no_such"]}, "unknown audit 'no_such'"),
        ({"audits": [{"closest_record": {"alpah": 1}}]}, "unknown field 'alpah'"),
        ({"audits": [{"closest_record": {"alpha": 2}}]}, "alpha must be in"),
        ({"audits": [{"closest_record": {"alpha": "much"}}]}, "alpha"),
    ],
)
def test_check_refuses_plugins_that_cannot_be_built(value, named):
    plan = parse_plan(value)
    with pytest.raises(PlanError, match=named.replace("(", r"\(")):
        plan.check()


@pytest.mark.parametrize("value", [None, [], "text", 3])
def test_a_plan_is_a_mapping(value):
    with pytest.raises(PlanError, match="not a mapping"):
        parse_plan(value)


def test_labels_are_normalised_as_in_the_data():
    plan = parse_plan(
        {"columns": {"x": {"categories": [True, False, 1, 2.0, 2.5, "a", datetime.date(2020, 1, 2)]}}}
    )
    assert plan.columns["x"].categories == ("true", "false", "1", "2", "2.5", "a", "2020-01-02")


def test_roles_are_one_or_many():
    plan = parse_plan({"columns": {"x": {"role": "target"}, "y": {"role": ["target", "sensitive"]}}})
    assert plan.columns["x"].roles == ("target",)
    assert plan.columns["y"].roles == ("target", "sensitive")


@pytest.mark.parametrize(
    ("path", "source"), [("t.parquet", "parquet"), ("t.CSV", "csv"), ("dir/t.csv", "csv")]
)
def test_a_bare_path_chooses_its_source(path, source):
    choice = parse_plan({"source": path}).source
    assert (choice.name, choice.config) == (source, {"path": path})


@pytest.mark.parametrize("path", ["t.txt", "dir/t.parquet.gz", "dir/t", "./t", "t.xlsx"])
@pytest.mark.parametrize("key", ["source", "release"])
def test_a_path_that_no_source_reads_names_the_suffixes(path, key):
    with pytest.raises(PlanError, match="no source reads the file") as caught:
        parse_plan({key: path})
    assert path in caught.value.what
    assert caught.value.where == key
    assert ".csv, .ddb, .duckdb, .parquet" in caught.value.expected


def test_a_bare_database_file_needs_a_table():
    with pytest.raises(PlanError, match="exactly one of table and query") as caught:
        parse_plan({"source": "warehouse.duckdb"}).check()
    assert "{duckdb: {path: ..., table: ...}}" in str(caught.value)


def test_a_source_that_lists_suffixes_takes_a_path():
    for ref in registry.catalogue("source").values():
        cls = ref.load()
        assert not cls.info.suffixes or "path" in registry.field_names(cls), ref.name


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"generator": "vine"}, {"generator": {"vine": {}}}),
        ({"generator": "vine"}, {"generator": {"vine": None}}),
        ({"seed": 0}, {}),
        ({"source": "a.csv"}, {"source": {"csv": {"path": "a.csv"}}}),
        ({"seed": 1, "level": 0.9}, {"level": 0.9, "seed": 1}),
        ({"columns": {"x": {"role": "target"}}}, {"columns": {"x": {"role": ["target"]}}}),
    ],
)
def test_digest_does_not_depend_on_layout(one, other):
    assert parse_plan(one).digest == parse_plan(other).digest


@pytest.mark.parametrize(
    "other",
    [
        {"seed": 2},
        {"seed": 1, "level": 0.9},
        {"seed": 1, "audits": ["exact_match"]},
        {"seed": 1, "suppression": 11},
    ],
)
def test_digest_depends_on_every_setting(other):
    assert parse_plan({"seed": 1}).digest != parse_plan(other).digest


def test_plain_form_gives_the_same_plan():
    plan = parse_plan(yaml.safe_load(EXAMPLE))
    assert parse_plan(plan.plain()).digest == plan.digest


def test_a_file_gives_its_name_and_folder_and_layout_does_not_matter(tmp_path):
    first, second = tmp_path / "my table.yaml", tmp_path / "sub" / "my table.yaml"
    second.parent.mkdir()
    first.write_text("seed: 3\naudits: [exact_match]\n")
    second.write_text("# a comment\naudits:\n  - exact_match: {}\nseed:   3\n")
    one, other = load_plan(first), load_plan(str(second))
    assert one.name == "my_table"
    assert one.base == tmp_path
    assert other.base == second.parent
    assert one.digest == other.digest


@pytest.mark.parametrize("text", ["a: [", "- 1\n- 2", "just text", ""])
def test_a_file_that_is_no_mapping_is_refused(tmp_path, text):
    path = tmp_path / "plan.yaml"
    path.write_text(text)
    with pytest.raises(PlanError) as caught:
        load_plan(path)
    assert str(path) in caught.value.where


def test_a_file_that_is_not_there_or_no_text_is_refused(tmp_path):
    (tmp_path / "plan.yaml").write_bytes(b"\xff\xfe\x00")
    for name in ("plan.yaml", "absent.yaml"):
        with pytest.raises(PlanError, match="cannot be read"):
            load_plan(tmp_path / name)


@pytest.mark.parametrize("part", ["source", "generator", "release"])
def test_building_what_the_plan_does_not_name_is_refused(part):
    with pytest.raises(PlanError, match=f"the plan has no {part}"):
        getattr(Plan(), f"build_{part}")()


def test_no_audits_means_the_usual_ones():
    usual = [n for n, ref in registry.catalogue("audit").items() if ref.load().info.default]
    assert list(Plan().build_audits()) == usual
    assert {"exact_match", "closest_record"} < set(usual)


def test_a_sweep_is_no_part_of_what_an_audit_rests_on():
    plain = parse_plan({"generator": "vine"})
    swept = parse_plan({"generator": "vine", "frontier": {"vary": {"truncation": [1, None]}}})
    assert swept.digest == plain.digest
    assert "frontier" not in swept.plain()
    assert swept.frontier.vary == {"truncation": (1, None)}


def test_the_schema_knows_the_generators_of_a_sweep():
    schema = plan_schema()
    jsonschema.validate({"frontier": {"generators": ["independent", {"vine": {"truncation": 2}}]}}, schema)
    for generators in ([{"vine": {"trunc": 2}}], [3]):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({"frontier": {"generators": generators}}, schema)


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
