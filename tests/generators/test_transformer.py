"""Rows as vectors and back."""

import numpy as np
import pyarrow as pa
import pytest
from made_tables import table_of  # made importable by conftest.py

from synth_audit.errors import DataError
from synth_audit.generators._deep.network_model import on_train
from synth_audit.table.schema import PublicDomain
from synth_audit.table.schema_inference import ColumnSpec
from synth_audit.table.table import read_table

RNG = np.random.default_rng(0)


@pytest.fixture
def train():
    n = 40
    return table_of(
        {
            "age": pa.array([20 + i for i in range(n)]),
            "pay": pa.array([None if i % 5 == 0 else 1.5 * i for i in range(n)]),
            "town": pa.array([None if i % 7 == 0 else "abc"[i % 3] for i in range(n)]),
            "ill": pa.array([i % 2 == 0 for i in range(n)]),
            "same": pa.array(["x"] * n),
            "none": pa.nulls(n, pa.float64()),
        }
    )


def test_what_is_encoded_comes_back(train):
    transformer = on_train(train)
    vectors = transformer.encode(train, RNG)
    layout = transformer.layout
    assert vectors.shape == (40, layout.width)
    assert layout.width == 1 + 3 + 4 + 2  # age; pay with its gap; three towns with theirs; ill
    assert np.abs(vectors[:, list(layout.numbers)]).max() == 1
    for start, stop in layout.slices:
        assert (vectors[:, start:stop].sum(axis=1) == 1).all()
    back = transformer.decode(vectors)
    assert back.data.schema == train.data.schema
    for name in ("town", "ill", "same", "none"):
        assert back.column(name).to_pylist() == train.column(name).to_pylist()
    assert np.array_equal(np.isnan(back.numbers("pay")), train.missing("pay"))
    for name in ("age", "pay"):
        inner = train.numbers(name)[10:-10]
        assert np.allclose(back.numbers(name)[10:-10], inner, atol=1e-4, equal_nan=True)


def test_nobodys_own_extreme_is_drawn(train):
    """A network that overshoots everywhere draws the mean of the ten outermost, not the outermost."""
    transformer = on_train(train)
    far = np.full((2, transformer.layout.width), 9, dtype=np.float32)
    far[1] = -9
    assert transformer.decode(far).numbers("age").tolist() == [54, 24]  # 54.5 and 24.5, as whole numbers


def test_scores_are_read_by_the_largest_and_numbers_are_clipped(train):
    transformer = on_train(train)
    vectors = transformer.encode(train, RNG)
    stretched = vectors * 7 - 3
    back = transformer.decode(stretched.astype(np.float32))
    assert back.column("town").to_pylist() == train.column("town").to_pylist()
    assert set(back.numbers("age")) <= set(train.numbers("age"))


def test_what_is_declared_is_all_that_is_used(train):
    specs = {
        "age": ColumnSpec(kind="integer", bounds=(0, 100), nullable=False),
        "town": ColumnSpec(kind="categorical", categories=("a", "b", "c", "d")),
    }
    few, more = (
        table_of({"age": train.column("age").slice(s, n), "town": train.column("town").slice(s, n)}, specs)
        for s, n in ((0, 40), (5, 3))
    )
    one, other = (on_train(t, domain=PublicDomain.of(t.schema)) for t in (few, more))
    assert one.columns == other.columns  # rows, and gaps among them, move nothing
    assert one.layout.width == 1 + 4 + 1
    assert other.encode(few, RNG)[:, 0] == pytest.approx(2 * few.numbers("age") / 100 - 1)


def test_values_outside_what_is_declared_are_clipped_or_missing():
    specs = {
        "age": ColumnSpec(kind="integer", bounds=(0, 10)),
        "town": ColumnSpec(kind="categorical", categories=("a", "b")),
    }
    table = table_of({"age": [5, 10], "town": ["a", "b"]}, specs)
    transformer = on_train(table, domain=PublicDomain.of(table.schema))
    odd = read_table(
        pa.table({"age": [-3, 99], "town": ["z", "b"]}), table.schema, where="train", partial=True
    )
    back = transformer.decode(transformer.encode(odd, RNG))
    assert back.column("age").to_pylist() == [0, 10]
    assert back.column("town").to_pylist() == [None, "b"]


def test_free_text_is_refused_by_name():
    notes = [f"patient {i} came in on day {i} with pain" for i in range(60)]
    with pytest.raises(DataError, match="'notes'"):
        on_train(table_of({"notes": notes, "x": list(range(60))}))
