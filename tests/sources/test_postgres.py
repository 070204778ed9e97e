"""Against a real server: what is read, what is refused, and what a release leaves on every failure."""

import datetime
import threading
import time
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from refusals import SECRET, said

from synth_audit.errors import PlanError, ReleaseUncertain, Unavailable
from synth_audit.plugins.source import ConnectionSpec, Selective, Source, Target, batches, read
from synth_audit.sources.postgres import Postgres, writing
from synth_audit.sources.postgres.reading import meaning
from synth_audit.table.content_hash import fingerprint
from synth_audit.table.schema_inference import ColumnSpec, infer_schema
from synth_audit.table.table import read_table

pytestmark = pytest.mark.xdist_group("postgres")

HERE = Path()
ODD = 'we"ird; DROP TABLE clinic.people; --'


@pytest.fixture
def at(postgres):
    def make(table=None, wait=5.0, query=None, options=(), **changes):
        connection = ConnectionSpec.model_validate(postgres.connection(**changes) | dict(options))
        return Postgres(connection=connection, table=table, query=query, wait=wait)

    return make


@pytest.fixture
def people(postgres):
    postgres.run(
        "CREATE TABLE clinic.people (id int, name text)",
        f"INSERT INTO clinic.people SELECT g, '{SECRET}' FROM generate_series(1, 50) g",
    )
    return "clinic.people"


