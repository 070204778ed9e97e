"""Trees as arrays, and numbers smoothed within a leaf."""

from __future__ import annotations

import numpy as np
import pytest

from synth_audit.generators._trees import Tree, bandwidths, grown_tree, label_order, rare_numbers, smoothed


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


def test_rare_is_what_few_people_have_whose_rows_count_once():
    numbers = np.array([1.0] * 6 + [2.0] * 6 + [3.0])
    weights = np.array([1.0] * 6 + [1 / 6] * 6 + [1.0])
    assert list(rare_numbers(numbers, weights, 5)) == [False] * 6 + [True] * 7
    assert not rare_numbers(numbers, weights, 1)[:6].any()


def test_windows_are_as_wide_as_silverman_says_and_never_narrower_than_asked():
    rng = np.random.default_rng(0)
    levels = np.append(0.5 + 0.01 * rng.normal(size=1000), rng.random(3))
    group = np.append(np.zeros(1000, dtype=np.intp), np.full(3, 7))
    shuffled = rng.permutation(1003)
    found = np.empty(1003)
    found[shuffled] = bandwidths(levels[shuffled], group[shuffled], least=1e-6)
    assert found[:1000] == pytest.approx(np.sqrt(3) * 1.06 * 0.01 * 1000**-0.2, rel=0.1)
    assert (found[1000:] == 1).all(), "three numbers tell no spread"
    assert bandwidths(levels, group, least=0.2)[0] == 0.2
    assert bandwidths(np.full(9, 0.3), np.zeros(9, dtype=np.intp), least=0.01) == pytest.approx(0.01)


def test_levels_stay_levels_and_a_uniform_group_stays_uniform():
    rng = np.random.default_rng(0)
    levels = rng.random(50_000)
    drawn = smoothed(levels, np.full(50_000, 0.3), rng.random(50_000))
    assert 0 <= drawn.min() < drawn.max() <= 1
    assert np.histogram(drawn, 10, (0, 1))[0] / 50_000 == pytest.approx(0.1, abs=0.01)
    assert np.isnan(smoothed(np.array([np.nan]), np.ones(1), np.zeros(1))).all()
