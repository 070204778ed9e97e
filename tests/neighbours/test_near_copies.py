"""Near copies, against a slow obvious twin."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synth_audit.encode.encoded import Encoded
from synth_audit.neighbours import gower, memory
from synth_audit.table.schema_inference import ColumnSpec, infer_schema
from synth_audit.table.table import read_table

TYPES = pa.schema([("n", pa.int64()), ("s", pa.string())])
SPECS = {"n": ColumnSpec(kind="integer")}
ROW = st.fixed_dictionaries(
    {"n": st.none() | st.integers(-70, 70), "s": st.none() | st.sampled_from(["a", "b", "c"])}
)


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
    reference, queries = Encoded([read_table(d, schema, where="t") for d in data], schema.features).near()

    def near(one, other):
        if one["s"] != other["s"] or (one["n"] is None) != (other["n"] is None):
            return False
        return one["n"] is None or abs(one["n"] - other["n"]) <= unit * (1 + 1e-6)

    expected = [any(near(row, other) for other in train) for row in made]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "TREE", block)
        assert gower.nearly_copied(queries, reference).tolist() == expected


def test_labels_alone_and_many_twins_are_near_exactly_when_equal():
    rng = np.random.default_rng(0)
    data = pa.table({name: rng.choice(["a", "b", "c"], 3000) for name in "kl"})
    table = read_table(data, infer_schema(data), where="t")
    [rows] = Encoded([table], table.schema.features).near()
    labels = [f"{k}{m}" for k, m in zip(data["k"].to_pylist(), data["l"].to_pylist(), strict=True)]
    some = np.flatnonzero(np.array(labels) != "cc")
    found = gower.nearly_copied(rows, rows.take(some))
    assert found.tolist() == [label != "cc" for label in labels]


def test_wild_and_missing_values_are_near_to_nothing_else():
    data = pa.table({"x": [0.0, 1.0, 0.5], "y": [0.0, 1.0, 0.2]})
    wild = pa.table({"x": [1e308, None, -1e308], "y": [0.0, 1.0, 0.2]})
    schema = infer_schema(data, {"x": ColumnSpec(kind="continuous"), "y": ColumnSpec(kind="continuous")})
    reference, queries = Encoded(
        [read_table(d, schema, where="t") for d in (data, wild)], schema.features
    ).near()
    assert not gower.nearly_copied(queries, reference).any()
    assert gower.nearly_copied(queries, queries).all()
