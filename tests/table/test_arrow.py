"""Arrow values as numbers and labels, and families of Arrow types."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from synth_audit.audits.fidelity.novel_content import Aspect, column_novelties
from synth_audit.encode.encoded import Encoded
from synth_audit.table.arrow import decimals_of, is_binary, is_text, labels_of, nearest_floats, numbers_of
from synth_audit.table.schema_inference import infer_schema
from synth_audit.table.table import read_table


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
