"""What somebody could try who may write into ``review/`` and knows this source: all of it is refused."""

import json
import os
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from synth_audit import api
from synth_audit.errors import ReleaseRefused, SynthAuditError
from synth_audit.findings.verdict import Result
from synth_audit.pipeline import stages as pipeline
from synth_audit.report import render_report, write_report
from synth_audit.store.approvals import KEY_VARIABLE, seal_path
from synth_audit.store.evidence import parse_evidence, sha256_of
from synth_audit.store.journal import read_journal
from synth_audit.store.records import Newest, Released, read_pointer, to_json
from synth_audit.store.workspace import Workspace

pytestmark = pytest.mark.xdist_group("forgery")  # they share what was run
KEY = "0f" * 32


def made(case):
    pipeline.produce(case.plan, case.workspace)
    write_report(case.workspace)
    return case


@pytest.fixture(scope="module")
def passed(tmp_path_factory, make_case):
    """A pass that was released. Not to be altered."""
    case = made(make_case(tmp_path_factory.mktemp("passed") / "case", audits=["exact_match"]))
    pipeline.release_synthetic(case.plan, case.workspace)
    return case


@pytest.fixture(scope="module")
def failed(passed, tmp_path_factory):
    """The same workspace after a run on real rows for synthetic ones, and a fail. Not to be altered."""
    case = copied(passed, tmp_path_factory.mktemp("failed"))
    case.replan(generator="resample")
    return made(case)


def copied(case, folder):
    return type(case)(Path(shutil.copytree(case.folder, folder / "case", copy_function=shutil.copy)))


@pytest.fixture
def honest(passed, tmp_path):
    return copied(passed, tmp_path)


@pytest.fixture
def leaky(failed, tmp_path):
    return copied(failed, tmp_path)


def out(case):
    return case.folder / "out-of-the-house" / "released.parquet"


def refused(case):
    """True when nothing leaves: neither by release, nor without being told by verify."""
    before = out(case).read_bytes()
    with pytest.raises(SynthAuditError):
        pipeline.release_synthetic(case.plan, case.workspace)
    assert out(case).read_bytes() == before, "what was out there is as it was"
    return True


def told(case, place=None):
    """What ``verify`` says does not hold."""
    try:
        return [c.what for c in api.verify(place or case.workspace.root) if c.holds is False]
    except SynthAuditError as error:
        return [error.what]


def point(case, digest):
    case.workspace.newest_pointer.write_text(to_json(Newest(digest)))


def put(case, plain):
    """Everything that whoever can write into ``review/`` can do to make this the newest evidence."""
    outside = ("digest", "created", "timings", "attempt", "ledger", "earlier")
    plain["digest"] = sha256_of({k: v for k, v in plain.items() if k not in outside})
    folder = case.workspace.audit(plain["digest"])
    folder.path.mkdir(parents=True, exist_ok=True)
    folder.evidence.write_text(json.dumps(plain, indent=2))
    evidence = parse_evidence(folder.evidence.read_text())
    assert evidence.intact
    folder.measurements.write_bytes(pipeline_measurements(evidence))
    folder.report.write_text(render_report(evidence))
    point(case, plain["digest"])


def pipeline_measurements(evidence):
    from synth_audit.pipeline.stages import measurement_bytes

    return measurement_bytes(evidence)


def plain_of(case):
    return json.loads(case.workspace.newest.evidence.read_text())


def test_without_forgery_a_pass_leaves_and_everything_holds(honest):
    assert told(honest) == []
    rows = pipeline.release_synthetic(honest.plan, honest.workspace).table.rows
    assert pq.read_metadata(out(honest)).num_rows == rows


def test_a_refused_run_leaves_the_evidence_of_what_is_out_there(passed, leaky):
    released = read_pointer(Released, leaky.workspace.released_pointer)
    assert released.digest == passed.evidence.digest != leaky.evidence.digest
    assert leaky.workspace.released_pointer.read_bytes() == passed.workspace.released_pointer.read_bytes()
    folder = leaky.workspace.audit(released.digest).path
    assert all(c.holds for c in api.verify(folder, {"synthetic": out(leaky)}))
    assert leaky.evidence.verdict is Result.FAIL
    assert refused(leaky)


