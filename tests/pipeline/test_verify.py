import json
import shutil
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from synth_audit import api, cli, registry
from synth_audit.cli.terminal import Exit, verify_code
from synth_audit.errors import DataError, PlanError
from synth_audit.execution.seeds import Salt
from synth_audit.findings.verdict import Result
from synth_audit.pipeline.verify import verify
from synth_audit.store.evidence import parse_evidence
from synth_audit.store.salts import known_salt
from synth_audit.store.workspace import Workspace
from synth_audit.table.content_hash import fingerprint

DIGEST, PLAN, SUITE, VERDICT = (
    "digest of the evidence",
    "hash of the plan",
    "hash of the gate suite",
    "verdict, judged anew",
)


SALT = Salt(bytes(range(32)))


def broken(evidence, tables=None):
    hashes = {name: fingerprint(table) for name, table in (tables or {}).items()}
    return {c.what for c in verify(evidence, hashes, SALT) if not c.holds}


def test_untouched_evidence_holds(finished):
    checks = verify(finished.evidence, salt=SALT)
    assert [c.what for c in checks] == [DIGEST, PLAN, SUITE, VERDICT, "commitment to the salt"]
    assert all(c.holds for c in checks)
    assert checks[3].detail == "pass; fit for purpose: not tested"


def _gates(evidence, **changes):
    return replace(evidence, gates=replace(evidence.gates, **changes))


def _looser_suite(evidence):
    suite = json.loads(json.dumps(evidence.gates.suite))
    suite["expectations"][0]["kwargs"]["maximum"] = 0.9
    return suite


def _all_failed(evidence):
    return tuple(replace(r, result=Result.FAIL) for r in evidence.gates.results)


def _worse(evidence):
    found = [o for o in evidence.outcomes if o.audit == "exact_match"]
    others = [o for o in evidence.outcomes if o.audit != "exact_match"]
    worse = tuple(replace(m, value=1.0, interval=None) for m in found[0].measurements)
    return (replace(found[0], measurements=worse), *others)


ALTER = {
    "seed": lambda e: replace(e, seed=e.seed + 1),
    "plan": lambda e: replace(e, plan={**e.plan, "seed": 77}),
    "plan hash": lambda e: replace(e, plan_sha256="0" * 64),
    "suite": lambda e: _gates(e, suite=_looser_suite(e)),
    "suite emptied": lambda e: _gates(e, suite={}),
    "suite hash": lambda e: _gates(e, suite_sha256="0" * 64),
    "gate": lambda e: _gates(e, results=_all_failed(e)),
    "verdict": lambda e: replace(e, verdict=Result.FAIL),
    "value": lambda e: replace(e, outcomes=_worse(e)),
    "outcomes": lambda e: replace(e, outcomes=()),
}


@pytest.mark.parametrize(
    ("part", "fails"),
    [
        ("seed", set()),
        ("plan", {PLAN}),
        ("plan hash", {PLAN}),
        ("suite", {SUITE, VERDICT}),
        ("suite hash", {SUITE}),
        ("verdict", {VERDICT}),
        ("gate", {VERDICT}),
        ("outcomes", {VERDICT}),
        ("value", {VERDICT}),
        ("suite emptied", {SUITE, VERDICT}),
    ],
)
def test_each_check_fails_when_its_part_is_altered(finished, part, fails):
    forged = ALTER[part](finished.evidence)
    assert broken(forged) == fails | {DIGEST}
    assert broken(forged.sealed()) == fails


def test_the_tables_are_compared_with_their_hashes(finished):
    tables = {
        name: pq.read_table(getattr(finished.workspace, name)) for name in ("train", "control", "synthetic")
    }
    tables["source"] = pq.read_table(finished.folder / "people.parquet")
    assert broken(finished.evidence, tables) == set()
    for name, table in tables.items():
        changed = tables | {name: table.slice(1)}
        assert broken(finished.evidence, changed) == {f"content of {name}"}
    swapped = {"train": tables["control"], "control": tables["train"]}
    assert broken(finished.evidence, swapped) == {"content of train", "content of control"}


