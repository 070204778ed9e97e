"""A Parquet file whose footer lies: what the columns hold is read, or the file is refused."""

from __future__ import annotations

import base64
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from synth_audit.errors import DataError
from synth_audit.inputs import as_arrow
from synth_audit.sources.parquet import Parquet

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
