"""Models by name: that they learn, repeat themselves, and stand the edges of their data."""

from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from synth_audit.stats.prediction import NEIGHBOURS, SEEDED, fit

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