def test_outcomes_of_a_good_run_pasted_over_those_of_real_rows(passed, leaky):
    good, bad = plain_of(passed), plain_of(leaky)
    put(leaky, bad | {k: good[k] for k in ("outcomes", "table_checks", "gates", "verdict", "records")})
    assert leaky.evidence.verdict is Result.PASS
    assert leaky.evidence.plan_sha256 == leaky.plan.digest
    assert refused(leaky)
    assert "entry in the journal" in told(leaky)


def test_a_verdict_turned_round(leaky):
    plain = plain_of(leaky)
    for gate in plain["gates"]["results"]:
        gate["result"] = "pass"
    put(leaky, plain | {"verdict": "pass"})
    assert refused(leaky)
    assert {"entry in the journal", "verdict, judged anew"} <= set(told(leaky))


def test_limits_made_wide(leaky):
    plain = plain_of(leaky)
    plain["gates"]["suite"]["expectations"][0]["kwargs"]["maximum"] = 1.0
    plain["gates"]["suite_sha256"] = sha256_of(plain["gates"]["suite"])
    for gate in plain["gates"]["results"]:
        gate |= {"result": "pass", "maximum": 1.0 if gate["maximum"] is not None else None}
    put(leaky, plain | {"verdict": "pass"})
    assert refused(leaky)
    assert "entry in the journal" in told(leaky)


def test_numbers_of_the_copy_made_small(leaky):
    plain = plain_of(leaky)
    for m in plain["outcomes"][0]["measurements"]:
        m |= {"value": 0.0, "interval": None}
    put(leaky, plain)
    assert refused(leaky)


EDITS = {
    "the time": ('"created": "20', '"created": "21'),
    "a number": ('"seed": 5', '"seed": 6'),
    "a doubled key": ('"verdict": "pass"', '"verdict": "fail",\n  "verdict": "pass"'),
    "an unknown key": ('"verdict": "pass"', '"verdict": "pass",\n  "approved": true'),
    "a look-alike key": ('"verdict": "pass"', '"verdict": "pass",\n  "v\u0435rdict": "fail"'),
    "no number": ('"level": 0.95', '"level": NaN'),
    "a word for no number": ('"level": 0.95', '"level": "NaN"'),
    "a huge number": ('"seed": 5', '"seed": ' + "9" * 5000),
    "an endless number": ('"level": 0.95', '"level": 1e999'),
    "brackets": ('"seed": 5', '"seed": ' + "[" * 100_000),
    "half a letter": ('"verdict": "pass"', '"verdict": "pass\\ud800"'),
    "white space": ('"seed": 5', '"seed":  5'),
}


@pytest.mark.parametrize("edit", sorted(EDITS))
def test_any_edit_of_the_evidence_in_place(honest, edit):
    old, new = EDITS[edit]
    text = honest.workspace.newest.evidence.read_text()
    assert old in text
    honest.workspace.newest.evidence.write_text(text.replace(old, new, 1))
    assert told(honest)
    assert refused(honest)


@pytest.mark.parametrize("kind", ["newest", "released"])
@pytest.mark.parametrize(
    "edit", ["doubled", "unknown", "look-alike", "another version", "path", "empty", "link", "gone"]
)
def test_any_edit_of_a_pointer(honest, kind, edit):
    path = getattr(honest.workspace, f"{kind}_pointer")
    text = path.read_text()
    digest = json.loads(text)["digest"]
    changed = {
        "doubled": text.replace('"digest"', '"digest": "' + "0" * 64 + '",\n  "digest"'),
        "unknown": text.replace('"digest"', '"note": "",\n  "digest"'),
        "look-alike": text.replace('"digest"', '"dig\u0435st"'),
        "another version": text.replace('"1.0"', '"2.0"'),
        "path": text.replace(digest, "../" * 20 + digest[60:]),
        "empty": "",
    }
    if edit in changed:
        assert changed[edit] != text
        path.write_text(changed[edit])
    else:
        path.rename(honest.folder / "elsewhere.json")
        if edit == "link":
            path.symlink_to(honest.folder / "elsewhere.json")
    assert told(honest)
    assert refused(honest)


