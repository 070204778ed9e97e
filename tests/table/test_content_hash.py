"""The content hash of a table, and the table that stands for all of one content."""

import hmac
import io
from contextlib import nullcontext
from datetime import UTC, date, datetime, time
from decimal import Decimal

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth_audit.errors import DataError
from synth_audit.files import scratch_in
from synth_audit.table import arrow
from synth_audit.table.content_hash import canonical, fingerprint, fingerprint_of, row_digests
from synth_audit.table.schema_inference import infer_schema
from synth_audit.table.table import read_table

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


@pytest.mark.skipif(not hasattr(pa, "decimal32"), reason="this Arrow has no such type")
def test_decimals_of_few_bits_are_decimals():
    values = [Decimal("1.50"), None, Decimal("2.25")]
    found = [
        row_digests(pa.table({"x": pa.array(values, kind)})).tobytes()
        for kind in (pa.decimal32(7, 2), pa.decimal128(7, 2))
    ]
    assert found[0] == found[1]


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


KEY = bytes(32)
N = 6
NAN, ODD_NAN = (
    np.array([bits], dtype=np.uint64).view(np.float64)[0] for bits in (0x7FF8 << 48, 0x7FF8C0FFEE << 24)
)


def column(values, kind):
    return pa.array(values, type=kind)


PLAIN = {
    "number": column([0.0, 1.5, None, 2.5, 0.0, -3.25], pa.float64()),
    "small": column([0.0, 1.5, None, 2.5, 0.0, -3.25], pa.float32()),
    "half": column(
        [np.float16(x) if x is not None else None for x in (0.0, 1.5, None, 2.5, 0, -3)], pa.float16()
    ),
    "whole": column([1, 2, None, 4, 1, 6], pa.int16()),
    "text": column(["a", "b", None, "ä", "a", ""], pa.string()),
    "coded": column(["x", "y", None, "x", "x", "y"], pa.string()).dictionary_encode(),
    "at": column(
        [datetime(2020, 1, d + 1, tzinfo=UTC) for d in (0, 1, 2, 3, 0, 5)],
        pa.timestamp("us", "Europe/Zurich"),
    ),
    "local": column([datetime(2020, 1, d + 1) for d in (0, 1, 2, 3, 0, 5)], pa.timestamp("ms")),
    "day": column([date(2020, 1, d + 1) for d in (0, 1, 2, 3, 0, 5)], pa.date32()),
    "clock": column([time(d) for d in (0, 1, 2, 3, 0, 5)], pa.time64("us")),
    "flag": column([True, False, None, True, True, False], pa.bool_()),
    "money": column(
        [Decimal("1.50"), None, Decimal("2.00"), Decimal("0.00"), Decimal("1.50"), None], pa.decimal128(9, 2)
    ),
}
TABLE = pa.table(PLAIN)
STORAGE = {name: str(values.type) for name, values in PLAIN.items()}


def written(data):
    """The bytes of the table as Parquet and as CSV."""
    leaving = canonical(data, STORAGE, KEY)
    parquet, text = io.BytesIO(), io.BytesIO()
    pq.write_table(leaving, parquet)
    pa.csv.write_csv(leaving.drop_columns(["money"]), text)
    return parquet.getvalue(), text.getvalue()


def put(name, values):
    return TABLE.set_column(TABLE.column_names.index(name), name, values)


def under_nulls():
    """The same text, with something else in the place of the missing one."""
    hidden = pa.array(["a", "b", "Zanzibar", "ä", "a", ""])
    _, offsets, letters = hidden.buffers()
    mask = pa.py_buffer(np.packbits([1, 1, 0, 1, 1, 1], bitorder="little").tobytes())
    return pa.Array.from_buffers(pa.string(), N, [mask, offsets, letters])


