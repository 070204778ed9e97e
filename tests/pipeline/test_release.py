import json
import shutil
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from refusals import refusal

from synth_audit.errors import DataError, EvidenceInsufficient, PlanError, ReleaseRefused
from synth_audit.findings.verdict import Result, TableCheck
from synth_audit.pipeline import stages as pipeline
from synth_audit.pipeline.release import refuse_unless_allowed, release
from synth_audit.pipeline.stages import Audited
from synth_audit.plugins.audit import Status
from synth_audit.plugins.source import Locatable
from synth_audit.sources.csv import Csv
from synth_audit.sources.duckdb import DuckDB
from synth_audit.store.evidence import parse_evidence, read_evidence
from synth_audit.store.journal import read_journal
from synth_audit.store.salts import known_salt
from synth_audit.table import arrow
from synth_audit.table.content_hash import fingerprint
from synth_audit.verdict import judge as gate
from synth_audit.verdict.suite import load_suite


def refused(case, *, plan=None, evidence=None, synthetic=None):
    """The reason of a refusal by what the evidence says, wherever it lies."""
    table = case.synthetic if synthetic is None else synthetic
    given = plan or case.plan, evidence or case.evidence, table, known_salt(case.workspace)
    return refusal(refuse_unless_allowed, *given, kind=ReleaseRefused).what


def filed(case, evidence):
    """The case with this as its newest audit, as if it had been found."""
    exposed = pq.read_table(case.workspace.exposed)
    return Audited(evidence, exposed).filed(case.workspace, case.workspace.synthetic)


def released(case):
    return pq.read_table(case.folder / "out-of-the-house" / "released.parquet")


def test_a_pass_releases_exactly_the_audited_rows(case):
    record = pipeline.release_synthetic(case.plan, case.workspace)
    assert record.where == str(case.folder / "out-of-the-house" / "released.parquet")
    assert record.table == case.evidence.tables["synthetic"]
    assert fingerprint(released(case)) == record.table.sha256
    assert [p.name for p in (case.folder / "out-of-the-house").iterdir()] == ["released.parquet"]


def test_a_large_candidate_is_mapped_and_leaves_as_the_same_bytes(case, monkeypatch):
    target, found = case.folder / "out-of-the-house" / "released.parquet", []
    for most in (arrow.MOST_HELD, 100):
        monkeypatch.setattr(arrow, "MOST_HELD", most)
        pipeline.release_synthetic(case.plan, case.workspace)
        found.append(target.read_bytes())
        assert not list(case.workspace.scratch.iterdir())
    assert found[0] == found[1]


def test_another_order_of_rows_and_columns_is_the_same_content(case):
    data = case.synthetic
    shuffled = data.take(np.random.default_rng(0).permutation(data.num_rows))
    release(case.plan, case.workspace, shuffled.select(sorted(data.column_names, reverse=True)))
    assert fingerprint(released(case)) == fingerprint(data)


@pytest.mark.parametrize("column", ["age", "income", "city", "ill"])
def test_one_changed_cell_is_refused(case, column):
    data = case.synthetic
    values = data.column(column).to_pylist()
    values[7] = values[7] + 1 if isinstance(values[7], (int, float)) else None
    place = data.column_names.index(column)
    changed = data.set_column(place, column, pa.array(values, data.schema.field(column).type))
    assert "not the bytes" in refused(case, synthetic=changed)


def test_other_rows_are_refused(case):
    data, real = case.synthetic, pq.read_table(case.workspace.train)
    for other in (data.slice(1), pa.concat_tables([data, data.slice(0, 1)]), data.slice(0, 0), real):
        assert "not the bytes" in refused(case, synthetic=other)


def leaves(value, path=()):
    """The path of every plain value in nested JSON."""
    if isinstance(value, (dict, list)):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        return [leaf for key, inner in items for leaf in leaves(inner, (*path, key))]
    return [path]


