"""MST, AIM, PrivPGD and PrivBayes: what they learn, what they pay for it, and what they refuse."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from made_tables import table_of  # made importable by conftest.py

from synth_audit import registry
from synth_audit.dp.accountant import Accountant
from synth_audit.dp.composition import ConcentratedFilter
from synth_audit.dp.guarantee import Budget, Mechanism, Unit
from synth_audit.dp.mechanisms import Noise
from synth_audit.errors import BudgetSpent
from synth_audit.generators._marginal.marginals import NoisyCounts, SingleColumns
from synth_audit.table.schema_inference import ColumnSpec

from .conftest import context

ALL = pytest.mark.parametrize("name", ["mst", "aim", "priv_pgd"])
PURE_TOO = pytest.mark.parametrize("name", ["mst", "aim", "priv_pgd", "priv_bayes"])
LABELS = tuple("abcdefgh")
DECLARED = {
    "x": ColumnSpec(kind="integer", bounds=(0, 9), nullable=False),
    "y": ColumnSpec(kind="continuous", bounds=(0, 100), precision=0.5),
    "label": ColumnSpec(kind="categorical", categories=LABELS, nullable=False),
    "more": ColumnSpec(kind="categorical", categories=LABELS, nullable=False),
}
QUICK = {"aim": {"rounds": 4, "iterations": 60}, "mst": {"iterations": 600}, "priv_pgd": {"particles": 1000}}


def rows(n=1500, seed=0, specs=DECLARED):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 10, n)
    y = pa.array(np.clip(np.rint(2 * (10 * x + rng.random(n) * 10)) / 2, 0, 100), mask=rng.random(n) < 0.1)
    label = np.array(LABELS)[np.minimum(x, 7)]
    more = np.where(rng.random(n) < 0.7, label, rng.choice(list(LABELS), n))
    return table_of({"x": x, "y": y, "label": label, "more": more}, specs)


def made(name, table, handed, n=4000, **settings):
    model = registry.build("generator", name, QUICK.get(name, {}) | settings).fit(table, handed)
    return model.sample(n, np.random.default_rng(1))


def distance(one, other, *names):
    shares = [
        t.to_pandas().astype(object).value_counts([*names], normalize=True, dropna=False)
        for t in (one, other)
    ]
    return shares[0].sub(shares[1], fill_value=0).abs().sum() / 2


@PURE_TOO
@pytest.mark.parametrize("epsilon", [None, 1e5])
def test_without_noise_they_draw_the_pairs_of_train(name, epsilon):
    table = rows()
    drawn = made(name, table, context(table, epsilon), n=20_000)
    assert distance(table, drawn, "x", "label") < (0.2 if name == "priv_pgd" else 0.03)
    assert np.mean(drawn.missing("y")) == pytest.approx(np.mean(table.missing("y")), abs=0.02)
    known = ~drawn.missing("y")
    assert np.corrcoef(drawn.numbers("x")[known], drawn.numbers("y")[known])[0, 1] > 0.9


@pytest.mark.parametrize(
    "name", [pytest.param("mst", marks=pytest.mark.slow), "aim", "priv_pgd", "priv_bayes"]
)
def test_little_budget_costs_more_than_much(name):
    table = rows(500)
    far, near = (distance(table, made(name, table, context(table, e)), "x", "label") for e in (0.02, 50.0))
    assert near < 0.25 < 0.3 < far


@ALL
@pytest.mark.parametrize("most", [1, 3])
def test_what_is_claimed_is_nearly_all_of_the_budget_and_no_more(name, most):
    table = rows(60)
    handed = context(table, 1.0, unit=Unit.ENTITY, rows=most)
    made(name, table, handed, n=1)
    guarantee = handed.accountant.guarantee()
    assert 0.9 < guarantee.epsilon <= 1.0
    assert guarantee.covers_entities
    kinds = [m.mechanism for m in guarantee.mechanisms]
    expected = {
        "mst": [Mechanism.GAUSSIAN, Mechanism.EXPONENTIAL, Mechanism.GAUSSIAN, Mechanism.GAUSSIAN],
        "aim": [Mechanism.GAUSSIAN, Mechanism.GAUSSIAN, Mechanism.CONCENTRATED],
        "priv_pgd": [Mechanism.GAUSSIAN],
    }
    assert kinds == expected[name]


def test_the_noise_of_mst_is_what_was_paid_for_and_no_seed_moves_it(monkeypatch):
    table, scales = rows(2000), []

    def gaussian(scale, shape):
        scales.append(scale)
        return np.zeros(shape)

    with monkeypatch.context() as patch:
        patch.setattr(Noise, "gaussian", staticmethod(gaussian))
        handed = context(table, 1.0)
        made("mst", table, handed)
    values, _, columns, pairs = handed.accountant.mechanisms
    counted = [values.noise_multiplier] * values.count
    assert scales == counted + [columns.noise_multiplier] * (columns.count + pairs.count)
    assert (values.count, columns.count, pairs.count) == (2, 4, 3)
    one, other = (made("mst", table, context(table, 1.0)) for _ in range(2))
    assert one.fingerprint != other.fingerprint


def uneven(n=4000):
    """Codes: the first tells the second and a rare label; the last follows the second, or that label."""
    rng = np.random.default_rng(0)
    cause = rng.integers(0, 4, n)
    second = 2 * cause + rng.integers(0, 2, n)
    label = (cause == 0) & (rng.random(n) < 0.6)
    last = np.where(rng.random(n) < 0.5, second, rng.integers(0, 6, n))
    last = np.where(label, 6 + rng.integers(0, 2, n), np.minimum(last, 5))
    return np.stack([cause, second, label, last], axis=1), (4, 8, 2, 8)


@pytest.mark.parametrize(("score", "joined"), [("share", (2, 3)), ("rows", (1, 3))])
def test_mst_joins_what_tells_an_uneven_label_by_shares_and_not_by_rows(score, joined):
    codes, sizes = uneven()
    single = SingleColumns.of(NoisyCounts(codes, sizes, context(rows(10))), None)
    pairs = registry.build("generator", "mst", {"score": score})._pairs(single, None)
    assert joined in pairs
    assert len(pairs) == 3


@pytest.mark.parametrize("score", ["share", "rows"])
def test_no_score_of_mst_moves_by_more_than_its_sensitivity(score, monkeypatch):
    """One more row, with the single columns as they were measured; all scores are handed over at first."""
    codes, sizes = uneven(300)
    handed = []
    monkeypatch.setattr(
        "synth_audit.generators._marginal.marginals.chosen", lambda *of: handed.append(of) or 0
    )
    generator = registry.build("generator", "mst", {"score": score})
    one = SingleColumns.of(NoisyCounts(codes, sizes, context(rows(10))), None)
    for row in ([0, 0, 0, 0], [3, 7, 1, 0], [1, 2, 1, 7]):
        other = replace(one, rows=replace(one.rows, codes=np.vstack([codes, row])))
        handed.clear()
        for single in (one, other):
            generator._pairs(single, 1.0)
        (before, _, sensitivity), (after, *_) = handed[0], handed[3]
        assert 0 < np.abs(before - after).max() <= sensitivity + 1e-9


def test_priv_pgd_measures_all_pairs_with_the_noise_it_paid_for(monkeypatch):
    table, scales = rows(200), []

    def gaussian(scale, shape):
        scales.append((scale, len(shape)))
        return np.zeros(shape)

    monkeypatch.setattr(Noise, "gaussian", staticmethod(gaussian))
    handed = context(table, 1.0)
    made("priv_pgd", table, handed)
    [pairs] = handed.accountant.mechanisms
    assert scales == [(pairs.noise_multiplier, 2)] * 6
    assert pairs.count == 6


def test_all_that_aim_measures_was_paid_for_at_the_noise_it_has(monkeypatch):
    table, scales, paid = rows(2000), [], []

    def gaussian(scale, shape):
        scales.append(float(scale))
        return np.zeros(shape)

    pay = ConcentratedFilter.gaussian
    with monkeypatch.context() as patch:
        patch.setattr(Noise, "gaussian", staticmethod(gaussian))
        patch.setattr(
            ConcentratedFilter, "gaussian", lambda self, noise: (paid.append(noise), pay(self, noise))
        )
        handed = context(table, 1.0)
        made("aim", table, handed)
    values, columns, share = handed.accountant.mechanisms
    counted = [values.noise_multiplier] * values.count
    assert scales == counted + [columns.noise_multiplier] * columns.count + paid
    rho = share.noise_multiplier**-2 / 2
    assert 0.8 * rho < sum(noise**-2 / 2 for noise in paid) <= 0.9001 * rho


def test_aim_ends_where_its_share_does(monkeypatch):
    shares = []
    begin = ConcentratedFilter.__init__
    monkeypatch.setattr(
        ConcentratedFilter, "__init__", lambda self, rho: (shares.append(self), begin(self, rho))[1]
    )
    table = rows(100)
    made("aim", table, context(table, 2.0))
    [share] = shares
    assert share.left == pytest.approx(0, abs=1e-6 * share.rho)


@PURE_TOO
def test_nothing_is_looked_at_before_it_is_paid_for(name):
    table = rows(50)
    spent = Accountant(Budget(1.0, 1e-5), unit=Unit.ROW)
    spent.pure(1.0, what="another fit")
    with pytest.raises(BudgetSpent):
        made(name, table, replace(context(table), accountant=spent))
    assert len(spent.mechanisms) == 1


@PURE_TOO
@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("epsilon", [None, 1.0])
@pytest.mark.parametrize("columns", [("x", "y"), ("label",), ("label", "more")])
def test_few_rows_few_columns_and_a_draw_of_one_row(name, n, epsilon, columns):
    data = rows(n).data.select(list(columns))
    table = table_of(data, {c: DECLARED[c] for c in columns})
    handed = context(table, epsilon)
    assert made(name, table, handed, n=1).n_rows == 1
    assert epsilon is None or handed.accountant.guarantee().epsilon <= epsilon


@pytest.mark.parametrize("name", ["mst", "aim"])
def test_ten_thousand_labels_are_merged_where_noise_hides_them(name):
    labels = tuple(f"L{i}" for i in range(10_000))
    code = np.where(np.arange(2000) % 2, "L7", np.array(labels)[np.arange(2000)])
    data = pa.table({"code": code, "x": np.arange(2000) % 10})
    wide = ColumnSpec(kind="categorical", categories=labels, nullable=False)
    specs = {"code": wide, "x": DECLARED["x"]}
    table = table_of(data, specs)
    drawn = made(name, table, context(table, 5.0), n=2000)
    assert 0.2 < np.mean(drawn.labels("code") == "L7") < 0.8
    assert len(set(drawn.labels("code"))) > 100


def with_an_atom(n=3000):
    """Nine in ten have 0, one in twenty 40,000, the others anything between the declared ends."""
    rng = np.random.default_rng(0)
    gain = np.where(rng.random(n) < 0.9, 0, rng.integers(1, 100_000, n))
    gain[: n // 20] = 40_000
    data = pa.table({"gain": gain, "rich": np.where(gain > 0, "yes", "no")})
    yes_no = ColumnSpec(kind="categorical", categories=("yes", "no"), nullable=False)
    specs = {"gain": ColumnSpec(kind="integer", bounds=(0, 99_999), nullable=False), "rich": yes_no}
    return table_of(data, specs)


@pytest.mark.parametrize("name", ["mst", "aim", "priv_bayes"])
def test_values_that_many_rows_share_are_drawn_as_often_and_only_when_bought(name):
    table, shares = with_an_atom(), {}
    for margins in (0.0, 0.2):
        handed = context(table, 20.0)
        model = registry.build("generator", name, QUICK.get(name, {}) | {"margins": margins}).fit(
            table, handed
        )
        gain = model.sample(4000, np.random.default_rng(1)).numbers("gain")
        shares[margins] = [np.mean(gain == value) for value in (0, 40_000)]
        assert handed.accountant.guarantee().epsilon <= 20.0
        bought = [m.what for m in handed.accountant.mechanisms]
        assert ("counts of the values of each column" in bought) == (margins > 0)
    real = [np.mean(table.numbers("gain") == value) for value in (0, 40_000)]
    assert shares[0.2] == pytest.approx(real, abs=0.02)
    assert max(shares[0.0]) < 0.1, "a bin of equal width hides that its rows have one value"


def test_what_is_drawn_from_bought_bins_is_kept_with_the_model(tmp_path):
    table = with_an_atom(400)
    generator = registry.build("generator", "mst", {})
    model = generator.fit(table, context(table, 2.0))
    model.save(tmp_path)
    one, other = (m.sample(300, np.random.default_rng(3)) for m in (model, generator.load(tmp_path)))
    assert one.fingerprint == other.fingerprint


def test_a_column_that_is_too_wide_for_any_pair_is_counted_alone():
    table = rows(300)
    handed = context(table, 20.0)
    made("priv_pgd", table, handed, most_cells=85)
    [tables] = handed.accountant.mechanisms
    assert tables.count == 4, "three pairs of x, label and more; y alone"


def test_aim_keeps_its_model_small():
    table = rows(800)
    model = registry.build("generator", "aim", {"most_cells": 300, **QUICK["aim"]}).fit(
        table, context(table, 20.0)
    )
    assert sum(step.weights.size for step in model.steps) <= 300