HIDING = {
    "the order of rows": TABLE.take([5, 3, 4, 2, 0, 1]),
    "the order of columns": TABLE.select(sorted(TABLE.column_names)),
    "the sign of zero": put("number", pa.array([-0.0, 1.5, None, 2.5, 0.0, -3.25])),
    "the sign of a small zero": put("small", pa.array([0.0, 1.5, None, 2.5, -0.0, -3.25], pa.float32())),
    "the sign of half a zero": put(
        "half", pa.array([np.float16(x) if x is not None else None for x in (-0.0, 1.5, None, 2.5, 0, -3)])
    ),
    "NaN for null": put("number", pa.array(np.array([0.0, 1.5, NAN, 2.5, 0.0, -3.25]))),
    "the payload of NaN": put("number", pa.array(np.array([0.0, 1.5, ODD_NAN, 2.5, 0.0, -3.25]))),
    "unused labels": put(
        "coded",
        pa.DictionaryArray.from_arrays(pa.array([2, 0, None, 2, 2, 0], pa.int32()), ["y", "Zanzibar", "x"]),
    ),
    "doubled labels": put(
        "coded", pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 2, 2, 1], pa.int8()), ["x", "y", "x"])
    ),
    "no dictionary": put("coded", PLAIN["coded"].cast(pa.string())),
    "large text": put("text", PLAIN["text"].cast(pa.large_string())),
    "text in a dictionary": put("text", PLAIN["text"].dictionary_encode()),
    "the zone's name": put("at", PLAIN["at"].cast(pa.timestamp("us", "Africa/Dar_es_Salaam"))),
    "the unit of an instant": put("at", PLAIN["at"].cast(pa.timestamp("ns", "UTC"))),
    "the unit of a time": put("local", PLAIN["local"].cast(pa.timestamp("s"))),
    "the unit of a clock": put("clock", PLAIN["clock"].cast(pa.time32("s"))),
    "the layout of a date": put("day", PLAIN["day"].cast(pa.date64())),
    "milliseconds within a date": put(
        "day",
        pa.Array.from_buffers(
            pa.date64(),
            N,
            [
                None,
                pa.py_buffer(
                    (np.array(PLAIN["day"].cast(pa.int32())).astype(np.int64) * 86_400_000 + 77).tobytes()
                ),
            ],
        ),
    ),
    "what lies under a null": put("text", under_nulls()),
    "chunks": pa.concat_tables([TABLE.slice(0, 1), TABLE.slice(1)]),
    "metadata of the table": TABLE.replace_schema_metadata({"note": "Zanzibar"}),
    "metadata of a field": TABLE.cast(
        pa.schema([f.with_metadata({"note": "Zanzibar"}) for f in TABLE.schema])
    ),
    "fields that cannot be null": TABLE.cast(
        pa.schema([f.with_nullable(f.name not in ("day", "at")) for f in TABLE.schema])
    ),
}


@pytest.mark.parametrize("where", HIDING)
def test_what_is_hidden_does_not_leave(where):
    hiding = HIDING[where]
    assert fingerprint(hiding) == fingerprint(TABLE), "or it would be another content"
    assert written(hiding) == written(TABLE)


def test_content_and_types_stay():
    leaving = canonical(TABLE, STORAGE, KEY)
    assert fingerprint(leaving) == fingerprint(TABLE)
    assert leaving.schema.field("at").type == pa.timestamp("us", "Europe/Zurich")
    assert leaving.column_names == TABLE.column_names
    assert {f.name for f in leaving.schema if f.type != TABLE.schema.field(f.name).type} == {"coded"}
    assert sorted(map(repr, leaving.to_pylist())) == sorted(map(repr, TABLE.to_pylist()))


def drawn(n, *, of=PLAIN):
    """``n`` rows with values of each type, equal rows and nulls among them."""
    rng = np.random.default_rng(n)
    return pa.table({name: values.take(pa.array(rng.integers(N, size=n))) for name, values in of.items()})


def in_one_chunk(data):
    """The canonical table, put together in memory."""
    places = [hmac.digest(KEY, row.tobytes(), "sha256") for row in row_digests(data)]
    order = sorted(range(len(places)), key=places.__getitem__)
    return pa.table({n: arrow.decoded(data[n]).combine_chunks().take(order) for n in STORAGE})


