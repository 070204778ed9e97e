"""Iceberg, in a catalogue of SQLite: rows come back as they went, or nothing changes and a reason is told."""

import datetime as dt
import sqlite3
import sys
from decimal import Decimal

import pyarrow as pa
import pytest
from refusals import SECRET, said

from synth_audit.errors import DataError, PlanError, ReleaseUncertain, Unavailable
from synth_audit.plugins.source import ConnectionSpec, read
from synth_audit.registry import build
from synth_audit.sources.iceberg import Iceberg
from synth_audit.table.content_hash import fingerprint

KEPT = {
    "b": pa.array([True, None]),
    "i": pa.array([1, None], pa.int16()),
    "u": pa.array([2**32 - 1, None], pa.uint32()),
    "x": pa.array([-0.0, 1e300]),
    "half": pa.array([0.5, None], pa.float16()),
    "s": pa.array(["ä", None], pa.large_string()),
    "label": pa.array(["a", None]).dictionary_encode(),
    "day": pa.array([dt.date(1900, 1, 1), None]),
    "time": pa.array([dt.datetime(2020, 1, 1, 1, 1, 1, 5), None], pa.timestamp("us")),
    "there": pa.array([dt.datetime(2020, 1, 1), None], pa.timestamp("s", "Europe/Berlin")),
    "price": pa.array([Decimal("1.20"), None], pa.decimal128(38, 2)),
    'odd "name"; --': pa.array([1, None]),
    "with.dot": pa.array([1, None]),
}
REFUSED = [
    pa.uint64(),
    pa.timestamp("ns"),
    pa.duration("us"),
    pa.time64("us"),
    pa.list_(pa.int8()),
    pa.decimal256(50, 2),
    pa.binary(),
]


def made(table="clinic.people", **options):
    return Iceberg(connection=ConnectionSpec(options={"uri": "http://[::1]:1/x", **options}), table=table)


@pytest.fixture
def lake(tmp_path, monkeypatch):
    """Makes sources of one catalogue, whose address is secret."""
    catalog = pytest.importorskip("pyiceberg.catalog.sql", reason="the extra `iceberg` is not installed")
    pytest.importorskip("sqlalchemy")
    uri, warehouse = f"sqlite:///{tmp_path}/{SECRET}.db", f"file://{tmp_path}/files"
    catalog.SqlCatalog("default", uri=uri, warehouse=warehouse).close()
    monkeypatch.setenv("LAKE", uri + "?timeout=0.1")

    def make(table="clinic.people"):
        connection = ConnectionSpec(options={"warehouse": warehouse, "type": "sql"}, secrets={"uri": "LAKE"})
        return Iceberg(connection=connection, table=table)

    return make


def test_rows_come_back_and_a_second_release_replaces_the_first(lake, tmp_path):
    rows = pa.table(KEPT)
    assert lake().place(tmp_path)[-2:] == ("clinic", "people")
    assert lake().write(rows, tmp_path) == "Iceberg, table clinic.people"
    found = read(lake(), tmp_path)
    assert fingerprint(found.cast(pa.schema(KEPT_TYPES))) == fingerprint(rows)
    lake().write(rows.slice(0, 1).select(["x", "b"]), tmp_path)
    assert read(lake(), tmp_path).to_pylist() == [{"x": 0.0, "b": True}]
    lake().write(pa.table({"none": pa.array([], pa.int64())}), tmp_path)
    assert (read(lake(), tmp_path).num_rows, read(lake(), tmp_path).column_names) == (0, ["none"])
    lake().write(pa.table({"none": [1]}), tmp_path)
    assert read(lake(), tmp_path).to_pylist() == [{"none": 1}]
    assert lake().place(tmp_path) == lake('"clinic"."people"').place(tmp_path)


KEPT_TYPES = [(name, v.type.value_type if name == "label" else v.type) for name, v in KEPT.items()]


def snapshots(source):
    with source._catalogue() as catalogue:
        return len(catalogue.load_table(source._parts()).snapshots())


def test_rows_that_are_there_already_are_left_alone(lake, tmp_path):
    rows = pa.table({"x": [1, 2]})
    lake().write(rows, tmp_path)
    lake().write(rows, tmp_path)
    assert snapshots(lake()) == 1
    lake().write(pa.table({"x": [3]}), tmp_path)
    with lake()._catalogue() as catalogue:
        table = catalogue.load_table(("clinic", "people"))
        first = table.scan(snapshot_id=table.history()[0].snapshot_id).to_arrow()
    assert first.to_pylist() == rows.to_pylist()  # the version before is kept


