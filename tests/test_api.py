import itertools
import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

import synth_audit
from synth_audit import api, inputs
from synth_audit.errors import DataError, PlanError, ReleaseRefused
from synth_audit.findings.verdict import Result
from synth_audit.plugins.audit import Status
from synth_audit.store.workspace import Workspace
from synth_audit.table import arrow

CELL = "Zanzibar-7391"


def frame(n=120, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 90, n),
            "income": rng.lognormal(10, 0.4, n),
            "city": rng.choice(["north", "south", "east"], n),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
        }
    )


SUITE = {
    "name": "small",
    "expectations": [
        {
            "type": "expect_measurement_to_be_within",
            "kwargs": {"name": "exact_match.excess", "maximum": 0.2},
            "meta": {"id": "copies", "reason": "for the test"},
        }
    ],
}


@pytest.fixture
def plan(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("gates.json").write_text(json.dumps(SUITE))
    return {"audits": ["exact_match", "marginals"], "gates": "gates.json"}


TRAIN, CONTROL, SYNTHETIC = (frame(seed=i) for i in range(3))


def test_frames_tables_and_files_are_one_and_the_same(plan, tmp_path):
    tables = [pa.Table.from_pandas(f, preserve_index=False) for f in (TRAIN, CONTROL, SYNTHETIC)]
    pq.write_table(tables[0], tmp_path / "train.parquet")
    pq.write_table(tables[1], tmp_path / "control.parquet")
    pc.write_csv(tables[2], tmp_path / "synthetic.csv")
    first = synth_audit.audit(TRAIN, CONTROL, SYNTHETIC, plan)
    assert first.verdict is Result.PASS
    assert synth_audit.audit(*tables, plan).outcomes == first.outcomes
    again = synth_audit.audit(tmp_path / "train.parquet", "control.parquet", tables[2], plan)
    assert again.outcomes == first.outcomes
    assert again.tables["synthetic"].sha256 == first.tables["synthetic"].sha256
    files = synth_audit.audit("train.parquet", "control.parquet", "synthetic.csv", plan)
    assert files.verdict is Result.PASS
    assert files.measurements == first.measurements


def test_rows_of_files_are_mapped_and_nothing_of_them_stays(plan, tmp_path, monkeypatch):
    room, written = tmp_path / "system", []
    room.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(room))
    files = [tmp_path / f"{name}.parquet" for name in ("train", "control", "synthetic")]
    for file, rows in zip(files, (TRAIN, CONTROL, SYNTHETIC), strict=True):
        rows.to_parquet(file, index=False)
    before = api.audit(*files, plan)
    write = arrow.write_arrow
    monkeypatch.setattr(arrow, "MOST_HELD", 1000)
    monkeypatch.setattr(arrow, "write_arrow", lambda path, *of: written.append(path) or write(path, *of))
    found = api.audit(*files, plan)
    assert [path.is_relative_to(room) for path in written] == [True] * 4, "the candidate in its own order too"
    assert not list(room.iterdir())
    assert [o.measurements for o in found.outcomes] == [o.measurements for o in before.outcomes]


@pytest.mark.parametrize("filed", [False, True])
def test_processes_map_the_rows_where_they_were_laid_out(plan, tmp_path, monkeypatch, filed):
    """Else each audit that goes elsewhere would take a second copy of all tables along."""
    room, places = tmp_path / "system", []
    room.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(room))
    monkeypatch.setattr(arrow, "MOST_HELD", 1000)
    files = [tmp_path / f"{name}.parquet" for name in ("train", "control", "synthetic")]
    for file, rows in zip(files, (TRAIN, CONTROL, SYNTHETIC), strict=True):
        rows.to_parquet(file, index=False)

    class Seen(Exception):
        pass

    def examine(plan, subject, *_, **__):
        places.extend(table.place.path for table in (subject.train, subject.control, subject.synthetic))
        assert all(place.exists() for place in places)
        raise Seen

    monkeypatch.setattr("synth_audit.pipeline.stages.examine", examine)
    with pytest.raises(Seen):
        api.audit(*files, plan, out=tmp_path / "out" if filed else None)
    where = tmp_path / "out/restricted/scratch" if filed else room
    assert [place.is_relative_to(where) for place in places] == [True] * 3
    assert not list(where.iterdir())


