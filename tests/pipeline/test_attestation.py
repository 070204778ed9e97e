"""An attestation is checked without the package, and says nothing of a refused table's cells."""

import base64
import json
import re
import shutil
import subprocess
import sys
import zipfile
from dataclasses import replace
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from synth_audit import api
from synth_audit.cli import main
from synth_audit.errors import ApprovalMissing, DataError, NotAsAudited, PlanError, ReleaseRefused
from synth_audit.execution.context import EVIDENCE_KEY
from synth_audit.pipeline import attestation
from synth_audit.store.approvals import parse_approval, read_key, seal_of
from synth_audit.store.files import sha256_of_bytes

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
    content = base64.b64decode(envelope["payload"])
    sig = read_key(key[0]).sign(b"DSSEv1 10 text/plain %d %b" % (len(content), content))
    typed = {"payloadType": "text/plain", "signatures": [{"sig": base64.b64encode(sig).decode()}]}
    signed.with_name("typed.json").write_text(json.dumps(envelope | typed))
    for words, why in (
        (("altered.json", key[1], released), "altered"),
        (("typed.json", key[1], released), "altered"),
        ((signed, another, released), "another key"),
        ((signed, key[1], other), "another file"),
    ):
        code, said = check(*words)
        assert (code, said.startswith("REFUSED"), why in said) == (1, True, True)


def test_a_refusal_names_its_evidence_and_no_hash_of_the_candidate(
    make_case, make_gate, key, check, tmp_path
):
    case = make_case(tmp_path / "refused", audits=["exact_match"])
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
    with pytest.raises(NotAsAudited, match="other rows"):
        api.attest(case.workspace.root, file=case.folder / "people.parquet", **ask)
    with pytest.raises(PlanError, match="description"):
        api.attest(case.workspace.root, file=released, dcat=tmp_path / "d", url="here", **ask)
    with pytest.raises(PlanError, match="name"):
        api.attest(case.workspace.root, **ask | {"by": "two\nlines"})
    with pytest.raises(DataError, match="cannot be read"):
        api.attest(case.workspace.root, file=tmp_path / "none.parquet", **ask)
    with pytest.raises(DataError, match="already"):
        api.attest(case.workspace.root, file=released, dcat=ask["to"], url=URL, licence=LICENCE, **ask)
    assert not ask["to"].exists()
    ask["to"].touch()
    with pytest.raises(DataError, match="already"):
        api.attest(case.workspace.root, **ask)


def with_index(rows, file):
    pq.write_table(rows.append_column("__index_level_0__", pa.array(range(rows.num_rows))), file)


def with_metadata(rows, file):
    pq.write_table(rows.replace_schema_metadata({"note": "T-5551212"}), file)


def in_another_order(rows, file):
    pq.write_table(rows.sort_by("age"), file)


def with_an_unused_category(rows, file):
    found = rows["city"].combine_chunks().dictionary_encode()
    more = pa.DictionaryArray.from_arrays(
        found.indices, pa.array([*found.dictionary.to_pylist(), "T-5551212"])
    )
    pq.write_table(rows.set_column(rows.column_names.index("city"), "city", more), file)


def with_unused_bytes(rows, file):
    pq.write_table(rows, file)
    content = file.read_bytes()
    footer = int.from_bytes(content[-8:-4], "little") + 8
    file.write_bytes(content[:-footer] + b"T-5551212" + content[-footer:])


@pytest.mark.parametrize(
    "write", [with_index, with_metadata, in_another_order, with_an_unused_category, with_unused_bytes]
)
def test_a_file_with_more_than_the_audited_rows_is_not_attested(case, released, key, tmp_path, write):
    write(pq.read_table(released), file := tmp_path / "more.parquet")
    with pytest.raises(NotAsAudited, match="the file holds"):
        api.attest(case.workspace.root, by="Ann", key=key[0], to=tmp_path / "x.json", file=file)


def test_a_pass_whose_rows_were_refused_since_is_not_attested(case, released, make_gate, key, tmp_path):
    passed = case.workspace.newest.path
    case.set_gates(make_gate("copies", "exact_match.excess", -1.0))
    api.run(case.plan, case.workspace.root)
    with pytest.raises(DataError, match="newest attempt on these rows"):
        api.attest(passed, by="Ann", key=key[0], to=tmp_path / "x.json", file=released)


