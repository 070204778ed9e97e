"""Reading a table through its schema, and storing plain arrays back in its types."""

import datetime
from operator import itemgetter

import numpy as np
import pyarrow as pa
import pytest
from made_tables import table_of  # made importable by conftest.py

from synth_audit.encode.codes import codes
from synth_audit.errors import DataError
from synth_audit.files import scratch_in
from synth_audit.plugins.audit import Subject
from synth_audit.table import arrow
from synth_audit.table import table as tables
from synth_audit.table.arrow import regular_floats
from synth_audit.table.content_hash import row_digests
from synth_audit.table.schema_inference import ColumnSpec, infer_schema
from synth_audit.table.table import Table, assemble, joined, read_table

DATA = pa.table({"id": ["a", "b", "c"], "x": [1.0, 2.0, 4.0], "k": ["u", None, "v"], "n": [1, 2, 3]})
SCHEMA = infer_schema(DATA, {"id": ColumnSpec(role="identifier")})


def read(data, **more):
    return read_table(data, SCHEMA, where="synthetic", **more)


def test_columns_come_in_the_schemas_order():
    assert read(DATA.select(["n", "k", "id", "x"])).names == SCHEMA.names


def test_differing_columns_are_named():
    with pytest.raises(DataError) as caught:
        read(DATA.rename_columns(["id", "xx", "k", "n"]))
    assert "lacks x" in str(caught.value)
    assert "has 1 unknown column" in str(caught.value)
    assert "xx" not in str(caught.value)
    with pytest.raises(DataError, match="unknown more"):
        read(DATA.append_column("more", [[1, 2, 3]]))
    with pytest.raises(DataError, match="'x' occurs more than once"):
        read(DATA.append_column("x", [[1, 2, 3]]))


def test_only_a_release_may_lack_identifiers():
    released = DATA.drop_columns(["id"])
    with pytest.raises(DataError, match="lacks id"):
        read(released)
    assert read(released, partial=True).names == ("x", "k", "n")
    assert read(DATA, partial=True).names == SCHEMA.names
    with pytest.raises(DataError, match="lacks x"):
        read(released.drop_columns(["x"]), partial=True)


def test_an_empty_table_is_refused():
    with pytest.raises(DataError, match="no rows"):
        read(DATA.slice(0, 0))


def test_text_in_a_numeric_column_is_refused():
    with pytest.raises(DataError, match="'x' is continuous but synthetic holds string"):
        read(DATA.set_column(1, "x", [["1", "2", "3"]]))


def test_instants_where_train_has_text_are_refused():
    """Their labels differ from the text of the same instants, so that copies would not be seen."""
    schema = infer_schema(pa.table({"seen": ["2001-01-01T10:00:00", "2002-02-02T11:00:00"]}))
    instants = pa.table({"seen": pa.array([datetime.datetime(2001, 1, 1, 10)] * 2, pa.timestamp("s"))})
    with pytest.raises(DataError, match="'seen' is categorical but synthetic holds timestamp"):
        read_table(instants, schema, where="synthetic")


@pytest.mark.parametrize("bad", [float("inf"), -float("inf")])
def test_infinite_values_are_refused(bad):
    with pytest.raises(DataError, match="'x' holds infinite"):
        read(DATA.set_column(1, "x", [[1.0, bad, 3.0]]))


def test_nan_is_missing():
    table = read(DATA.set_column(1, "x", pa.array([1.0, float("nan"), None], from_pandas=False)))
    assert table.missing("x").tolist() == [False, True, True]
    assert np.isnan(table.numbers("x")[1:]).all()
    assert table.data.column("x").null_count == 2


def test_views():
    table = read(DATA)
    assert table.labels("k").tolist() == ["u", None, "v"]
    assert table.labels("n").tolist() == ["1", "2", "3"]
    assert table.numbers("x").tolist() == [1.0, 2.0, 4.0]
    assert table.take(np.array([2, 0])).numbers("n").tolist() == [3, 1]
    assert table.take(np.array([False, True, False])).labels("id").tolist() == ["b"]
    assert table.released_only().names == ("x", "k", "n")
    assert table.to_pandas()["k"].isna().tolist() == [False, True, False]
    assert Subject(table, None, table).features == SCHEMA.features