@pytest.mark.parametrize(
    "change", [{"target": "elsewhere"}, {"rows": 7}, {"sha256": "0" * 64}, {"time": "now"}]
)
def test_other_words_about_what_was_released(honest, change):
    path = honest.workspace.released_pointer
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    assert told(honest) == ["pointer to what was released"]
    assert refused(honest)


def test_the_pointer_to_what_was_released_turned_to_a_fail(leaky):
    path = leaky.workspace.released_pointer
    path.write_text(json.dumps(json.loads(path.read_text()) | {"digest": leaky.evidence.digest}))
    assert "pointer to what was released" in told(leaky)
    assert "pointer to what was released" in told(leaky, leaky.workspace.newest.path)


def test_the_older_pass_made_the_newest_again(passed, leaky):
    point(leaky, passed.evidence.digest)
    assert "pointer to the newest audit" in told(leaky)
    assert refused(leaky)
    leaky.replan(generator="independent")
    assert refused(leaky)


def test_folders_that_change_names(passed, leaky):
    good, bad = leaky.workspace.audit(passed.evidence.digest).path, leaky.workspace.newest.path
    good.rename(good.with_name("aside"))
    bad.rename(good)
    good.with_name("aside").rename(bad)
    assert "name of the folder" in told(leaky)
    assert "name of the folder" in told(leaky, good)
    assert refused(leaky)


def stricter(case, make_gate):
    """The same rows judged by another suite under the same plan, which they do not pass."""
    case.set_gates(make_gate("copies", "exact_match.excess", -0.5))
    pipeline.audit_synthetic(case.plan, case.workspace)
    write_report(case.workspace)
    assert case.evidence.verdict is Result.FAIL


def test_an_older_pass_after_a_newer_fail_on_the_same_rows(honest, passed, make_gate):
    stricter(honest, make_gate)
    honest.set_gates(make_gate("copies", "exact_match.excess", 0.2))
    point(honest, passed.evidence.digest)
    assert {"newest attempt on these rows", "pointer to the newest audit"} <= set(told(honest))
    assert refused(honest)


def test_the_same_pass_found_again_after_a_newer_fail_on_the_same_rows(honest, passed, make_gate):
    stricter(honest, make_gate)
    honest.set_gates(make_gate("copies", "exact_match.excess", 0.2))
    assert pipeline.audit_synthetic(honest.plan, honest.workspace).digest == passed.evidence.digest
    assert told(honest) == ["newest attempt on these rows"]
    assert refused(honest)


def test_the_newer_fail_deleted(honest, passed, make_gate):
    stricter(honest, make_gate)
    shutil.rmtree(honest.workspace.newest.path)
    assert told(honest)
    honest.set_gates(make_gate("copies", "exact_match.excess", 0.2))
    point(honest, passed.evidence.digest)
    assert "newest attempt on these rows" in told(honest)
    assert refused(honest)


@pytest.mark.parametrize("name", ["measurements.parquet", "report.html"])
def test_files_of_another_audit(passed, leaky, name):
    leaky.replan(generator={"independent": {"minimum_people": 1}})
    made(leaky)
    mine = leaky.workspace.newest.path / name
    assert told(leaky) == []
    for other in leaky.workspace.audits.glob(f"*/{name}"):
        if other != mine and other.read_bytes() != mine.read_bytes():
            shutil.copy(other, mine)
            break  # a third may be as this one was
    assert "files of the audit" in told(leaky)
    assert {"measurements, built anew", "marks of the report"} & set(told(leaky))
    assert refused(leaky)


MARKS = {
    "verdict": ('data-verdict="pass"', 'data-verdict="fail"'),
    "result": ('data-result="pass"', 'data-result="fail"'),
    "limit": ('data-maximum="0.2"', 'data-maximum="0.3"'),
    "blocking": ('data-blocking="true"', 'data-blocking="false"'),
    "attempt": ('data-attempt="1"', 'data-attempt="9"'),
    "digest": ('data-evidence-digest="', 'data-evidence-digest="0'),
    "doubled": ('data-verdict="pass"', 'data-verdict="fail" data-verdict="pass"'),
    "gone": ("data-evidence-digest", "data-evidence"),
    "another page beside": ("</main>", '</main><main data-evidence-digest="0"></main>'),
}


