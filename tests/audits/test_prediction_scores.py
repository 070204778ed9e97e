"""Predictive models, and how well predictions fit the truth in all resamples at once."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics
from threadpoolctl import threadpool_limits

from synth_audit.audits.utility import _prediction_task as prediction
from synth_audit.audits.utility import _prediction_task as prediction_task
from synth_audit.audits.utility import _prediction_task as tasks
from synth_audit.errors import NotApplicable

MODELS = ["random_forest", "logistic", "gradient_boosting", "knn"]


def line(n, seed=0):
    x = np.random.default_rng(seed).normal(size=(n, 2))
    return x, 3 * x[:, 0]


@pytest.mark.parametrize("name", MODELS)
def test_models_learn_and_repeat_themselves(name):
    x, y = line(300)
    label = (y > 0).astype(np.int64)
    scores = prediction_task.fit(name, x[:200], label[:200], 2, 3).predict(x[200:])
    assert np.mean(scores.argmax(axis=1) == label[200:]) > 0.9
    assert np.array_equal(scores, prediction_task.fit(name, x[:200], label[:200], 2, 3).predict(x[200:]))
    guess = prediction_task.fit(name, x[:200], y[:200], 0, 3).predict(x[200:])
    assert np.corrcoef(guess, y[200:])[0, 1] > 0.9
    assert np.array_equal(guess, prediction_task.fit(name, x[:200], y[:200], 0, 3).predict(x[200:]))


@pytest.mark.parametrize("name", MODELS)
def test_only_the_seeded_models_move_with_the_seed(name):
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(200, 3)), rng.integers(0, 2, 200)
    one, other = (prediction_task.fit(name, x, y, 2, seed).predict(x) for seed in (1, 2))
    assert np.array_equal(one, other) is (name not in prediction_task.SEEDED)


@pytest.mark.parametrize("name", ["logistic", "gradient_boosting", "knn"])
@pytest.mark.parametrize("n_classes", [0, 3])
def test_threads_change_no_bit(name, n_classes):
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(500, 30)), rng.integers(0, 3, 500)
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            found.append(prediction_task.fit(name, x, y, n_classes, 0).predict(x))
    assert np.array_equal(*found)


@pytest.mark.parametrize("name", MODELS)
def test_a_class_that_nobody_was_trained_on_has_probability_zero(name):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 2)), rng.integers(0, 2, 60) * 2
    scores = prediction_task.fit(name, x, y, 4, 1).predict(x[:5])
    assert scores.shape == (5, 4)
    assert not scores[:, [1, 3]].any()
    assert scores.sum(axis=1) == pytest.approx(1)
    alone = prediction_task.fit(name, x, np.full(60, 2), 4, 1).predict(x[:5])
    assert alone.tolist() == [[0, 0, 1, 0]] * 5


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_handful_of_rows_will_do(name, n):
    x, y = line(n)
    asked = line(7, seed=1)[0]
    assert np.isfinite(prediction_task.fit(name, x, y, 0, 0).predict(asked)).all()
    assert prediction_task.fit(name, x, np.arange(n) % 2, 2, 0).predict(asked).sum(axis=1) == pytest.approx(1)


def test_nearest_neighbours_vote():
    x, y = line(80)
    label = (y > 0).astype(np.int64)
    asked = line(9, seed=1)[0]
    apart = ((asked[:, None] - x[None]) ** 2).sum(axis=2)
    near = np.argsort(apart, axis=1)[:, : prediction_task.NEIGHBOURS]
    assert prediction_task.fit("knn", x, label, 2, 0).predict(asked)[:, 1] == pytest.approx(
        label[near].mean(axis=1)
    )
    assert prediction_task.fit("knn", x, y, 0, 0).predict(asked) == pytest.approx(y[near].mean(axis=1))


def test_the_linear_model_of_a_number_is_ridge_regression():
    x, y = line(50)
    y = y + np.random.default_rng(5).normal(size=50)
    centred = x - x.mean(axis=0)
    slope = np.linalg.solve(centred.T @ centred + np.eye(2), centred.T @ (y - y.mean()))
    expected = y.mean() + (x - x.mean(axis=0)) @ slope
    assert prediction_task.fit("logistic", x, y, 0, 0).predict(x) == pytest.approx(expected)


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
    for found, w in zip(prediction_task.one_against_rest_auroc(scores, y, weights), weights, strict=True):
        rest = [metrics.roc_auc_score(y == k, scores[:, k], sample_weight=w) for k in range(n_classes)]
        assert found == pytest.approx(np.mean(rest))
    for found, w in zip(prediction_task.accuracy(scores, y, weights), weights, strict=True):
        assert found == pytest.approx(metrics.accuracy_score(y, guess, sample_weight=w))
    for found, w in zip(prediction_task.f1(scores, y, weights), weights, strict=True):
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
    assert prediction_task.r_squared(guess, y, weights) == pytest.approx(expected)


def test_auroc_counts_pairs():
    scores = np.array([0.1, 0.4, 0.4, 0.8])
    y = np.array([0, 0, 1, 1])
    pairs = [(a > b) + 0.5 * (a == b) for a in scores[y == 1] for b in scores[y == 0]]
    assert prediction_task.one_against_rest_auroc(
        np.column_stack([1 - scores, scores]), y, np.ones((1, 4))
    ).tolist() == [np.mean(pairs)]


def test_scores_without_contrast_are_not_a_number():
    one_class = np.column_stack([np.full(4, 0.3), np.full(4, 0.7)])
    y = np.array([0, 0, 0, 1])
    weights = np.array([[1.0, 1, 1, 1], [2, 1, 1, 0]])
    assert np.isnan(prediction_task.one_against_rest_auroc(one_class, y, weights)).tolist() == [False, True]
    assert prediction_task.f1(one_class, y, weights)[1] == 0.0
    values = np.array([0.1, 0.1, 0.1, 0.7])  # three of 0.1 have a mean that is not quite 0.1
    assert np.isnan(prediction_task.r_squared(np.arange(4.0), values, weights)).tolist() == [False, True]


def test_a_class_of_which_nobody_is_left_has_no_curve():
    scores, y, _ = guessed(3, 0)
    weights = (y != 2).astype(float)[None]
    two = [metrics.roc_auc_score(y[y != 2] == k, scores[y != 2, k]) for k in range(2)]
    assert prediction_task.one_against_rest_auroc(scores, y, weights)[0] == pytest.approx(np.mean(two))


def test_resamples_count_every_row_as_often_as_it_was_drawn(monkeypatch):
    whole = prediction_task.resampled_counts(50, 40, np.random.default_rng(0))
    assert whole.shape == (41, 50)
    assert set(whole[0]) == {1}
    assert set(whole.sum(axis=1)) == {50}
    assert whole[1:].var() == pytest.approx(1 - 1 / 50, abs=0.1)
    scores, y, _ = guessed(3, 0)
    counts = prediction_task.resampled_counts(len(y), 40, np.random.default_rng(0))
    at_once = prediction_task.scored(prediction_task.one_against_rest_auroc, scores, y, counts)
    monkeypatch.setattr(prediction, "_BLOCK", 100)
    assert np.array_equal(counts, prediction_task.resampled_counts(len(y), 40, np.random.default_rng(0)))
    assert np.array_equal(
        at_once, prediction_task.scored(prediction_task.one_against_rest_auroc, scores, y, counts)
    )


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_area_from_hard_labels_is_that_of_their_indicators(n_classes):
    scores, y, weights = guessed(n_classes, 0)
    indicators = np.eye(n_classes)[scores.argmax(axis=1)]
    found = prediction_task.hard_label_auroc(scores, y, weights)
    assert found == pytest.approx(prediction_task.one_against_rest_auroc(indicators, y, weights))
    if n_classes == 2:
        assert found[0] == pytest.approx(metrics.balanced_accuracy_score(y, scores.argmax(axis=1)))
    assert np.isnan(prediction_task.hard_label_auroc(scores, np.zeros(len(y), dtype=int), weights)).all()


TARGET = {"y": {"role": "target"}}


def prepared(subject, most_rows=5000, repeats=3):
    return prediction_task.prepare(subject, most_rows, repeats, np.random.default_rng(0))


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    return {"x": rng.normal(5, 2, n), "k": rng.choice(list("uvw"), n), "y": rng.normal(size=n)}


def test_repeats_take_turns_through_as_many_rows_as_there_are(subject_of):
    many, few = rows(700), rows(30, 1)
    task = prepared(subject_of(many, rows(300, 2), few, **TARGET), most_rows=100)
    real = [task.pick("train", r) for r in range(3)]
    assert sorted(np.concatenate(real)) == list(range(300))
    assert len(task.target["train"]) == 300
    assert all(task.pick("synthetic", r).tolist() == list(range(30)) for r in range(3))
    some = prepared(subject_of({k: v[:150] for k, v in many.items()}, rows(300, 2), few, **TARGET), 100)
    covered = np.bincount(np.concatenate([some.pick("train", r) for r in range(3)]), minlength=150)
    assert covered.tolist() == [2] * 150
    assert len(task.y_test) == task.tested.n_rows == 100


def test_a_copy_is_trained_on_the_rows_of_train(subject_of):
    train = rows(700)
    task = prepared(subject_of(train, rows(50, 2), train, **TARGET), most_rows=100)
    assert np.array_equal(task.features["train"], task.features["synthetic"])
    assert np.array_equal(task.target["train"], task.target["synthetic"])


def test_numbers_are_in_units_of_train_and_labels_are_indicators(subject_of):
    train, control, made = rows(400), rows(100, 1), rows(200, 2)
    made["x"][0], made["x"][1] = 1e9, np.nan
    task = prepared(subject_of(train, control, made, **TARGET))
    assert set(task.blocks) == {"x", "k"}
    x = task.features["synthetic"][:, task.blocks["x"]]
    assert x[0].tolist() == [tasks.FAR, 0]
    assert x[1].tolist() == [0, 1]
    assert x[2, 0] == pytest.approx((made["x"][2] - train["x"].mean()) / train["x"].std())
    labels = task.x_test[:, task.blocks["k"]]
    assert labels.sum(axis=1).tolist() == [1] * 100
    order = sorted("uvw", key=lambda k: -np.sum(train["k"] == k))
    assert [order[i] for i in labels.argmax(axis=1)] == control["k"].tolist()
    assert task.y_test == pytest.approx((control["y"] - train["y"].mean()) / train["y"].std(ddof=1))


def test_the_rarer_of_many_labels_share_an_indicator(subject_of, monkeypatch):
    monkeypatch.setattr(tasks, "MOST_INDICATORS", 3)
    monkeypatch.setattr(tasks, "FEWEST_INDICATORS", 2)
    train = rows(300) | {"k": ["often"] * 200 + ["a", "b"] * 50}
    made = rows(4) | {"k": ["often", "b", "new", "a"]}
    task = prepared(subject_of(train, rows(50, 1) | {"k": ["a"] * 50}, made, **TARGET))
    shared = task.features["synthetic"][:, task.blocks["k"]]
    # "a" and "b" are as frequent in train; of all rows "a" has more.
    assert shared.tolist() == [[1, 0, 0], [0, 0, 1], [0, 0, 1], [0, 1, 0]]


def test_a_column_that_is_constant_in_train_teaches_nothing(subject_of):
    train = rows(100) | {"k": ["u"] * 100}
    task = prepared(subject_of(train, rows(50, 1), rows(80, 2), **TARGET))
    assert not task.features["synthetic"][:, task.blocks["k"]].any()


def test_the_rarest_classes_of_train_are_one_together(subject_of):
    sizes = [40, 30, 20, 10, 9, 8, 7, 6, 5, 4, 3, 2]
    names = np.repeat([f"c{i:02}" for i in range(12)], sizes)
    train = rows(len(names)) | {"y": names}
    made = rows(4) | {"y": ["c08", "c09", "c11", "new"]}
    control = rows(60, 1) | {"y": np.tile(["c00", "c10"], 30)}
    task = prepared(subject_of(train, control, made, **TARGET))
    assert task.n_classes == tasks.MOST_CLASSES
    assert task.target["synthetic"].tolist() == [8, 9, 9, 9]
    assert set(task.y_test) == {0, 9}


def test_a_class_that_only_one_table_has_is_a_class(subject_of):
    train = rows(90) | {"y": ["a", "a", "b"] * 30}
    control = rows(40, 1) | {"y": ["b", "unseen"] * 20}
    made = rows(20, 2) | {"y": ["a", "invented"] * 10}
    task = prepared(subject_of(train, control, made, **TARGET))
    assert task.n_classes == 4
    assert set(task.target["train"]) == {0, 1}
    assert set(task.y_test).isdisjoint(set(task.target["synthetic"]) - {0})


def test_classes_of_few_tested_rows_are_one_with_the_rarest(subject_of):
    train = rows(120) | {"y": ["a"] * 60 + ["b"] * 30 + ["c"] * 20 + ["d"] * 10}
    made = rows(5, 2) | {"y": ["a", "b", "c", "d", "new"]}

    def classes(a, b, c, d):
        control = rows(a + b + c + d, 1) | {"y": ["a"] * a + ["b"] * b + ["c"] * c + ["d"] * d}
        task = prepared(subject_of(train, control, made, **TARGET))
        return task.target["synthetic"].tolist(), task.n_classes, task.joined

    assert classes(30, 20, 10, 10) == ([0, 1, 2, 3, 4], 5, False)
    assert classes(30, 20, 10, 0) == ([0, 1, 2, 3, 4], 5, False)
    assert classes(30, 20, 5, 5) == ([0, 1, 3, 3, 2], 4, True)
    assert classes(30, 20, 10, 4) == ([0, 1, 3, 3, 2], 4, True)
    assert classes(4, 20, 12, 11) == ([3, 0, 1, 3, 2], 4, True)
    for few in ((30, 4, 0, 0), (30, 3, 3, 3)):
        with pytest.raises(NotApplicable, match="too few control rows") as caught:
            classes(*few)
        assert not any(str(n) in str(caught.value) for n in range(10))


@pytest.mark.parametrize(("lacking", "tested"), [(0, 100), (1, 90), (9, 90), (10, 90), (40, 60)])
def test_how_few_control_rows_lack_a_target_is_not_told(lacking, tested, subject_of):
    control = rows(100, 1)
    control["y"][:lacking] = np.nan
    task = prepared(subject_of(rows(100), control, rows(100, 2), **TARGET))
    assert len(task.y_test) == task.tested.n_rows == tested
    assert np.isfinite(task.y_test).all()
