"""Every Arrow type is read in full or refused by name; nothing is believed that a table says of itself."""

import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from synth_audit.audits.fidelity.novel_content import Aspect, column_novelties
from synth_audit.encode.encoded import Encoded
from synth_audit.errors import DataError
from synth_audit.table.arrow import decimals_of, is_binary, is_text, labels_of, nearest_floats, numbers_of
from synth_audit.table.content_hash import fingerprint
from synth_audit.table.schema_inference import ColumnSpec, infer_schema
from synth_audit.table.storage_types import plain, refuse_huge, refuse_inexact
from synth_audit.table.table import assemble, read_table

CELL = "Zanzibar-7391"
TEXT = pa.string()
BAD = b"\xff" + CELL.encode()


def dictionary(values, indices=(0, 1, 0)):
    return pa.DictionaryArray.from_arrays(pa.array(indices), values, safe=False)


def not_utf8(kind=TEXT):
    values = pa.array([b"x", BAD, None]).cast(pa.binary() if kind == TEXT else pa.large_binary())
    return pa.Array.from_buffers(kind, 3, values.buffers())


def read(values, where="train"):
    return plain(pa.table({"odd": values}), where=where).column("odd")


LABELS = ["x", CELL, None]
READ = {
    "text view": (pa.array(LABELS, pa.string_view()), pa.array(LABELS)),
    "sliced text view": (pa.array(["w", *LABELS], pa.string_view())[1:], pa.array(LABELS)),
    "byte view": (pa.array([b"x", None], pa.binary_view()), pa.array([b"x", None])),
    "runs": (pa.array(["x", "x", None], pa.run_end_encoded(pa.int32(), pa.string())), ["x", "x", None]),
    "labels in a view": (
        dictionary(pa.array(["x", "y"], pa.string_view())),
        pa.array(["x", "y", "x"]).dictionary_encode(),
    ),
    "a null among labels": (
        dictionary(pa.array(["x", None])),
        pa.array(["x", None, "x"]).dictionary_encode(),
    ),
    "json": (pa.ExtensionArray.from_storage(pa.json_(), pa.array(["{}", None])), pa.array(["{}", None])),
    "uuid": (
        pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes(16), None], pa.binary(16))),
        pa.array([bytes(16), None], pa.binary(16)),
    ),
    "decimal of 32 bits": (
        pa.array([Decimal("1.25"), None], pa.decimal32(9, 2)),
        pa.array([Decimal("1.25"), None], pa.decimal128(9, 2)),
    ),
    "decimal of thousands": (
        pa.array([7000, None]).cast(pa.decimal128(20, 0)).cast(pa.decimal128(5, -3)),
        pa.array([Decimal(7000), None], pa.decimal128(8, 0)),
    ),
}


@pytest.mark.parametrize("name", READ)
def test_a_type_that_no_kernel_takes_is_read_as_its_plain_twin(name):
    values, expected = READ[name]
    found = read(pa.chunked_array([values, values.slice(0, 1)]))
    expected = pa.chunked_array([expected if isinstance(expected, pa.Array) else pa.array(expected)])
    assert found.type == expected.type
    assert found.to_pylist() == expected.to_pylist() + expected.to_pylist()[:1]


AS_IT_IS = [
    pa.array(LABELS),
    pa.array(LABELS, pa.large_string()),
    pa.array(LABELS).dictionary_encode(),
    pa.array([b"x", b"y", None]),
    pa.array([0.5, np.nan, None], pa.float16()),
    pa.array([2**64 - 1, None], pa.uint64()),
    pa.array([1, None], pa.duration("s")),
    pa.array([1, None], pa.time64("us")),
    pa.array([0, None], pa.timestamp("us", "+05:30")),
    pa.array([datetime.date.min, datetime.date.max, None]),
    pa.array([Decimal("1.25"), None], pa.decimal256(60, 2)),
    pa.nulls(3),
    pa.nulls(3, pa.timestamp("ns", "Europe/Berlin")),
]


@pytest.mark.parametrize("values", AS_IT_IS, ids=lambda x: str(x.type))
def test_a_plain_type_stays_without_a_copy(values):
    data = pa.table({"odd": values})
    assert plain(data, where="train") is data


