"""The Bayesian network without a budget, and with one: then it is PrivBayes."""

from __future__ import annotations

import numpy as np
import pytest

from synth_audit.dp.accountant import Accountant
from synth_audit.dp.guarantee import Budget, Mechanism, Unit
from synth_audit.generators.bayesian_network import BayesianNetwork
from synth_audit.generators.priv_bayes import PrivBayes
from synth_audit.plugins.generator import FitContext
from synth_audit.table.schema import PublicDomain

from .conftest import make_table


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