def test_datetimes_are_microseconds_whatever_the_unit_or_zone():
    moment = datetime.datetime(2020, 1, 1, 12, tzinfo=datetime.UTC)
    for kind in (pa.timestamp("s", "UTC"), pa.timestamp("ns", "Europe/Berlin"), pa.timestamp("ms", "UTC")):
        table = table_of({"t": pa.array([moment, None], kind)})
        assert table.numbers("t")[0] == moment.timestamp() * 1e6
        assert np.isnan(table.numbers("t")[1])


DAY = 86_400
STORAGES = {
    "int8": pa.array([-128, 127, None, 3], pa.int8()),
    "int64": pa.array([-(2**53), 2**53, None, 3]),
    "uint64": pa.array([0, 2**53, None, 3], pa.uint64()),
    "two integers beyond a float": pa.array([2**53, 2**53 + 1, None, 2**53]),
    "float16": pa.array([0.5, 1.5, None, 3.0], pa.float16()),
    "float32": pa.array([0.1, 1e30, None, 3.0], pa.float32()),
    "two floats": pa.array([0.1, 7.0, None, 0.1], pa.float32()),
    "float64": pa.array([0.1, 1e300, None, -3.0]),
    "decimal128": pa.array([0.25, 1e6, None, -3.0]).cast(pa.decimal128(9, 2)),
    "decimal256": pa.array([0.25, 1e6, None, -3.0]).cast(pa.decimal256(40, 2)),
    "string": pa.array(["", "ä", None, "x"]),
    "large_string": pa.array(["", "ä", None, "x"], pa.large_string()),
    "dictionary": pa.array(["b", "a", None, "b"]).cast(pa.dictionary(pa.int8(), pa.string())),
    "large dictionary": pa.array(["b", "a", None, "b"]).cast(pa.dictionary(pa.int32(), pa.large_string())),
    "bool": pa.array([True, False, None, True]),
    "date32": pa.array([-5, 0, None, 20_000], pa.int32()).cast(pa.date32()),
    "date64": pa.array([-DAY * 1000, 0, None, DAY * 1000]).cast(pa.date64()),
    "seconds": pa.array([-5, 0, None, 2**31], pa.timestamp("s")),
    "milliseconds": pa.array([-5, 0, None, 2**41], pa.timestamp("ms", "UTC")),
    "nanoseconds": pa.array([-5000, 0, None, 10**18], pa.timestamp("ns", "Europe/Berlin")),
    "null": pa.nulls(4),
    "all missing": pa.nulls(4, pa.float64()),
}


@pytest.mark.parametrize("name", STORAGES)
def test_assemble_gives_every_storage_back(name):
    values = STORAGES[name]
    data = pa.table({"x": values})
    schema = infer_schema(data)
    table = read_table(data, schema, where="train")
    made = assemble(schema, {"x": table.plain("x")})
    assert made.data.schema.field("x").type == values.type
    assert made.data.column("x").to_pylist() == data.column("x").to_pylist()
    assert made.fingerprint == table.fingerprint


@pytest.mark.parametrize("values", [pa.array([1, 0, None], pa.int8()), pa.array([1.0, 0.0, None])])
def test_assemble_gives_numeric_booleans_back(values):
    data = pa.table({"x": values})
    schema = infer_schema(data, {"x": ColumnSpec(kind="boolean")})
    made = assemble(schema, {"x": read_table(data, schema, where="train").labels("x")})
    assert made.data.equals(data)