REFUSED = {
    "list": (pa.array([["a"]]), "cell holds several values"),
    "list view": (pa.array([["a"]], pa.list_view(pa.string())), "cell holds several values"),
    "struct": (pa.array([{"a": 1}]), "cell holds several values"),
    "map": (pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())), "cell holds several values"),
    "union": (
        pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])]),
        "cell holds several values",
    ),
    "labels that are lists": (dictionary(pa.array([["a"], ["b"]])), "cell holds several values"),
    "interval": (pa.array([pa.MonthDayNano([1, 2, 3])]), "how long a month is"),
    "opaque": (
        pa.ExtensionArray.from_storage(pa.opaque(pa.string(), "numeric", "PostgreSQL"), pa.array([CELL])),
        "extension type 'arrow.opaque'",
    ),
    "runs of views": (
        pa.RunEndEncodedArray.from_arrays([2], pa.array([CELL], pa.string_view())),
        "no plain values",
    ),
    "not UTF-8": (not_utf8(), "text that is not UTF-8"),
    "not UTF-8, large": (not_utf8(pa.large_string()), "text that is not UTF-8"),
    "labels not UTF-8": (dictionary(not_utf8()), "text that is not UTF-8"),
    "a label that is not there": (dictionary(pa.array([CELL, "b"]), [0, 7]), "does not hold what its type"),
    "more digits than declared": (
        pa.Array.from_buffers(
            pa.decimal128(3), 1, pa.array([Decimal(73917391)], pa.decimal128(38)).buffers()
        ),
        "does not hold what its type",
    ),
    "zone": (pa.array([1], pa.timestamp("us", "Mars/Olympus")), "the time zone 'Mars/Olympus'"),
    "offset": (pa.array([1], pa.timestamp("us", "+25:99")), "the time zone '+25:99'"),
    "seconds after calendars": (pa.array([10**17], pa.timestamp("s")), "outside the years 1 to 9999"),
    "days after calendars": (pa.array([2_932_897], pa.int32()).cast(pa.date32()), "the years 1 to 9999"),
    "days before calendars": (pa.array([-719_163], pa.int32()).cast(pa.date32()), "the years 1 to 9999"),
    "milliseconds after calendars": (pa.array([86_400_000 * 10**8]).cast(pa.date64()), "1 to 9999"),
    "infinite": (pa.array([1.0, -np.inf]), "infinite values"),
    "infinite halves": (pa.array([1.0, np.inf], pa.float16()), "infinite values"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_is_refused_by_name(name):
    values, says = REFUSED[name]
    with pytest.raises(DataError) as caught:
        read(values, "control")
    assert says in str(caught.value)
    assert "'odd'" in caught.value.what
    assert caught.value.where == "control"
    assert caught.value.expected
    assert caught.value.fix
    assert CELL not in str(caught.value)
    assert "7391" not in str(caught.value)


class Secret(pa.ExtensionType):
    def __init__(self):
        super().__init__(pa.int64(), "test.secret")

    def __arrow_ext_serialize__(self):
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type, serialized):
        return cls()


def test_an_extension_type_of_somebody_else_is_refused_by_its_name():
    with pytest.raises(DataError, match=r"extension type 'test\.secret' mean"):
        read(pa.ExtensionArray.from_storage(Secret(), pa.array([1])))


@pytest.mark.parametrize("name", ["", "twice"])
def test_names_are_checked_first(name):
    data = pa.Table.from_arrays([pa.array([[1]]), pa.array([1])], names=[name, "twice"])
    with pytest.raises(DataError, match=r"empty name|occurs more than once"):
        plain(data, where="train")


INEXACT = [
    pa.array([2**53 + 1]),
    pa.array([-(2**53) - 1]),
    pa.array([2**64 - 1, None], pa.uint64()),
    pa.array([Decimal(2**53 + 1)], pa.decimal128(38, 0)),
    pa.array([Decimal("0.123456789012345678")], pa.decimal128(38, 18)),
    pa.array([1_700_000_000_000_000_001], pa.timestamp("ns", "UTC")),
    pa.array([3_600_000_000_001], pa.time64("ns")),
]
EXACT = [
    pa.array([2**53, -(2**53), None]),
    pa.array([Decimal(7), None], pa.decimal128(38, 0)),
    pa.array([Decimal("73917391.25")], pa.decimal256(60, 20)),
    pa.array([1_700_000_000_000_001_000, None], pa.timestamp("ns", "UTC")),
    pa.array([253_402_300_799_000_001], pa.timestamp("us")),
    pa.array([3_600_000_001_000, None], pa.time64("ns")),
    pa.nulls(2, pa.uint64()),
    pa.array([1e300]),
]


