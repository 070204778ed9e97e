"""Kendall's τ of whole tables: against scipy, on one scale for all tables, with odd columns."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import kendalltau

from synth_audit.studies.frontier import DIGITS, MOST_COLUMNS, Scales
from synth_audit.table.schema_inference import ColumnSpec, infer_schema
from synth_audit.table.table import read_table


def table(columns, schema=None, **roles):
    data = pa.table(columns)
    specs = {name: ColumnSpec(role=role) for name, role in roles.items()}
    return read_table(data, schema or infer_schema(data, specs), where="train")


def test_numbers_are_those_of_scipy_where_both_are_present():
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    y = np.round(x + rng.normal(size=200))
    gaps = rng.random(200) < 0.2
    train = table({"x": x, "y": pa.array(y, mask=gaps)})
    got = Scales.of(train, 2).correlations(train)
    assert got.names == ("x", "y")
    assert got.values[0][1] == got.values[1][0] == round(kendalltau(x[~gaps], y[~gaps]).statistic, DIGITS)
    assert got.values[0][0] == got.values[1][1] == 1


def test_labels_stand_in_the_order_of_the_target_and_the_scale_is_trains():
    grades = ["good", "bad", "fair"]
    place = np.tile([2, 0, 1], 60)
    y = place * 10.0 + np.random.default_rng(0).normal(size=180)
    columns = {"grade": [grades[i] for i in np.tile([0, 1, 2], 60)], "y": y}
    train = table(columns, y="target")
    scales = Scales.of(train, 2)
    assert scales.correlations(train).values[0][1] > 0.8
    flipped = table({**columns, "y": -y}, train.schema)
    assert scales.correlations(flipped).values[0][1] < -0.8


def test_without_a_target_labels_stand_by_frequency():
    train = table({"c": ["b"] * 50 + ["a"] * 30 + ["c"] * 20, "x": np.arange(100.0)})
    assert Scales.of(train, 2).scales[0].labels.tolist() == ["b", "a", "c"]
    assert Scales.of(train, 2).correlations(train).values[0][1] > 0.7


def test_an_unseen_label_counts_as_missing():
    train = table({"c": ["a", "b"] * 50, "x": np.tile([0.0, 1.0], 50)})
    odd = table({"c": ["a", "b", "new"] * 30, "x": np.tile([0.0, 1.0, -5.0], 30)}, train.schema)
    assert Scales.of(train, 2).correlations(odd).values[0][1] == 1


def test_constant_and_empty_columns_have_none():
    train = table({"x": [1.0, 2.0, 3.0], "one": [7.0] * 3, "void": pa.nulls(3), "same": ["a"] * 3})
    values = np.array(Scales.of(train, 2).correlations(train).values)
    assert (np.diag(values) == 1).all()
    assert np.isnan(values[np.triu_indices(4, 1)]).all()


def test_identifiers_are_left_out_and_of_many_columns_the_important_ones_stay():
    many = {f"c{i:02d}": np.arange(10.0) for i in range(MOST_COLUMNS + 9)}
    train = table(
        {"id": [f"p{i}" for i in range(10)], **many}, id="identifier", c47="sensitive", c48="target"
    )
    names = Scales.of(train, 2).correlations(train).names
    assert len(names) == MOST_COLUMNS
    assert names == (*(f"c{i:02d}" for i in range(MOST_COLUMNS - 2)), "c47", "c48")


@pytest.mark.parametrize("kind", ["bool", "date"])
def test_every_kind_becomes_a_number(kind):
    values = {
        "bool": [True, False] * 20,
        "date": pa.array(np.tile([18_000, 9_000], 20), pa.int32()).cast(pa.date32()),
    }
    train = table({"k": values[kind], "x": np.tile([2.0, 1.0], 20)})
    assert abs(Scales.of(train, 2).correlations(train).values[0][1]) == 1


def test_what_rests_on_few_rows_is_withheld():
    rng = np.random.default_rng(0)
    few = np.where(np.arange(60) < 59, 0.0, 1.0)
    gone = np.where(np.arange(60) < 55, np.nan, rng.normal(size=60))
    train = table({"x": rng.normal(size=60), "few": few, "gone": pa.array(gone, from_pandas=True)})
    values = np.array(Scales.of(train, 10).correlations(train).values)
    assert np.isnan(values[np.triu_indices(3, 1)]).all()
    assert not np.isnan(np.array(Scales.of(train, 1).correlations(train).values)[0, 1])
