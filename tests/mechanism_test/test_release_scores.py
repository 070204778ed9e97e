"""Scores of a release against a canary."""

from __future__ import annotations

import numpy as np

from synth_audit.mechanism_test import table_mechanisms as scores


def as_named(names, values):
    assert len(names) == len(values)
    return dict(zip(names, values, strict=True))


def test_numbers_are_told_by_range_moments_and_nearness():
    values = np.array([0.0, 4.0, np.nan, 9.9, 10.0])
    told, near = scores.number_scores(values, 10.0, 0.0, 10.0)
    found = as_named(scores.number_names("x"), told)
    assert found["largest of x"] == 10
    assert found["missing values of x"] == 1
    assert found["x equal"] == 1
    assert found["x near"] == 2
    assert near.tolist() == [False, False, False, True, True]


def test_a_column_without_numbers_is_told_from_one_at_its_lower_end():
    empty, agreeing = scores.number_scores(np.array([np.nan, np.nan]), np.nan, 0.0, 10.0)
    found = as_named(scores.number_names("x"), empty)
    assert found["least of x"] == found["largest of x"] == -10
    assert found["x equal"] == 2
    assert agreeing.all()


def test_labels_and_missing_ones():
    values = np.array(["a", None, "b", "a"], dtype=object)
    told, agreeing = scores.label_scores(values, "a")
    assert as_named(scores.label_names("g"), told) == {
        "distinct labels of g": 2,
        "missing values of g": 1,
        "g equal": 2,
    }
    assert scores.label_scores(values, None)[1].tolist() == [False, True, False, False]
    assert agreeing.tolist() == [True, False, False, True]


def test_rows_are_told_by_agreement_in_pairs_and_in_all():
    agreeing = [np.array([1, 1, 0], bool), np.array([1, 0, 0], bool), np.array([0, 1, 0], bool)]
    found = as_named(scores.row_names("abc"), scores.row_scores(agreeing, 3))
    assert found["rows"] == 3
    assert found["most columns in which a row is like the canary"] == 2
    assert found["rows like the canary"] == 0
    assert found["rows like the canary in a and b"] == 1
    assert found["rows like the canary in b and c"] == 0
