"""Scores of predictive models against scikit-learn, and models at the edge of their data."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics

from synth_audit.kernels.prediction import accuracy, auroc, class_scores, f1, predicted_values, r_squared

MODELS = ["random_forest", "logistic", "gradient_boosting"]


def scored(n_classes, seed, weighted):
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, 30)])
    raw = np.round(rng.random((len(y), n_classes)), 1) + 0.01
    weights = np.concatenate([np.ones(n_classes), rng.integers(0, 4, 30)]).astype(float) if weighted else None
    return raw / raw.sum(axis=1, keepdims=True), y, weights


@settings(max_examples=40, deadline=None)
@given(n_classes=st.integers(2, 5), seed=st.integers(0, 10**6), weighted=st.booleans())
def test_classification_scores_agree_with_sklearn(n_classes, seed, weighted):
    scores, y, weights = scored(n_classes, seed, weighted)
    rest = np.mean(
        [metrics.roc_auc_score(y == k, scores[:, k], sample_weight=weights) for k in range(n_classes)]
    )
    guess = scores.argmax(axis=1)
    assert auroc(scores, y, weights) == pytest.approx(rest)
    assert accuracy(scores, y, weights) == pytest.approx(
        metrics.accuracy_score(y, guess, sample_weight=weights)
    )
    expected = metrics.f1_score(
        y, guess, sample_weight=weights, average="macro", labels=np.unique(y), zero_division=0
    )
    assert f1(scores, y, weights) == pytest.approx(expected)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), weighted=st.booleans())
def test_r_squared_agrees_with_sklearn(seed, weighted):
    rng = np.random.default_rng(seed)
    y, guess = rng.normal(size=30), rng.normal(size=30)
    weights = rng.integers(1, 4, 30).astype(float) if weighted else None
    assert r_squared(guess, y, weights) == pytest.approx(metrics.r2_score(y, guess, sample_weight=weights))


def test_auroc_counts_pairs():
    scores = np.array([0.1, 0.4, 0.4, 0.8])
    y = np.array([0, 0, 1, 1])
    pairs = [(a > b) + 0.5 * (a == b) for a in scores[y == 1] for b in scores[y == 0]]
    assert auroc(np.column_stack([1 - scores, scores]), y) == np.mean(pairs)


def test_scores_without_contrast_are_not_a_number():
    one_class = np.column_stack([np.full(4, 0.3), np.full(4, 0.7)])
    assert np.isnan(auroc(one_class, np.zeros(4, dtype=int)))
    assert np.isnan(r_squared(np.arange(4.0), np.ones(4)))


def test_a_class_that_nobody_was_trained_on_has_probability_zero():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 2)), rng.integers(0, 2, 60) * 2
    for name in MODELS:
        scores = class_scores(name, x, y, x[:5], 4, seed=1)
        assert scores.shape == (5, 4)
        assert not scores[:, [1, 3]].any()
        assert scores.sum(axis=1) == pytest.approx(1)
        alone = class_scores(name, x, np.full(60, 2), x[:5], 4, seed=1)
        assert alone.tolist() == [[0, 0, 1, 0]] * 5


@pytest.mark.parametrize("name", MODELS)
def test_models_learn_and_repeat_themselves(name):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 2))
    y = (x[:, 0] > 0).astype(np.int64)
    scores = class_scores(name, x[:150], y[:150], x[150:], 2, seed=3)
    assert auroc(scores, y[150:]) > 0.95
    assert np.array_equal(scores, class_scores(name, x[:150], y[:150], x[150:], 2, seed=3))
    guess = predicted_values(name, x[:150], 3 * x[:150, 0], x[150:], seed=3)
    assert r_squared(guess, 3 * x[150:, 0]) > 0.9
