import datetime
import subprocess
import sys
import threading
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest
from refusals import SECRET, refusal

from synth_audit.errors import DataError, PlanError, Unavailable
from synth_audit.plugins.source import Selective, Source, Target, batches
from synth_audit.registry import build
from synth_audit.sources import duckdb as module
from synth_audit.sources.duckdb import DuckDB
from synth_audit.table.content_hash import fingerprint

NOON = datetime.datetime(2024, 1, 31, 12, tzinfo=datetime.UTC)


def table(n=4):
    return pa.table(
        {
            "id": pa.array(range(n), pa.int8()),
            "name": [SECRET, None] * (n // 2),
            "paid": pa.array([1.25] * n).cast(pa.decimal128(9, 2)),
            "at": pa.array([NOON] * n, pa.timestamp("us", tz="UTC")),
            "day": [NOON.date()] * n,
            "ok": [True, None] * (n // 2),
            "x": pa.array([0.5] * n, pa.float32()),
        }
    )


@pytest.fixture
def base(tmp_path):
    DuckDB(path="db.duckdb", table="people").write(table(), tmp_path)
    return tmp_path


def test_it_is_a_source_and_a_target():
    source = build("source", "duckdb", {"path": "a.duckdb", "table": "t"})
    assert isinstance(source, Source)
    assert isinstance(source, Target)


def test_types_survive(base):
    back = DuckDB(path="db.duckdb", table="people").read(base)
    assert back.schema == table().schema
    assert fingerprint(back) == fingerprint(table())


def test_values_of_types_that_duckdb_lacks_are_kept_in_the_next_ones(tmp_path):
    half = pa.array([0.5, None], pa.float32()).cast(pa.float16())
    wide = pa.array([Decimal("1.25"), None], pa.decimal256(38, 2))
    code = pa.DictionaryArray.from_arrays(pa.array([0, None], pa.int8()), half[:1])
    data = pa.table({"half": half, "code": code, "wide": wide})
    target = DuckDB(path="db.duckdb", table="t")
    target.write(data, tmp_path)
    back = target.read(tmp_path)
    assert back.schema.types == [pa.float32(), pa.float32(), pa.decimal128(38, 2)]
    assert back.to_pydict() == data.to_pydict()


def test_a_decimal_of_too_many_digits_is_named(tmp_path):
    data = pa.table({"ok": [1], "wide": pa.array([Decimal("1.25")], pa.decimal256(39, 2))})
    target = DuckDB(path="db.duckdb", table="t")
    assert isinstance(target, Selective)
    error = refusal(lambda: target.write(data, tmp_path))
    assert "'wide'" in error.what
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("rows", ["people", "(SELECT * FROM people WHERE id < 0)"])
def test_batches_are_the_rows_that_are_read(base, monkeypatch, rows):
    monkeypatch.setattr(module, "BATCH", 3)
    source = DuckDB(path="db.duckdb", query=f"SELECT * FROM {rows} ORDER BY id")
    assert pa.Table.from_batches(batches(source, base)).equals(source.read(base))
    if rows == "people":
        assert DuckDB(path="db.duckdb", table="people").read(base).num_rows == 4
        held = pa.Table.from_batches(batches(DuckDB(path="db.duckdb", table="people"), base))
        assert fingerprint(held) == fingerprint(table())


@pytest.mark.parametrize(
    "query", ["SELECT 1; SELECT 2", "DROP TABLE people", "SELECT nothing FROM people", "SELECT 1 a, 2 a"]
)
def test_batches_of_a_wrong_query_are_refused_as_it_is(base, query):
    source = DuckDB(path="db.duckdb", query=query)
    with pytest.raises(DataError) as whole:
        source.read(base)
    with pytest.raises(DataError) as parts:
        list(batches(source, base))
    assert str(parts.value) == str(whole.value)


def test_a_query(base):
    got = DuckDB(path="db.duckdb", query="SELECT id FROM people WHERE id > 1").read(base)
    assert sorted(got["id"].to_pylist()) == [2, 3]


def test_writing_replaces_one_table_and_makes_its_schema(base):
    target = DuckDB(path="db.duckdb", table="release.people")
    assert target.write(table(), base) == f"{base / 'db.duckdb'}, table release.people"
    target.write(table(2).select(["id"]), base)
    assert target.read(base).to_pydict() == {"id": [0, 1]}
    assert DuckDB(path="db.duckdb", table="people").read(base).num_rows == 4


def test_a_schema_may_be_called_like_the_file(tmp_path):
    """DuckDB reads `db.people` as the table people of the main schema when the file is db.duckdb."""
    main, own = (DuckDB(path="db.duckdb", table=name) for name in ("people", "db.people"))
    main.write(table(), tmp_path)
    refusal(lambda: own.read(tmp_path))
    own.write(table(2), tmp_path)
    assert (main.read(tmp_path).num_rows, own.read(tmp_path).num_rows) == (4, 2)
    assert main.place(tmp_path) != own.place(tmp_path)


def test_a_place_has_many_spellings(base, monkeypatch):
    (base / "link.duckdb").symlink_to(base / "db.duckdb")
    (base / "hard.duckdb").hardlink_to(base / "db.duckdb")
    monkeypatch.chdir(base)
    paths = ("db.duckdb", "./db.duckdb", "link.duckdb", "hard.duckdb", str(base / "db.duckdb"))
    names = ("people", "People", "main.people", '"MAIN"."people"')
    assert len({DuckDB(path=p, table=n).place(base) for p in paths for n in names}) == 1
    (place,) = {DuckDB(path=p, query="SELECT 1").place(base) for p in paths}
    assert DuckDB(path="db.duckdb", table="people").place(base)[:1] == place
    others = [
        ("db.duckdb", "other"),
        ("db.duckdb", "x.people"),
        ("new.duckdb", "people"),
        ("db.duckdb", '"a.b"'),
    ]
    assert len({DuckDB(path=p, table=n).place(base) for p, n in [*others, ("db.duckdb", "people")]}) == 5


def test_writing_makes_folder_and_file(tmp_path):
    target = DuckDB(path="new/db.duckdb", table="t")
    target.write(table(), tmp_path)
    assert target.read(tmp_path).num_rows == 4


@pytest.mark.parametrize(
    "name",
    [
        "people; DROP TABLE people",
        "people' OR 1=1 --",
        '"peo""ple; DROP TABLE people"',
        "select",
        '"with.dot"."and "" quote"',
    ],
)
def test_a_name_is_never_code(base, name):
    target = DuckDB(path="db.duckdb", table=name)
    refusal(lambda: target.read(base))
    target.write(table(2), base)
    assert target.read(base).num_rows == 2
    assert DuckDB(path="db.duckdb", table="people").read(base).num_rows == 4


@pytest.mark.parametrize("name", ['people"; DROP TABLE people; --', "a.b.c", "", ".people", '"'])
def test_a_name_that_is_no_name_is_refused_in_the_plan(name):
    with pytest.raises(PlanError, match="table must read"):
        build("source", "duckdb", {"path": "db.duckdb", "table": name})


@pytest.mark.parametrize("choice", [{}, {"table": "t", "query": "SELECT 1"}])
def test_exactly_one_of_table_and_query(choice):
    with pytest.raises(PlanError, match="exactly one of table and query"):
        build("source", "duckdb", {"path": "db.duckdb", **choice})


def test_an_unknown_table(base):
    error = refusal(lambda: DuckDB(path="db.duckdb", table="nobody").read(base))
    assert "nobody" in error.where


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT '{SECRET}'::INTEGER",
        "SELECT swordfish FROM people",
        "SELECT name::INTEGER FROM people",
        "DROP TABLE people",
        "SELECT * FROM people; DROP TABLE people",
        "SET enable_external_access = true",
        "SELECT",
        "",
    ],
)
def test_a_query_that_fails_or_is_no_select(base, query):
    refusal(lambda: DuckDB(path="db.duckdb", query=query).read(base))
    assert DuckDB(path="db.duckdb", table="people").read(base).num_rows == 4


