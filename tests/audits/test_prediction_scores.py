"""Predictive models, and how well predictions fit the truth in all resamples at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics
from threadpoolctl import threadpool_limits

from synth_audit.audits.utility import _prediction_task as prediction
from synth_audit.audits.utility._prediction_task import (
    NEIGHBOURS,
    SEEDED,
    accuracy,
    f1,
    fit,
    hard_label_auroc,
    one_against_rest_auroc,
    r_squared,
    resampled_counts,
    scored,
)

MODELS = ["random_forest", "logistic", "gradient_boosting", "knn"]


def line(n, seed=0):
    x = np.random.default_rng(seed).normal(size=(n, 2))
    return x, 3 * x[:, 0]


@pytest.mark.parametrize("name", MODELS)
def test_models_learn_and_repeat_themselves(name):
    x, y = line(300)
    label = (y > 0).astype(np.int64)
    scores = fit(name, x[:200], label[:200], 2, 3).predict(x[200:])
    assert np.mean(scores.argmax(axis=1) == label[200:]) > 0.9
    assert np.array_equal(scores, fit(name, x[:200], label[:200], 2, 3).predict(x[200:]))
    guess = fit(name, x[:200], y[:200], 0, 3).predict(x[200:])
    assert np.corrcoef(guess, y[200:])[0, 1] > 0.9
    assert np.array_equal(guess, fit(name, x[:200], y[:200], 0, 3).predict(x[200:]))


@pytest.mark.parametrize("name", MODELS)
def test_only_the_seeded_models_move_with_the_seed(name):
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(200, 3)), rng.integers(0, 2, 200)
    one, other = (fit(name, x, y, 2, seed).predict(x) for seed in (1, 2))
    assert np.array_equal(one, other) is (name not in SEEDED)


@pytest.mark.parametrize("name", ["logistic", "gradient_boosting", "knn"])
@pytest.mark.parametrize("n_classes", [0, 3])
def test_threads_change_no_bit(name, n_classes):
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(500, 30)), rng.integers(0, 3, 500)
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            found.append(fit(name, x, y, n_classes, 0).predict(x))
    assert np.array_equal(*found)


@pytest.mark.parametrize("name", MODELS)
def test_a_class_that_nobody_was_trained_on_has_probability_zero(name):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 2)), rng.integers(0, 2, 60) * 2
    scores = fit(name, x, y, 4, 1).predict(x[:5])
    assert scores.shape == (5, 4)
    assert not scores[:, [1, 3]].any()
    assert scores.sum(axis=1) == pytest.approx(1)
    alone = fit(name, x, np.full(60, 2), 4, 1).predict(x[:5])
    assert alone.tolist() == [[0, 0, 1, 0]] * 5


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_handful_of_rows_will_do(name, n):
    x, y = line(n)
    asked = line(7, seed=1)[0]
    assert np.isfinite(fit(name, x, y, 0, 0).predict(asked)).all()
    assert fit(name, x, np.arange(n) % 2, 2, 0).predict(asked).sum(axis=1) == pytest.approx(1)


def test_nearest_neighbours_vote():
    x, y = line(80)
    label = (y > 0).astype(np.int64)
    asked = line(9, seed=1)[0]
    apart = ((asked[:, None] - x[None]) ** 2).sum(axis=2)
    near = np.argsort(apart, axis=1)[:, :NEIGHBOURS]
    assert fit("knn", x, label, 2, 0).predict(asked)[:, 1] == pytest.approx(label[near].mean(axis=1))
    assert fit("knn", x, y, 0, 0).predict(asked) == pytest.approx(y[near].mean(axis=1))


def test_the_linear_model_of_a_number_is_ridge_regression():
    x, y = line(50)
    y = y + np.random.default_rng(5).normal(size=50)
    centred = x - x.mean(axis=0)
    slope = np.linalg.solve(centred.T @ centred + np.eye(2), centred.T @ (y - y.mean()))
    expected = y.mean() + (x - x.mean(axis=0)) @ slope
    assert fit("logistic", x, y, 0, 0).predict(x) == pytest.approx(expected)


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
