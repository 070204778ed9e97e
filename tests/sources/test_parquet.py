import base64
import fcntl
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from refusals import SECRET, refusal

from synth_audit.errors import DataError, PlanError
from synth_audit.inputs import as_arrow
from synth_audit.plugins.source import Source, Target, batches
from synth_audit.registry import build
from synth_audit.sources import parquet
from synth_audit.sources.parquet import Parquet
from synth_audit.table.content_hash import fingerprint


def table(n=20):
    return pa.table({"id": pa.array(range(n), pa.int16()), "name": [SECRET, None] * (n // 2)})


def test_it_is_a_source_and_a_target():
    source = build("source", "parquet", {"path": "a.parquet"})
    assert isinstance(source, Source)
    assert isinstance(source, Target)


def test_types_survive_and_relative_paths_start_at_base(tmp_path):
    source = Parquet(path="new/a.parquet")
    where = source.write(table(), tmp_path)
    assert where == str(tmp_path / "new" / "a.parquet")
    back = source.read(tmp_path)
    assert back.schema == table().schema
    assert fingerprint(back) == fingerprint(table())


@pytest.mark.parametrize("n", [0, 1, 20])
def test_batches_are_the_rows_that_are_read(tmp_path, monkeypatch, n):
    monkeypatch.setattr(parquet, "BATCH", 3)
    pq.write_table(table().slice(0, n), tmp_path / "a.parquet", row_group_size=8)
    source = Parquet(path="a.parquet")
    held = list(batches(source, tmp_path))
    assert pa.Table.from_batches(held).equals(source.read(tmp_path))
    assert max(batch.num_rows for batch in held) <= 3


def test_an_absolute_path_ignores_base(tmp_path):
    pq.write_table(table(), tmp_path / "a.parquet")
    assert Parquet(path=str(tmp_path / "a.parquet")).read(tmp_path / "elsewhere").num_rows == 20


def test_folders_named_like_partitions_add_no_column(tmp_path):
    source = Parquet(path="year=2024/a.parquet")
    source.write(table(), tmp_path)
    assert source.read(tmp_path).column_names == ["id", "name"]


def test_metadata_do_not_leave_with_the_data(tmp_path):
    source = Parquet(path="a.parquet")
    source.write(table().replace_schema_metadata({"note": SECRET}), tmp_path)
    assert SECRET.encode() not in (source.read(tmp_path).schema.metadata or {}).values()


@pytest.mark.parametrize("make", [lambda p: None, lambda p: p.mkdir()], ids=["missing", "folder"])
def test_no_file(tmp_path, make):
    make(tmp_path / "a.parquet")
    error = refusal(lambda: Parquet(path="a.parquet").read(tmp_path))
    assert str(tmp_path / "a.parquet") in error.where


@pytest.mark.parametrize("keep", [0, 3, 100, -1])
def test_a_truncated_file(tmp_path, keep):
    path = tmp_path / "a.parquet"
    pq.write_table(table(), path)
    path.write_bytes(path.read_bytes()[:keep])
    refusal(lambda: Parquet(path="a.parquet").read(tmp_path))


def test_a_file_with_damaged_pages(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(table(2000), path)
    content = bytearray(path.read_bytes())
    content[10:400] = b"\xff" * 390
    path.write_bytes(content)
    refusal(lambda: Parquet(path="a.parquet").read(tmp_path))
    refusal(lambda: list(batches(Parquet(path="a.parquet"), tmp_path)))


def test_text_that_is_no_parquet(tmp_path):
    (tmp_path / "a.parquet").write_text(f"{SECRET}\n" * 100)
    refusal(lambda: Parquet(path="a.parquet").read(tmp_path))
    refusal(lambda: list(batches(Parquet(path="a.parquet"), tmp_path)))


def test_a_name_that_occurs_twice(tmp_path):
    pq.write_table(pa.table([pa.array([1]), pa.array([2])], names=["a", "a"]), tmp_path / "a.parquet")
    with pytest.raises(DataError, match="more than once"):
        Parquet(path="a.parquet").read(tmp_path)


@pytest.mark.parametrize(
    "failure", [OSError(28, "No space left: " + SECRET), pa.ArrowInvalid(SECRET), KeyboardInterrupt()]
)
def test_a_failing_write_leaves_the_last_good_release(tmp_path, monkeypatch, failure):
    source = Parquet(path="a.parquet")
    source.write(table(), tmp_path)

    def fail(data, where):
        where.write_bytes(b"half a file")
        raise failure

    monkeypatch.setattr(pq, "write_table", fail)
    if isinstance(failure, KeyboardInterrupt):
        with pytest.raises(KeyboardInterrupt):
            source.write(table(4), tmp_path)
    else:
        refusal(lambda: source.write(table(4), tmp_path))
    monkeypatch.undo()
    assert source.read(tmp_path).num_rows == 20
    assert [p.name for p in tmp_path.iterdir()] == ["a.parquet"]


def test_the_next_write_clears_away_what_a_killed_one_left(tmp_path):
    target, data = Parquet(path="there/out.parquet"), pa.table({"x": [1, 2]})
    left, others = (
        tmp_path / "there/.out.parquet.0123456789ab.tmp",
        tmp_path / "there/.b.parquet.0123456789ab.tmp",
    )
    left.parent.mkdir()
    for path in (left, others):
        path.write_bytes(b"PAR1 half")
    with left.open("rb") as at_work:
        fcntl.flock(at_work, fcntl.LOCK_EX)
        target.write(data, tmp_path)
        assert left.exists(), "another release may be on its way"
    target.write(data, tmp_path)
    assert {p.name for p in left.parent.iterdir()} == {"out.parquet", others.name}


def test_two_writers_leave_each_other_alone(tmp_path, monkeypatch):
    target, write = Parquet(path="out.parquet"), pq.write_table

    def another_comes(data, path):
        monkeypatch.setattr(pq, "write_table", write)
        target.write(pa.table({"x": [2]}), tmp_path)
        write(data, path)

    monkeypatch.setattr(pq, "write_table", another_comes)
    target.write(pa.table({"x": [1]}), tmp_path)
    assert target.read(tmp_path)["x"].to_pylist() == [1]
    assert [p.name for p in tmp_path.iterdir()] == ["out.parquet"]


def test_a_folder_that_is_a_file(tmp_path):
    (tmp_path / "file").write_text("x")
    refusal(lambda: Parquet(path="file/a.parquet").write(table(), tmp_path))


def test_a_place_that_does_not_exist_yet_or_never_can_has_a_name(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path)
    paths = ("new.parquet", "./x/../new.parquet", "link/new.parquet", str(tmp_path / "new.parquet"))
    assert len({Parquet(path=p).place(tmp_path) for p in paths}) == 1
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert Parquet(path="loop").place(tmp_path) != Parquet(path="new.parquet").place(tmp_path)


def test_an_empty_path_is_refused_in_the_plan():
    with pytest.raises(PlanError, match="path must name a file"):
        build("source", "parquet", {"path": " "})


TRUE = pa.table({"n": [1, 2, 3], "word": ["swordfish", None, "x"]})
N_ROWS = 0x16  # field 3 of the footer, after field 2: a 64-bit number in zigzag form


def write(path, **metadata):
    """TRUE with these texts as metadata in place of what Arrow would write of itself."""
    with pq.ParquetWriter(path, TRUE.schema, store_schema=False) as file:
        file.write_table(TRUE)
        file.add_key_value_metadata(metadata)


def arrow_schema(**types):
    fields = [pa.field(f.name, types.get(f.name, f.type)) for f in TRUE.schema]
    return base64.b64encode(pa.schema(fields).serialize().to_pybytes()).decode()


@pytest.mark.parametrize("declared", [0, 2, 30])
def test_a_file_of_other_rows_than_it_declares_is_refused(tmp_path, declared):
    path = tmp_path / "a.parquet"
    pq.write_table(TRUE, path)
    content = path.read_bytes()
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    told = content[footer:].replace(bytes([N_ROWS, 6]), bytes([N_ROWS, 2 * declared]), 1)
    path.write_bytes(content[:footer] + told)
    source = Parquet(path="a.parquet")
    for read in (source.read, lambda base: list(source.batches(base))):
        with pytest.raises(DataError, match=rf"declares {declared} rows and holds 3") as caught:
            read(tmp_path)
        assert caught.value.where == str(path)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("word", pa.int64()),
        ("word", pa.uuid()),
        ("word", pa.string_view()),
        ("n", pa.timestamp("us", "Mars/Olympus")),
        ("n", pa.bool8()),
        ("n", pa.string()),
    ],
    ids=str,
)
def test_the_columns_count_and_not_what_arrow_is_said_to_have_made_of_them(tmp_path, name, kind):
    path = tmp_path / "a.parquet"
    write(path, **{"ARROW:schema": arrow_schema(**{name: kind})})
    found = as_arrow(path, "train")
    assert found.select(TRUE.column_names).cast(TRUE.schema).equals(TRUE)


def test_a_type_that_arrow_is_told_and_that_cannot_be_audited_is_refused_by_name(tmp_path):
    path = tmp_path / "a.parquet"
    write(path, **{"ARROW:schema": arrow_schema(word=pa.opaque(pa.string(), "numeric", "PostgreSQL"))})
    with pytest.raises(DataError, match="column 'word' has type"):
        as_arrow(path, "train")


@pytest.mark.parametrize("junk", ["!", "eHh4eHh4eHh4eHh4eHh4eHh4"])
def test_a_schema_that_is_none_is_refused(tmp_path, junk):
    write(tmp_path / "a.parquet", **{"ARROW:schema": junk})
    with pytest.raises(DataError, match="the Parquet file cannot be read"):
        Parquet(path="a.parquet").read(tmp_path)


COLUMN = {
    "name": "n",
    "field_name": "n",
    "pandas_type": "datetimetz",
    "numpy_type": "datetime64[ns]",
    "metadata": {"timezone": "Mars/Olympus"},
}


@pytest.mark.parametrize("said", ["{{{", json.dumps({"index_columns": ["n"], "columns": [COLUMN]})])
def test_what_pandas_is_said_to_have_written_counts_for_nothing(tmp_path, said):
    write(tmp_path / "a.parquet", pandas=said)
    found = as_arrow(tmp_path / "a.parquet", "train")
    assert found.equals(TRUE)


def test_text_that_is_none_is_refused_by_the_name_of_its_column(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(TRUE, path, compression="none")
    path.write_bytes(path.read_bytes().replace(b"swordfish", b"swordfi\xff\xff"))
    with pytest.raises(DataError, match="column 'word' does not hold what its type string says") as caught:
        as_arrow(path, "control")
    assert caught.value.where == "control"
    assert "sword" not in str(caught.value)
