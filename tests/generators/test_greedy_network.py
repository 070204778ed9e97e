"""Networks of bounded degree: their score, its sensitivity, and what is measured of them."""

from itertools import combinations, product

import numpy as np
import pytest

from synth_audit.dp.accountant import Accountant
from synth_audit.dp.guarantee import Budget, Mechanism, Unit
from synth_audit.generators._marginal import marginals
from synth_audit.generators._marginal.model import (
    DEPENDENCE_SENSITIVITY,
    Family,
    conditionals,
    dependence,
    greedy_network,
    information,
    outermost,
    tables_needed,
)
from synth_audit.generators.bayesian_network import BayesianNetwork
from synth_audit.generators.priv_bayes import PrivBayes
from synth_audit.plugins.generator import FitContext
from synth_audit.table.schema import PublicDomain

from .conftest import make_table


def test_dependence_is_none_of_independent_columns_and_all_of_equal_ones():
    assert dependence(np.outer([2, 4], [3, 6.0])) == pytest.approx(0)
    assert dependence(np.diag([50.0, 50])) == pytest.approx(50)
    assert dependence(np.zeros((3, 2))) == 0


def test_one_row_moves_the_score_by_less_than_its_sensitivity_and_nearly_by_so_much():
    worst = 0.0
    tables = [np.array(x, dtype=float).reshape(2, 3) for x in product([0, 1, 5, 1000], repeat=6)]
    for before in tables[:: len(tables) // 400]:
        for cell in product(range(2), range(3)):
            after = before.copy()
            after[cell] += 1
            worst = max(worst, abs(dependence(after) - dependence(before)))
    lonely = np.zeros((2, 2))
    lonely[0, 0] = 1e6
    other = lonely.copy()
    other[1, 1] = 1
    worst = max(worst, dependence(other) - dependence(lonely))
    assert 0.95 * DEPENDENCE_SENSITIVITY < worst <= DEPENDENCE_SENSITIVITY


def chain(n=4000):
    rng = np.random.default_rng(0)
    first = rng.integers(0, 3, n)
    second = np.where(rng.random(n) < 0.9, first, rng.integers(0, 3, n))
    third = np.where(rng.random(n) < 0.9, second, rng.integers(0, 3, n))
    return np.stack([first, second, third], axis=1)


def test_information_is_that_of_the_library_less_what_chance_adds():
    from sklearn.metrics import mutual_info_score

    rng = np.random.default_rng(0)
    one, other = rng.integers(0, 4, 500), rng.integers(0, 3, 500)
    other = np.where(rng.random(500) < 0.3, one % 3, other)
    joint = marginals.counted(np.stack([one, other], axis=1), (5, 3), (0, 1))  # a row of it is empty
    assert information(joint) == pytest.approx(500 * mutual_info_score(one, other) - 6)
    assert information(np.zeros((2, 2))) == 0


def test_parents_that_say_nothing_are_left_out_where_fewer_may_be():
    rng = np.random.default_rng(0)
    codes = np.column_stack([chain(2000)[:, :2], rng.integers(0, 9, (2000, 2))])
    found = greedy_network(
        codes,
        (3, 3, 9, 9),
        first=0,
        degree=2,
        most_cells=1000,
        choose=lambda s: int(np.argmax(s)),
        score=information,
        fewer=True,
    )
    assert {family.child: family.parents for family in found} == {0: (), 1: (0,), 2: (), 3: ()}


@pytest.mark.parametrize("most", [30, 1000])
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_every_set_of_parents_is_looked_at_once_and_offered_until_its_column_is_placed(degree, most):
    """Against a twin that makes all candidates anew in each round."""
    rng = np.random.default_rng(degree)
    sizes = (2, 3, 4, 5, 2)
    codes = np.column_stack([rng.integers(0, k, 200) for k in sizes])
    asked, offered = [], []

    def score(joint):
        asked.append(joint.shape)
        return dependence(joint)

    def choose(scores):
        offered.append(sorted(scores))
        return int(np.argmax(scores))

    found = greedy_network(codes, sizes, first=0, degree=degree, most_cells=most, choose=choose, score=score)
    for i, scores in enumerate(offered):
        placed = sorted(f.child for f in found[: i + 1])
        twin = []
        for child in set(range(5)) - set(placed):
            sets = next(
                fitting
                for count in range(min(degree, len(placed)), -1, -1)
                if (
                    fitting := [
                        s
                        for s in combinations(placed, count)
                        if count == 0 or np.prod([sizes[a] for a in (*s, child)]) <= most
                    ]
                )
            )
            twin += [dependence(marginals.counted(codes, sizes, (*s, child))) if s else 0.0 for s in sets]
        assert scores == pytest.approx(sorted(twin))
    assert len(asked) <= sum(len(list(combinations(range(5), k + 1))) for k in range(1, degree + 1))


def test_the_greedy_network_follows_a_chain():
    families = greedy_network(
        chain(), (3, 3, 3), first=0, degree=1, most_cells=100, choose=lambda s: int(np.argmax(s))
    )
    assert families == [Family(0, ()), Family(1, (0,)), Family(2, (1,))]
    assert outermost(families) == families[1:]


@pytest.mark.parametrize(
    ("sizes", "degree", "limit", "needed"),
    [
        ((2, 2, 2), 1, 100, 2),
        ((2, 2, 2), 2, 100, 1),
        ((2,), 3, 1, 1),
        ((9, 9, 2), 1, 80, 3),
        ((2, 2), 5, 4, 1),
    ],
)
def test_no_network_needs_more_tables_than_public_sizes_tell(sizes, degree, limit, needed):
    assert tables_needed(sizes, degree, limit) == needed
    rng = np.random.default_rng(0)
    codes = np.stack([rng.integers(0, k, 30) for k in sizes], axis=1)
    for _ in range(20):
        families = greedy_network(
            codes, sizes, first=0, degree=degree, most_cells=limit, choose=lambda s: int(rng.integers(len(s)))
        )
        assert len(outermost(families)) <= needed


def test_what_is_drawn_has_the_counted_shares():
    codes, sizes = chain(), (3, 3, 3)
    families = greedy_network(codes, sizes, first=1, degree=2, most_cells=100, choose=lambda s: 0)
    tables = [(f, marginals.counted(codes, sizes, f.members)) for f in outermost(families)]
    made = marginals.drawn_rows(conditionals(families, tables), 40_000, np.random.default_rng(1))
    for pair in ((0, 1), (1, 2), (0, 2)):
        one, other = (marginals.counted(x, sizes, pair) / len(x) for x in (codes, made))
        assert np.abs(one - other).sum() / 2 < 0.01


def test_what_nobody_chose_is_drawn_by_all_and_nothing_below_zero_is():
    step = marginals.Conditional((0,), (1,), np.array([[0.0, 0, 0], [1, 3, 0]]))
    made = marginals.drawn_rows(
        [marginals.Conditional((), (0,), np.array([1.0, 0])), step], 4000, np.random.default_rng(0)
    )
    assert (made[:, 0] == 0).all()
    assert np.bincount(made[:, 1], minlength=3) / 4000 == pytest.approx([0.25, 0.75, 0], abs=0.03)
    assert marginals.no_less_than_nothing(np.array([-1.0, 2])).tolist() == [0, 2]
    assert marginals.no_less_than_nothing(np.array([-1.0, -2])).tolist() == [1, 1]
    assert marginals.nearest_counts(np.array([[10.0, 2], [-3, 1]])).ravel() == pytest.approx([9, 1, 0, 0])
    assert marginals.nearest_counts(np.array([-1.0, -2])).tolist() == [1, 1]


def exclusive(n=3000):
    """A label that follows from two others together and from neither alone."""
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2, n), rng.integers(0, 2, n)
    labels = {"a": a, "b": b, "c": a ^ b}
    columns = {name: np.array(["no", "yes"])[values] for name, values in labels.items()}
    declared = {"categories": ["no", "yes"], "nullable": False}
    return make_table(columns, a=declared, b=declared, c=declared)


