"""Adversarial random forests: how many people leaves hold, and what is drawn from them."""

import numpy as np
import pyarrow as pa
import pytest

from synth_audit.generators._trees import Tree, grown_tree
from synth_audit.generators.arf import GAP, Arf, adversarial_forest, leaf_mixture, merged
from synth_audit.plugins.generator import FitContext

from .conftest import make_table


def related(n=600, seed=0):
    """Two equal levels, a label that tells their half, and a gap that goes with the label."""
    rng = np.random.default_rng(seed)
    x = rng.random(n)
    label = (x > 0.5).astype(float)
    return np.column_stack([x, np.clip(x + 0.02 * rng.normal(size=n), 0, 1), label, np.where(label, GAP, x)])


def test_leaves_of_too_few_people_are_merged_up_to_the_root():
    rows = related()
    tree = grown_tree(rows, rows[:, 0], classes=False, weights=np.ones(600), least=2, seed=0)
    person = np.arange(600) // 3
    weights = np.full(600, 1 / 3)
    for least in (5, 40):
        leaves = merged(tree, rows, weights, least).leaves(rows)
        people = [len(set(person[leaves == leaf])) for leaf in set(leaves)]
        assert min(people) >= least
        assert len(people) > 1
    assert set(merged(tree, rows, weights, 201).leaves(rows)) == {0}


def test_a_child_of_few_people_does_not_take_its_siblings_leaves_with_it():
    """A chain that splits off two rows at each step: cutting it at the first of them leaves one leaf."""
    n, steps = 100, 5
    rows = np.arange(n, dtype=float)[:, None]
    left, right = np.full(2 * steps + 3, -1), np.full(2 * steps + 3, -1)
    threshold = np.zeros(2 * steps + 3)
    for i in range(steps):
        left[2 * i], right[2 * i], threshold[2 * i] = 2 * i + 1, 2 * i + 2, 2 * i + 1.5
    left[2 * steps], right[2 * steps], threshold[2 * steps] = 2 * steps + 1, 2 * steps + 2, 50.5
    tree = Tree(left, right, np.zeros(len(left), dtype=int), threshold)
    leaves = merged(tree, rows, np.ones(n), 10).leaves(rows)
    assert sorted(np.unique(leaves, return_counts=True)[1]) == [49, 51]


def test_more_trees_keep_a_correlation_as_well():
    rng = np.random.default_rng(0)
    pair = rng.multivariate_normal([0, 0], [[1, 0.904], [0.904, 1]], size=2000)
    levels = (pair.argsort(0).argsort(0) + 0.5) / len(pair)
    found = []
    for trees in (5, 40):
        settings = Arf(trees=trees, minimum_leaf=20, tolerance=0.0, rounds=5)
        forest = adversarial_forest(levels, np.ones(2000), settings, np.random.default_rng(1))
        mixture = leaf_mixture(forest, levels, np.ones(2000), [None, None], 20)
        found.append(np.corrcoef(mixture.drawn(5000, np.random.default_rng(2)).T)[0, 1])
    assert min(found) > 0.75
    assert found[1] > found[0] - 0.05


def test_draws_keep_what_is_related_and_one_leaf_alone_would_not():
    rows, may = related(), np.ones(2, dtype=bool)
    settings = Arf(trees=6, minimum_leaf=10, tolerance=0.0, rounds=3)
    forest = adversarial_forest(rows, np.ones(600), settings, np.random.default_rng(0))
    found = {}
    for name, trees in (("forest", forest), ("root", [Tree.leaf()])):
        mixture = leaf_mixture(trees, rows, np.ones(600), [None, None, may, None], 10)
        found[name] = mixture.drawn(3000, np.random.default_rng(1))
    drawn = found["forest"]
    linked, apart = (np.corrcoef(found[name][:, :2].T)[0, 1] for name in ("forest", "root"))
    assert linked > 0.6 > 0.2 > apart
    together, by_chance = ((np.isnan(x[:, 3]) == (x[:, 2] == 1)).mean() for x in found.values())
    assert together > 0.8 > 0.6 > by_chance
    assert drawn[:, 2].mean() == pytest.approx(rows[:, 2].mean(), abs=0.05)
    assert 0 <= np.nanmin(drawn) <= np.nanmax(drawn) <= 1


