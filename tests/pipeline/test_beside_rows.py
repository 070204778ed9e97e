"""What a file or a generator hides beside its rows stays behind, and the reader is told of it."""

import json
from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import synth_audit
from synth_audit import api, cli
from synth_audit.pipeline import stages as pipeline
from synth_audit.pipeline.warnings import about_metadata
from synth_audit.store.workspace import Workspace
from synth_audit.table.content_hash import fingerprint

SECRET = "Dr Ada Zanzibar-7391"
PLAN = {"audits": ["exact_match"], "gates": "gates.json"}


@pytest.fixture
def files(tmp_path, monkeypatch, make_people, write_suite):
    monkeypatch.chdir(tmp_path)
    write_suite(0.9)
    Path("plan.yaml").write_text(json.dumps(PLAN))
    for seed, name in enumerate(("train", "control", "synthetic")):
        pq.write_table(make_people(120, seed=seed).drop_columns(["person"]), f"{name}.parquet")
    return tmp_path


def with_attributes(table):
    """As pandas writes a frame whose attributes hold 50 real rows."""
    frame = table.to_pandas()
    frame.attrs["sample"] = [[SECRET, 63, "Boston"]] * 50
    into = BytesIO()
    frame.to_parquet(into)
    return pq.read_table(into)


def with_names(count):
    """As pandas writes labels of which many are no row's."""

    def hide(table):
        frame = table.to_pandas()
        known = sorted(frame["city"].dropna().unique())
        frame["city"] = pd.Categorical(frame["city"], [*known, *(f"{SECRET}-{i}" for i in range(count))])
        return pa.Table.from_pandas(frame)

    return hide


def with_notes(table):
    """Metadata of the table and of a column, under keys that say something too."""
    noted = table.schema.field(0).with_metadata({SECRET: "x"})
    schema = table.schema.set(0, noted).with_metadata({SECRET: SECRET})
    return table.cast(schema).replace_schema_metadata(schema.metadata)


HIDING = {
    "attributes": (with_attributes, "(pandas attributes, 4.0 kB)"),
    "names": (with_names(12), "no row uses: column 'city' 12"),
    "few names": (with_names(3), "no row uses: column 'city' fewer than 10"),
    "notes": (with_notes, "(1 other key, 40 B; metadata of 1 column, 21 B)"),
}


def content_of(path):
    """The bytes of a Parquet file, and of all that is compressed in it, dictionaries as they are stored."""
    texts = [f.name for f in pq.read_schema(path) if not pa.types.is_primitive(f.type)]
    table = pq.read_table(path, read_dictionary=texts)
    into = pa.BufferOutputStream()
    with pa.ipc.new_file(into, table.schema) as file:
        file.write_table(table)
    return path.read_bytes() + into.getvalue().to_pybytes()


def audit(synthetic, *words, code=0):
    result = CliRunner().invoke(
        cli.main, ["audit", "train.parquet", "control.parquet", synthetic, "--plan", "plan.yaml", *words]
    )
    assert result.exit_code == code, result.output
    assert SECRET not in result.output
    return result


@pytest.mark.parametrize("name", HIDING)
def test_what_no_audit_saw_is_told_and_stays_behind(files, name):
    hide, told = HIDING[name]
    pq.write_table(hide(pq.read_table("synthetic.parquet")), "hiding.parquet")
    assert SECRET.encode() in content_of(Path("hiding.parquet"))
    result = audit("hiding.parquet", "--out", "out")
    folder = Workspace(files / "out").newest
    assert str(Path("out", *folder.table.parts[-4:])) in result.stdout
    assert f"{folder.table.name}, not hiding.parquet" in result.stdout
    evidence = synth_audit.load_evidence("out")
    (warning,) = [w for w in evidence.warnings if told in w]
    assert warning in " ".join(result.stdout.split())
    assert SECRET.encode() not in content_of(folder.table)
    clean = pq.read_table(folder.table)
    assert fingerprint(clean) == evidence.tables["synthetic"].sha256
    assert clean.schema.metadata is None
    assert not any(f.metadata or pa.types.is_dictionary(f.type) for f in clean.schema)
    certificate = folder.certificate.read_text()
    assert "and not the file that was audited. Both hold the same rows" in certificate
    assert evidence.tables["synthetic"].sha256 in certificate
    assert not any(SECRET in p.read_text() for p in folder.path.iterdir() if p.suffix in (".html", ".json"))
    assert all(check.holds is not False for check in synth_audit.verify("out"))


def test_an_ordinary_file_is_written_anew_without_a_warning(files):
    frame = pq.read_table("synthetic.parquet").to_pandas()
    frame.assign(city=frame["city"].astype("category")).to_parquet("synthetic.parquet")
    audit("synthetic.parquet", "--out", "out")
    warnings = synth_audit.load_evidence("out").warnings
    assert not [w for w in warnings if "metadata" in w or "no row uses" in w]
    assert Workspace(files / "out").newest.table.is_file()


def test_a_clean_file_that_is_altered_is_not_as_filed(files):
    audit("synthetic.parquet", "--out", "out")
    Workspace(files / "out").newest.table.write_bytes(Path("train.parquet").read_bytes())
    assert "not as filed: synthetic.parquet" in " ".join(c.detail for c in synth_audit.verify("out"))


def test_nothing_to_share_without_a_folder_a_pass_or_the_approvals(files):
    assert "do not share synthetic.parquet" in audit("synthetic.parquet").stdout
    Path("copy.parquet").write_bytes(Path("train.parquet").read_bytes())
    audit("copy.parquet", "--out", "failed", code=1)
    assert not Workspace(files / "failed").newest.table.exists()
    key = synth_audit.new_key(files / "ann.pem")
    release = {"parquet": {"path": "released.parquet"}, "approvals": 1, "approvers": {"Ann Ohm": key}}
    Path("plan.yaml").write_text(json.dumps(PLAN | {"release": release}))
    assert "share what `release` writes, not synthetic" in audit("synthetic.parquet", "--out", "out").stdout
    assert not Workspace(files / "out").newest.table.exists()


