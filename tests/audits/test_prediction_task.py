"""What models are trained and tested on: rows, classes, coordinates."""

from __future__ import annotations

import numpy as np
import pytest

from synth_audit.audits.utility import _prediction_task as tasks
from synth_audit.audits.utility._prediction_task import prepare
from synth_audit.errors import NotApplicable

TARGET = {"y": {"role": "target"}}


def prepared(subject, most_rows=5000, repeats=3):
    return prepare(subject, most_rows, repeats, np.random.default_rng(0))


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
