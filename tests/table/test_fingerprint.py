"""Content hashes: what must not matter, and that everything else does."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth_audit.errors import DataError
from synth_audit.table.content_hash import fingerprint, fingerprint_of

DATA = pa.table(
    {
        "b": pa.array([True, None, False]),
        "i": pa.array([1, 2, None]),
        "f": pa.array([0.5, None, -2.0]),
        "s": pa.array(["", None, "ä"]),
        "t": pa.array([0, None, 1_600_000_000_000_000], pa.timestamp("us")),
        "d": pa.array([0, None, 20_000], pa.int32()).cast(pa.date32()),
        "m": pa.array([1.25, None, 3.0]).cast(pa.decimal128(9, 2)),
    }
)


def of(**columns):
    return fingerprint(pa.table(columns))


def test_row_and_column_order_do_not_matter():
    assert fingerprint(DATA.take([2, 0, 1])) == fingerprint(DATA)
    assert fingerprint(DATA.select(list(reversed(DATA.column_names)))) == fingerprint(DATA)
    assert fingerprint(pa.concat_tables([DATA.slice(1), DATA.slice(0, 1)])) == fingerprint(DATA)


def test_a_known_table_keeps_its_hash():
    expected = "f6739c1968c002966f4cee74158a9ed7bce8c0b980ddc3dff5d4b0958e34925c"
    assert fingerprint(DATA) == expected


def test_columns_belong_to_their_names_and_rows_stay_together():
    assert of(a=[1, 2], b=[3, 4]) != of(a=[3, 4], b=[1, 2])
    assert of(a=[1, 2], b=[3, 4]) != of(a=[1, 2], b=[4, 3])
    assert of(a=[1, 2]) != of(c=[1, 2])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pa.array([1, 2]), pa.array([1.0, 2.0])),
        (pa.array([1, 2]), pa.array(["1", "2"])),
        (pa.array([1, 2]), pa.array([1, 2], pa.int32())),
        (pa.array([1, 0]), pa.array([True, False])),
        (pa.array([0, 2]), pa.array([None, 2])),
        (pa.array([0.0, 2.0]), pa.array([None, 2.0])),
        (pa.array(["", "b"]), pa.array([None, "b"])),
        (pa.array([False, True]), pa.array([None, True])),
        (pa.array([0, 1], pa.timestamp("us")), pa.array([None, 1], pa.timestamp("us"))),
        (pa.array([0, 1], pa.timestamp("us")), pa.array([0, 1], pa.timestamp("us", "UTC"))),
        (pa.array([0, 1], pa.timestamp("us")), pa.array([0, 1], pa.timestamp("ms"))),
        (pa.array([0, 1], pa.timestamp("us")), pa.array([0, 1], pa.timestamp("us", "Asia/Tokyo"))),
        (pa.array([0, 1], pa.timestamp("us", "UTC")), pa.array([0, 2], pa.timestamp("us", "Asia/Tokyo"))),
        (pa.array([0, 1], pa.date32()), pa.array([0, 2], pa.date32())),
        (pa.array([0, 1], pa.date32()), pa.array([0, 86_400], pa.timestamp("s"))),
        (pa.array([0, 1], pa.time32("s")), pa.array([0, 1], pa.time32("ms"))),
        (pa.array([0, 1], pa.time64("ns")), pa.array([None, 1], pa.time64("ns"))),
        (pa.array(["ab", "c"]), pa.array(["a", "bc"])),
        (pa.array([1]), pa.array([1, 1])),
        (pa.array([1, 1, 2]), pa.array([1, 2, 2])),
        (pa.nulls(1, pa.int64()), pa.nulls(2, pa.int64())),
    ],
)
def test_different_content_differs(one, other):
    assert of(x=one) != of(x=other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pa.array(["a", None]), pa.array(["a", None], pa.large_string())),
        (pa.array(["a", None]), pa.array(["a", None], pa.string_view())),
        (pa.array(["a", None]), pa.array(["a", None]).dictionary_encode()),
        (pa.array([0.0]), pa.array([-0.0])),
        (pa.array([float("nan"), 1.0], from_pandas=False), pa.array([None, 1.0])),
        (pa.array([-1, 2], pa.timestamp("s")), pa.array([-1000, 2000], pa.timestamp("ms"))),
        (pa.array([-1], pa.timestamp("us")), pa.array([-1000], pa.timestamp("ns"))),
        (
            pa.array([-1, None], pa.timestamp("s", "UTC")),
            pa.array([-1, None], pa.timestamp("s", "Asia/Tokyo")),
        ),
        (pa.array([-1], pa.timestamp("s", "+05:30")), pa.array([-1000], pa.timestamp("ms", "UTC"))),
        (pa.array([-1, None], pa.date32()), pa.array([-86_400_000, None], pa.date64())),
        (pa.array([1, None], pa.time32("s")), pa.array([1000, None], pa.time32("ms"))),
        (pa.array([1], pa.time32("ms")), pa.array([1_000_000], pa.time64("ns"))),
    ],
)
def test_one_content_in_two_representations_agrees(one, other):
    assert of(x=one) == of(x=other)


def test_dictionaries_in_chunks_of_their_own_agree():
    chunks = pa.chunked_array(
        [pa.array(["a", "b"]).dictionary_encode(), pa.array(["b", "c"]).dictionary_encode()]
    )
    assert of(x=chunks) == of(x=pa.array(["a", "b", "b", "c"]))


def test_bytes_that_are_no_text_have_a_hash():
    assert of(x=pa.array([b"\xff\xfe", b"a"])) != of(x=pa.array([b"\xff\xff", b"a"]))


@pytest.mark.parametrize(
    "values", [pa.array([["Quincy"]]), pa.array([{"a": "Quincy"}]), pa.array([pa.MonthDayNano([1, 2, 3])])]
)
def test_a_column_without_canonical_bytes_is_named(values):
    with pytest.raises(DataError, match="column 'nested' has type") as caught:
        of(x=[1], nested=values)
    assert caught.value.fix
    assert caught.value.__context__ is None
    assert "Quincy" not in str(caught.value)


def test_an_empty_table_still_has_its_columns():
    assert fingerprint(DATA.slice(0, 0)) != fingerprint(DATA.drop_columns(["s"]).slice(0, 0))


def test_parquet_round_trip(tmp_path):
    pq.write_table(DATA, tmp_path / "t.parquet")
    assert fingerprint(pq.read_table(tmp_path / "t.parquet")) == fingerprint(DATA)


def test_duckdb_round_trip():
    con = duckdb.connect()
    con.register("incoming", DATA)
    con.execute("create table kept as select * from incoming order by f")
    assert fingerprint(con.sql("select * from kept").to_arrow_table()) == fingerprint(DATA)
    con.close()


def test_dates_times_and_zones_survive_duckdb():
    given = pa.table(
        {
            "day": pa.array([0, 86_400_000, None], pa.date64()),
            "clock": pa.array([0, 3_600_000, None], pa.time32("ms")),
            "moment": pa.array([0, 1_600_000_000_000, None], pa.timestamp("ms", "America/New_York")),
        }
    )
    con = duckdb.connect()
    con.execute("SET TimeZone = 'UTC'")
    con.register("given", given)
    back = con.sql("select * from given").to_arrow_table()
    con.close()
    assert back.schema.types != given.schema.types
    assert fingerprint(back) == fingerprint(given)


CELLS = {
    "n": st.none() | st.integers(-(2**63), 2**63 - 1),
    "f": st.none() | st.floats(allow_nan=False),
    "s": st.none() | st.text(max_size=4),
    "b": st.none() | st.booleans(),
}
TYPES = pa.schema([("n", pa.int64()), ("f", pa.float64()), ("s", pa.string()), ("b", pa.bool_())])
ROWS = st.lists(st.fixed_dictionaries(CELLS), min_size=1, max_size=6)


@settings(max_examples=60, deadline=None)
@given(rows=ROWS, data=st.data())
def test_any_change_of_a_single_cell_changes_the_hash(rows, data):
    before = fingerprint(pa.Table.from_pylist(rows, TYPES))
    place = data.draw(st.integers(0, len(rows) - 1))
    name = data.draw(st.sampled_from(sorted(CELLS)))
    new = data.draw(CELLS[name].filter(lambda value: value != rows[place][name]))
    changed = [dict(row) for row in rows]
    changed[place][name] = new
    assert fingerprint(pa.Table.from_pylist(changed, TYPES)) != before


@settings(max_examples=60, deadline=None)
@given(rows=ROWS, data=st.data())
def test_the_hash_is_one_of_the_multiset_of_rows(rows, data):
    before = fingerprint(pa.Table.from_pylist(rows, TYPES))
    assert fingerprint(pa.Table.from_pylist(data.draw(st.permutations(rows)), TYPES)) == before
    assert fingerprint(pa.Table.from_pylist([*rows, rows[0]], TYPES)) != before


def test_rows_by_batches_have_the_hash_of_the_whole():
    data = pa.table({"n": range(10), "s": pa.array(list("abcdefghij")).dictionary_encode()})
    for size in (1, 3, 10):
        parts = [pa.concat_tables([data.slice(i, size)]).combine_chunks() for i in range(0, 10, size)]
        recoded = [t.set_column(1, "s", t["s"].cast(pa.string()).dictionary_encode()) for t in parts]
        assert fingerprint_of(iter(recoded)) == fingerprint(data)
    assert fingerprint_of([data, data.slice(0, 1)]) != fingerprint(data)
    assert fingerprint_of([data.slice(0, 0)]) == fingerprint(data.slice(0, 0))