@pytest.mark.parametrize("mark", sorted(MARKS))
def test_marks_of_the_report(honest, mark):
    old, new = MARKS[mark]
    path = honest.workspace.newest.report
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    assert {"marks of the report", "files of the audit"} <= set(told(honest))
    assert refused(honest)


def test_words_of_the_report(honest):
    path = honest.workspace.newest.report
    path.write_text(path.read_text().replace("may be released", "must not be released"))
    assert {"files of the audit", "pictures and sentences of the report"} == set(told(honest))
    assert refused(honest)


@pytest.mark.parametrize("name", ["evidence.json", "measurements.parquet", "report.html", "", ".."])
@pytest.mark.parametrize("how", ["deleted", "link", "pipe"])
def test_what_is_not_a_file_of_its_own(honest, name, how):
    folder = honest.workspace.newest.path
    path = {"": folder, "..": folder.parent}.get(name, folder / name)
    aside = honest.folder / "aside"
    path.rename(aside)
    if how == "link":
        path.symlink_to(aside)
    elif how == "pipe":
        os.mkfifo(path)
    assert told(honest)
    assert refused(honest)


def test_a_report_that_a_kill_left_unwritten(honest):
    honest.workspace.newest.report.unlink()
    found = [c for c in api.verify(honest.workspace.root) if c.what == "files of the audit"]
    assert [(c.holds, c.detail) for c in found] == [
        (False, "not there, as where a run was broken off: report.html")
    ]
    assert refused(honest)


def test_a_file_more(honest):
    (honest.workspace.newest.path / "approval.txt").write_text("yes")
    assert told(honest) == ["files of the audit"]
    assert refused(honest)


def test_evidence_of_another_workspace(passed, leaky, tmp_path, make_case, make_people):
    other = make_case(tmp_path / "other", audits=["exact_match"], generator="resample")
    pq.write_table(make_people(seed=9), other.folder / "people.parquet")
    other.set_gates({**json.loads((other.folder / "gates.json").read_text())["expectations"][0]})
    made(other)
    shutil.rmtree(leaky.workspace.audits)
    shutil.copytree(other.workspace.audits, leaky.workspace.audits)
    point(leaky, other.evidence.digest)
    assert "entry in the journal" in told(leaky)
    assert refused(leaky)


def test_a_whole_review_folder_of_a_pass_over_that_of_a_fail(passed, leaky):
    shutil.rmtree(leaky.workspace.review)
    shutil.copytree(passed.workspace.review, leaky.workspace.review)
    assert told(leaky) == ["pointer to the newest audit"]
    assert refused(leaky)


def test_a_candidate_of_a_sweep(tmp_path, make_case):
    spec = {
        "generators": ["independent", "resample"],
        "privacy": "exact_match.excess",
        "utility": "exact_match.share",
    }
    case = make_case(tmp_path / "case", audits=["exact_match"], frontier=spec)
    api.frontier(case.plan, case.workspace.root)
    good, bad = (case.workspace.candidate(slug) for slug in ("independent", "resample"))
    plain, pasted = (json.loads(w.newest.evidence.read_text()) for w in (bad, good))
    keys = ("outcomes", "table_checks", "gates", "verdict")
    case = type("Swept", (), {"workspace": bad, "folder": case.folder, "plan": case.plan})
    put(case, plain | {k: pasted[k] for k in keys})
    assert "entry in the journal" in told(case)
    with pytest.raises(SynthAuditError):
        api.release(case.plan, bad.owner.root, candidate="resample")
    assert not out(case).exists()
    api.release(case.plan, bad.owner.root, candidate="independent")
    assert all(c.holds for c in api.verify(bad.owner.root))
    shutil.rmtree(bad.owner.candidates)
    checks = api.verify(bad.owner.root, {"synthetic": out(case)})
    assert all(c.holds for c in checks), "what is out there does not hang on a sweep"
    assert "content of synthetic" in [c.what for c in checks]


def sealed(case, monkeypatch):
    """The case as it lies on another machine: with its seals, without its restricted folder."""
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    made(case)
    pipeline.release_synthetic(case.plan, case.workspace)
    shutil.move(case.workspace.synthetic, case.folder / "candidate.parquet")
    shutil.move(case.workspace.restricted, case.folder / "there")
    return case


