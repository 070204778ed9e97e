"""Trees as arrays: they send rows where the library's own do, and keep enough people in each leaf."""

from __future__ import annotations

import numpy as np
import pytest

from synth_audit.stats.trees import Tree, grown_tree, label_order


def blobs(n=400, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, 4))
    return rows, np.sin(2 * rows[:, 0]) + rows[:, 1] + 0.1 * rng.normal(size=n)


@pytest.mark.parametrize("classes", [False, True])
def test_rows_end_where_the_librarys_tree_sends_them(classes):
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    rows, target = blobs()
    target = (target > 0).astype(float) if classes else target
    kind = DecisionTreeClassifier if classes else DecisionTreeRegressor
    theirs = kind(random_state=0, min_samples_leaf=3).fit(rows, target)
    asked = np.random.default_rng(1).normal(size=(1000, 4))
    assert np.array_equal(Tree.of(theirs).leaves(asked), theirs.apply(asked))
    assert len(np.unique(Tree.of(theirs).leaves(asked))) > 5


@pytest.mark.parametrize("least", [1, 7, 300])
def test_a_leaf_holds_as_many_people_however_many_rows_they_have(least):
    rows, target = blobs()
    person = np.minimum(np.arange(400) // 2, 150)  # two rows each, and one with 100
    weights = 1 / np.bincount(person)[person]
    tree = grown_tree(rows, target, classes=False, weights=weights, least=least, seed=0)
    people = [len(set(person[tree.leaves(rows) == leaf])) for leaf in set(tree.leaves(rows))]
    assert min(people) >= min(least, 151)
    assert len(people) > (400 / least / 8 if least < 100 else 0)
    assert (len(people) == 1) == (least == 300)


def test_labels_are_ordered_by_what_they_say_of_the_target():
    labels = np.array([0, 0, 1, 1, 2, 2, -1])
    by_mean = label_order(labels, 4, np.array([5.0, 5, 1, 1, 3, 3, 9]), classes=False)
    assert by_mean[1] < by_mean[2] < by_mean[0]
    binary = label_order(labels, 3, np.array([1.0, 1, 0, 0, 0, 1, 1]), classes=True)
    assert binary[2] == 1, "half of its rows are of either class"
    assert {binary[0], binary[1]} == {0, 2}


def test_labels_of_which_no_row_tells_stand_in_the_middle():
    found = label_order(np.array([0, 2, 2]), 3, np.array([1.0, 8, 8]), classes=False)
    assert found[0] < found[1] < found[2]
    assert np.isfinite(label_order(np.array([-1, -1]), 2, np.array([0.0, 1]), classes=True)).all()