@pytest.mark.parametrize("n", [1, 6, 7, 50, 200])
@pytest.mark.parametrize("scratch", [True, False])
def test_rows_that_are_merged_from_runs_leave_in_the_same_bytes(tmp_path, monkeypatch, n, scratch):
    for name, small in (("MOST_HELD", 0), ("_RUN", 6), ("_ROW_GROUP", 60)):
        monkeypatch.setattr(arrow, name, small)
    with scratch_in(tmp_path) if scratch else nullcontext():
        data = arrow.kept(iter(drawn(n).to_batches(max_chunksize=11)), None).data
        leaving = canonical(data, STORAGE, KEY)
    files = io.BytesIO(), io.BytesIO()
    for file, rows in zip(files, (leaving, in_one_chunk(drawn(n))), strict=True):
        pq.write_table(rows, file, row_group_size=60)
    assert files[0].getvalue() == files[1].getvalue()
    assert not list(tmp_path.iterdir())


def test_all_values_of_a_column_decide_on_its_unit(monkeypatch):
    monkeypatch.setattr(arrow, "_RUN", 2)
    fine = pa.array([datetime(2020, 1, d + 1, 0, 0, 0, 123_456 * (d == 7)) for d in range(9)])
    leaving = canonical(pa.table({"x": fine}), {"x": "timestamp[s]"}, KEY)
    assert leaving.schema.field("x").type == pa.timestamp("us")
    assert fingerprint(leaving) == fingerprint(pa.table({"x": fine}))


def test_other_content_leaves_in_other_bytes():
    assert written(put("whole", pa.array([1, 2, None, 4, 1, 7], pa.int16()))) != written(TABLE)


def test_what_lies_under_a_null_is_gone():
    text = canonical(put("text", under_nulls()), STORAGE, KEY).column("text").combine_chunks()
    assert b"Zanzibar" in under_nulls().buffers()[2].to_pybytes()
    assert b"Zanzibar" not in text.buffers()[2].to_pybytes()


def test_nothing_is_lost_where_the_unit_is_too_coarse():
    fine = pa.array([datetime(2020, 1, 1, 0, 0, 0, 123_456)] * N, pa.timestamp("us"))
    leaving = canonical(put("local", fine), STORAGE, KEY)
    assert leaving.schema.field("local").type == pa.timestamp("us")
    assert fingerprint(leaving) == fingerprint(put("local", fine))
    far = pa.array([datetime(9999, 1, 1)] * N, pa.timestamp("s"))
    assert (
        canonical(pa.table({"x": far}), {"x": "timestamp[ns]"}, KEY).column("x").to_pylist()
        == [datetime(9999, 1, 1)] * N
    )


def test_the_order_of_rows_takes_the_key():
    data = pa.table({"x": list(range(50))})
    orders = [canonical(data, {}, key).column("x").to_pylist() for key in (KEY, KEY, b"another")]
    assert orders[0] == orders[1] != orders[2]
    assert orders[0] != sorted(orders[0]) == orders[0].__class__(range(50))


def test_a_table_is_read_without_signs_of_zero():
    data = pa.table({"x": [-0.0, 1.0, -0.0], "y": pa.array([-0.0, 0.5, 2.0], pa.float32())})
    table = read_table(data, infer_schema(data), where="synthetic")
    for name in ("x", "y"):
        assert not np.signbit(table.data.column(name).to_numpy()).any()
        assert table.data.column(name).type == data.column(name).type


def test_a_table_without_rows_stays_one():
    empty = pa.table(
        {"a": pa.array([], pa.int64()), "b": pa.array([], pa.dictionary(pa.int32(), pa.string()))}
    )
    made = canonical(empty, {}, bytes(32))
    assert made.num_rows == 0
    assert fingerprint(made) == fingerprint(empty)