def fitted(kind, table, epsilon=None):
    accountant = Accountant(None if epsilon is None else Budget(epsilon, 0.0), unit=Unit.ROW)
    accountant.draws(500)
    handed = FitContext(
        rng=np.random.default_rng(0), accountant=accountant, public_domain=PublicDomain.of(table.schema)
    )
    return kind.fit(table, handed), accountant


def agreement(model):
    drawn = model.sample(2000, np.random.default_rng(1))
    a, b, c = (drawn.labels(name) == "yes" for name in "abc")
    return ((a ^ b) == c).mean()


def test_two_parents_tell_what_one_does_not():
    table = exclusive()
    assert agreement(fitted(BayesianNetwork(), table)[0]) > 0.99
    assert agreement(fitted(BayesianNetwork(degree=1), table)[0]) == pytest.approx(0.5, abs=0.05)


def test_under_a_budget_it_is_priv_bayes_of_its_degree():
    table = exclusive()
    model, accountant = fitted(BayesianNetwork(margins=0), table, epsilon=2.0)
    _, other = fitted(PrivBayes(degree=2, margins=0), table, epsilon=2.0)
    assert accountant.mechanisms == other.mechanisms
    assert {m.mechanism for m in accountant.mechanisms} == {Mechanism.EXPONENTIAL, Mechanism.LAPLACE}
    assert accountant.guarantee().epsilon <= 2.0
    assert agreement(model) > 0.9
    assert fitted(BayesianNetwork(), table)[1].guarantee() is None


def test_under_a_budget_train_does_not_decide_which_labels_are_drawn():
    """Who has a declared label is private, and noise alone may draw it: one fit in four leaves it out."""
    labels = ["no", "yes", "nobody's"]
    rows = {"a": ["no", "yes"] * 50, "b": ["no"] * 99 + ["yes"]}
    table = make_table(rows, **{n: {"categories": labels, "nullable": False} for n in rows})
    drawn = set()
    for _ in range(15):
        model, accountant = fitted(PrivBayes(margins=0), table, epsilon=0.1)
        assert accountant.guarantee().epsilon <= 0.1
        drawn |= set(model.sample(3000, np.random.default_rng(1)).labels("b"))
    assert drawn == set(labels)
