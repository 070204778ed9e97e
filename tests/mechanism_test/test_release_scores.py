"""Scores of a release against a canary."""

from __future__ import annotations

import numpy as np

from synth_audit.mechanism_test.table_mechanisms import label_scores, number_scores, row_scores


def test_numbers_are_told_by_range_moments_and_nearness():
    values = np.array([0.0, 4.0, np.nan, 9.9, 10.0])
    found, near = number_scores("x", values, 10.0, 0.0, 10.0)
    assert found["largest of x"] == 10
    assert found["missing values of x"] == 1
    assert found["x equal"] == 1
    assert found["x near"] == 2
    assert near.tolist() == [False, False, False, True, True]


def test_a_column_without_numbers_is_told_from_one_at_its_lower_end():
    found, agreeing = number_scores("x", np.array([np.nan, np.nan]), np.nan, 0.0, 10.0)
    assert found["least of x"] == found["largest of x"] == -10
    assert found["x equal"] == 2
    assert agreeing.all()


def test_labels_and_missing_ones():
    values = np.array(["a", None, "b", "a"], dtype=object)
    found, agreeing = label_scores("g", values, "a")
    assert found == {"distinct labels of g": 2, "missing values of g": 1, "g equal": 2}
    assert label_scores("g", values, None)[1].tolist() == [False, True, False, False]
    assert agreeing.tolist() == [True, False, False, True]


def test_rows_are_told_by_agreement_in_pairs_and_in_all():
    agreeing = {
        "a": np.array([1, 1, 0], bool),
        "b": np.array([1, 0, 0], bool),
        "c": np.array([0, 1, 0], bool),
    }
    found = row_scores(agreeing, 3)
    assert found["rows"] == 3
    assert found["most columns in which a row is like the canary"] == 2
    assert found["rows like the canary"] == 0
    assert found["rows like the canary in a and b"] == 1
    assert found["rows like the canary in b and c"] == 0
