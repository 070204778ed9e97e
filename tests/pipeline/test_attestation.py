"""An attestation is checked without the package, and says nothing of a refused table's cells."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from synth_audit import api
from synth_audit.cli import main
from synth_audit.errors import DataError, NotAsAudited, PlanError, ReleaseRefused

PAGE = Path(__file__).parents[2] / "docs/attestations.md"
URL, LICENCE = "https://data.example.org/people.parquet", "https://creativecommons.org/licenses/by/4.0/"


@pytest.fixture
def released(case):
    """The released file of a finished case."""
    api.release(case.plan, case.workspace.root)
    return case.folder / "out-of-the-house/released.parquet"


@pytest.fixture
def key(tmp_path):
    """Private key in a file, and the public one."""
    return tmp_path / "ann.pem", api.new_key(tmp_path / "ann.pem")


@pytest.fixture
def signed(case, released, key, tmp_path):
    [path] = api.attest(
        case.workspace.root, by="Ann Ohm", key=key[0], to=tmp_path / "attestation.json", file=released
    )
    return path


@pytest.fixture
def check(tmp_path):
    """Runs the script of the page without this package."""
    [script] = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(script.splitlines()) <= 30
    assert "import synth_audit" not in script
    (tmp_path / "check.py").write_text(script)

    def run(*words):
        command = [sys.executable, "-I", "check.py", *map(str, words)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    return run


def statement(path):
    return json.loads(base64.b64decode(json.loads(path.read_text())["payload"]))


def test_another_person_checks_it_without_the_package(signed, key, released, check, case):
    code, said = check(signed, key[1], released)
    assert (code, said.split(": ")[1].split(" on ")[0]) == (0, "verdict pass, signed by Ann Ohm")
    found, evidence = statement(signed)["predicate"], case.evidence
    assert found["evidence"]["digest"] == evidence.digest
    assert found["plan"]["sha256"] == case.plan.digest
    assert found["suite"] == {"name": "small", "sha256": evidence.gates.suite_sha256}


def test_the_check_refuses_what_was_altered(signed, key, released, check, tmp_path):
    envelope = json.loads(signed.read_text())
    altered = base64.b64encode(
        base64.b64decode(envelope["payload"]).replace(b'"Ann Ohm"', b'"Eve Ohm"')
    ).decode()
    signed.with_name("altered.json").write_text(json.dumps(envelope | {"payload": altered}))
    other = tmp_path / "other.parquet"
    other.write_bytes(released.read_bytes() + b"\0")
    another = api.new_key(tmp_path / "eve.pem")
    for words, why in (
        (("altered.json", key[1], released), "altered"),
        ((signed, another, released), "another key"),
        ((signed, key[1], other), "another file"),
    ):
        code, said = check(*words)
        assert (code, said.startswith("REFUSED"), why in said) == (1, True, True)


def test_a_refusal_names_its_evidence_and_no_hash_of_the_candidate(
    make_case, make_gate, key, check, tmp_path
):
    case = make_case(tmp_path / "refused")
    case.set_gates(make_gate("copies", "exact_match.excess", -1.0))
    evidence = api.run(case.plan, case.workspace.root)
    assert not evidence.passed
    [path] = api.attest(case.workspace.root, by="Ann", key=key[0], to=tmp_path / "refusal.json")
    file = case.workspace.newest.evidence
    code, said = check(path, key[1], file)
    assert (code, str(evidence.verdict) in said) == (1, True)
    assert list(statement(path)["subject"][0]["digest"]) == ["sha256"]
    with pytest.raises(ReleaseRefused, match="no release to attest"):
        api.attest(
            case.workspace.root, by="Ann", key=key[0], to=tmp_path / "x", file=case.workspace.synthetic
        )


def test_what_cannot_be_attested(case, released, key, tmp_path):
    ask = {"by": "Ann", "key": key[0], "to": tmp_path / "x.json"}
    with pytest.raises(NotAsAudited, match="rows that passed"):
        api.attest(case.workspace.root, file=case.folder / "people.parquet", **ask)
    with pytest.raises(PlanError, match="description"):
        api.attest(case.workspace.root, file=released, dcat=tmp_path / "d", url="here", **ask)
    with pytest.raises(PlanError, match="name"):
        api.attest(case.workspace.root, **ask | {"by": "two\nlines"})
    assert not ask["to"].exists()
    ask["to"].touch()
    with pytest.raises(DataError, match="already"):
        api.attest(case.workspace.root, **ask)


def test_a_file_with_more_than_the_audited_rows_is_not_attested(case, released, key, tmp_path):
    rows, ask = pq.read_table(released), {"by": "Ann", "key": key[0], "to": tmp_path / "x.json"}
    for what, more in {
        "index": rows.append_column("__index_level_0__", pa.array(range(rows.num_rows))),
        "notes": rows.replace_schema_metadata({"note": "T-5551212"}),
    }.items():
        pq.write_table(more, file := tmp_path / f"{what}.parquet")
        with pytest.raises(NotAsAudited):
            api.attest(case.workspace.root, file=file, **ask)
    assert not ask["to"].exists()


def test_without_a_file_the_content_hash_alone_is_attested(case, key, tmp_path):
    to = tmp_path / "a.json"
    words = ["attest", str(case.workspace.root), "--by", "Ann", "--key", str(key[0]), "--to", str(to)]
    assert CliRunner().invoke(main, words).exit_code == 0
    [subject] = statement(to)["subject"]
    assert subject["digest"] == {"synthAuditTable": case.evidence.tables["synthetic"].sha256}