def test_an_edit_anywhere_breaks_the_digest_and_is_refused(finished):
    assert "altered" in refused(finished, evidence=replace(finished.evidence, seed=99))
    plain = json.loads(finished.workspace.newest.evidence.read_text())
    every = [p for p in leaves(plain) if p[0] not in ("created", "timings", "attempt", "ledger", "earlier")]
    picked = [every[i] for i in np.random.default_rng(0).choice(len(every), 150, replace=False)]
    survived = []
    for path in picked:
        edited = json.loads(json.dumps(plain))
        inside = edited
        for key in path[:-1]:
            inside = inside[key]
        old = inside[path[-1]]
        inside[path[-1]] = (
            (not old) if isinstance(old, bool) else old + 1 if isinstance(old, (int, float)) else "x"
        )
        try:
            if parse_evidence(json.dumps(edited)).intact:
                survived.append(path)
        except ValueError:
            continue  # no longer evidence at all
    assert not survived


def failing(case):
    """Evidence of the same case by gates that cannot be met."""
    suite = load_suite("strict.json", case.folder)
    report = gate.judge(suite, case.evidence.outcomes, case.evidence.table_checks)
    return replace(case.evidence, gates=report, verdict=report.verdict).sealed()


def strict(case, make_gate, maximum):
    case.set_gates(make_gate("marginals", "marginals.total_variation", maximum))
    (case.folder / "strict.json").write_bytes((case.folder / "gates.json").read_bytes())


@pytest.mark.parametrize("verdict", list(Result))
def test_only_a_pass_may_leave(case, make_gate, verdict):
    m = case.evidence.measurement("marginals.total_variation")
    limits = {Result.PASS: 1.0, Result.FAIL: -0.01, Result.INSUFFICIENT: m.value}
    strict(case, make_gate, limits[verdict])
    evidence = failing(case)
    assert evidence.verdict is verdict
    filed(case, evidence)
    if verdict is Result.PASS:
        release(case.plan, case.workspace, case.synthetic)
        assert fingerprint(released(case)) == evidence.tables["synthetic"].sha256
        return
    assert f"the verdict is {verdict}" in refused(case, evidence=evidence)
    with pytest.raises(ReleaseRefused, match=f"the verdict is {verdict}, held by marginals") as caught:
        release(case.plan, case.workspace, case.synthetic)
    assert (caught.type is EvidenceInsufficient) is (verdict is Result.INSUFFICIENT)
    assert not (case.folder / "out-of-the-house").exists()


@pytest.mark.parametrize("claim", ["verdict", "gates"])
def test_a_verdict_that_does_not_follow_is_refused_even_when_sealed_again(case, make_gate, claim):
    strict(case, make_gate, -0.01)
    evidence = failing(case)
    if claim == "gates":
        results = tuple(replace(r, result=Result.PASS) for r in evidence.gates.results)
        evidence = replace(evidence, gates=replace(evidence.gates, results=results))
    forged = replace(evidence, verdict=Result.PASS).sealed()
    assert forged.intact
    assert "the verdict is fail" in refused(case, evidence=forged)


def test_an_errored_audit_or_missing_check_is_refused_even_when_sealed_again(case):
    evidence = case.evidence
    broken = replace(evidence.outcomes[0], status=Status.ERROR, measurements=(), reason="x")
    unknown = tuple(replace(c, met=None) for c in evidence.table_checks)
    failed = (TableCheck(evidence.table_checks[0].key, False, "no"), *evidence.table_checks[1:])
    for forged in (
        replace(evidence, outcomes=(broken, *evidence.outcomes[1:])),
        replace(evidence, outcomes=()),
        replace(evidence, table_checks=()),
        replace(evidence, table_checks=unknown),
        replace(evidence, table_checks=failed),
    ):
        assert "the verdict is" in refused(case, evidence=forged.sealed())


def test_evidence_that_names_no_table_is_refused(case):
    evidence = replace(case.evidence, tables={}).sealed()
    assert "not the bytes" in refused(case, evidence=evidence)


