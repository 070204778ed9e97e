"""The form of the evidence file: strict, and its own."""

import copy
import gzip
import json
import math
import tarfile
from dataclasses import fields, replace
from pathlib import Path

import jsonschema
import pytest
from pydantic import ValidationError

from synth_audit import api
from synth_audit.build import build_version
from synth_audit.dp import accountant
from synth_audit.dp import guarantee as dp
from synth_audit.errors import DataError
from synth_audit.findings import measurement
from synth_audit.findings.measurement import Interval, read
from synth_audit.store import evidence as store
from synth_audit.store import journal
from synth_audit.store.evidence import evidence_of, evidence_schema, parse_evidence, read_evidence, sha256_of
from synth_audit.store.locate import table_history

DATA = Path(__file__).parent / "data"


def test_what_differs_in_the_file_are_fields_that_there_are():
    differing = [*store.FORM.narrowed, *store.FORM.renamed]
    assert [(kind, name) for kind, name in differing if name not in {f.name for f in fields(kind)}] == []


def bare(schema):
    """A JSON Schema without words for readers, and without what some versions of pydantic alone say."""
    if isinstance(schema, list):
        return [bare(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    words = {k for k in ("title", "description") if isinstance(schema.get(k), str)}
    free = {"additionalProperties"} if schema.get("additionalProperties") is True else set()
    return {k: bare(v) for k, v in schema.items() if k not in words | free}


def test_the_format_is_frozen():
    """A field that is added, renamed or of another type anywhere in evidence is another format."""
    frozen = json.loads((DATA / "evidence-1.0.schema.json").read_text())
    assert bare(store.evidence_schema()) == frozen


def test_a_frozen_file_is_read_and_written_to_the_last_byte():
    text = gzip.decompress((DATA / "evidence-1.0.json.gz").read_bytes()).decode()
    found = parse_evidence(text)
    assert found.to_json() == text
    assert found.intact
    assert not replace(found, seed=found.seed + 1).intact


@pytest.fixture
def evidence(build):
    """Evidence in which everything occurs."""
    head = journal.Head(12, "cd" * 32)
    before = store.EarlierAudit("2026-11-01T09:00:00+00:00", "ab" * 32, "cd" * 32, "fail", "ef" * 32)
    found = replace(build.passing(), attempt=7, ledger=head, earlier=(before,), salt_commitment="ab" * 32)
    spent = dp.MechanismRecord(
        what="marginals", mechanism=dp.Mechanism.GAUSSIAN, noise_multiplier=5.0, epsilon_alone=0.7
    )
    guarantee = dp.PrivacyGuarantee(
        dp.Unit.ENTITY, dp.Neighbouring.REPLACE, 1.0, 1e-5, "PLD", (spent,), ("a",), ("b",)
    )
    account = accountant.PrivacyAccount(guarantee=guarantee, mechanisms=(spent,), table_epsilon=2.0)
    curve = measurement.Series(
        read("generator.loss[train]"), "Loss", "line", "step", "loss", (1.0, 2.0), {"train": (0.5, 0.25)}
    )
    found = replace(found, generator=replace(found.generator, privacy=account, training=(curve,)))
    blockers = replace(found.gates, blockers=("an audit failed",))
    return replace(found, gates=blockers, outcomes=(*found.outcomes, *build.failing().outcomes)).sealed()


def test_what_is_written_is_read_again(evidence):
    again = parse_evidence(evidence.to_json())
    assert again == evidence
    assert again.intact
    assert again.to_json() == evidence.to_json()


FREE = {"plan", "config", "suite", "versions", "timings", "lines", "tables"}
"""Mappings whose keys are the user's."""


def mappings(plain, path=()):
    """Paths of all mappings whose keys this version knows."""
    if isinstance(plain, dict):
        yield path
        inner = [(k, v) for k, v in plain.items() if k not in FREE]
        inner += [(f"tables/{k}", v) for k, v in plain.get("tables", {}).items()]
    else:
        inner = list(enumerate(plain)) if isinstance(plain, list) else []
    for key, value in inner:
        steps = key.split("/") if isinstance(key, str) else [key]
        yield from mappings(value, (*path, *steps))


def inside(plain, path):
    for key in path:
        plain = plain[key]
    return plain


def refused(plain):
    """True when a file with this content is no evidence."""
    try:
        parse_evidence(plain if isinstance(plain, str) else json.dumps(plain))
    except ValueError:
        return True
    return False


def kinds_of_mappings(plain):
    """One path for each kind of mapping, such as a measurement's interval, wherever it stands."""
    return {tuple(k for k in path if isinstance(k, str)): path for path in mappings(plain)}.values()


def kinds_within(plain, kind=()):
    """Each kind of mapping and each of its keys, wherever they occur."""
    if isinstance(plain, dict):
        return {kind}.union(*(kinds_within(v, (*kind, k)) | {(*kind, k)} for k, v in plain.items()))
    return set().union(*(kinds_within(v, kind) for v in plain)) if isinstance(plain, list) else set()


def cut(plain, kind=()):
    """The same with fewer parts: of each list those with a mapping or key that none before has."""
    if isinstance(plain, dict):
        return {key: cut(value, (*kind, key)) for key, value in plain.items()}
    if not isinstance(plain, list) or not any(isinstance(part, dict | list) for part in plain):
        return plain
    seen, kept = set(), []
    for part in plain:
        within = kinds_within(part, kind)
        if not kept or within - seen:
            seen |= within
            kept.append(cut(part, kind))
    return kept


@pytest.mark.parametrize("key", ["approved", "v\u0435rdict", "value ", "__class__", ""])
def test_an_unknown_key_anywhere_is_refused(evidence, key):
    whole = json.loads(evidence.to_json())
    plain = cut(whole)
    paths = kinds_of_mappings(plain)
    assert len(paths) > 20
    assert {str(kind) for kind in kinds_within(plain)} == {str(kind) for kind in kinds_within(whole)}
    assert not refused(plain)
    assert refused(whole | {key: "x"})
    for path in paths:
        changed = copy.deepcopy(plain)
        inside(changed, path)[key] = "x"
        assert refused(changed)


def test_a_missing_key_anywhere_is_refused(evidence):
    plain = cut(json.loads(evidence.to_json()))
    assert not refused(plain)
    for path in kinds_of_mappings(plain):
        for key in inside(plain, path):
            if path == ("tables",):
                continue
            changed = copy.deepcopy(plain)
            del inside(changed, path)[key]
            assert refused(changed)


def test_a_doubled_key_anywhere_is_refused(evidence):
    text = evidence.to_json()
    keys = {line.split('"')[1] for line in text.splitlines() if '": ' in line}
    assert {"verdict", "plan", "low", "seed", "rows"} <= keys
    for key in keys:
        at = text.index(f'"{key}": ')
        assert refused(f'{text[:at]}"{key}": null, {text[at:]}')


WRONG = {
    "seed": [5.0, "5", True, None, [5]],
    "level": ["0.95", "nan", True, None, "inf"],
    "suppression": [-1, 1.5, True],
    "verdict": ["PASS", "passed", None, 1, ""],
    "fitness": ["YES", "pass", None, True, ""],
    "plan_sha256": ["0" * 63, "g" * 64, "A" * 64, ""],
    "warnings": ["one", {"a": "b"}, [1]],
    "attempt": [-1, 7.0, None, True],
    "ledger": [{"lines": -1, "digest": "0" * 64}, {"lines": 1, "digest": ""}, 7],
    "tables": [{"synthet\u0456c": {"rows": 1, "hmac": "", "sha256": None}}, [], None],
    "created": [None, 2026],
    "table": ["\ud800", None, 1],
    "schema_version": ["1.1", 1.0, None, "1.0 "],
    "gates": [None, []],
}


@pytest.mark.parametrize("key", sorted(WRONG))
def test_another_type_or_range_is_refused(evidence, key):
    plain = json.loads(evidence.to_json())
    for value in WRONG[key]:
        assert refused(plain | {key: value})


@pytest.mark.parametrize(
    "word", ["NaN", "Infinity", "-Infinity", "1e999999", "9" * 5000, "01", "0x1", "[" * 9999]
)
def test_numbers_that_are_none_are_refused(evidence, word):
    text = evidence.to_json()
    assert '"seed": 7' in text
    assert refused(text.replace('"seed": 7', f'"seed": {word}'))


def test_a_name_that_cannot_be_read_is_refused(evidence):
    plain = json.loads(evidence.to_json())
    for name in ("", "a.b[", "a.b[by]", 'a.b["x]', "a..b"):
        changed = copy.deepcopy(plain)
        changed["outcomes"][0]["measurements"][0]["id"] = name
        assert refused(changed)


@pytest.mark.parametrize("version", ["0.9", "1.0.0", "1.1", "1.7", "2.0", "1.0 "])
def test_another_format_is_refused_by_its_name(evidence, version):
    plain = json.loads(evidence.to_json()) | {"schema_version": version}
    with pytest.raises(DataError, match=f"evidence of format {version}".strip()) as caught:
        evidence_of(json.dumps(plain).encode(), Path("here/evidence.json"))
    error = caught.value
    assert (error.where, error.expected) == ("here/evidence.json", "evidence.json in format 1.0")
    assert "run the audit again" in error.fix
    assert len(f"{error.what} {error.where} {error.expected} {error.fix}".split()) <= 40


def test_a_format_that_is_no_text_is_no_evidence(evidence):
    plain = json.loads(evidence.to_json())
    for version in (1.0, None, ["1.0"]):
        with pytest.raises(DataError, match="the file is not evidence"):
            evidence_of(json.dumps(plain | {"schema_version": version}).encode(), Path("evidence.json"))


def measured(evidence, **changes):
    """The evidence with another first measurement."""
    first, *rest = evidence.outcomes
    odd = replace(first.measurements[0], **changes)
    return replace(evidence, outcomes=(replace(first, measurements=(odd,)), *rest))


@pytest.mark.parametrize(
    "changes",
    [
        {"value": "much"},
        {"value": None},
        {"n_achieved": 1.5},
        {"unit": 7},
        {"direction": "upwards"},
        {"interval": measurement.Interval(0.0, 1.0, 0.95, None)},
        {"id": "a.b["},
    ],
    ids=str,
)
def test_what_could_not_be_read_is_not_written(evidence, changes):
    with pytest.raises(ValueError, match=r"[Oo]utcomes|measurement|[Ss]erializ"):
        measured(evidence, **changes).to_json()


def test_a_whole_number_is_written_as_the_number_that_is_read(evidence):
    whole = measured(evidence, value=1, interval=measurement.Interval(0, 2, 0.95, "x")).sealed()
    again = parse_evidence(whole.to_json())
    assert again.digest == again.sealed().digest
    assert again.to_json() == whole.to_json()
    assert '"low": 0.0' in whole.to_json()


def test_a_number_that_json_lacks_is_a_word_wherever_it_stands(evidence):
    picture = replace(evidence.generator.training[0], x=(math.nan, math.inf))
    odd = replace(
        evidence,
        plan={"limit": math.inf, "list": [math.nan]},
        generator=replace(evidence.generator, training=(picture,)),
    )
    plain = json.loads(odd.to_json())
    assert plain["plan"] == {"limit": "Infinity", "list": ["NaN"]}
    assert plain["generator"]["training"][0]["x"] == ["NaN", "Infinity"]
    assert [str(x) for x in parse_evidence(odd.to_json()).generator.training[0].x] == ["nan", "inf"]


PLACES = [
    (("outcomes", 0, "measurements", 0, "id"), "a.b[", "the name of a measurement cannot be read"),
    (("outcomes", 0, "measurements", 0, "value"), "0.5", "valid number"),
    (("outcomes", 0, "measurements", 0, "value"), None, "valid number"),
    (("ledger", "lines"), -1, "greater than or equal to 0"),
    (("tables", "train", "rows"), 1.5, "valid integer"),
    (("generator", "privacy", "mechanisms", 0, "mechanism"), "magic", "gaussian"),
    (("gates", "results", 0, "result"), "PASS", "insufficient evidence"),
]


@pytest.mark.parametrize(("path", "value", "said"), PLACES, ids=str)
def test_an_error_names_the_place(evidence, path, value, said):
    plain = json.loads(evidence.to_json())
    inside(plain, path[:-1])[path[-1]] = value
    with pytest.raises(ValidationError) as caught:
        parse_evidence(json.dumps(plain))
    [error] = caught.value.errors()
    assert error["loc"] == path
    assert said in error["msg"]


def test_a_spending_that_cannot_have_been_is_refused(evidence):
    plain = json.loads(evidence.to_json())
    plain["generator"]["privacy"]["mechanisms"][0]["noise_multiplier"] = None
    with pytest.raises(ValueError, match="the gaussian mechanism cannot be accounted for"):
        parse_evidence(json.dumps(plain))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 0.1 + 0.2, 1e-300])