def test_names_are_taken_as_they_stand(lake, tmp_path):
    for name in ('"Odd; DROP TABLE x --"."per\'son"', "ä.B", "ä.b", '"of.dots"."a ""quoted"" one"'):
        lake(name).write(pa.table({"x": [len(name)]}), tmp_path)
        assert read(lake(name), tmp_path).to_pylist() == [{"x": len(name)}]
    for wrong in ("alone", "", "a..b", "a.", 'a."b', '".."."x"', '"a/b".c', 'a."\n"'):
        with pytest.raises(ValueError, match="table"):
            lake(wrong)


def test_what_is_not_there_is_said_to_be_missing(lake, tmp_path, monkeypatch):
    assert "there is no such table" in said(lambda: read(lake(), tmp_path))
    lake().write(pa.table({"x": [1]}), tmp_path)
    assert "there is no such table" in said(lambda: read(lake("clinic.others"), tmp_path))
    monkeypatch.setenv("LAKE", f"sqlite:///{tmp_path}/not-{SECRET}.db")
    said(lambda: read(lake(), tmp_path))
    said(lambda: lake().write(pa.table({"x": [1]}), tmp_path))
    monkeypatch.setenv("LAKE", "nonsense")
    said(lambda: read(lake(), tmp_path))
    monkeypatch.delenv("LAKE")
    assert "LAKE is not set" in said(lambda: read(lake(), tmp_path), kind=PlanError)


def test_a_locked_catalogue_may_be_free_later(lake, tmp_path):
    lake().write(pa.table({"x": [1]}), tmp_path)
    holder = sqlite3.connect(tmp_path / f"{SECRET}.db", isolation_level=None)
    try:
        holder.execute("BEGIN EXCLUSIVE")
        said(lambda: read(lake(), tmp_path), kind=Unavailable)
        said(lambda: lake().write(pa.table({"x": [2]}), tmp_path), kind=Unavailable)
    finally:
        holder.close()
    assert read(lake(), tmp_path).to_pylist() == [{"x": 1}]


@pytest.mark.parametrize("there_before", [True, False])
def test_who_commits_second_commits_nothing(lake, tmp_path, monkeypatch, there_before):
    from synth_audit.sources import iceberg

    if there_before:
        lake().write(pa.table({"x": [1]}), tmp_path)
    stage = iceberg.stage

    def late(*args):
        staged = stage(*args)
        monkeypatch.setattr(iceberg, "stage", stage)
        lake().write(pa.table({"x": [7]}), tmp_path)
        return staged

    monkeypatch.setattr(iceberg, "stage", late)
    assert "at the same time" in said(lambda: lake().write(pa.table({"x": [2]}), tmp_path), kind=Unavailable)
    assert read(lake(), tmp_path).to_pylist() == [{"x": 7}]


def test_a_catalogue_that_is_lost_while_committing_leaves_it_open(lake, tmp_path, monkeypatch):
    from pyiceberg.catalog.sql import SqlCatalog

    lake().write(pa.table({"x": [1]}), tmp_path)
    commit = SqlCatalog.commit_table

    def lost(*args, **kwargs):
        commit(*args, **kwargs)
        raise ConnectionError(f"reset by {SECRET}")

    with monkeypatch.context() as moment:
        moment.setattr(SqlCatalog, "commit_table", lost)
        said(lambda: lake().write(pa.table({"x": [2]}), tmp_path), kind=ReleaseUncertain)
    assert snapshots(lake()) == 3  # one release, and what took its place: its rows away, the new ones there
    lake().write(pa.table({"x": [2]}), tmp_path)
    assert (snapshots(lake()), read(lake(), tmp_path).to_pylist()) == (3, [{"x": 2}])


def test_rows_that_would_come_back_changed_are_not_released(lake, tmp_path, monkeypatch):
    from synth_audit.sources import iceberg as staging

    lake().write(pa.table({"x": [1]}), tmp_path)
    monkeypatch.setattr(staging, "stored", lambda data: pa.table({"x": [6]}))
    assert "not what was audited" in said(lambda: lake().write(pa.table({"x": [5]}), tmp_path))
    assert read(lake(), tmp_path).to_pylist() == [{"x": 1}]


@pytest.mark.parametrize("kind", REFUSED, ids=str)
def test_a_type_that_would_be_changed_is_refused_by_the_columns_name(kind):
    with pytest.raises(DataError, match="column 'x'"):
        made().refuse_types(pa.schema([("x", kind)]))


def test_a_plan_names_neither_code_nor_secrets():
    with pytest.raises(ValueError, match="names code to run"):
        made(**{"py-catalog-impl": "os.system"})
    with pytest.raises(ValueError, match="code to run"):
        Iceberg(connection=ConnectionSpec(secrets={"py-io-impl": "ANY"}), table="clinic.people")
    with pytest.raises(PlanError, match="namespace"):
        build("source", "iceberg", {"connection": ConnectionSpec(), "table": "alone"})


def test_without_the_library_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyiceberg.catalog", None)
    with pytest.raises(PlanError, match="not installed"):
        made().read(tmp_path)