def test_a_table_that_was_never_audited_does_not_hold(finished):
    evidence = replace(finished.evidence, tables={}).sealed()
    assert broken(evidence, {"train": pa.table({"a": [1]})}) == {"content of train"}


def test_it_works_when_the_plug_ins_are_gone(finished, monkeypatch):
    text = finished.workspace.newest.evidence.read_text()
    for package in registry._PACKAGES:
        monkeypatch.setitem(registry._PACKAGES, package, ())
    registry._built_in.cache_clear()
    try:
        with pytest.raises(PlanError):
            registry.find("audit", "exact_match")
        assert all(c.holds for c in verify(parse_evidence(text), salt=SALT))
    finally:
        registry._built_in.cache_clear()


TABLES = ("source", "train", "control", "synthetic")


@pytest.fixture
def elsewhere(case, tmp_path):
    """The evidence by itself, as it is sent to another machine, and files of all its tables."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    shutil.copy(case.workspace.newest.evidence, folder / "evidence-of-people.json")
    shutil.copy(case.folder / "people.parquet", folder / "source.parquet")
    for name in TABLES[1:]:
        shutil.copy(getattr(case.workspace, name), folder / f"{name}.parquet")
    return folder


def contents(folder, *named, salt=None):
    """Which tables hold, do not, or cannot be told."""
    tables = {name: folder / f"{name}.parquet" for name in named}
    checks = api.verify(folder / "evidence-of-people.json", tables, salt=salt)
    return {c.what.removeprefix("content of "): c.holds for c in checks if c.what.startswith("content")}


def ended(*words):
    """Exit code and output of a command."""
    result = CliRunner().invoke(cli.main, [str(w) for w in words])
    assert "Traceback" not in result.output
    return Exit(result.exit_code), result.output


def test_without_the_salt_the_released_table_alone_is_checked(elsewhere):
    assert contents(elsewhere) == dict.fromkeys(TABLES)
    assert contents(elsewhere, *TABLES) == dict.fromkeys(TABLES[:3]) | {"synthetic": True}
    shutil.copy(elsewhere / "train.parquet", elsewhere / "synthetic.parquet")
    assert contents(elsewhere, *TABLES) == dict.fromkeys(TABLES[:3]) | {"synthetic": False}


def test_with_the_salt_all_are(elsewhere, case):
    salt = case.workspace.salt
    assert contents(elsewhere, *TABLES, salt=salt) == dict.fromkeys(TABLES, True)
    assert contents(elsewhere, "train", salt=salt) == {"train": True}
    for name, other in zip(TABLES, TABLES[1:] + TABLES[:1], strict=True):
        shutil.copy(elsewhere / f"{other}.parquet", elsewhere / "odd.parquet")
        checks = api.verify(
            elsewhere / "evidence-of-people.json", {name: elsewhere / "odd.parquet"}, salt=salt
        )
        assert [c.holds for c in checks if c.what == f"content of {name}"] == [False]


def test_a_candidate_that_was_refused_cannot_be_told_without_the_salt(make_case, make_gate, tmp_path):
    case = make_case(tmp_path / "case", audits=["exact_match"])
    case.set_gates(make_gate("copies", "exact_match.excess", -0.5))
    api.run(case.plan, case.workspace.root)
    synthetic = {"synthetic": case.synthetic}
    assert [c.holds for c in api.verify(case.evidence, synthetic) if "synthetic" in c.what] == [None]
    [check] = [
        c
        for c in api.verify(case.evidence, synthetic, salt=case.workspace.salt)
        if c.what == "content of synthetic"
    ]
    assert check.holds
    assert check.detail == case.evidence.tables["synthetic"].hmac


def test_in_its_workspace_the_salt_is_found(case):
    checks = {c.what: c.holds for c in api.verify(case.workspace.root)}
    assert {f"content of {name}" for name in TABLES[1:]} | {"commitment to the salt"} <= set(checks)
    assert all(checks.values())
    case.workspace.salt.write_text(Salt(bytes(32)).text())
    checks = {c.what: c.holds for c in api.verify(case.workspace.root)}
    assert {what for what, holds in checks.items() if holds is False} == {
        "commitment to the salt",
        *(f"content of {name}" for name in TABLES[1:]),
    }


def test_a_wrong_salt_is_an_error(elsewhere, case, tmp_path):
    other = Workspace(tmp_path / "other").prepare().salt
    other.write_text(Salt(bytes(32)).text())
    other.chmod(0o600)
    for evidence in (elsewhere / "evidence-of-people.json", case.workspace.root, case.evidence):
        with pytest.raises(DataError, match="not that of the evidence") as caught:
            api.verify(evidence, salt=other)
        assert case.evidence.salt_commitment in caught.value.expected
    other.chmod(0o644)
    with pytest.raises(DataError, match="can be read by others"):
        api.verify(elsewhere / "evidence-of-people.json", salt=other)


def test_each_end_has_an_exit_code_of_its_own(elsewhere, case):
    evidence, salt = elsewhere / "evidence-of-people.json", case.workspace.salt
    released = ("--synthetic", elsewhere / "synthetic.parquet")
    code, said = ended("verify", evidence, *released)
    assert code is Exit.NOT_CHECKABLE
    assert "✓ content of synthetic" in said
    assert "content of train: not checkable here" in said
    code, said = ended("verify", evidence, *released, "--salt", salt)
    assert "not checkable here: the file lies by itself" in said, "the journal alone is out of reach now"
    assert "content of train" not in said
    assert ended("verify", evidence, "--synthetic", elsewhere / "train.parquet")[0] is Exit.NOT_RELEASED
    assert ended("verify", evidence, "--salt", elsewhere / "train.parquet")[0] is Exit.BAD_INPUT
    assert ended("verify", case.workspace.root)[0] is Exit.PASS
    assert "4 not checkable here" in ended("--help")[1]
    assert verify_code(api.verify(case.evidence)) is Exit.NOT_CHECKABLE


def test_files_made_elsewhere_get_a_salt_that_is_kept_with_out_alone(case, tmp_path):
    tables = [case.folder.parent / f"{name}.parquet" for name in TABLES[1:]]
    for name, path in zip(TABLES[1:], tables, strict=True):
        shutil.copy(getattr(case.workspace, name), path)
    plan = {"columns": {"person": {"role": "identifier"}}, "audits": ["exact_match"]}
    plan["gates"] = str(case.folder / "gates.json")
    first, second = api.audit(*tables, plan), api.audit(*tables, plan)
    assert first.salt_commitment == second.salt_commitment == ""
    assert first.measurements == second.measurements
    assert first.tables["synthetic"].sha256 == second.tables["synthetic"].sha256
    kept, again = (api.audit(*tables, plan, out=tmp_path / "out") for _ in range(2))
    workspace = Workspace(tmp_path / "out")
    assert kept.salt_commitment == again.salt_commitment == known_salt(workspace).commitment
    named = dict(zip(TABLES[1:], tables, strict=True))
    assert all(c.holds for c in api.verify(tmp_path / "out", named))
    mine = api.audit(*tables, plan, out=case.workspace.root)
    assert mine.salt_commitment == known_salt(case.workspace).commitment, "one salt for one workspace"
    workspace.salt.unlink()
    with pytest.raises(DataError, match="the salt is missing, but"):
        api.audit(*tables, plan, out=tmp_path / "out")


def test_a_release_takes_the_salt(case):
    out = case.folder / "out-of-the-house"
    salt = case.workspace.salt.read_text()
    case.workspace.salt.unlink()
    with pytest.raises(DataError, match="the salt is missing"):
        api.release(case.folder / "plan.yaml", case.workspace.root)
    case.workspace.salt.write_text(salt)
    case.workspace.salt.chmod(0o604)
    with pytest.raises(DataError, match="can be read by others"):
        api.release(case.folder / "plan.yaml", case.workspace.root)
    assert not out.exists()
    case.workspace.salt.chmod(0o600)
    record = api.release(case.folder / "plan.yaml", case.workspace.root)
    assert pq.read_metadata(out / "released.parquet").num_rows == record.table.rows
