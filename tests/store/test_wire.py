"""The form of the evidence file: strict, its own, and able to read what older versions wrote."""

from __future__ import annotations

import copy
import gzip
import json
from dataclasses import fields, replace
from pathlib import Path

import pytest

from synth_audit import api
from synth_audit.core import (
    accounting,
    audit,
    exposed_groups,
    measurement,
    outcome,
    sensitivity,
    series,
    verdict,
)
from synth_audit.core.identity import read
from synth_audit.core.verdict import Result
from synth_audit.pipeline.verify import verify
from synth_audit.report import render_report
from synth_audit.store import chained_log
from synth_audit.store import evidence as store
from synth_audit.store.evidence import parse_evidence, sha256_of
from synth_audit.store.wire_v1 import OUTSIDE, audit_models, models
from synth_audit.store.wire_v1.upgrades import _STEPS

DATA = Path(__file__).parent / "data"
OLD = sorted(DATA.glob("evidence-*.json.gz"))

FORMS = [
    (accounting.MechanismRecord, models.WireMechanism),
    (accounting.PrivacyAccount, models.WireAccount),
    (accounting.PrivacyGuarantee, models.WireGuarantee),
    (audit.AuditInfo, audit_models.WireAuditInfo),
    (exposed_groups.ExposedGroup, models.WireExposedGroup),
    (exposed_groups.RecordView, models.WireRecords),
    (exposed_groups.Subgroup, models.WireSubgroup),
    (measurement.Estimate, audit_models.WireEstimate),
    (measurement.Interval, audit_models.WireInterval),
    (measurement.Measurement, audit_models.WireMeasurement),
    (measurement.Quantity, audit_models.WireQuantity),
    (measurement.Reference, audit_models.WireReference),
    (series.Series, audit_models.WireSeries),
    (outcome.AuditOutcome, audit_models.WireOutcome),
    (sensitivity.PlantedLeaks, models.WirePlantedLeaks),
    (sensitivity.PlantedResult, audit_models.WirePlantedResult),
    (sensitivity.SensitivityCurve, audit_models.WireSensitivityCurve),
    (verdict.GateReport, models.WireGates),
    (verdict.GateResult, models.WireGateResult),
    (verdict.TableCheck, models.WireTableCheck),
    (chained_log.Head, models.WireLedgerHead),
    (store.ColumnRecord, models.WireColumn),
    (store.EarlierAudit, models.WireEarlierAudit),
    (store.Evidence, models.WireEvidence),
    (store.GeneratorRecord, models.WireGenerator),
    (store.TableRecord, models.WireTable),
]
NOT_IN_THE_FILE = {store.Evidence: {"older"}}
NOT_WITHIN = {models.WireEvidence: {"schema_version"}}
OTHERWISE_NAMED = {sensitivity.SensitivityCurve: {"sensitivity": "sight"}}
"""What the file calls by a word of its own, which stays as it is when the code is renamed."""


@pytest.mark.parametrize(("within", "form"), FORMS, ids=lambda c: c.__name__)
def test_nothing_that_is_known_is_left_out_of_the_file(within, form):
    """A field that is added or renamed within must be told to ``writing`` and ``reading``."""
    names = OTHERWISE_NAMED.get(within, {})
    known = {names.get(f.name, f.name) for f in fields(within)} - NOT_IN_THE_FILE.get(within, set())
    assert known == set(form.model_fields) - NOT_WITHIN.get(form, set())