@pytest.mark.parametrize("values", INEXACT, ids=lambda x: str(x.type))
def test_digits_that_no_audit_sees_are_refused(values):
    with pytest.raises(DataError, match="'odd' holds numbers of more digits than audits compare") as caught:
        refuse_inexact("odd", pa.chunked_array([values]), where="synthetic")
    assert caught.value.where == "synthetic"
    data = pa.table({"odd": pa.concat_arrays([values, values[:1], pa.array([0, 1, 2]).cast(values.type)])})
    with pytest.raises(DataError, match="'odd' holds numbers of more digits"):
        read_table(data, infer_schema(data), where="train")


@pytest.mark.parametrize("values", EXACT, ids=lambda x: str(x.type))
def test_digits_that_audits_see_are_read(values):
    refuse_inexact("odd", pa.chunked_array([values]), where="synthetic")


@pytest.mark.parametrize("coded", [False, True])
def test_digits_that_no_label_has_are_refused(coded):
    def table(*values):
        found = pa.array([None, *map(Decimal, values)], pa.decimal128(38, 20))
        return pa.table({"odd": found.dictionary_encode() if coded else found})

    known = table("0.1", "2", "1e-9", "73917391.25")
    schema = infer_schema(known, {"odd": ColumnSpec(kind="categorical")})
    assert read_table(known, schema, where="train").labels("odd").tolist() == [
        None,
        "0.1",
        "2",
        "1e-9",
        "73917391.25",
    ]
    with pytest.raises(DataError, match="'odd' holds numbers of more digits"):
        read_table(table("0.1", "2", "0.10000000000000000001"), schema, where="synthetic")


def test_long_ids_are_compared_exactly():
    data = pa.table(
        {"id": pa.array([Decimal(10**37 + i) for i in range(3)], pa.decimal128(38, 0)), "x": [1, 2, 3]}
    )
    schema = infer_schema(data, {"id": ColumnSpec.model_validate({"role": "identifier"})})
    assert len(set(read_table(data, schema, where="train").labels("id"))) == 3


@pytest.mark.parametrize(("number", "fits"), [(1e100, True), (-1.1e100, False), (1e300, False)])
def test_numbers_with_infinite_squares_fit_no_generator(number, fits):
    values = pa.chunked_array([pa.array([1.0, number, None])])
    if fits:
        refuse_huge("odd", values, where="train")
        return
    with pytest.raises(DataError, match="'odd' holds numbers beyond 1e"):
        refuse_huge("odd", values, where="train")


@pytest.mark.parametrize(
    "values",
    [
        pa.array([b"\x00x", b"\xff", None]),
        pa.array([b"ab", b"\xff\x00", None], pa.binary(2)),
        pa.array([3, -1, None], pa.duration("ns")),
        pa.array([3, 86_399, None], pa.time32("s")),
        pa.array([3, 86_399_999_999_999, None], pa.time64("ns")),
        pa.array([Decimal(10**20), Decimal(7), None], pa.decimal128(38, 0)),
    ],
    ids=lambda x: str(x.type),
)
def test_labels_of_any_storage_come_back(values):
    data = pa.table({"odd": values})
    table = read_table(
        data, infer_schema(data, {"odd": ColumnSpec.model_validate({"kind": "categorical"})}), where="train"
    )
    assert assemble(table.schema, {"odd": table.labels("odd")}).data.equals(data)


def test_a_twin_has_the_content_hash_of_what_it_stands_for():
    view, text = (pa.table({"odd": pa.array(LABELS, kind)}) for kind in (pa.string_view(), pa.string()))
    assert fingerprint(plain(view, where="train")) == fingerprint(text)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_text_in_any_layout(kind):
    assert is_text(kind)
    assert not is_binary(kind)


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary(4)])
def test_bytes_in_any_layout(kind):
    assert is_binary(kind)
    assert not is_text(kind)


