"""Columns as those who know a few of them compare them: numbers in any spelling, labels, what is missing."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from synth_audit.audits.privacy._known_columns import SECRET_STEP, known_columns
from synth_audit.table.schema_inference import infer_schema
from synth_audit.table.table import read_table


def columns_of(train, *others):
    data = pa.table(train)
    schema = infer_schema(data, {})
    tables = [read_table(data, schema, where="train")]
    tables += [read_table(pa.table(t), schema, where="control") for t in others]
    return {c.name: c for c in known_columns(tables, schema.features, tables[:1])}


def numbers(column):
    """Of all rows, shape (rows, width)."""
    return np.array([level[rank] for level, rank in zip(column.levels, column.ranks.T, strict=True)]).T


def test_numbers_are_apart_by_ranges_and_labels_by_more():
    values = np.linspace(0, 1, 201)
    found = columns_of({"x": [*values, None], "k": ["a", "b"] * 101})
    x, k = found["x"], found["k"]
    assert numbers(x).shape == (202, 1)
    assert k.levels == ()
    assert np.ptp(numbers(x)[:201]) == pytest.approx(1.0)
    assert x.labels[0] == x.labels[200] != x.labels[201]
    assert np.isnan(x.secret()[201])
    assert set(np.abs(np.diff(k.secret()))) == {SECRET_STEP}


def test_far_numbers_grow_by_their_logarithm_and_stay_apart():
    far = [10.0, 1e3, 1e6]
    x = columns_of({"x": [*np.linspace(0, 1, 500), *far]})["x"]
    placed = numbers(x)[-3:, 0]
    assert (np.diff(placed) > 1).all()
    assert placed[-1] < 20


def test_text_that_reads_as_number_is_one_and_the_rest_a_label():
    spelled = [f"{x:.2f} mg".replace(".", ",") for x in np.linspace(1, 9, 60)]
    found = columns_of({"dose": [*spelled, "unknown", "refused", None], "k": ["a", "b", "c"] * 21})["dose"]
    assert numbers(found).shape == (63, 1)
    assert (np.diff(numbers(found)[:60, 0]) > 0).all()
    assert len(np.unique(found.labels[:60])) == 1
    assert len(np.unique(found.labels[59:])) == 4, "each text that is no number is a label, and so is none"
    assert np.isnan(found.secret()[62])
    assert len(np.unique(found.secret()[58:62])) == 4


def test_labels_are_shared_between_tables_and_compared_in_standard_form():
    found = columns_of({"k": ["Ab", "c", "c"]}, {"k": ["ab ", "C", "new"]})["k"]
    assert found.labels[[0, 1]].tolist() == found.labels[[3, 4]].tolist()
    assert found.labels[5] not in found.labels[:5]


def test_free_text_is_compared_by_its_letters():
    rng = np.random.default_rng(0)
    words = ["patient", "came", "severe", "pain", "left", "knee", "after", "fall", "from", "ladder", "home"]
    notes = [" ".join(rng.choice(words, 12)) for _ in range(80)]
    moved = [note + "." for note in notes]
    found = columns_of({"note": notes, "k": ["a", "b"] * 40}, {"note": moved, "k": ["a", "b"] * 40})["note"]
    assert numbers(found).shape[1] == 4
    apart = np.abs(numbers(found)[:80, None] - numbers(found)[None, 80:]).sum(axis=2)
    assert (apart.argmin(axis=1) == np.arange(80)).mean() > 0.7, "of eighty, by four numbers each"
    assert len(np.unique(found.secret())) > 80


def test_a_column_that_is_constant_in_train_is_left_out():
    assert set(columns_of({"x": [1.5, 2.5, 3.5], "k": ["a"] * 3}, {"x": [1.0, 2.0], "k": ["b", "c"]})) == {
        "x"
    }
