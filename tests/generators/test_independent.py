import numpy as np
import pyarrow as pa
import pytest

from synth_audit.errors import PlanError
from synth_audit.generators.independent import Independent
from synth_audit.generators.resample import Resample
from synth_audit.plugins.fitting import fit
from synth_audit.plugins.generator import FitContext
from synth_audit.registry import build

from .conftest import make_table


@pytest.fixture(scope="module")
def drawn(mixed):
    rng = np.random.default_rng(0)
    return Independent().fit(mixed, FitContext(rng=rng)).sample(4000, rng)


def test_types_survive(mixed, drawn):
    assert drawn.data.schema == mixed.data.schema
    assert drawn.n_rows == 4000


def test_missing_rates_and_frequencies_are_kept(mixed, drawn):
    for name in mixed.names:
        assert drawn.missing(name).mean() == pytest.approx(mixed.missing(name).mean(), abs=0.03), name
    for label in ("red", "green", "blue"):
        share = (mixed.labels("text") == label).mean()
        assert (drawn.labels("text") == label).mean() == pytest.approx(share, abs=0.03)


def test_distributions_are_kept_and_relations_are_not(mixed, drawn):
    for name in ("i8", "money", "nanos"):
        spread = np.std(mixed.numbers(name))
        assert np.mean(drawn.numbers(name)) == pytest.approx(np.mean(mixed.numbers(name)), abs=0.15 * spread)
        assert np.std(drawn.numbers(name)) == pytest.approx(spread, rel=0.15)
    assert np.corrcoef(mixed.numbers("i8"), mixed.numbers("money"))[0, 1] > 0.98
    assert abs(np.corrcoef(drawn.numbers("i8"), drawn.numbers("money"))[0, 1]) < 0.06


def test_numbers_are_not_copied_but_shared_values_recur(mixed, drawn):
    real = mixed.numbers("f64")
    values = drawn.numbers("f64")
    assert not np.isin(values[values != 0], real).any()
    assert (values == 0).mean() == pytest.approx((real == 0).mean(), abs=0.03)


def test_empirical_margins_stay_inside_the_sample(mixed, rng):
    values = Independent(margins="empirical").fit(mixed, FitContext(rng=rng)).sample(4000, rng).numbers("f64")
    assert values.max() <= mixed.numbers("f64").max()


def test_declared_bounds_hold(rng):
    x = np.abs(np.random.default_rng(0).normal(size=200)) / 4
    x = x[x < 1]
    train = make_table({"x": x}, x={"bounds": [0, 1]})
    values = Independent().fit(train, FitContext(rng=rng)).sample(5000, rng).numbers("x")
    assert values.min() >= 0
    assert values.max() <= 1


def test_one_row_and_identifiers(rng):
    train = make_table({"id": ["k"], "x": [1.5], "t": [None], "c": ["a"]}, id={"role": "identifier"})
    got = Independent(minimum_people=1).fit(train, FitContext(rng=rng)).sample(3, rng)
    assert got.data.to_pydict() == {"x": [1.5] * 3, "t": [None] * 3, "c": ["a"] * 3}


def test_settings_and_claim(mixed, rng):
    with pytest.raises(PlanError):
        build("generator", "independent", {"margins": "normal"})
    context = FitContext(rng=rng)
    Independent().fit(mixed, context)
    assert "without noise" in context.accountant.why_none


def test_a_label_of_few_people_is_drawn_only_where_the_plan_declares_it(rng):
    labels = ["a"] * 40 + ["b"] * 40 + ["rare"] * 19 + [None]
    for declared, kept in (({}, False), ({"categories": ["a", "b", "rare"]}, True)):
        train = make_table({"c": labels, "lone": ["x"] * 19 + [None] * 81}, c=declared)
        drawn = fit(Independent(), train, FitContext(rng=rng)).model.sample(2000, rng)
        assert ("rare" in drawn.labels("c")) == kept
        assert drawn.missing("c").mean() == pytest.approx(0.01, abs=0.01), "others take its place"
        assert drawn.missing("lone").all(), "nothing is left to draw"
        every = fit(Independent(minimum_people=1), train, FitContext(rng=rng)).model.sample(2000, rng)
        assert "rare" in every.labels("c")


def test_every_row_is_a_training_row_and_types_survive(mixed, rng):
    model = Resample().fit(mixed, FitContext(rng=rng))
    got = model.sample(1000, rng)
    assert got.data.schema == mixed.data.schema
    key = mixed.data.select(["money", "seconds", "text"])
    both = pa.concat_tables([key, got.data.select(["money", "seconds", "text"])])
    assert len(both.to_pandas().drop_duplicates()) == len(key.to_pandas().drop_duplicates())


def test_rows_are_drawn_with_replacement_and_by_the_generator(mixed):
    model = Resample().fit(mixed, FitContext(rng=np.random.default_rng(0)))
    first, again, other = (model.sample(300, np.random.default_rng(s)) for s in (1, 1, 2))
    assert first.data.equals(again.data)
    assert not first.data.equals(other.data)
    assert len(set(first.numbers("seconds"))) < 250