def test_copies_fail_and_inputs_are_left_alone(plan):
    before = TRAIN.copy(deep=True)
    evidence = synth_audit.audit(TRAIN, CONTROL, TRAIN.sample(frac=1, random_state=0), plan)
    assert evidence.verdict is Result.FAIL
    assert evidence.measurement("exact_match.share").value == 1
    with pytest.raises(KeyError, match=r"did you mean exact_match\.share"):
        evidence.measurement("exact_match.shares")
    pd.testing.assert_frame_equal(TRAIN, before)


def test_nothing_is_written_unless_asked(plan, tmp_path):
    before = set(tmp_path.rglob("*"))
    synth_audit.audit(TRAIN, CONTROL, SYNTHETIC, plan)
    assert set(tmp_path.rglob("*")) == before
    evidence = synth_audit.audit(TRAIN, CONTROL, SYNTHETIC, plan, out=tmp_path / "out")
    review = tmp_path / "out" / "review"
    folder = review / "audits" / evidence.digest
    assert {p.name for p in folder.iterdir()} == {
        "evidence.json",
        "measurements.parquet",
        "report.html",
        "certificate.html",
        "synthetic.parquet",
    }
    kept = {str(p.relative_to(tmp_path / "out/restricted")) for p in (tmp_path / "out/restricted").rglob("*")}
    tables = {"exposed_records.parquet", "journal.json", ".journal.lock", "ledger.jsonl", "salt"}
    tables |= {"scratch", ".in-use.lock", "ledger.head", ".gitignore"}
    tables |= {"certificates", f"certificates/{evidence.digest}.sha256"}
    kept = {name for name in kept if not name.startswith("outcomes")}
    assert kept == tables, "positions and hashes, and no real row"
    assert json.loads((folder / "evidence.json").read_text())["digest"] == evidence.digest
    assert json.loads((review / "newest.json").read_text())["digest"] == evidence.digest


def test_only_some_audits(plan):
    evidence = synth_audit.audit(TRAIN, CONTROL, SYNTHETIC, plan, only=("marginals", "marginals"))
    assert [o.audit for o in evidence.outcomes] == ["marginals"]
    assert evidence.verdict is Result.INSUFFICIENT, "the gate on the other audit lacks its number"
    with pytest.raises(PlanError, match="no audit 'closest_record'") as caught:
        synth_audit.audit(TRAIN, CONTROL, SYNTHETIC, plan, only=("closest_record",))
    assert "exact_match" in caught.value.expected
    with pytest.raises(PlanError, match="unknown audit 'nonsense'"):
        synth_audit.audit(TRAIN, CONTROL, SYNTHETIC, {"gates": "gates.json"}, only=("nonsense",))


def test_only_keeps_an_audits_settings_and_numbers(plan):
    plan |= {"audits": ["exact_match", {"marginals": {"cells": 4}}]}
    whole = synth_audit.audit(TRAIN, CONTROL, SYNTHETIC, plan)
    part = synth_audit.audit(TRAIN, CONTROL, SYNTHETIC, plan, only="marginals")
    assert part.outcomes[0] == whole.outcomes[1]
    assert part.outcomes[0].config["cells"] == 4


def test_without_control_what_needs_it_is_not_applicable(plan):
    plan |= {"audits": ["exact_match", "closest_record"]}
    evidence = synth_audit.audit(TRAIN, None, SYNTHETIC, plan)
    ends = {o.audit: o.status for o in evidence.outcomes}
    assert ends == {"exact_match": Status.MEASURED, "closest_record": Status.NOT_APPLICABLE}
    assert evidence.verdict is Result.INSUFFICIENT
    assert "control" not in evidence.tables


@pytest.mark.parametrize(
    "values",
    [
        [1, CELL, 2.5, None],
        [b"x", CELL, 1, 2],
        [object(), 1, 2, 3],
        [2**70, 1, 2, 3],
        ["\ud800" + CELL, "a", "b", "c"],
        [{"a": 1}, CELL, 2, 3],
    ],
)
def test_a_column_of_mixed_types_is_named(plan, values):
    bad = frame(4).assign(odd=pd.Series(values, dtype=object))
    with pytest.raises(DataError, match="column 'odd'") as caught:
        synth_audit.audit(bad, CONTROL, SYNTHETIC, plan)
    assert caught.value.where == "train"
    assert "astype" in caught.value.fix
    assert CELL not in str(caught.value)
    assert caught.value.__suppress_context__