def test_what_pandas_says_of_a_table_is_measured(files):
    schema = pa.Table.from_pandas(pd.DataFrame({"a": [1]})).schema
    said = json.loads(schema.metadata[b"pandas"])
    assert not [*about_metadata(schema)]
    for other in (json.dumps(said | {"creator": SECRET * 100}), json.dumps(said | {"note": SECRET}), "none"):
        (told,) = about_metadata(schema.with_metadata({"pandas": other}))
        assert "more than pandas says of such a table" in told


COMMENTS = {
    "another number of fields": (f"# {SECRET}, 63\n", "another number of fields than the header: line 123"),
    "as many fields": (f"# {SECRET},63,Boston\n", "at the end that begin with '#': line 123"),
}


@pytest.mark.parametrize("name", COMMENTS)
def test_a_comment_below_the_rows_of_a_csv_is_no_row(files, name):
    comment, told = COMMENTS[name]
    for table in ("train", "control", "synthetic"):
        rows = pq.read_table(f"{table}.parquet").to_pandas()[["city", "age", "income"]]
        rows.to_csv(f"{table}.csv", index=False)
    comment = comment.replace("Boston", "12")
    text = Path("synthetic.csv").read_text()
    Path("synthetic.csv").write_text(f"{text}\n{comment}")
    result = CliRunner().invoke(
        cli.main,
        ["audit", "train.csv", "control.csv", "synthetic.csv", "--plan", "plan.yaml", "--out", "out"],
    )
    assert result.exit_code == 2, result.output
    assert told in result.stderr
    assert SECRET not in result.output
    assert not list(files.rglob("out/**/synthetic.parquet"))


@pytest.mark.parametrize("hide", [with_attributes, with_names(12)])
def test_the_candidate_and_the_kept_rows_are_as_clean(case, make_people, hide):
    made = case.folder / "made.parquet"
    pq.write_table(hide(make_people(160, seed=9).drop_columns(["person"])), made)
    plan = case.replan(generator={"external": {"source": "made.parquet"}})
    evidence = pipeline.produce(plan, case.workspace)
    assert SECRET.encode() not in content_of(case.workspace.synthetic)
    assert SECRET.encode() not in content_of(case.workspace.kept_rows(evidence.digest))
    out = case.folder / "elsewhere"
    evidence = synth_audit.audit(case.workspace.train, case.workspace.control, made, case.plan, out=out)
    synth_audit.release(case.plan, out, made)
    assert SECRET.encode() not in content_of(Workspace(out).kept_rows(evidence.digest))


HIDDEN = "Zanzibar-7391"


def honest(make_people):
    made = make_people(160, seed=9).drop_columns(["person"])
    income = made.column("income").to_numpy().copy()
    income[:40] = 0.0
    missing = np.arange(160) % 8 == 7
    return made.set_column(1, "income", pa.array(income, mask=missing))


def hiding(made):
    """The same content with a secret in the order of rows, signs of zero, payloads, labels and metadata."""
    bits = np.unpackbits(np.frombuffer(HIDDEN.encode(), dtype=np.uint8))
    income = made.column("income").to_numpy(zero_copy_only=False).copy()
    zeros = np.flatnonzero(income == 0)[: len(bits)]
    income[zeros[bits[: len(zeros)] == 1]] = -0.0
    payload = np.uint64(0x7FF8000000000000) + np.arange(160, dtype=np.uint64)
    lost = np.isnan(income)
    income[lost] = payload.view(np.float64)[lost]
    labels = made.column("city").to_pylist()
    known = [HIDDEN, *sorted(set(labels))]
    coded = pa.DictionaryArray.from_arrays([known.index(x) for x in labels], known)
    other = made.set_column(1, "income", pa.array(income)).set_column(2, "city", coded)
    other = other.take(np.random.default_rng(list(HIDDEN.encode())).permutation(160))
    return other.select(other.column_names[::-1]).replace_schema_metadata({"note": HIDDEN})


@pytest.fixture
def tables(make_people):
    made = honest(make_people)
    other = hiding(made)
    assert fingerprint(other) == fingerprint(made)
    return made, other


def released(case):
    path = case.folder / "out-of-the-house" / "released.parquet"
    return path.read_bytes()


def test_of_a_run(case, tables):
    plan = case.replan(generator={"external": {"source": "made.parquet"}})
    found = []
    for table in tables:
        pq.write_table(table, case.folder / "made.parquet")
        pipeline.produce(plan, case.workspace)
        record = pipeline.release_synthetic(plan, case.workspace)
        assert record.table.sha256 == fingerprint(tables[0])
        found.append(released(case))
    assert found[0] == found[1]
    assert fingerprint(pq.read_table(case.folder / "out-of-the-house" / "released.parquet")) == fingerprint(
        tables[0]
    )


def test_of_a_file_made_elsewhere(case, tables):
    found = []
    for table in tables:
        pq.write_table(table, case.folder / "made.parquet")
        made = case.folder / "made.parquet"
        assert HIDDEN.encode() in made.read_bytes() or table is tables[0]
        train, control = case.workspace.train, case.workspace.control
        out = case.folder / "elsewhere"
        assert api.audit(train, control, made, case.plan, out=out).verdict == "pass"
        api.release(case.plan, out, made)
        found.append(released(case))
    assert found[0] == found[1]
    assert (
        api.verify(out, {"synthetic": case.folder / "out-of-the-house" / "released.parquet"})[-1].holds
        is not False
    )