def release(n=4, shift=0):
    return pa.table(
        {
            "id": pa.array(range(shift, n + shift), pa.uint16()),
            "Name": ["ä", None] * (n // 2),
            "label": pa.array(["x", "y"] * (n // 2)).dictionary_encode(),
            "paid": pa.array([Decimal("1.25")] * n, pa.decimal128(9, 2)),
            "at": pa.array([datetime.datetime(2024, 1, 31, 12)] * n, pa.timestamp("ms", tz="UTC")),
            "day": pa.array([datetime.date(2024, 1, 31)] * n, pa.date64()),
            "clock": pa.array([datetime.time(1, 2, 3)] * n, pa.time32("s")),
            "ok": [True, None] * (n // 2),
            "x": pa.array([0.1, None] * (n // 2), pa.float32()),
            "wide": pa.array([2**64 - 1] * n, pa.uint64()),
            ODD: pa.array([b"\x00"] * n, pa.binary()),
        }
    )


def test_it_is_a_source_and_a_selective_target(at):
    assert isinstance(at("t"), Source)
    assert isinstance(at("t"), Target)
    assert isinstance(at("t"), Selective)


def test_columns_arrive_in_types_that_audits_read(postgres, at):
    postgres.run(
        "CREATE TYPE clinic.mood AS ENUM ('calm', 'tense')",
        "CREATE TABLE clinic.every (a smallint, b bigint, c real, d boolean, e varchar(5), f bytea, g date, "
        "h time, i timestamp, j timestamptz, k numeric(12,3), l numeric, m numeric(3,-2), n uuid, "
        "o clinic.mood, p jsonb)",
        "INSERT INTO clinic.every VALUES (1, 2, 0.5, true, 'x', '\\x01', '2024-01-31', '10:00', "
        "'2024-01-31 10:00', '2024-01-31 10:00+02', 2.5, 123.45678, 1234, "
        "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'tense', '{}')",
        "INSERT INTO clinic.every (a) VALUES (NULL)",
    )
    found = read(at("clinic.every"), HERE)
    assert found.schema.field("k").type == pa.decimal128(12, 3)
    assert found.schema.field("l").type == pa.decimal128(8, 5)
    assert found.schema.field("m").type == pa.decimal128(5, 0)
    assert found.schema.field("j").type == pa.timestamp("us", tz="UTC")
    row = found.slice(0, 1).to_pylist()[0]
    assert (row["k"], row["l"], row["m"]) == (Decimal("2.500"), Decimal("123.45678"), Decimal("1200"))
    assert row["o"] == "tense"
    assert row["j"].hour == 8
    assert all(value is None for value in found.slice(1, 1).to_pylist()[0].values())
    bytes_are_names = {name: ColumnSpec(role="identifier") for name in ("f", "h", "n")}
    schema = infer_schema(found, bytes_are_names, where="source")
    assert read_table(found, schema, where="source").n_rows == 2


@pytest.mark.parametrize(
    "kind", ["int[]", "interval", "money", "inet", "point", "int4range", "oid", "clinic.pair"]
)
def test_a_type_that_cannot_be_audited_is_refused_by_its_column(postgres, at, kind):
    postgres.run(
        "CREATE TYPE clinic.pair AS (a int, b text)", f'CREATE TABLE clinic.t (id int, "the odd one" {kind})'
    )
    text = said(lambda: read(at("clinic.t"), HERE))
    assert "'the odd one'" in text


@pytest.mark.parametrize(
    ("kind", "value"), [("numeric", "NaN"), ("numeric(9,2)", "NaN"), ("numeric", "-Infinity")]
)
def test_decimals_that_are_no_numbers_are_refused_by_their_column(postgres, at, kind, value):
    postgres.run(f"CREATE TABLE clinic.t (paid {kind})", f"INSERT INTO clinic.t VALUES (1), ('{value}')")
    assert "'paid' holds NaN or infinity" in said(lambda: read(at("clinic.t"), HERE))


def test_no_rows_are_a_table_of_its_columns(postgres, at):
    postgres.run("CREATE TABLE clinic.none (a int, b numeric)")
    found = read(at("clinic.none"), HERE)
    assert found.num_rows == 0
    assert found.schema.types == [pa.int32(), pa.decimal128(1, 0)]


def test_a_query_is_read_with_its_comment_and_semicolon(people, at):
    for query in (f"SELECT id FROM {people} -- all", f"SELECT id FROM {people} ;"):
        assert read(at(query=query), HERE).num_rows == 50


def test_names_are_literal_and_hold_no_sql(postgres, at, people):
    quoted = '"' + ODD.replace('"', '""') + '"'
    postgres.run(f"CREATE SCHEMA {quoted}", f"CREATE TABLE {quoted}.{quoted} AS SELECT 1 AS {quoted}")
    try:
        assert read(at(f"{quoted}.{quoted}"), HERE).to_pydict() == {ODD: [1]}
        assert "no such table" in said(lambda: read(at("clinic.People"), HERE))
    finally:
        postgres.run(f"DROP SCHEMA {quoted} CASCADE")
    assert read(at(people), HERE).num_rows == 50


@pytest.mark.parametrize(
    "query",
    [
        "SELECT 1; DROP TABLE clinic.people",
        "DELETE FROM clinic.people RETURNING id",
        "INSERT INTO clinic.people VALUES (1, 'x')",
        "SELECT 1) TO STDOUT; DROP TABLE clinic.people; --",
        "COMMIT",
        "SELECT nextval('clinic.counter')",
    ],
)
def test_a_session_that_reads_changes_nothing(postgres, at, people, query):
    postgres.run("CREATE SEQUENCE clinic.counter")
    said(lambda: read(at(query=query), HERE))
    assert postgres.run(f"SELECT count(*) FROM {people}") == [(50,)]


def test_one_snapshot_is_read_whatever_happens_meanwhile(postgres, at):
    postgres.run(
        "CREATE TABLE clinic.big AS SELECT g AS id, 0.5::numeric AS x, repeat('x', 1000) AS s "
        "FROM generate_series(1, 20000) g"
    )
    stream = at("clinic.big").batches(HERE)
    rows = next(stream).num_rows
    assert rows < 20_000
    postgres.run("DELETE FROM clinic.big")
    assert rows + sum(batch.num_rows for batch in stream) == 20_000


def test_a_table_that_is_read_is_renamed_only_afterwards(postgres, at):
    postgres.run("CREATE TABLE clinic.big AS SELECT repeat('x', 1000) AS s FROM generate_series(1, 30000)")
    stream = at("clinic.big").batches(HERE)
    rows = next(stream).num_rows
    with pytest.raises(Exception, match="lock timeout"):
        postgres.run("SET lock_timeout = 50", "ALTER TABLE clinic.big RENAME TO other")
    assert rows + sum(batch.num_rows for batch in stream) == 30_000
    postgres.run("ALTER TABLE clinic.big RENAME TO other")
    assert "no such table" in said(lambda: read(at("clinic.big"), HERE))


def test_a_server_that_goes_in_the_middle_is_told_as_such(postgres, at):
    postgres.run("CREATE TABLE clinic.big AS SELECT repeat('x', 1000) AS s FROM generate_series(1, 40000)")
    stream = batches(at("clinic.big"), HERE)
    next(stream)
    _end_others(postgres)
    assert "ended the session" in said(lambda: list(stream), kind=Unavailable)


def _end_others(postgres):
    postgres.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'synth-audit'"
    )


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"user": "nobody"}, "user or password is wrong"),
        ({"dbname": "nowhere"}, "do not exist there"),
        ({"port": "1"}, "cannot be reached"),
        ({"host": "no-such-host.invalid"}, "cannot be reached"),
        ({"colour": "red"}, "none of PostgreSQL's"),
    ],
)
def test_whoever_is_not_let_in_is_told_why(at, changes, says):
    assert says in said(lambda: read(at("t", **changes), HERE))


def test_a_wrong_or_missing_password_is_told_and_not_shown(at, monkeypatch):
    monkeypatch.setenv("SYNTH_AUDIT_TEST_PASSWORD", SECRET)
    assert "user or password is wrong" in said(lambda: read(at("t"), HERE))
    monkeypatch.delenv("SYNTH_AUDIT_TEST_PASSWORD")
    assert "SYNTH_AUDIT_TEST_PASSWORD is not set" in said(lambda: read(at("t"), HERE), kind=PlanError)


def test_a_whole_address_may_be_a_secret(postgres, people, monkeypatch):
    monkeypatch.setenv("WHOLE", f"postgresql://admin:sesame-opens-77@127.0.0.1:{postgres.port}/postgres")
    connection = ConnectionSpec(secrets={"uri": "WHOLE"})
    assert read(Postgres(connection=connection, table=people), HERE).num_rows == 50


def _reader(postgres):
    postgres.run("DROP ROLE IF EXISTS reader")
    postgres.run("CREATE ROLE reader LOGIN PASSWORD 'sesame-opens-77'")


def test_a_missing_privilege_is_told_to_readers_and_writers(postgres, at, people):
    _reader(postgres)
    postgres.run("CREATE SCHEMA released")
    assert "lacks a privilege" in said(lambda: read(at(people, user="reader"), HERE))
    assert "lacks a privilege" in said(lambda: at("released.t", user="reader").write(release(), HERE))
    assert "lacks a privilege" in said(lambda: at("fresh.t", user="reader").write(release(), HERE))


def test_a_locked_table_is_waited_for_and_no_longer(postgres, at, people):
    with postgres.cursor() as holder:
        holder.execute("BEGIN")
        holder.execute(f"LOCK TABLE {people} IN ACCESS EXCLUSIVE MODE")
        start = time.monotonic()
        assert "locked" in said(lambda: read(at(people, wait=0.2), HERE), kind=Unavailable)
        assert "locked" in said(lambda: at(people, wait=0.2).write(release(), HERE), kind=Unavailable)
        assert time.monotonic() - start < 15  # of the 60 that the default lets both wait
    assert read(at(people), HERE).num_rows == 50
    assert _tables(postgres, "clinic") == ["people"]


def _tables(postgres, schema):
    found = postgres.run(
        f"SELECT relname FROM pg_class WHERE relnamespace = '{schema}'::regnamespace AND relkind = 'r'"
    )
    return sorted(name for (name,) in found)


def test_a_release_comes_back_as_it_was_and_the_one_before_stays(postgres, at):
    target = at("released.people")
    first, second, third = (release(shift=i) for i in range(3))
    assert target.write(first, HERE) == "PostgreSQL, database postgres, table released.people"
    assert _tables(postgres, "released") == ["people"]
    for before, now in ((first, second), (second, third)):
        target.write(now, HERE)
        assert _tables(postgres, "released") == ["people", "people__previous"]
        for table, wanted in (("people", now), ("people__previous", before)):
            found = read(at(f"released.{table}"), HERE)
            kinds = [k.value_type if pa.types.is_dictionary(k) else k for k in wanted.schema.types]
            columns = [c.cast(k) for c, k in zip(found.columns, kinds, strict=True)]
            assert fingerprint(pa.table(columns, names=wanted.column_names)) == fingerprint(wanted)


def test_the_same_rows_once_more_change_nothing(postgres, at):
    target = at("released.people")
    target.write(release(), HERE)
    target.write(release(shift=1), HERE)
    before = postgres.run("SELECT oid FROM pg_class WHERE relname LIKE 'people%' ORDER BY 1")
    target.write(release(shift=1), HERE)
    assert postgres.run("SELECT oid FROM pg_class WHERE relname LIKE 'people%' ORDER BY 1") == before
    postgres.run("UPDATE released.people SET id = id + 1")  # the comment says so still, the rows do not
    target.write(release(shift=1), HERE)
    assert read(at("released.people"), HERE)["id"].to_pylist() == [1, 2, 3, 4]


def test_readers_keep_their_privileges(postgres, at):
    _reader(postgres)
    at("released.people").write(release(), HERE)
    postgres.run("GRANT USAGE ON SCHEMA released TO reader", "GRANT SELECT ON released.people TO reader")
    at("released.people").write(release(shift=1), HERE)
    assert read(at("released.people", user="reader"), HERE).num_rows == 4
    postgres.run("DROP OWNED BY reader")


HANGING = {
    "view": "CREATE VIEW released.seen AS SELECT * FROM released.people",
    "row security": "ALTER TABLE released.people ENABLE ROW LEVEL SECURITY",
    "trigger": "CREATE TRIGGER tr BEFORE UPDATE ON released.people FOR EACH ROW "
    "EXECUTE FUNCTION suppress_redundant_updates_trigger()",
    "privilege on column": "GRANT SELECT (id) ON released.people TO PUBLIC",
}


@pytest.mark.parametrize("what", HANGING)
def test_what_hangs_on_the_table_is_not_lost_without_a_word(postgres, at, what):
    at("released.people").write(release(), HERE)
    postgres.run(HANGING[what])
    assert what in said(lambda: at("released.people").write(release(shift=1), HERE))
    assert read(at("released.people"), HERE)["id"].to_pylist() == [0, 1, 2, 3]
    assert _tables(postgres, "released") == ["people"]


def test_tables_of_others_are_not_dropped(postgres, at):
    postgres.run("CREATE SCHEMA released", "CREATE TABLE released.people__previous (mine int)")
    at("released.people").write(release(), HERE)
    assert "not ours" in said(lambda: at("released.people").write(release(shift=1), HERE))
    assert read(at("released.people__previous"), HERE).column_names == ["mine"]
    postgres.run("CREATE VIEW released.seen AS SELECT 1 AS one")
    assert "no ordinary table" in said(lambda: at("released.seen").write(release(), HERE))


@pytest.mark.parametrize("moment", ["_stage", "_keep_previous", "_copy_grants"])
def test_a_server_that_goes_during_a_release_leaves_the_last_one_alone(postgres, at, monkeypatch, moment):
    target = at("released.people")
    target.write(release(), HERE)
    step = getattr(writing, moment)

    def broken(*args):
        _end_others(postgres)
        return step(*args)

    with monkeypatch.context() as patch:
        patch.setattr(writing, moment, broken)
        assert "ended the session" in said(lambda: target.write(release(shift=1), HERE), kind=Unavailable)
    assert read(target, HERE)["id"].to_pylist() == [0, 1, 2, 3]
    assert _tables(postgres, "released") == ["people"]
    target.write(release(shift=1), HERE)
    assert read(target, HERE)["id"].to_pylist() == [1, 2, 3, 4]


def test_a_server_that_goes_in_the_moment_of_commit_is_uncertain(postgres, at, monkeypatch):
    commit = writing._commit

    def broken(*args):
        _end_others(postgres)
        commit(*args)

    monkeypatch.setattr(writing, "_commit", broken)
    assert "release again" in said(
        lambda: at("released.people").write(release(), HERE), kind=ReleaseUncertain
    )


def test_what_the_server_changed_while_staging_is_not_published(postgres, at, monkeypatch):
    at("released.people").write(release(), HERE)
    stage = writing._stage

    def altered(cursor, schema, *args):
        name = stage(cursor, schema, *args)
        cursor.execute(f"UPDATE {schema}.{name} SET id = 99 WHERE id = 1")
        return name

    monkeypatch.setattr(writing, "_stage", altered)
    assert "not what was audited" in said(lambda: at("released.people").write(release(shift=1), HERE))
    assert read(at("released.people"), HERE)["id"].to_pylist() == [0, 1, 2, 3]


def test_releases_at_once_wait_for_one_another(postgres, at):
    writers = [
        threading.Thread(target=at("released.people").write, args=(release(shift=i), HERE)) for i in (0, 1, 2)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert _tables(postgres, "released") == ["people", "people__previous"]
    assert len(read(at("released.people"), HERE)) == 4


def test_what_postgres_cannot_hold_is_refused_by_name_beforehand(at):
    target = at("released.people")
    odd = {"spans": pa.duration("s"), "lists": pa.list_(pa.int8())}
    for name, kind in odd.items():
        assert repr(name) in said(lambda kind=kind, name=name: target.refuse_types(pa.schema([(name, kind)])))
    assert "would cut" in said(lambda: target.refuse_types(pa.schema([("x" * 64, pa.int8())])))
    assert "too long" in said(lambda: at(f"released.{'x' * 54}").refuse_types(pa.schema([])))
    late = pa.table({"at": pa.array([1], pa.timestamp("ns"))})
    assert "finer than" in said(lambda: target.write(late, HERE))
    assert "NUL" in said(lambda: target.write(pa.table({"s": ["a\0b"]}), HERE))


def test_addresses_of_one_server_are_one_place(at):
    assert at("clinic.t").place(HERE) == at("clinic.t", host="localhost").place(HERE)
    assert at("t").place(HERE)[-2:] == ("public", "t")
    assert at(query="SELECT 1").place(HERE) == at("clinic.t").place(HERE)[:2]
    assert at("clinic.t").place(HERE) != at("clinic.t", dbname="template1").place(HERE)


def test_sessions_are_ended_even_when_a_reader_stops_early(postgres, at, people):
    stream = at(people).batches(HERE)
    next(stream)
    stream.close()
    left = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'synth-audit'"
    until = time.monotonic() + 60
    while postgres.run(left) != [(0,)] and time.monotonic() < until:
        time.sleep(0.02)
    assert postgres.run(left) == [(0,)]


def test_no_word_of_the_server_is_repeated():
    error = OSError(f"ERROR: invalid input syntax: {SECRET}")
    assert SECRET not in str(meaning(error, "there"))