def test_assemble_rounds_to_what_train_has_or_the_plan_says():
    data = pa.table(
        {"n": [1, 5, 9], "x": [1.2, 5.0, 9.0], "y": [1.0, 5.0, 9.0], "noise": [np.pi, np.e, 0.1**0.5]}
    )
    drawn = np.array([1.63, np.nan, -0.44])
    declared = {"y": ColumnSpec(precision=0.25), "coarse": ColumnSpec(precision=2.5)}
    data = data.append_column("coarse", data.column("y"))
    schema = infer_schema(data, declared)
    made = assemble(schema, dict.fromkeys(data.column_names, drawn))
    assert made.data.column("n").to_pylist() == [2, None, 0]
    assert made.data.column("x").to_pylist() == [1.6, None, -0.4]
    assert made.data.column("y").to_pylist() == [2.0, None, 0.0], "finer than train has is no room"
    assert made.data.column("coarse").to_pylist() == [2.5, None, 0.0]
    assert made.data.column("noise").to_pylist() == [1.63, None, -0.44]
    public = assemble(schema.without_inferred_resolution(), dict.fromkeys(data.column_names, drawn))
    assert public.data.column("x").to_pylist() == [1.63, None, -0.44]
    assert public.data.column("y").to_pylist() == [1.75, None, -0.5]


def test_assemble_keeps_declared_bounds_where_it_rounds():
    data = pa.table({"x": [0.0, 10.0, 20.0]})
    schema = infer_schema(data, {"x": ColumnSpec(bounds=(-4, 27), precision=10)})
    made = assemble(schema, {"x": np.array([-4.0, 26.0, 27.0])})
    assert made.data.column("x").to_pylist() == [0, 20, 20]


def test_one_value_is_one_label_in_train_and_release_whatever_their_storage():
    data = pa.table({"flag": [True, False, True], "code": [1, 2, 1]})
    schema = infer_schema(data)
    other = pa.table({"flag": [1, 0, 1], "code": pa.array([1.0, 2.0, 1.0]).cast(pa.decimal128(9, 2))})
    for name in data.column_names:
        train, made = (read_table(d, schema, where="x").labels(name).tolist() for d in (data, other))
        assert train == made


def test_a_table_cannot_be_changed():
    table = Table(SCHEMA, DATA)
    with pytest.raises(AttributeError):
        table.data = DATA
    values = table.numbers("x")
    if values.flags.writeable:
        values[:] = 0
    assert table.numbers("x").tolist() == [1.0, 2.0, 4.0]


def test_texts_are_coded_once_and_travel_as_they_are_stored():
    table = table_of({"x": [1.0, 2.0, 3.0, 1.0], "g": ["b", None, "a", "b"]})
    coded = table.coded("g")
    assert pa.types.is_dictionary(coded.type)
    assert coded.to_pylist() == table.column("g").to_pylist() == ["b", None, "a", "b"]
    assert table.coded("g") is coded
    assert table.coded("x").type == table.column("x").type
    assert "_coded" not in table.__getstate__()
    column = table.schema["g"]
    assert (codes([table], column)[0] == column.kind.codes([table.column("g")])[0]).all()


def test_batches_are_the_rows_in_their_order():
    table = Table(SCHEMA, pa.concat_tables([DATA.slice(2), DATA.slice(0, 2)]))
    batches = list(table.batches(["n", "k"], size=2))
    assert [b.num_rows for b in batches] == [2, 1]
    assert pa.Table.from_batches(batches).to_pydict() == {"n": [3, 1, 2], "k": ["v", "u", None]}
    assert pa.Table.from_batches(table.batches()).equals(table.data.combine_chunks())


def test_parts_joined_are_the_table():
    table = read(DATA)
    parts = list(table.parts(2))
    assert [p.n_rows for p in parts] == [2, 1]
    assert joined(parts).data.equals(table.data)


def test_a_sample_is_some_rows_in_their_order_and_all_where_there_are_no_more():
    table = table_of({"n": range(100), "x": np.linspace(0.0, 1.0, 100)})
    one, other = (table.sample(30, np.random.default_rng(seed)).numbers("n") for seed in (1, 2))
    assert len(set(one)) == 30
    assert (np.diff(one) > 0).all()
    assert one.tolist() != other.tolist()
    assert table.sample(100, np.random.default_rng(1)) is table


