"""PrivBayes: what it learns, what it pays for it, and what it refuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from synth_audit import registry
from synth_audit.dp.accountant import Accountant
from synth_audit.dp.guarantee import Budget, Mechanism, Neighbouring, Unit
from synth_audit.dp.mechanisms import Noise
from synth_audit.errors import BudgetSpent, DataError, PlanError
from synth_audit.plugins.generator import FitContext
from synth_audit.table.schema import PublicDomain
from synth_audit.table.schema_inference import ColumnSpec, infer_schema
from synth_audit.table.table import read_table

LABELS = tuple("abcdefgh")
DECLARED = {
    "x": ColumnSpec(kind="integer", bounds=(0, 9), nullable=False),
    "y": ColumnSpec(kind="continuous", bounds=(0, 100), precision=0.5),
    "label": ColumnSpec(kind="categorical", categories=LABELS, nullable=False),
    "more": ColumnSpec(kind="categorical", categories=LABELS, nullable=False),
}


def rows(n=2000, seed=0, specs=DECLARED):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 10, n)
    y = pa.array(np.clip(np.rint(2 * (10 * x + rng.random(n) * 10)) / 2, 0, 100), mask=rng.random(n) < 0.1)
    label = np.array(LABELS)[np.minimum(x, 7)]
    more = np.where(rng.random(n) < 0.7, label, rng.choice(list(LABELS), n))
    data = pa.table({"x": x, "y": y, "label": label, "more": more})
    return read_table(data, infer_schema(data, specs), where="train")


def context(table, epsilon=None, *, delta=0.0, seed=0, **terms):
    budget = None if epsilon is None else Budget(epsilon, delta)
    accountant = Accountant(budget, **{"unit": Unit.ROW} | terms)
    accountant.draws(500)
    domain = PublicDomain.of(table.schema)
    return FitContext(rng=np.random.default_rng(seed), accountant=accountant, public_domain=domain)


def made(table, handed, n=4000, **settings):
    model = registry.build("generator", "priv_bayes", settings).fit(table, handed)
    return model.sample(n, np.random.default_rng(1))


def shares_of(table, a, b):
    found = table.to_pandas().astype(object)
    return found.value_counts([a, b], normalize=True, dropna=False)


def distance(one, other, a, b):
    return shares_of(one, a, b).sub(shares_of(other, a, b), fill_value=0).abs().sum() / 2


@pytest.mark.parametrize("epsilon", [None, 1e6])
def test_without_noise_it_draws_the_pairs_of_train(epsilon):
    table = rows()
    drawn = made(table, context(table, epsilon), n=20_000)
    assert distance(table, drawn, "x", "label") < 0.02
    assert np.mean(drawn.missing("y")) == pytest.approx(np.mean(table.missing("y")), abs=0.01)
    known = ~drawn.missing("y")
    assert np.corrcoef(drawn.numbers("x")[known], drawn.numbers("y")[known])[0, 1] > 0.98


def test_what_is_bought_does_not_follow_from_what_counts_returned():
    """Else its price would tell of the rows, and none of what is composed was fixed beforehand."""
    bounds = ColumnSpec(kind="integer", bounds=(0, 999), nullable=False)
    bought = []
    for values in (np.arange(1000), np.full(1000, 500)):
        data = pa.table({"a": values, "b": values, "c": values})
        table = read_table(data, infer_schema(data, dict.fromkeys("abc", bounds)), where="train")
        handed = context(table, 1e3)
        made(table, handed, n=1, most_cells=400)
        bought.append(handed.accountant.guarantee().mechanisms)
    assert bought[0] == bought[1]
    assert bought[0][-1].count == 3, "as tables of 25 times 25 cells would take, whichever there are"


def test_little_budget_costs_more_than_much():
    table = rows(300)
    far, near = (distance(table, made(table, context(table, e)), "x", "label") for e in (0.02, 50.0))
    assert near < 0.1 < 0.3 < far


@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("relation", Neighbouring)
@pytest.mark.parametrize("most", [1, 3])
def test_it_spends_the_whole_of_epsilon_and_no_more(delta, relation, most):
    table = rows(50)
    unit = {"unit": Unit.ENTITY, "rows": most, "neighbouring": relation}
    handed = context(table, 1.5, delta=delta, **unit)
    made(table, handed, degree=2, n=1)
    guarantee = handed.accountant.guarantee()
    assert guarantee.epsilon <= 1.5
    values, choice, tables = guarantee.mechanisms
    size = most * (2 if relation is Neighbouring.REPLACE else 1)
    assert choice.mechanism is Mechanism.EXPONENTIAL
    assert (values.mechanism, values.count) == (Mechanism.LAPLACE, 2)
    part = values.count / values.noise_multiplier * size
    assert part == pytest.approx(0.2 * 1.5, rel=0.01)
    assert choice.count * choice.epsilon * size == pytest.approx(0.3 * (1.5 - part), rel=1e-3)
    assert tables.count == 2, "three columns' families lie in one table"
    assert tables.count / tables.noise_multiplier * size == pytest.approx(0.7 * (1.5 - part), rel=1e-3)


def test_every_table_has_the_noise_that_was_paid_for_and_no_seed_moves_it(monkeypatch):
    table, scales = rows(2000), []

    def laplace(scale, shape):
        scales.append(scale)
        return np.zeros(shape)

    with monkeypatch.context() as patch:
        patch.setattr(Noise, "laplace", staticmethod(laplace))
        handed = context(table, 1.0)
        made(table, handed)
    values, _, tables = handed.accountant.mechanisms
    expected = [values.noise_multiplier] * values.count + [tables.noise_multiplier] * tables.count
    assert scales == expected
    one, other = (made(table, context(table, 1.0)) for _ in range(2))
    assert one.fingerprint != other.fingerprint


def test_nothing_is_looked_at_before_it_is_paid_for():
    table = rows(50)
    spent = Accountant(Budget(1.0), unit=Unit.ROW)
    spent.pure(1.0, what="another fit")
    with pytest.raises(BudgetSpent):
        made(table, replace(context(table), accountant=spent))
    assert len(spent.mechanisms) == 1


def test_a_domain_that_is_read_off_the_rows_ends_every_claim():
    table = rows(100, specs={name: DECLARED[name] for name in ("x", "y", "label")})
    handed = context(table, 1.0)
    made(table, handed)
    assert handed.accountant.guarantee() is None
    assert "inferred bounds" in handed.accountant.why_none


def test_labels_that_nobody_has_are_drawn_under_a_budget_only():
    table = rows(100).take(np.arange(20))
    few = set(table.labels("label"))
    seen = [set(made(table, context(table, 0.01)).labels("label")) for _ in range(12)]
    assert any(labels - few for labels in seen)  # which ones is up to the noise
    assert set(made(rows(100), context(rows(100))).labels("label")) == set(rows(100).labels("label"))


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("epsilon", [None, 1.0])
@pytest.mark.parametrize("columns", [("x", "y"), ("label",), ("label", "more")])
def test_few_rows_few_columns_and_a_draw_of_one_row(n, epsilon, columns):
    whole = rows(n)
    data = whole.data.select(list(columns))
    table = read_table(data, infer_schema(data, {c: DECLARED[c] for c in columns}), where="train")
    assert made(table, context(table, epsilon), n=1, degree=3).n_rows == 1


def test_ten_thousand_labels_get_no_parents_where_a_table_would_be_too_large():
    labels = tuple(f"L{i}" for i in range(10_000))
    data = pa.table({"code": list(labels[:40]), "x": list(range(10)) * 4, "other": list(labels[:40])})
    wide = ColumnSpec(kind="categorical", categories=labels, nullable=False)
    specs = {"code": wide, "other": wide, "x": DECLARED["x"]}
    table = read_table(data, infer_schema(data, specs), where="train")
    handed = context(table, 1.0)
    drawn = made(table, handed, n=50)
    assert drawn.n_rows == 50
    assert handed.accountant.mechanisms[1].count == 3
    assert handed.accountant.guarantee().epsilon <= 1.0


def test_free_text_is_refused_by_name():
    notes = [f"patient {i} came in on day {i} with pain" for i in range(60)]
    data = pa.table({"notes": notes, "x": np.arange(60.0)})
    table = read_table(data, infer_schema(data), where="train")
    with pytest.raises(DataError, match="'notes'"):
        made(table, context(table))


@pytest.mark.parametrize("odd", [{"degree": 0}, {"bins": 0}, {"share": 0}, {"share": 1}, {"most_cells": 0}])
def test_settings_that_make_no_sense_are_refused(odd):
    with pytest.raises(PlanError):
        registry.build("generator", "priv_bayes", odd)
