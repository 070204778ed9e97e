"""CART: what it keeps, what may not leave, and whom a leaf counts."""

import numpy as np
import pyarrow as pa
import pytest

from synth_audit.errors import DataError
from synth_audit.generators._trees import Tree, bandwidths, grown_tree, label_order, rare_numbers, smoothed
from synth_audit.generators.cart import Cart
from synth_audit.plugins.generator import FitContext

from .conftest import make_table


def made(table, n=3000, entities=None, **settings):
    context = FitContext(rng=np.random.default_rng(0), entities=entities)
    return Cart(**settings).fit(table, context).sample(n, np.random.default_rng(1))


def related(n=1500, seed=0, **specs):
    """A label that tells a number's place and when it is missing, and a number of all different values."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 4, n)
    x = np.array([9.0, -3.0, 5.0, 0.0])[group] + rng.normal(size=n)
    gaps = rng.random(n) < np.where(group == 2, 0.6, 0.05)
    twice = pa.array(np.round(2 * x + 0.1 * rng.normal(size=n), 4), mask=gaps)
    return make_table(
        {"group": np.array(list("abcd"))[group], "x": x, "twice": twice, "same": twice}, **specs
    )


def test_relations_of_any_shape_and_of_gaps_are_kept():
    table = related()
    drawn = made(table)
    for label in "abcd":
        real, own = (t.labels("group") == label for t in (table, drawn))
        assert own.mean() == pytest.approx(real.mean(), abs=0.03)
        assert drawn.numbers("x")[own].mean() == pytest.approx(table.numbers("x")[real].mean(), abs=0.15)
        assert drawn.missing("twice")[own].mean() == pytest.approx(
            table.missing("twice")[real].mean(), abs=0.06
        )
    there = ~drawn.missing("twice")
    assert np.corrcoef(drawn.numbers("x")[there], drawn.numbers("twice")[there])[0, 1] > 0.98
    assert np.array_equal(there, ~drawn.missing("same")), "what is missing together stays so"


def test_no_rare_number_leaves_as_it_is_unless_it_may():
    table = related()
    real = table.numbers("x")
    assert not np.isin(made(table).numbers("x"), real).any()
    assert np.isin(made(table, smooth=False).numbers("x"), real).all()


@pytest.mark.parametrize("smooth", [False, True])
def test_a_number_of_many_people_is_drawn_as_often_as_it_occurs(smooth):
    x = np.where(np.random.default_rng(0).random(800) < 0.7, 0.0, np.arange(800.0))
    drawn = made(make_table({"x": x}), smooth=smooth).numbers("x")
    assert (drawn == 0).mean() == pytest.approx((x == 0).mean(), abs=0.03)
    assert drawn.max() < 2 * x.max()


def test_a_label_of_few_people_is_not_spelled_unless_the_plan_declares_it():
    labels = ["common"] * 200 + ["rare"] * 9 + ["who"]
    values = {"x": np.arange(210.0), "label": labels}
    assert set(made(make_table(values)).labels("label")) == {"common"}
    assert "who" in made(make_table(values), smooth=False).labels("label")
    declared = make_table(values, label={"categories": ["common", "rare", "who"]})
    assert {"rare", "who"} <= set(made(declared).labels("label"))
    assert {"common", "rare"} == set(made(make_table(values), minimum_leaf=5).labels("label"))


def test_a_column_of_nothing_but_rare_labels_stays_empty():
    drawn = made(make_table({"name": [f"N{i}" for i in range(90)], "x": np.arange(90.0)}), n=50)
    assert drawn.missing("name").all()


def test_somebody_with_many_rows_is_one_person():
    """Thirty rows of one person are no common value, however often they hold it."""
    x = np.append(np.arange(60.0), np.full(30, 1000.0))
    who = np.append(np.arange(60), np.full(30, 60))
    label = ["many"] * 60 + ["one"] * 30
    table = make_table({"label": label, "x": x})
    alone = made(table, minimum_leaf=10)
    assert (alone.numbers("x") == 1000).any(), "thirty rows of different people are common"
    assert "one" in alone.labels("label")
    grouped = made(table, entities=lambda: who, minimum_leaf=10)
    assert (grouped.numbers("x") == 1000).mean() < 0.01
    assert set(grouped.labels("label")) == {"many"}


def test_numbers_that_few_have_beside_a_common_one_are_left_out():
    x = np.append(np.zeros(300), [12345.0, 777.0])
    assert set(made(make_table({"x": x})).numbers("x")) == {0}
    assert 777 in made(make_table({"x": x}), smooth=False).numbers("x")


def test_numbers_of_fewer_people_than_a_leaf_holds_are_left_out():
    x = pa.array(np.full(300, 12345.0), mask=np.arange(300) > 2)
    table = make_table({"x": x, "y": np.arange(300.0)})
    assert made(table).missing("x").all()
    assert (made(table, smooth=False).numbers("x") == 12345).any()


def test_what_few_people_share_is_no_peak_of_the_density():
    x = np.append(np.arange(100) + 0.25, np.full(15, 50.123))
    assert not (made(make_table({"x": x})).numbers("x") == 50.123).any()


def test_noise_is_not_fitted():
    """Six columns of nothing but chance, which are linked all the same as published."""
    rng = np.random.default_rng(0)
    table = make_table({f"x{j}": rng.normal(size=300) for j in range(6)})
    nodes = [
        sum(len(draws.tree.left) for draws in model.values.values())
        for smooth in (True, False)
        for model in [Cart(smooth=smooth).fit(table, FitContext(rng=np.random.default_rng(0)))]
    ]
    assert nodes[0] < 10 < 60 < nodes[1]


def test_columns_named_first_are_drawn_first():
    table = related()
    model = Cart(order=("same", "x")).fit(table, FitContext(rng=np.random.default_rng(0)))
    assert [table.names[j] for j in model.values] == ["same", "x", "group", "twice"]
    with pytest.raises(DataError, match="'nobody'"):
        Cart(order=("nobody",)).fit(table, FitContext(rng=np.random.default_rng(0)))


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
