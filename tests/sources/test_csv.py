import pyarrow as pa
import pyarrow.csv
import pytest
from refusals import SECRET, refusal

from synth_audit.errors import DataError, PlanError
from synth_audit.plugins.source import batches
from synth_audit.registry import build
from synth_audit.sources.csv import Csv


def read(tmp_path, content, **settings):
    (tmp_path / "a.csv").write_text(content, encoding="utf-8")
    return Csv(path="a.csv", **settings).read(tmp_path)


def test_types_and_missing_values(tmp_path):
    got = read(tmp_path, 'n,x,s,q,d\n1,0.5,a,"",2024-01-31\n,,,"b, c",\n')
    assert got.to_pydict()["n"] == [1, None]
    assert got.to_pydict()["s"] == ["a", None]
    assert got.to_pydict()["q"] == [None, "b, c"]
    types = [got.schema.field(name).type for name in got.column_names]
    assert types == [pa.int64(), pa.float64(), pa.string(), pa.string(), pa.date32()]


def test_types_come_from_every_row(tmp_path):
    rows = 400_000
    got = read(tmp_path, "n\n" + "1\n" * rows + "x\n")
    assert got.schema.field("n").type == pa.string()
    assert got.num_rows == rows + 1


def test_settings(tmp_path):
    got = read(tmp_path, "code;n\n007;?\n010;3\n", delimiter=";", missing=("", "?"), text=("code",))
    assert got.to_pydict() == {"code": ["007", "010"], "n": [None, 3]}


def test_line_breaks_inside_quotes_and_a_byte_order_mark(tmp_path):
    got = read(tmp_path, '\ufeffs,n\n"two\nlines",1\n')
    assert got.to_pydict() == {"s": ["two\nlines"], "n": [1]}


@pytest.mark.parametrize(
    "text",
    ["", f"a,b\n1,2\n{SECRET}\n", f"a,b\n{SECRET},2,3\n"],
    ids=["empty", "short row", "long row"],
)
def test_malformed_files(tmp_path, text):
    refusal(lambda: read(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (f'a,b\n\n"x\ny",2\n{SECRET}\n1,2,3\n4,5\n\n{SECRET}', "lines 5, 6, 9"),
        ("a,b\n" + f"{SECRET}\n" * 1200, "lines 2, 3, 4, 5, 6 and 1,195 more"),
        (f"a,b\nx,{SECRET}{'y' * 200_000}\n1\n", "the header"),
        (f"a,b\nx,1\n# {SECRET},2\n#,3\n\n", "begin with '#': lines 3, 4"),
        (f"a\nx\n# {SECRET}", "begin with '#': line 3"),
    ],
    ids=["some", "many", "a long cell", "comments", "one column"],
)
def test_lines_that_are_no_rows_are_told_by_number(tmp_path, text, lines):
    assert refusal(lambda: read(tmp_path, text)).what.endswith(lines)


@pytest.mark.parametrize(
    "text", ["a,b\n#1,2\nx,3\n#2,4\n", "a,b\n#1,2\n#2,4\n", 'a,b\nx,1\n"#2",4\n', "a#b\n1#2\n#3\n"]
)
def test_labels_that_begin_as_a_comment_does(tmp_path, text):
    assert read(tmp_path, text, delimiter="," if "," in text else "#").num_rows == text.count("\n") - 1


def test_bytes_that_are_no_utf8(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"s\n" + SECRET.encode() + b"\xff\xfe\n")
    assert Csv(path="a.csv").read(tmp_path).schema.field("s").type == pa.binary()  # refused by the schema


def test_a_header_name_that_occurs_twice(tmp_path):
    with pytest.raises(DataError, match="'a' occurs more than once"):
        read(tmp_path, "a,b,a\n1,2,3\n")


def test_a_missing_file(tmp_path):
    refusal(lambda: Csv(path="none.csv").read(tmp_path))


def test_a_text_column_that_does_not_exist(tmp_path):
    assert "no column 'zip'" in str(refusal(lambda: read(tmp_path, "a\n1\n", text=("zip",))))


def test_what_is_written_reads_back(tmp_path):
    data = pa.table(
        {
            "n": pa.array([1, None], pa.int64()),
            "s": ['quote " and, comma', None],
            "c": pa.array(["u", "v"]).dictionary_encode(),
            "m": pa.array([1.25, None]).cast(pa.decimal128(6, 2)),
        }
    )
    source = Csv(path="out/a.csv")
    assert source.write(data, tmp_path) == str(tmp_path / "out" / "a.csv")
    back = source.read(tmp_path).to_pydict()
    assert back == {"n": [1, None], "s": ['quote " and, comma', None], "c": ["u", "v"], "m": [1.25, None]}


def test_a_failing_write_leaves_the_last_good_release(tmp_path, monkeypatch):
    source = Csv(path="a.csv")
    source.write(pa.table({"a": [1, 2]}), tmp_path)

    def fail(data, where, options):
        where.write_text("half")
        raise OSError(28, SECRET)

    monkeypatch.setattr(pyarrow.csv, "write_csv", fail)
    refusal(lambda: source.write(pa.table({"a": [3]}), tmp_path))
    assert source.read(tmp_path).to_pydict() == {"a": [1, 2]}
    assert [p.name for p in tmp_path.iterdir()] == ["a.csv"]


@pytest.mark.parametrize("settings", [{"delimiter": ""}, {"delimiter": "\n"}, {"path": ""}])
def test_refused_settings(settings):
    with pytest.raises(PlanError):
        build("source", "csv", {"path": "a.csv", **settings})


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_another_delimiter_is_named(mark, tmp_path):
    (tmp_path / "a.csv").write_text(f"a{mark}b\n1{mark}2\n")
    with pytest.raises(DataError, match="single column") as caught:
        Csv(path="a.csv").read(tmp_path)
    assert repr(mark) in caught.value.fix
    assert Csv(path="a.csv", delimiter=mark).read(tmp_path).column_names == ["a", "b"]


@pytest.mark.parametrize("content", ["a,b\n1,x\n2,y\n", "a,b\n"])
def test_a_source_that_is_read_whole_gives_batches_too(tmp_path, content):
    (tmp_path / "a.csv").write_text(content)
    source = Csv(path="a.csv")
    held = list(batches(source, tmp_path))
    assert pa.Table.from_batches(held).equals(source.read(tmp_path))