def test_labels_that_may_not_be_drawn_are_not_even_where_a_leaf_has_no_other():
    rows = np.array([[0.0], [0.0], [1.0], [2.0]])
    tree = Tree(np.array([1, -1, -1]), np.array([2, -1, -1]), np.array([0, -1, -1]), np.array([0.5, 0, 0]))
    mixture = leaf_mixture([tree], rows, np.ones(4), [np.array([True, False, False])], 1)
    assert set(mixture.drawn(100, np.random.default_rng(0))[:, 0]) == {0}
    none = leaf_mixture([tree], rows, np.ones(4), [np.zeros(3, dtype=bool)], 1)
    assert np.isnan(none.drawn(9, np.random.default_rng(0))).all()


def test_the_only_number_of_a_leaf_is_not_drawn_for_all_others():
    side = np.repeat([0.0, 1.0], 100)
    level = np.where(side == 0, np.linspace(0.01, 0.99, 200), GAP)
    level[150] = 0.7654
    level[100] = 0.1234
    split = Tree(np.array([1, -1, -1]), np.array([2, -1, -1]), np.array([0, -1, -1]), np.array([0.5, 0, 0]))
    may, weights = [np.ones(2, dtype=bool), None], np.ones(200)
    mixture = leaf_mixture([split], np.column_stack([side, level]), weights, may, 20)
    drawn = mixture.drawn(20_000, np.random.default_rng(0))
    found = drawn[(drawn[:, 0] == 1) & ~np.isnan(drawn[:, 1]), 1]
    assert len(found) == pytest.approx(200, abs=60)
    assert found.min() < 0.05 < 0.95 < found.max()
    equal = np.column_stack([side, np.append(np.linspace(0, 1, 100), np.full(100, 0.5))])
    mixture = leaf_mixture([split], equal, weights, may, 20)
    assert mixture.spreads[1, 1] == pytest.approx(20 / 200 / 12**0.5)


def test_relations_are_kept_and_rare_values_are_not_copied():
    rng = np.random.default_rng(0)
    group = rng.integers(0, 3, 900)
    x = np.array([0.0, 6.0, 12.0])[group] + rng.normal(size=900)
    labels = np.where(np.arange(900) < 3, "rare", np.array(list("abc"))[group])
    table = make_table({"label": labels, "x": x})
    told = []
    context = FitContext(rng=np.random.default_rng(0), progress=lambda what, *_: told.append(what))
    drawn = Arf(trees=8, rounds=4).fit(table, context).sample(3000, np.random.default_rng(1))
    assert set(drawn.labels("label")) == set("abc")
    for label, mean in zip("abc", (0, 6, 12), strict=True):
        assert drawn.numbers("x")[drawn.labels("label") == label].mean() == pytest.approx(mean, abs=1.5)
    assert not np.isin(drawn.numbers("x"), x).any()
    assert "told right" in told[0]


def test_a_number_of_few_people_is_not_copied_however_often_they_have_it():
    rng = np.random.default_rng(0)
    visits = np.append(rng.normal(size=400), np.full(60, 1.23456))
    alone = pa.array(np.full(460, 7.5), mask=np.arange(460) > 2)
    table = make_table({"visits": visits, "alone": alone})
    who = np.append(np.arange(400), np.full(60, 400))
    context = FitContext(rng=np.random.default_rng(0), entities=lambda: who)
    drawn = Arf(trees=2, rounds=1).fit(table, context).sample(2000, np.random.default_rng(1))
    assert not (drawn.numbers("visits") == 1.23456).any()
    assert drawn.missing("alone").all()