@pytest.mark.parametrize("value", [float("nan"), -0.0])
def test_regular_floats_are_the_same_values_and_others_become_so(value):
    plain = pa.chunked_array([[1.0, None], [0.0]])
    assert regular_floats(plain) is plain
    odd = regular_floats(pa.chunked_array([pa.array([1.0, value, None], from_pandas=False)]))
    assert odd.to_pylist() == [1.0, 0.0 if value == 0 else None, None]
    assert not np.signbit(odd.to_numpy()[1])


@pytest.mark.parametrize("most", [0, arrow.MOST_HELD])
def test_tables_that_are_divided_have_their_rows_and_hashes(tmp_path, monkeypatch, most):
    monkeypatch.setattr(arrow, "MOST_HELD", most)
    monkeypatch.setattr(tables, "BATCH", 2)
    coded = DATA.set_column(2, "k", DATA["k"].dictionary_encode())
    table, aside = read(pa.concat_tables([coded, coded.slice(1)])), np.array([0, 1, 0, 0, 1], dtype=bool)
    with scratch_in(tmp_path):
        parts = table.divided(aside)
    for part, rows in zip(parts, (~aside, aside), strict=True):
        assert part.data.to_pylist() == table.take(rows).data.to_pylist()
        assert part.data.schema == table.data.schema
    assert not list(tmp_path.iterdir())
    for part in (table, *parts):
        assert part.__dict__["fingerprint"] == Table(part.schema, part.data).fingerprint
    other = read_table(parts[0], infer_schema(parts[0]), where="train")
    assert other.fingerprint == parts[0].fingerprint


def test_a_file_of_rows_that_was_cut_between_batches_is_not_read(tmp_path):
    path, [batch] = tmp_path / "rows.arrow", DATA.combine_chunks().to_batches()
    arrow.write_arrow(path, batch.schema, [batch, batch])
    assert arrow.mapped(path).num_rows == 6
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(OSError, match="cut"):
        arrow.mapped(path)


def test_a_side_may_be_empty():
    rest, aside = read(DATA).divided(np.zeros(3, dtype=bool))
    assert (rest.n_rows, aside.n_rows, aside.in_content_order().n_rows) == (3, 0, 0)


def test_nothing_stays_of_rows_that_could_not_be_divided(tmp_path, monkeypatch):
    monkeypatch.setattr(arrow, "MOST_HELD", 0)
    monkeypatch.setattr(tables, "BATCH", 1)
    seen = []

    def failing(batch, schema, regular=arrow._regular):
        seen.append([path.stat().st_mode & 0o777 for path in sorted(tmp_path.rglob("*"))])
        if len(seen) == 2:
            raise KeyboardInterrupt
        return regular(batch, schema)

    monkeypatch.setattr(arrow, "_regular", failing)
    with pytest.raises(KeyboardInterrupt), scratch_in(tmp_path):
        read(DATA).divided(np.array([False, True, False]))
    assert seen[-1] == [0o700, 0o600]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("folder", [True, False])
def test_content_order_is_that_of_the_digests(tmp_path, monkeypatch, folder):
    for name, small in (("MOST_HELD", 0), ("_RUN", 4)):
        monkeypatch.setattr(arrow, name, small)
    table = read(pa.concat_tables([DATA, DATA.slice(0, 2), DATA, DATA.slice(1)]))
    ordered = table.in_content_order(tmp_path if folder else None)
    rows = sorted(
        zip(row_digests(table.data).tolist(), table.data.to_pylist(), strict=True), key=itemgetter(0)
    )
    assert ordered.data.to_pylist() == [row for _, row in rows]
    assert (ordered.place is not None) == folder
    assert ordered.known_fingerprint == table.known_fingerprint == Table(table.schema, table.data).fingerprint