@pytest.fixture
def evidence(build):
    """Evidence in which everything occurs."""
    head = chained_log.Head(12, "cd" * 32)
    before = store.EarlierAudit("2026-11-01T09:00:00+00:00", "ab" * 32, "cd" * 32, "fail", "ef" * 32)
    found = replace(build.passing(), attempt=7, ledger=head, earlier=(before,), salt_commitment="ab" * 32)
    spent = accounting.MechanismRecord(
        what="marginals", mechanism=accounting.Mechanism.GAUSSIAN, noise_multiplier=5.0, epsilon_alone=0.7
    )
    guarantee = accounting.PrivacyGuarantee(
        accounting.Unit.ENTITY, accounting.Neighbouring.REPLACE, 1.0, 1e-5, "PLD", (spent,), ("a",), ("b",)
    )
    account = accounting.PrivacyAccount(guarantee=guarantee, mechanisms=(spent,), table_epsilon=2.0)
    curve = series.Series(
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
    "schema_version": ["1.8", 1.7, None, "1.7 "],
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


def text_of(path):
    return gzip.decompress(path.read_bytes()).decode()


@pytest.fixture(scope="module", params=OLD, ids=lambda p: p.name.removesuffix(".json.gz"))
def old(request):
    """Text of an evidence file of an earlier version."""
    return text_of(request.param)


@pytest.fixture(scope="module")
def short(old):
    """The same file with one part of each kind and the digest of that."""
    plain = json.loads(old)
    less = cut(plain)
    assert kinds_within(less) == kinds_within(plain)
    less["digest"] = sha256_of({k: v for k, v in less.items() if k not in ("digest", *OUTSIDE)})
    assert parse_evidence(json.dumps(less)).intact
    return less


def test_there_are_files_of_every_version_before():
    kept = {
        "1.1": ("pass", "fail", "scopes"),
        "1.2": ("pass", "budget"),
        "1.3": ("pass", "budget"),
        "1.4": ("pass", "budget"),
        "1.5": ("pass",),
        "1.6": ("pass",),
    }
    assert {p.name for p in OLD} >= {f"evidence-{v}-{k}.json.gz" for v, kinds in kept.items() for k in kinds}
    assert set(kept) == set(_STEPS)


def test_an_old_file_is_read_and_judged_as_it_was(old):
    plain, found = json.loads(old), parse_evidence(old)
    assert (found.schema_version, found.digest) == (plain["schema_version"], plain["digest"])
    assert found.attempt == plain.get("attempt", 0)
    assert found.verdict == plain["verdict"]
    checks = {c.what: c.holds for c in verify(found)}
    assert all(holds is not False for holds in checks.values())
    assert checks["digest of the evidence"]
    assert checks["verdict, judged anew"]
    assert {r.gate: (str(r.result), r.value, r.low, r.high) for r in found.gates.results} == {
        r["gate"]: (r["result"], r["value"], r["low"], r["high"]) for r in plain["gates"]["results"]
    }
    assert [m.value for m in found.measurements] == [
        m["value"] for o in plain["outcomes"] for m in o["measurements"]
    ]
    assert plain["digest"] in render_report(found)


def test_an_old_file_that_was_altered_is_not_intact(old, short):
    found = parse_evidence(json.dumps(short))
    for key, value in {
        "seed": 1,
        "verdict": "insufficient evidence",
        "warnings": ["x"],
        "level": 0.5,
    }.items():
        changed = parse_evidence(json.dumps(short | {key: value}))
        assert not changed.intact
        assert not replace(found, **{key: getattr(changed, key)}).intact
    for plain in (short, json.loads(old)):
        measured = copy.deepcopy(plain)
        measured["outcomes"][-1]["measurements"][-1]["value"] = 0.5
        assert not parse_evidence(json.dumps(measured)).intact
        assert parse_evidence(json.dumps(plain | {"created": "later"})).intact


def test_an_old_file_is_read_as_strictly(old, short):
    for path in kinds_of_mappings(short):
        changed = copy.deepcopy(short)
        inside(changed, path)["approved"] = "x"
        assert refused(changed)
    for key in short:
        assert refused({k: v for k, v in short.items() if k != key})
    whole = json.loads(old)
    assert refused(whole | {"approved": "x"})
    whole["outcomes"][-1]["measurements"][-1]["approved"] = "x"
    assert refused(whole)
    assert refused(old.replace('"verdict":', '"verdict": "pass", "verdict":', 1))


def test_sealed_again_an_old_file_is_one_of_this_version(old):
    again = parse_evidence(old).sealed()
    assert again.schema_version == models.VERSION
    assert parse_evidence(again.to_json()) == again
    assert again.intact


def test_names_of_version_1_1_are_read_by_what_they_meant():
    found = parse_evidence(text_of(DATA / "evidence-1.1-scopes.json.gz"))
    known = {str(m.id) for m in found.measurements}
    assert known >= {
        'marginals.total_variation[by "by radius"]',
        'associations.reference_ratio[of difference[by "smooth[ness]"]]',
        'singling_out.risk["multivariate[4]"]',
        'membership_game.privacy_gain["outlying, naive"]',
        "inference.worst_subgroup[by diagnosis of risk[by texture]]",
        'attribute_game.mse["outlying targets" by texture]',
        "inference.leak_equivalent[of risk[by texture]]",
    }
    gates = {g.gate: g for g in found.gates.results}
    assert gates["each"].every
    assert gates["column"].measurement == read('marginals.total_variation[by "by radius"]')
    assert {str(g.id) for g in found.records.groups} >= {
        "exact_match.record_excess",
        "inference.risk[by texture]",
    }
    [boxes] = [s for o in found.outcomes for s in o.series if s.places] or [None]
    assert boxes is None or boxes.id == read("membership_game.privacy_gain")


@pytest.mark.parametrize(
    ("certificate", "reason"),
    [
        (("none", "no noise", None, None), "no noise"),
        (
            ("differential privacy", "I said so", 1.5, 1e-5),
            "differential privacy, epsilon 1.5, delta 1e-05, claimed and not accounted for: I said so",
        ),
        (("differential privacy", "x", None, None), "differential privacy, claimed and not accounted for: x"),
    ],
)
def test_what_a_generator_claimed_by_itself_guarantees_nothing(certificate, reason):
    plain = json.loads(text_of(DATA / "evidence-1.2-pass.json.gz"))
    assert plain["generator"]["privacy"] is None
    claim = dict(zip(("claim", "reason", "epsilon", "delta"), certificate, strict=True))
    plain["generator"]["certificate"] = claim
    account = parse_evidence(json.dumps(plain)).generator.privacy
    assert account == accounting.PrivacyAccount(guarantee=None, reason=reason)
    for wrong in ({"claim": "none"}, {**claim, "unit": "row"}, None):
        plain["generator"]["certificate"] = wrong
        assert refused(plain)


def test_what_was_accounted_for_stays(old):
    plain = json.loads(old)
    account = plain["generator"].get("privacy")
    read = parse_evidence(old).generator.privacy
    if account is None:
        assert read.guarantee is None
        assert read.reason == plain["generator"]["certificate"]["reason"]
    else:
        said = account["guarantee"]
        assert (read.guarantee and read.guarantee.epsilon) == (said and said["epsilon"])
        assert [m.what for m in read.mechanisms] == [m["what"] for m in account["mechanisms"]]
        assert read.table_epsilon == account["table_epsilon"]


def test_an_old_file_can_be_judged_by_another_suite(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evidence.json").write_text(text_of(DATA / "evidence-1.1-fail.json.gz"))
    judged = api.gate("evidence.json", "sensitive")
    assert judged.verdict is Result.FAIL
    assert judged.intact


def test_measurements_of_an_old_audit_are_compared_too(tmp_path):
    text = text_of(DATA / "evidence-1.1-pass.json.gz")
    folder = tmp_path / "kept"
    folder.mkdir()
    (folder / "evidence.json").write_text(text)
    table = (DATA / "measurements-1.1-pass.parquet").read_bytes()
    (folder / "measurements.parquet").write_bytes(table)
    assert {c.what: c.holds for c in api.verify(folder)}["measurements, built anew"]
    changed = json.loads(text)
    changed["outcomes"][0]["measurements"][0]["value"] = 0.5
    changed["digest"] = sha256_of(
        {k: v for k, v in changed.items() if k not in ("digest", "created", "timings")}
    )
    (folder / "evidence.json").write_text(json.dumps(changed))
    assert {c.what: c.holds for c in api.verify(folder)}["measurements, built anew"] is False