def test_odd_numbers_survive_a_round_trip(evidence, value):
    text = (
        measured(evidence, value=value, interval=Interval(-math.inf, value, 0.95, "odd")).sealed().to_json()
    )
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    again = parse_evidence(text)
    assert again.intact
    found = again.outcomes[0].measurements[0].value
    assert found == value or (math.isnan(found) and math.isnan(value))


def test_the_file_follows_its_published_schema_and_a_round_trip_changes_nothing(complete):
    schema, text = evidence_schema(), complete.workspace.newest.evidence.read_text()
    jsonschema.Draft202012Validator.check_schema(schema)
    plain, checker = json.loads(text), jsonschema.Draft202012Validator(schema)
    checker.validate(plain)
    assert not checker.is_valid({k: v for k, v in plain.items() if k != "verdict"})
    again = parse_evidence(text)
    assert (again, again.to_json()) == (complete.evidence, text)
    assert again.intact


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


@pytest.fixture
def workspace(tmp_path):
    with tarfile.open(DATA / "workspace-0.1.0.tar.gz") as archive:
        archive.extractall(tmp_path / "old", filter="tar")  # which keeps the modes
    return tmp_path / "old/audit"


def test_it_is_read(workspace):
    evidence = api.load_evidence(workspace)
    assert (str(evidence.verdict), evidence.schema_version) == ("pass", "1.0")
    assert evidence.digest == workspace_digest(workspace)
    [audit] = table_history(workspace).audits
    assert (audit.sound, audit.out) == (True, True)


def test_it_is_verified_with_its_tables(workspace):
    checks = api.verify(workspace, {"synthetic": workspace.parent / "released.parquet"})
    assert [(c.what, c.detail) for c in checks if c.holds is False] == []
    held = {c.what for c in checks if c.holds}
    assert {f"content of {name}" for name in ("train", "control", "synthetic")} <= held
    assert "verdict, judged anew" in held


def test_it_is_reported_again(workspace, tmp_path):
    assert "<html" in api.render_report(workspace, tmp_path / "report.html")
    assert api.write_certificate(workspace).exists()
    assert not api.compare(workspace, workspace).changed


def workspace_digest(workspace):
    [folder] = (workspace / "review/audits").iterdir()
    return folder.name
