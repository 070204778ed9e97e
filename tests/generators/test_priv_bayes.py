"""PrivBayes: what it learns, what it pays for it, and what it refuses."""

import numpy as np
import pyarrow as pa
import pytest
from made_tables import table_of  # made importable by conftest.py

from synth_audit import registry
from synth_audit.dp.guarantee import Mechanism, Neighbouring, Unit
from synth_audit.dp.mechanisms import Noise
from synth_audit.table.schema_inference import ColumnSpec

from .conftest import context
from .test_marginal_generators import DECLARED, rows


def made(table, handed, n=4000, **settings):
    model = registry.build("generator", "priv_bayes", settings).fit(table, handed)
    return model.sample(n, np.random.default_rng(1))


def test_what_is_bought_does_not_follow_from_what_counts_returned():
    """Else its price would tell of the rows, and none of what is composed was fixed beforehand."""
    bounds = ColumnSpec(kind="integer", bounds=(0, 999), nullable=False)
    bought = []
    for values in (np.arange(1000), np.full(1000, 500)):
        table = table_of({"a": values, "b": values, "c": values}, dict.fromkeys("abc", bounds))
        handed = context(table, 1e3, delta=0.0)
        made(table, handed, n=1, most_cells=400)
        bought.append(handed.accountant.guarantee().mechanisms)
    assert bought[0] == bought[1]
    assert bought[0][-1].count == 3, "as tables of 25 times 25 cells would take, whichever there are"


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
        handed = context(table, 1.0, delta=0.0)
        made(table, handed)
    values, _, tables = handed.accountant.mechanisms
    expected = [values.noise_multiplier] * values.count + [tables.noise_multiplier] * tables.count
    assert scales == expected
    one, other = (made(table, context(table, 1.0, delta=0.0)) for _ in range(2))
    assert one.fingerprint != other.fingerprint


def test_labels_that_nobody_has_are_drawn_under_a_budget_only():
    table = rows(100).take(np.arange(20))
    few = set(table.labels("label"))
    seen = [set(made(table, context(table, 0.01, delta=0.0)).labels("label")) for _ in range(12)]
    assert any(labels - few for labels in seen)  # which ones is up to the noise
    table = rows(100)
    assert set(made(table, context(table)).labels("label")) == set(table.labels("label"))


def test_ten_thousand_labels_get_no_parents_where_a_table_would_be_too_large():
    labels = tuple(f"L{i}" for i in range(10_000))
    data = pa.table({"code": list(labels[:40]), "x": list(range(10)) * 4, "other": list(labels[:40])})
    wide = ColumnSpec(kind="categorical", categories=labels, nullable=False)
    specs = {"code": wide, "other": wide, "x": DECLARED["x"]}
    table = table_of(data, specs)
    handed = context(table, 1.0, delta=0.0)
    drawn = made(table, handed, n=50)
    assert drawn.n_rows == 50
    assert handed.accountant.mechanisms[1].count == 3
    assert handed.accountant.guarantee().epsilon <= 1.0