def bring(case, *names):
    """Copy what the other machine has in its restricted folder."""
    case.workspace.prepare()
    for name in names:
        shutil.copy(case.folder / "there" / name, case.workspace.restricted / name)


HISTORY = ("journal.json", "ledger.jsonl", "ledger.head")


def leave(case):
    return api.release(case.plan, case.workspace.root, case.folder / "candidate.parquet")


def test_a_seal_vouches_elsewhere_and_a_release_takes_the_journal_too(honest, monkeypatch):
    case = sealed(honest, monkeypatch)
    holds = {c.what: c.holds for c in api.verify(case.workspace.root)}
    assert holds["seal"] is True
    assert holds["pointer to what was released"] is True
    assert holds["entry in the journal"] is None
    assert holds["newest attempt on these rows"] is None, "a later one may have failed"
    assert False not in holds.values()
    with pytest.raises(ReleaseRefused, match="journal of the table is not here"):
        leave(case)
    bring(case, *HISTORY)
    assert leave(case).table.rows == case.evidence.tables["synthetic"].rows


@pytest.mark.parametrize("attack", ["stripped", "other key", "no key", "edited", "of another file", "short"])
def test_a_seal_that_is_missing_or_wrong(honest, monkeypatch, attack):
    case = sealed(honest, monkeypatch)
    path = seal_path(case.workspace.newest.evidence)
    if attack == "stripped":
        path.unlink()
    elif attack == "other key":
        monkeypatch.setenv(KEY_VARIABLE, "1f" * 32)
    elif attack == "no key":
        monkeypatch.delenv(KEY_VARIABLE)
    elif attack == "edited":
        put(case, plain_of(case) | {"seed": 6})
    elif attack == "of another file":
        shutil.copy(seal_path(case.workspace.released_pointer), path)
    else:
        path.write_text(path.read_text()[:20])
    before = out(case).read_bytes()
    checks = {c.what: c.holds for c in api.verify(case.workspace.root)}
    assert checks["seal"] is (None if attack == "no key" else False)
    bring(case, *HISTORY)
    with pytest.raises(SynthAuditError):
        leave(case)
    assert out(case).read_bytes() == before


def test_sealed_evidence_is_not_replayed_after_a_newer_fail(honest, monkeypatch, make_gate):
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    made(honest)
    old = shutil.copytree(honest.workspace.root, honest.folder / "old")
    stricter(honest, make_gate)
    honest.set_gates(make_gate("copies", "exact_match.excess", 0.2))
    shutil.rmtree(old / "restricted")
    other = Workspace(old)
    before = out(honest).read_bytes() if out(honest).exists() else None
    with pytest.raises(SynthAuditError):
        api.release(honest.plan, old, honest.workspace.synthetic)
    other.prepare()
    for name in HISTORY:
        shutil.copy(honest.workspace.restricted / name, other.restricted / name)
    with pytest.raises(ReleaseRefused, match="newest"):
        api.release(honest.plan, old, honest.workspace.synthetic)
    assert (out(honest).read_bytes() if out(honest).exists() else None) == before


def test_a_key_where_the_evidence_was_never_sealed(honest, monkeypatch):
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    assert "seal" in told(honest)
    assert refused(honest)
    made(honest)
    assert told(honest) == [], "a new audit is sealed, and what is out there too"


@pytest.mark.parametrize("key", ["short", "zz!" * 40, "0f" * 31, "\u0435" * 64])
def test_what_is_no_key(honest, monkeypatch, key):
    monkeypatch.setenv(KEY_VARIABLE, key)
    with pytest.raises(SynthAuditError, match="no key") as caught:
        pipeline.release_synthetic(honest.plan, honest.workspace)
    assert key not in str(caught.value)


def test_the_journal_itself_lies_where_no_reviewer_can_write(passed):
    path = passed.workspace.journal
    assert path.is_relative_to(passed.workspace.restricted)
    assert path.stat().st_mode & 0o777 == 0o600
    assert read_journal(Workspace(passed.workspace.review)) is None