@pytest.mark.parametrize("change", [{"seed": 6}, {"release": {"parquet": {"path": "there.parquet"}}}])
def test_another_plan_is_refused(case, change):
    evidence = case.evidence
    assert "another plan" in refused(case, plan=case.replan(**change), evidence=evidence)
    assert not (case.folder / "there.parquet").exists()


def test_a_changed_suite_is_refused(case, make_gate):
    case.set_gates(make_gate("copies", "exact_match.excess", 0.9))
    assert "suite has changed" in refused(case)


def test_a_plan_without_a_target_or_with_one_that_only_reads(case, monkeypatch):
    from synth_audit.sources.parquet import Parquet

    with pytest.raises(PlanError, match="no release") as caught:
        release(case.replan(release=None), case.workspace, case.synthetic)
    assert caught.value.where == "release"
    plan = case.replan(release={"parquet": {"path": "x.parquet"}})
    monkeypatch.delattr(Parquet, "write")
    with pytest.raises(PlanError, match="cannot be written") as caught:
        release(plan, case.workspace, case.synthetic)
    assert "duckdb" in caught.value.expected


def test_the_sensitive_table_is_never_replaced(case):
    plan = case.replan(release={"parquet": {"path": "people.parquet"}})
    before = (case.folder / "people.parquet").read_bytes()
    with pytest.raises(PlanError, match="replace the source") as caught:
        release(filed_for(case, plan), case.workspace, case.synthetic)
    assert caught.value.fix
    assert (case.folder / "people.parquet").read_bytes() == before


def filed_for(case, plan):
    """The plan, which the newest audit is then of."""
    filed(case, replace(case.evidence, plan_sha256=plan.digest).sealed())
    return plan


@pytest.mark.parametrize(
    "spelling", ["dot", "home", "symlink", "hard link", "folder link", "absolute", "csv"]
)
def test_no_spelling_of_the_source_file_is_replaced(case, spelling, monkeypatch):
    file = case.folder / "people.parquet"
    monkeypatch.setenv("HOME", str(case.folder))
    (case.folder / "symlink.parquet").symlink_to(file)
    (case.folder / "hard.parquet").hardlink_to(file)
    (case.folder / "folder").symlink_to(case.folder)
    path = {
        "dot": "./out/../people.parquet",
        "home": "~/people.parquet",
        "symlink": "symlink.parquet",
        "hard link": "hard.parquet",
        "folder link": "folder/people.parquet",
        "absolute": str(file),
        "csv": "people.parquet",
    }[spelling]
    plan = case.replan(release={"csv" if spelling == "csv" else "parquet": {"path": path}})
    before = file.read_bytes()
    with pytest.raises(PlanError, match="replace the source"):
        release(filed_for(case, plan), case.workspace, case.synthetic)
    assert file.read_bytes() == before


def in_a_database(case, source, target):
    """The plan with the table ``people`` of the schema ``main`` in a database file beside it."""
    DuckDB(path="house.duckdb", table="people").write(
        pq.read_table(case.folder / "people.parquet"), case.folder
    )
    (case.folder / "link.duckdb").symlink_to(case.folder / "house.duckdb")
    return case.replan(source={"duckdb": {"path": "house.duckdb"} | source}, release=target)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ({"table": "people"}, {"duckdb": {"path": "house.duckdb", "table": "main.people"}}),
        ({"table": "people"}, {"duckdb": {"path": "./house.duckdb", "table": '"Main"."PEOPLE"'}}),
        ({"table": "Main.People"}, {"duckdb": {"path": "link.duckdb", "table": "people"}}),
        ({"table": "people"}, {"parquet": {"path": "house.duckdb"}}),
        ({"query": "SELECT * FROM people"}, {"csv": {"path": "link.duckdb"}}),
    ],
)
def test_no_spelling_of_the_source_table_is_replaced(case, source, target):
    plan = in_a_database(case, source, target)
    with pytest.raises(PlanError, match="replace the source"):
        release(filed_for(case, plan), case.workspace, case.synthetic)
    assert DuckDB(path="house.duckdb", table="people").read(case.folder).num_rows == 240