def test_a_pass_whose_review_is_over_is_not_attested(case, key, tmp_path):
    plan = case.replan(review={"purpose": "teaching", "valid_until": "2026-01-31"})
    api.run(plan, case.workspace.root, release=False)
    with pytest.raises(ReleaseRefused, match="valid until 2026-01-31"):
        api.attest(case.workspace.root, by="Ann", key=key[0], to=tmp_path / "x.json")


def test_a_pass_that_waits_for_approval_is_not_attested(case, key, tmp_path):
    terms = {"parquet": {"path": "released.parquet"}, "approvals": 1, "approvers": {"Ann": key[1]}}
    api.run(case.replan(release=terms), case.workspace.root, release=False)
    with pytest.raises(ApprovalMissing):
        api.attest(case.workspace.root, by="Ann", key=key[0], to=tmp_path / "x.json")


def test_evidence_for_which_nothing_vouches_is_not_attested(case, key, tmp_path, monkeypatch):
    file = Path(shutil.copy(case.workspace.newest.evidence, tmp_path / "evidence.json"))
    with pytest.raises(DataError, match="vouches for it"):
        api.attest(file, by="Ann", key=key[0], to=tmp_path / "x.json")
    monkeypatch.setenv(EVIDENCE_KEY, "ab" * 32)
    with pytest.raises(DataError, match="seal: missing"):
        api.attest(file, by="Ann", key=key[0], to=tmp_path / "x.json")
    file.with_name("evidence.json.hmac").write_bytes(seal_of("evidence", file.read_bytes()))
    api.attest(file, by="Ann", key=key[0], to=tmp_path / "x.json")


def test_what_is_attested_is_read_once(case, make_gate, key, tmp_path, monkeypatch):
    case.set_gates(make_gate("copies", "exact_match.excess", -1.0))
    api.run(case.plan, case.workspace.root)
    file, verify = case.workspace.newest.evidence, attestation.verify
    content = file.read_bytes()

    def exchanged_meanwhile(evidence):
        file.write_bytes(b"{}")
        return verify(evidence)

    monkeypatch.setattr(attestation, "verify", exchanged_meanwhile)
    [path] = api.attest(case.workspace.root, by="Ann", key=key[0], to=tmp_path / "x.json")
    assert statement(path)["subject"][0]["digest"]["sha256"] == sha256_of_bytes(content)


def test_the_crate_names_nobody_as_approver_whom_the_plan_does_not_name(case, key, tmp_path):
    bob, eve = api.new_key(tmp_path / "bob.pem"), tmp_path / "eve.pem"
    api.new_key(eve)
    terms = {"parquet": {"path": "released.parquet"}, "approvals": 1, "approvers": {"Bob": bob}}
    evidence = api.run(case.replan(release=terms), case.workspace.root, release=False)
    path = api.approve(case.workspace.root, by="Bob", key=tmp_path / "bob.pem", until=date(2100, 1, 1))
    api.release(case.plan, case.workspace.root)
    real = parse_approval(path.read_bytes())
    forged = replace(real, note="forged").signed_with(read_key(eve))
    path.with_name(forged.file_name).write_bytes(forged.to_bytes())
    asked = {"ro_crate": tmp_path / "crate.zip", "url": URL, "licence": LICENCE}
    file = case.folder / "released.parquet"
    api.attest(case.workspace.root, by="Ann", key=key[0], to=tmp_path / "x.json", file=file, **asked)
    with zipfile.ZipFile(asked["ro_crate"]) as crate:
        graph = crate.read(f"{evidence.digest[:12]}-release/data/ro-crate-metadata.json").decode()
    assert (f"#sign-off-{path.name}" in graph, "Approval by Bob" in graph) == (True, True)
    assert forged.file_name not in graph


def test_without_a_file_the_content_hash_alone_is_attested(case, key, tmp_path):
    to = tmp_path / "a.json"
    words = ["attest", str(case.workspace.root), "--by", "Ann", "--key", str(key[0]), "--to", str(to)]
    assert CliRunner().invoke(main, words).exit_code == 0
    [subject] = statement(to)["subject"]
    assert subject["digest"] == {"synthAuditTable": case.evidence.tables["synthetic"].sha256}
