"""CART: what it keeps, what may not leave, and whom a leaf counts."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from synth_audit.errors import DataError
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