@pytest.mark.parametrize("place", ["restricted/salt", "restricted/journal.json", "restricted/train.parquet"])
def test_no_file_of_the_workspace_is_replaced(case, place):
    file = case.workspace.root / place
    (case.folder / "link").symlink_to(file)
    before = file.read_bytes()
    plan = case.replan(release={"parquet": {"path": "link"}})
    with pytest.raises(PlanError, match="replace a file of the workspace"):
        release(filed_for(case, plan), case.workspace, case.synthetic)
    if "journal" not in place:  # which has been written to
        assert file.read_bytes() == before
    assert read_journal(case.workspace).releasing is None


@pytest.mark.parametrize("source", [{"table": "people"}, {"query": "SELECT * FROM people"}])
def test_another_table_of_the_sources_database_may_take_the_release(case, source):
    target = {"duckdb": {"path": "house.duckdb", "table": "released.people"}}
    plan = in_a_database(case, source, target)
    release(filed_for(case, plan), case.workspace, case.synthetic)
    assert fingerprint(plan.build_release().read(case.folder)) == fingerprint(case.synthetic)
    assert DuckDB(path="house.duckdb", table="people").read(case.folder).num_rows == 240


def test_a_plan_without_a_source_and_a_source_without_a_place_can_release(case, monkeypatch):
    plan = case.replan(source=None)
    release(filed_for(case, plan), case.workspace, case.synthetic)
    plan = case.replan(source={"csv": {"path": "people.csv"}})
    monkeypatch.setattr(Csv, "place", None)
    Locatable._abc_caches_clear()  # which remember what the class could do before
    assert not isinstance(plan.build_source(), Locatable)
    release(filed_for(case, plan), case.workspace, case.synthetic)
    assert fingerprint(released(case)) == fingerprint(case.synthetic)


def test_no_evidence_no_release(case):
    case.workspace.newest.evidence.unlink()
    with pytest.raises(DataError, match="holds no evidence"):
        pipeline.release_synthetic(case.plan, case.workspace)
    shutil.rmtree(case.workspace.review)
    with pytest.raises(DataError, match="there is no evidence here"):
        pipeline.release_synthetic(case.plan, case.workspace)


def test_nothing_travels_beside_the_audited_rows(case, canary):
    """A dictionary's unused labels and a field's metadata are in no row, so no audit has seen them."""
    data = case.synthetic
    labels = data.column("city").to_pylist()
    known = [*sorted(set(labels)), "Timbuktu-0042"]
    coded = pa.DictionaryArray.from_arrays([known.index(x) for x in labels], known)
    noted = pa.field("city", coded.type, metadata={"note": "Timbuktu-0042"})
    other = data.set_column(data.column_names.index("city"), noted, coded)
    assert fingerprint(other) == fingerprint(data)
    release(case.plan, case.workspace, other.replace_schema_metadata({"note": "Timbuktu-0042"}))
    path = case.folder / "out-of-the-house" / "released.parquet"
    assert b"Timbuktu" not in path.read_bytes()
    assert released(case).schema.metadata is None
    assert all(field.metadata is None for field in released(case).schema)
    assert sorted(released(case).column("city").to_pylist()) == sorted(labels)


def test_evidence_read_from_its_file_is_what_counts(case):
    text = case.workspace.newest.evidence.read_text()
    case.workspace.newest.evidence.write_text(text.replace('"verdict": "pass"', '"verdict": "fail"'))
    assert read_evidence(case.workspace.newest.evidence).verdict is Result.FAIL
    with pytest.raises(ReleaseRefused, match="altered"):
        pipeline.release_synthetic(case.plan, case.workspace)
