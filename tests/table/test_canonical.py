"""A table that hides something where no audit looks leaves in the same bytes as one that does not."""

from __future__ import annotations

import io
from datetime import UTC, date, datetime, time
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from synth_audit.table.content_hash import canonical, fingerprint
from synth_audit.table.schema_inference import infer_schema
from synth_audit.table.table import read_table

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