def test_other_files_are_out_of_reach(base):
    (base / "other.csv").write_text("a\n1\n")
    query = f"FROM '{base / 'other.csv'}'"
    refusal(lambda: DuckDB(path="db.duckdb", query=query).read(base))


def test_python_variables_are_out_of_reach(base):
    people_in_memory = pa.table({"a": [1]})
    assert people_in_memory.num_rows == 1
    refusal(lambda: DuckDB(path="db.duckdb", query="SELECT * FROM people_in_memory").read(base))


def test_a_missing_file_is_not_made(tmp_path):
    refusal(lambda: DuckDB(path="none.duckdb", table="t").read(tmp_path))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", SECRET.encode() * 1000])
def test_a_file_that_is_no_database(tmp_path, content):
    (tmp_path / "db.duckdb").write_bytes(content)
    refusal(lambda: DuckDB(path="db.duckdb", table="t").read(tmp_path))


def test_a_file_held_by_another_connection(base):
    with duckdb.connect(str(base / "db.duckdb")):
        refusal(lambda: DuckDB(path="db.duckdb", table="people").read(base))
    assert DuckDB(path="db.duckdb", table="people").read(base).num_rows == 4


def test_a_file_that_another_program_writes_to_is_waited_for_and_no_longer(base):
    code = "import duckdb, sys; held = duckdb.connect(sys.argv[1]); print(flush=True); sys.stdin.read()"
    words = [sys.executable, "-c", code, str(base / "db.duckdb")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        writer.stdout.readline()
        with pytest.raises(Unavailable, match="locked by another program"):
            DuckDB(path="db.duckdb", table="people", wait=0.2).read(base)
        threading.Timer(0.2, writer.stdin.close).start()
        assert DuckDB(path="db.duckdb", table="people", wait=30).read(base).num_rows == 4


def test_a_query_cannot_take_a_release(base):
    refusal(lambda: DuckDB(path="db.duckdb", query="SELECT 1").write(table(), base))


def test_a_view_is_not_replaced(base):
    with duckdb.connect(str(base / "db.duckdb")) as connection:
        connection.execute("CREATE VIEW seen AS SELECT 1 AS one")
    refusal(lambda: DuckDB(path="db.duckdb", table="seen").write(table(), base))
    assert DuckDB(path="db.duckdb", table="seen").read(base).to_pydict() == {"one": [1]}


@pytest.mark.parametrize("failure", [pa.ArrowInvalid, duckdb.IOException])
def test_a_failing_write_leaves_the_last_good_release(base, monkeypatch, failure):
    class Failing:
        def __init__(self, inner):
            self.inner = inner

        def __getattr__(self, name):
            return getattr(self.inner, name)

        def commit(self):
            raise failure(SECRET)

    connect = duckdb.connect
    monkeypatch.setattr(duckdb, "connect", lambda *a, **k: Failing(connect(*a, **k)))
    target = DuckDB(path="db.duckdb", table="people")
    refusal(lambda: target.write(table(2), base))
    refusal(lambda: DuckDB(path="db.duckdb", table="fresh.people").write(table(2), base))
    monkeypatch.undo()
    assert fingerprint(target.read(base)) == fingerprint(table())
    with duckdb.connect(str(base / "db.duckdb")) as connection:
        schemas = connection.execute("SELECT schema_name FROM duckdb_schemas()").fetchall()
    assert ("main",) in schemas
    assert ("fresh",) not in schemas


def test_zoned_timestamps_do_not_take_the_zone_of_the_machine(base, monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert DuckDB(path="db.duckdb", table="people").read(base).schema.field("at").type.tz == "UTC"