@pytest.mark.parametrize("kind", [pa.dictionary(pa.int32(), pa.string()), pa.int64(), pa.null()])
def test_neither(kind):
    assert not is_text(kind)
    assert not is_binary(kind)


DECIMALS = [
    pa.decimal128(12, 3),
    pa.decimal128(38, 3),
    pa.decimal128(38, 20),
    pa.decimal128(38, 25),
    pa.decimal256(70, 20),
]


def texts(n=400):
    return [f"{x:.3f}" for x in np.random.default_rng(0).normal(0, 60, n)]


@pytest.mark.parametrize("storage", DECIMALS, ids=str)
def test_decimals_are_the_floats_that_their_digits_are_read_as(storage):
    written = texts()
    values = pa.chunked_array([pa.array([*map(Decimal, written), None], storage)]).slice(7)
    assert numbers_of(values).to_pylist() == [*map(float, written[7:]), None]
    assert labels_of(values).to_pylist() == labels_of(numbers_of(values)).to_pylist()
    assert decimals_of(nearest_floats(values).combine_chunks(), storage).equals(values.combine_chunks())


def test_large_decimals_are_rounded_once():
    values = [2**53, 2**53 + 1, -(2**63), 2**63, 10**37, -1, None]
    for part in (values, values[:1], values[2:3], []):
        held = pa.chunked_array([pa.array([x and Decimal(x) for x in part], pa.decimal128(38, 0))])
        assert nearest_floats(held).to_pylist() == [x and float(x) for x in part]


def test_numbers_with_32_bits_are_what_their_digits_are_read_as():
    rng = np.random.default_rng(1)
    values = (rng.normal(size=3000) * 10.0 ** rng.integers(-9, 9, 3000)).astype("f4")
    values = np.concatenate([values, values.round(2), np.float32([0, 7, 2**24, 2**30, -3.5, 1e-20, 3e38])])
    held = pa.chunked_array([pa.array([*values.tolist(), None], pa.float32())])
    found = numbers_of(held).to_pylist()
    read = held.cast(pa.string()).cast(pa.float64()).to_pylist()
    whole = [abs(x) >= 2**24 for x in values.tolist()]
    assert found == [*(float(v) if w else r for v, w, r in zip(values, whole, read[:-1], strict=True)), None]
    assert (np.array(found[:-1]).astype("f4") == values).all()


@pytest.mark.parametrize("train", ["double", "float", "halffloat", "decimal"])
@pytest.mark.parametrize("copy", ["double", "float", "halffloat", "decimal"])
def test_a_copy_is_one_in_whatever_type_its_numbers_are(train, copy):
    def table(storage):
        numbers = np.array([*map(float, texts())]).round(1)
        if storage == "decimal":
            return pa.table({"x": pa.array([Decimal(str(x)) for x in numbers], pa.decimal128(9, 2))})
        return pa.table(
            {"x": pa.array(numbers.astype({"halffloat": "f2", "float": "f4"}.get(storage, "f8")))}
        )

    known = table(train)
    schema = infer_schema(known)
    tables = [read_table(t, schema, where="train") for t in (known, table(copy))]
    real, given = Encoded(tables, schema.features).groups()
    assert real.tolist() == given.tolist()


@pytest.mark.parametrize("train", ["f4", "f8"])
@pytest.mark.parametrize("given", ["f4", "f8", "widened"])
def test_finer_digits_show_whatever_numbers_are_stored_as(train, given):
    numbers = np.array([*map(float, texts())]).round(1)
    known = pa.table({"x": numbers.astype(train)})
    schema = infer_schema(known)
    column = schema["x"]
    assert column.inferred_resolution is not None

    def finer(values):
        values = values.astype("f4").astype("f8") if given == "widened" else values.astype(given)
        found = column_novelties(column, known["x"], pa.chunked_array([values]), None)
        return next(n.rows for n in found if n.aspect is Aspect.RESOLUTION).mean()

    honest = np.random.default_rng(5).permutation(numbers + 0.1).round(1)
    if (train, given) != ("f8", "widened"):  # digits that train does not have
        assert finer(honest) == 0
    assert finer(honest + 0.0123) > 0.95
