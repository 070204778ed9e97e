"""Mixed rows as coordinates to which every column adds the same variance."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pytest

from synth_audit.audits.fidelity.projection import StandardisedCoordinates
from synth_audit.table.schema_inference import ColumnSpec, infer_schema
from synth_audit.table.table import read_table

NUMERIC = ("x", "y", "gaps")


def mixed(n, seed):
    rng = np.random.default_rng(seed)
    hours = rng.integers(0, 10_000, n)
    return {
        "x": rng.normal(5, 3, n),
        "gaps": np.where(rng.random(n) < 0.3, np.nan, rng.normal(size=n)),
        "label": rng.choice(["a", "b", "c"], n, p=[0.6, 0.3, 0.1]).tolist(),
        "maybe": [None if i % 4 == 0 else "u" if i % 2 else "v" for i in range(n)],
        "flag": (rng.random(n) < 0.2).tolist(),
        "when": [datetime.datetime(2020, 1, 1) + datetime.timedelta(hours=int(h)) for h in hours],
        "same": ["s"] * n,
        "nothing": [None] * n,
    }


def frame_of(*frames, most=300):
    """A frame and the tables it was made for, of which the first is train."""
    data = [pa.table(f) for f in frames]
    specs = {n: ColumnSpec(kind="continuous") for n in NUMERIC if n in data[0].column_names}
    schema = infer_schema(data[0], specs)
    tables = [read_table(d, schema, where="table") for d in data]
    return StandardisedCoordinates.of(tables, schema.features, most), tables


def dense(frame, table):
    rows = frame.read(table)
    return rows.dense(slice(0, len(rows)))


def test_every_column_that_varies_has_variance_one_in_train():
    frame, [train] = frame_of(mixed(500, 1))
    found = dense(frame, train)
    by_column = {}
    for owner, variance in zip(frame.owners, found.var(axis=0), strict=True):
        by_column[owner] = by_column.get(owner, 0.0) + variance
    assert by_column == pytest.approx(dict.fromkeys(["x", "gaps", "label", "maybe", "flag", "when"], 1.0))
    assert len(frame.owners) == 1 + 2 + 3 + 3 + 2 + 1
    assert len(frame.numbers) == 3


def test_coordinates_by_hand():
    train = {"x": [0.0, 0.0, 4.0, 4.0], "k": ["a", "b", "a", None]}
    other = {"x": [2.0, np.nan, 8.0], "k": ["b", "never seen", None]}
    frame, [_, table] = frame_of(train, other)
    assert frame.owners == ("x", "x", "k", "k", "k", "k")  # number, missing; a, b, others, missing
    weight = 1 / np.sqrt(1 - 0.25 - 0.0625 - 0.0625)
    expected = [
        [0.0, 0, 0, weight, 0, 0],
        [0.0, 1, 0, 0, weight, 0],
        [3.0, 0, 0, 0, 0, weight],
    ]
    np.testing.assert_allclose(dense(frame, table), expected, atol=1e-12)


def test_a_share_of_missing_numbers_counts_as_derived():
    frame, [train] = frame_of({"x": [1.0, 3.0, np.nan, np.nan], "y": [0.0, 1.0, 2.0, 3.0]})
    root = np.sqrt(1 - 0.5**2)
    np.testing.assert_allclose(
        dense(frame, train)[:, [0, 2]], np.array([[-1, 0], [1, 0], [0, 1], [0, 1]]) / root
    )


def test_rarer_labels_are_counted_together():
    labels = ["a"] * 50 + ["b"] * 30 + ["c"] * 10 + ["d"] * 6 + ["e"] * 4
    frame, [train] = frame_of({"k": labels, "x": np.arange(100.0)}, most=4)
    assert frame.owners.count("k") == 4  # a, b, c and the others
    indicators = dense(frame, train)[:, 1:]
    assert (indicators[90:] == indicators[90]).all()
    assert len(np.unique(indicators, axis=0)) == 4


def test_equally_frequent_labels_are_kept_all_or_none():
    labels = ["a"] * 40 + ["b"] * 20 + ["c"] * 20 + ["d"] * 20
    frame, _ = frame_of({"k": labels, "x": np.arange(100.0)}, most=3)
    assert frame.owners.count("k") == 2
    frame, _ = frame_of({"k": [f"k{i % 50}" for i in range(100)], "x": np.arange(100.0)}, most=10)
    assert "k" not in frame.owners


def test_codes_do_not_depend_on_the_table_beside_train():
    frame, [train, other] = frame_of(mixed(50, 1), mixed(80, 2))
    positions = np.arange(79, 9, -3)
    np.testing.assert_array_equal(dense(frame, other.take(positions)), dense(frame, other)[positions])
    np.testing.assert_array_equal(
        frame.read(train).dense(np.array([3, 3, 0])), dense(frame, train)[[3, 3, 0]]
    )


def test_values_without_measure_stay_finite():
    x = np.random.default_rng(0).normal(size=20)
    frame, [_, wild] = frame_of({"x": x, "y": x**2}, {"x": [1.7e308, -1.7e308], "y": [1e200, np.nan]})
    found = dense(frame, wild)
    assert np.isfinite(found).all()
    assert found[0, 0] == 1e6
    assert found[1, 0] == -1e6


def test_missing_in_another_table_only_takes_a_coordinate():
    whole, holed = {"x": [1.0, 2.0], "k": ["a", "b"]}, {"x": [1.0, np.nan], "k": ["a", None]}
    assert len(frame_of(whole, whole)[0].owners) == 3
    assert len(frame_of(whole, holed)[0].owners) == 5


def test_a_column_missing_or_one_value_tells_by_being_missing():
    frame, [train] = frame_of({"x": [7.0, np.nan, 7.0, np.nan], "k": ["a", "b", "a", "a"]})
    assert len(frame.numbers) == 0
    np.testing.assert_allclose(dense(frame, train)[:, 0], [0, 2, 0, 2])
