"""Scores of predictions against scikit-learn and slow twins, for one sample and for many resamples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics

from synth_audit.stats import prediction
from synth_audit.stats.prediction import (
    accuracy,
    f1,
    hard_label_auroc,
    one_against_rest_auroc,
    r_squared,
    resampled_counts,
    scored,
)


def guessed(n_classes, seed):
    """Rounded scores, so that many tie, truths, and three lines of weights: ones and two resamples."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, 30)])
    raw = np.round(rng.random((len(y), n_classes)), 1) + 0.01
    some = np.concatenate([np.ones((2, n_classes)), rng.integers(0, 4, (2, 30))], axis=1)
    return raw / raw.sum(axis=1, keepdims=True), y, np.concatenate([np.ones((1, len(y))), some])


@settings(max_examples=15, deadline=None)
@given(n_classes=st.integers(2, 5), seed=st.integers(0, 10**6))
def test_classification_scores_agree_with_sklearn(n_classes, seed):
    scores, y, weights = guessed(n_classes, seed)
    guess = scores.argmax(axis=1)
    for found, w in zip(one_against_rest_auroc(scores, y, weights), weights, strict=True):
        rest = [metrics.roc_auc_score(y == k, scores[:, k], sample_weight=w) for k in range(n_classes)]
        assert found == pytest.approx(np.mean(rest))
    for found, w in zip(accuracy(scores, y, weights), weights, strict=True):
        assert found == pytest.approx(metrics.accuracy_score(y, guess, sample_weight=w))
    for found, w in zip(f1(scores, y, weights), weights, strict=True):
        there = np.unique(y[w > 0])
        expected = metrics.f1_score(y, guess, sample_weight=w, average="macro", labels=there, zero_division=0)
        assert found == pytest.approx(expected)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_r_squared_agrees_with_sklearn(seed):
    rng = np.random.default_rng(seed)
    y, guess = rng.normal(size=(2, 30))
    weights = rng.integers(1, 4, (3, 30)).astype(float)
    expected = [metrics.r2_score(y, guess, sample_weight=w) for w in weights]
    assert r_squared(guess, y, weights) == pytest.approx(expected)


def test_auroc_counts_pairs():
    scores = np.array([0.1, 0.4, 0.4, 0.8])
    y = np.array([0, 0, 1, 1])
    pairs = [(a > b) + 0.5 * (a == b) for a in scores[y == 1] for b in scores[y == 0]]
    assert one_against_rest_auroc(np.column_stack([1 - scores, scores]), y, np.ones((1, 4))).tolist() == [
        np.mean(pairs)
    ]


def test_scores_without_contrast_are_not_a_number():
    one_class = np.column_stack([np.full(4, 0.3), np.full(4, 0.7)])
    y = np.array([0, 0, 0, 1])
    weights = np.array([[1.0, 1, 1, 1], [2, 1, 1, 0]])
    assert np.isnan(one_against_rest_auroc(one_class, y, weights)).tolist() == [False, True]
    assert f1(one_class, y, weights)[1] == 0.0
    values = np.array([0.1, 0.1, 0.1, 0.7])  # three of 0.1 have a mean that is not quite 0.1
    assert np.isnan(r_squared(np.arange(4.0), values, weights)).tolist() == [False, True]


def test_a_class_of_which_nobody_is_left_has_no_curve():
    scores, y, _ = guessed(3, 0)
    weights = (y != 2).astype(float)[None]
    two = [metrics.roc_auc_score(y[y != 2] == k, scores[y != 2, k]) for k in range(2)]
    assert one_against_rest_auroc(scores, y, weights)[0] == pytest.approx(np.mean(two))


def test_resamples_count_every_row_as_often_as_it_was_drawn(monkeypatch):
    whole = resampled_counts(50, 40, np.random.default_rng(0))
    assert whole.shape == (41, 50)
    assert set(whole[0]) == {1}
    assert set(whole.sum(axis=1)) == {50}
    assert whole[1:].var() == pytest.approx(1 - 1 / 50, abs=0.1)
    scores, y, _ = guessed(3, 0)
    counts = resampled_counts(len(y), 40, np.random.default_rng(0))
    at_once = scored(one_against_rest_auroc, scores, y, counts)
    monkeypatch.setattr(prediction, "_BLOCK", 100)
    assert np.array_equal(counts, resampled_counts(len(y), 40, np.random.default_rng(0)))
    assert np.array_equal(at_once, scored(one_against_rest_auroc, scores, y, counts))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_area_from_hard_labels_is_that_of_their_indicators(n_classes):
    scores, y, weights = guessed(n_classes, 0)
    indicators = np.eye(n_classes)[scores.argmax(axis=1)]
    found = hard_label_auroc(scores, y, weights)
    assert found == pytest.approx(one_against_rest_auroc(indicators, y, weights))
    if n_classes == 2:
        assert found[0] == pytest.approx(metrics.balanced_accuracy_score(y, scores.argmax(axis=1)))
    assert np.isnan(hard_label_auroc(scores, np.zeros(len(y), dtype=int), weights)).all()
