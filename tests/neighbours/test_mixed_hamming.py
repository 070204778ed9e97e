"""Columns in which two records disagree, against a slow obvious twin."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth_audit.encode import distances
from synth_audit.neighbours import gower, search
from synth_audit.table.schema_inference import ColumnSpec, infer_schema
from synth_audit.table.table import read_table

TYPES = pa.schema([("n", pa.int64()), ("s", pa.string())])
SPECS = {"n": ColumnSpec(kind="integer")}
ROW = st.fixed_dictionaries(
    {"n": st.none() | st.integers(-70, 70), "s": st.none() | st.sampled_from(["a", "b", "c"])}
)

pytestmark = pytest.mark.usefixtures("two_threads")


def disagreements(one, other, span):
    pairs = [(one[k], other[k]) for k in ("n", "s")]
    numbers, labels = pairs
    if None in numbers:
        far = numbers[0] is not numbers[1]
    else:
        far = min(1, abs(numbers[0] - numbers[1]) * gower.NEAR / span)
    return far + (labels[0] != labels[1])


@settings(max_examples=60, deadline=None)
@given(
    train=st.lists(ROW, min_size=2, max_size=8).map(
        lambda rows: [*rows, {"n": 0, "s": "a"}, {"n": 60, "s": "b"}]
    ),
    made=st.lists(ROW, min_size=1, max_size=8),
)
def test_against_loops(train, made):
    known = [row["n"] for row in train if row["n"] is not None]
    data = [pa.Table.from_pylist(rows, TYPES) for rows in (train, made)]
    schema = infer_schema(data[0], SPECS)
    reference, queries = distances.cells([read_table(d, schema, where="t") for d in data], schema.features)
    expected = [min(disagreements(row, other, max(known) - min(known)) for other in train) for row in made]
    assert gower.least_disagreement(queries, reference) == pytest.approx(expected, abs=1e-5)


def test_leaves_change_no_digit(monkeypatch):
    rng = np.random.default_rng(0)
    data = pa.table({"x": rng.normal(size=50), "k": rng.choice(["a", "b"], 50)})
    table = read_table(data, infer_schema(data), where="t")
    [cells] = distances.cells([table], table.schema.features)
    expected = gower.least_disagreement(cells.take(np.arange(20)), cells.take(np.arange(20, 50)))
    monkeypatch.setattr(search, "_MANY", 1)
    monkeypatch.setattr(search, "_LARGE", 1)
    found = gower.least_disagreement(cells.take(np.arange(20)), cells.take(np.arange(20, 50)))
    assert np.array_equal(found, expected)
    assert not gower.least_disagreement(cells, cells).any()


def test_a_wild_value_is_one_disagreement():
    data = pa.table({"x": [0.0, 1.0, 0.5], "y": [0.0, 1.0, 0.2]})
    wild = pa.table({"x": [1e308, None, -1e308], "y": [0.0, 1.0, 0.2]})
    schema = infer_schema(data, {"x": ColumnSpec(kind="continuous"), "y": ColumnSpec(kind="continuous")})
    tables = [read_table(d, schema, where="t") for d in (data, wild)]
    reference, queries = distances.cells(tables, schema.features)
    assert gower.least_disagreement(queries, reference).tolist() == [1, 1, 1]


@settings(max_examples=60, deadline=None)
@given(
    train=st.lists(ROW, min_size=1, max_size=8).map(
        lambda rows: [*rows, {"n": 0, "s": "a"}, {"n": 60, "s": "b"}]
    ),
    made=st.lists(ROW, min_size=1, max_size=8),
)
@pytest.mark.parametrize("block", [2**17, 3])
def test_near_copies_against_loops(block, train, made):
    known = [row["n"] for row in train if row["n"] is not None]
    unit = (max(known) - min(known)) / gower.NEAR
    data = [pa.Table.from_pylist(rows, TYPES) for rows in (train, made)]
    schema = infer_schema(data[0], SPECS)
    reference, queries = distances.cells([read_table(d, schema, where="t") for d in data], schema.features)

    def near(one, other):
        if one["s"] != other["s"] or (one["n"] is None) != (other["n"] is None):
            return False
        return one["n"] is None or abs(one["n"] - other["n"]) <= unit * (1 + 1e-6)

    expected = [any(near(row, other) for other in train) for row in made]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gower, "_BLOCK", block)
        assert gower.nearly_copied(queries, reference).tolist() == expected


def test_labels_alone_and_many_twins_are_near_exactly_when_equal():
    rng = np.random.default_rng(0)
    data = pa.table({name: rng.choice(["a", "b", "c"], 3000) for name in "kl"})
    table = read_table(data, infer_schema(data), where="t")
    [rows] = distances.cells([table], table.schema.features)
    labels = [f"{k}{m}" for k, m in zip(data["k"].to_pylist(), data["l"].to_pylist(), strict=True)]
    some = np.flatnonzero(np.array(labels) != "cc")
    found = gower.nearly_copied(rows, rows.take(some))
    assert found.tolist() == [label != "cc" for label in labels]