def test_a_column_name_that_occurs_twice_is_refused(plan):
    twice = pd.concat([TRAIN, TRAIN[["age"]]], axis=1)
    number = TRAIN.assign(**{"1": 0}).rename(columns={"city": 1})
    table = pa.Table.from_arrays([pa.array([1, 2])] * 2, names=["age", "age"])
    for bad, name in ((twice, "age"), (number, "1"), (table, "age")):
        with pytest.raises(DataError, match=f"column '{name}' occurs more than once") as caught:
            synth_audit.audit(TRAIN, CONTROL, bad, plan)
        assert caught.value.where == "synthetic"


@pytest.mark.parametrize("thing", [[1, 2], {"a": [1]}, 3, None])
def test_what_is_no_table_is_refused(plan, thing):
    with pytest.raises(DataError, match=f"train is a {type(thing).__name__}"):
        synth_audit.audit(thing, CONTROL, SYNTHETIC, plan)


def test_judging_again_by_another_suite(plan, tmp_path):
    evidence = synth_audit.audit(TRAIN, CONTROL, SYNTHETIC, plan, out="out")
    loose, strict = (
        {"name": n, "expectations": [SUITE["expectations"][0] | {"kwargs": {**k, "name": m}}]}
        for n, m, k in (
            ("loose", "exact_match.share", {"maximum": 0.5}),
            ("strict", "marginals.total_variation", {"maximum": 1e-6}),
        )
    )
    for suite in (loose, strict):
        Path(f"{suite['name']}.json").write_text(json.dumps(suite))
    path = Workspace(tmp_path / "out").evidence
    assert synth_audit.gate(evidence, "loose.json").verdict is Result.PASS
    judged = synth_audit.gate(path, "strict.json")
    assert (judged.verdict, judged.gates.suite_name) == (Result.FAIL, "strict")
    assert judged.intact
    path.write_text(path.read_text().replace('"seed": 0', '"seed": 1'))
    with pytest.raises(DataError, match="altered after the audit") as caught:
        synth_audit.gate(path, "loose.json")
    assert caught.value.where == str(path)


def test_release_of_a_table_made_elsewhere(plan, tmp_path):
    plan |= {"release": {"parquet": {"path": str(tmp_path / "released.parquet")}}}
    evidence = synth_audit.audit(TRAIN, CONTROL, SYNTHETIC, plan, out="out")
    with pytest.raises(ReleaseRefused, match="not the bytes"):
        synth_audit.release(plan, "out", TRAIN)
    with pytest.raises(DataError, match="cannot be read"):
        synth_audit.release(plan, "out")
    assert not (tmp_path / "released.parquet").exists()
    record = synth_audit.release(plan, "out", SYNTHETIC)
    assert record.table.rows == len(SYNTHETIC) == pq.read_metadata(record.where).num_rows
    kept = Workspace(tmp_path / "out").kept_rows(evidence.digest)
    assert pq.read_metadata(kept).num_rows == len(SYNTHETIC), "what is out there stays at hand"
    assert all(c.holds for c in synth_audit.verify("out"))


def test_verify_finds_tables_beside_the_evidence_and_takes_others(plan, tmp_path, monkeypatch):
    evidence = synth_audit.audit(TRAIN, CONTROL, SYNTHETIC, plan, out="out")
    path = Workspace(tmp_path / "out").evidence
    alone = synth_audit.verify(evidence, salt="out/restricted/salt")
    assert all(c.holds for c in alone)
    beside = synth_audit.verify(path)
    assert beside[: len(alone)] == alone
    assert all(c.holds for c in beside)
    for place in ("out", "out/review", path.parent):
        assert synth_audit.verify(place) == beside
    TRAIN.to_parquet(tmp_path / "out" / "restricted" / "train.parquet", index=False)
    checks = {c.what: c.holds for c in synth_audit.verify(path, {"synthetic": SYNTHETIC})}
    assert (checks["content of train"], checks["content of synthetic"]) == (True, True)
    assert not {c.what: c.holds for c in synth_audit.verify(path, {"train": CONTROL})}["content of train"]

    def closed(real):
        def at(path, *args, **kwargs):
            if "restricted" in str(path):
                raise PermissionError(13, "Permission denied")
            return real(path, *args, **kwargs)

        return at

    for name in ("stat", "open"):
        monkeypatch.setattr(os, name, closed(getattr(os, name)))
    monkeypatch.setattr(os, "access", lambda path, mode: "restricted" not in str(path))
    reader = {c.what: c.holds for c in synth_audit.verify(path)}
    assert False not in reader.values(), "who may read the review folder alone can still verify"
    assert [what for what, holds in reader.items() if holds is None] == [
        "content of train",
        "content of control",
        "content of synthetic",
        "entry in the journal",
        "newest attempt on these rows",
        "pointer to the newest audit",
        "pointer to what was released",
    ]


