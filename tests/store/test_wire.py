"""The form of the evidence file: strict, and its own."""

from __future__ import annotations

import copy
import json
from dataclasses import fields, replace
from pathlib import Path

import pytest

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
from synth_audit.core.errors import DataError
from synth_audit.core.identity import read
from synth_audit.store import chained_log
from synth_audit.store import evidence as store
from synth_audit.store.evidence import evidence_of, parse_evidence
from synth_audit.store.wire_v1 import audit_models, models

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
NOT_WITHIN = {models.WireEvidence: {"schema_version"}}
OTHERWISE_NAMED = {sensitivity.SensitivityCurve: {"sensitivity": "sight"}}
"""What the file calls by a word of its own, which stays as it is when the code is renamed."""


@pytest.mark.parametrize(("within", "form"), FORMS, ids=lambda c: c.__name__)
def test_nothing_that_is_known_is_left_out_of_the_file(within, form):
    """A field that is added or renamed within must be told to ``writing`` and ``reading``."""
    names = OTHERWISE_NAMED.get(within, {})
    known = {names.get(f.name, f.name) for f in fields(within)}
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