def test_the_report_needs_the_evidence_only(plan, tmp_path):
    evidence = synth_audit.audit(TRAIN, CONTROL, SYNTHETIC, plan)
    html = synth_audit.render_report(evidence, tmp_path / "new folder" / "r.html")
    assert (tmp_path / "new folder" / "r.html").read_text(encoding="utf-8") == html
    assert html.lstrip().lower().startswith("<!doctype html>")
    assert synth_audit.render_report(evidence) == html


def test_the_workspace_lies_beside_the_plan(tmp_path):
    plan = tmp_path / "p.yaml"
    plan.write_text("name: people\n")
    assert inputs.workspace_of(plan, None).root == tmp_path / "people-audit"
    assert inputs.workspace_of(plan, "here").root == Path("here")


def test_the_whole_way_from_a_mapping(plan, tmp_path):
    TRAIN.to_parquet(tmp_path / "people.parquet", index=False)
    plan |= {"source": "people.parquet", "generator": "independent", "release": "released.parquet"}
    evidence = synth_audit.run(plan, release=False)
    assert evidence.verdict is Result.PASS
    assert Workspace(tmp_path / "table-audit").report.exists()
    assert not (tmp_path / "released.parquet").exists()
    assert synth_audit.run(plan).digest == evidence.digest
    assert pq.read_metadata(tmp_path / "released.parquet").num_rows == evidence.tables["synthetic"].rows


def test_an_audit_that_runs_out_of_time_passes_no_gate(plan):
    evidence = synth_audit.audit(TRAIN, CONTROL, SYNTHETIC, plan, deadline=1e-9)
    assert {o.reason for o in evidence.outcomes} == {"ran out of time"}
    assert evidence.verdict is Result.INSUFFICIENT
    hurried = {**plan, "execution": {"deadline": 1e-9}}
    again = synth_audit.audit(TRAIN, CONTROL, SYNTHETIC, hurried)
    assert again.verdict is Result.INSUFFICIENT
    patient = synth_audit.audit(TRAIN, CONTROL, SYNTHETIC, hurried, deadline=600)
    assert patient.verdict is Result.PASS
    assert patient.plan_sha256 == again.plan_sha256


def test_an_unknown_setting_of_the_work_is_told_with_those_that_there_are():
    with pytest.raises(PlanError, match="no setting 'verbose'") as error:
        synth_audit.audit(TRAIN, CONTROL, SYNTHETIC, verbose=True)
    assert error.value.expected == f"any of {', '.join(synth_audit.Running.__annotations__)}"
    assert "progress" in error.value.expected


def test_a_notebook_shows_progress_in_one_line(capsys, monkeypatch):
    moments = itertools.count()
    monkeypatch.setattr("time.monotonic", lambda: float(next(moments)))
    parts = frame(60, 1), frame(30, 2), frame(60, 3)

    def printed(**more):
        audits = ["exact_match", {"recognition": {"detection": False, "draws": 1}}]
        synth_audit.audit(*parts, {"name": "people", "audits": audits}, **more)
        return capsys.readouterr().out

    assert printed() == ""
    shell = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=None))
    monkeypatch.setitem(sys.modules, "IPython", shell)
    out = printed()
    assert "exact_match" in out
    assert "done" in out
    assert "\n" not in out
    assert out.endswith(f"\r{' ' * 79}\r"), "the line is cleared"
    assert printed(progress=False) == ""
