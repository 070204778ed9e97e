import numpy as np
import pyarrow as pa
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score

from synth_audit.errors import DataError
from synth_audit.generators.vine import MIN_ROWS, Vine
from synth_audit.plugins.fitting import fit
from synth_audit.plugins.generator import FitContext
from synth_audit.stats.association import kendall

from .conftest import make_table


@pytest.fixture(scope="module")
def model(mixed):
    return Vine().fit(mixed, FitContext(rng=np.random.default_rng(0)))


@pytest.fixture(scope="module")
def drawn(model):
    return model.sample(3000, np.random.default_rng(0))


def costs(n=500, seed=0):
    """A simulated analogue of a hospital table: two sensitive columns, three close to the first, a response.

    The close ones stand between other columns and not in the order of their closeness.
    """
    rng = np.random.default_rng(seed)
    z, k = rng.normal(size=(2, n))
    noise = rng.normal(size=(5, n))
    columns = {
        "age": noise[0],
        "stay": z + 0.5 * noise[1],
        "kidney": k,
        "micro": z + 0.05 * noise[2],
        "cost": z,
        "pulse": noise[3],
        "urea": k + 0.4 * noise[4],
    }
    columns["died"] = (columns["age"] + 0.5 * k + 0.7 * rng.normal(size=n) > 0).astype(int)
    return columns


def costs_table(**kwargs):
    roles = {"cost": {"role": "sensitive"}, "kidney": {"role": "sensitive"}, "died": {"role": "target"}}
    return make_table(costs(**kwargs), **roles)


def test_types_survive(mixed, drawn):
    assert drawn.data.schema == mixed.data.schema
    assert drawn.n_rows == 3000
    assert set(drawn.labels("coded")) <= {"red", "green", "blue"}
    assert set(drawn.labels("constant_gaps")) == {"same", None}
    assert drawn.numbers("constant").tolist() == [3.5] * 3000
    assert np.isnan(drawn.numbers("nothing")).all()


def test_missing_values_keep_their_rate_and_their_pattern(mixed, drawn):
    for name in mixed.names:
        assert drawn.missing(name).mean() == pytest.approx(mixed.missing(name).mean(), abs=0.04), name
    assert np.array_equal(drawn.missing("i64"), drawn.missing("f32"))
    assert np.array_equal(drawn.missing("i64"), drawn.missing("constant_gaps"))


def test_missing_values_keep_their_relations(rng):
    z = np.random.default_rng(0).normal(size=500)
    gaps = z > 0.8
    train = make_table({"x": z, "lab": pa.array(np.abs(z), mask=gaps)})
    got = Vine().fit(train, FitContext(rng=rng)).sample(3000, rng)
    real, fake = (t.numbers("x")[t.missing("lab")].mean() for t in (train, got))
    assert fake == pytest.approx(real, abs=0.25)


@pytest.mark.parametrize("pair", [("i8", "money"), ("day", "seconds"), ("f64", "i8"), ("u16", "money")])
def test_numeric_relations_are_kept(mixed, drawn, pair):
    real, fake = (kendall(t.numbers(pair[0]), t.numbers(pair[1])) for t in (mixed, drawn))
    assert fake == pytest.approx(real, abs=0.1)


@pytest.mark.parametrize("name", ["text", "large", "flag"])
def test_labels_keep_their_relation_to_the_target(mixed, drawn, name):
    for label in {x for x in mixed.labels(name) if x is not None}:
        real, fake = (t.numbers_of(label) for t in (_Rates(mixed, name), _Rates(drawn, name)))
        assert fake == pytest.approx(real, abs=0.1), label


class _Rates:
    def __init__(self, table, name):
        self.response = table.labels("y") == "1"
        self.labels = table.labels(name)

    def numbers_of(self, label):
        return self.response[self.labels == label].mean()


def test_numbers_are_not_copied(rng):
    train = costs_table()
    got = Vine().fit(train, FitContext(rng=rng)).sample(2000, rng)
    for name in ("age", "cost", "urea"):
        real, fake = train.numbers(name), got.numbers(name)
        assert not np.isin(fake, real).any()
        assert real.max() not in fake
        nearest = np.abs(fake[:, None] - real[None, :]).min(axis=1)
        own = np.abs(real[:, None] - real[None, :])
        np.fill_diagonal(own, np.inf)
        assert np.median(nearest) > 0.3 * np.median(own.min(axis=1))


def test_a_release_is_no_closer_to_train_than_fresh_rows_are(rng):
    train, control = costs_table(), costs_table(seed=1)
    got = Vine().fit(train, FitContext(rng=rng)).sample(500, rng)
    names = ("age", "stay", "kidney", "micro", "cost", "pulse", "urea")
    real, fresh, fake = (np.column_stack([t.numbers(n) for n in names]) for t in (train, control, got))

    def closest(rows):
        return np.median(np.linalg.norm(rows[:, None] - real[None], axis=2).min(axis=1))

    assert closest(fake) > 0.85 * closest(fresh)


def test_the_order_of_algorithm_1(rng):
    order = Vine().fit(costs_table(), FitContext(rng=rng)).order
    assert order == ("kidney", "cost", "micro", "urea", "stay", "age", "pulse", "died")


def test_the_threshold_decides_who_follows(rng):
    order = Vine(threshold=0.8).fit(costs_table(), FitContext(rng=rng)).order
    assert order == ("kidney", "cost", "micro", "age", "stay", "pulse", "urea", "died")


def test_without_a_target_the_root_is_the_most_associated_column_that_is_not_sensitive(rng):
    columns = {k: v for k, v in costs().items() if k in ("cost", "micro", "stay", "age")}
    train = make_table(columns, cost={"role": "sensitive"})
    assert Vine().fit(train, FitContext(rng=rng)).order[-1] in ("micro", "stay")
    train = make_table(columns, stay={"role": "sensitive"})
    assert Vine().fit(train, FitContext(rng=rng)).order[-1] in ("micro", "cost")


def test_only_sensitive_columns_and_a_sensitive_target(rng):
    columns = {k: costs()[k] for k in ("cost", "micro", "died")}
    roles = {"cost": {"role": "sensitive"}, "micro": {"role": "sensitive"}}
    assert Vine().fit(make_table({k: columns[k] for k in roles}, **roles), FitContext(rng=rng)).order == (
        "micro",
        "cost",
    )
    both = make_table(columns, **roles, died={"role": ["sensitive", "target"]})
    assert Vine().fit(both, FitContext(rng=rng)).order == ("cost", "micro", "died")


def test_missingness_stands_before_its_first_column_and_never_at_the_root(mixed, model):
    assert model.order[-1] == "y"
    assert model.order[0] == "f64"
    gaps = [name for name in model.order if name.endswith("is missing")]
    assert len(gaps) == 3
    assert model.order.index("flag") == model.order.index("flag is missing") + 1
    assert not {"constant", "constant_gaps", "nothing", "void"} & set(model.order)


def test_a_target_with_missing_values_keeps_them_and_its_relations(rng):
    z = np.random.default_rng(0).normal(size=(2, 600))
    gaps = z[0] > 1
    train = make_table({"x": z[0], "y": pa.array(z[0] + 0.3 * z[1], mask=gaps)}, y={"role": "target"})
    model = Vine().fit(train, FitContext(rng=rng))
    assert model.order == ("x", "y is missing", "y")
    got = model.sample(3000, rng)
    assert got.missing("y").mean() == pytest.approx(gaps.mean(), abs=0.03)
    assert got.numbers("x")[got.missing("y")].mean() > 0.7
    real, fake = (kendall(t.numbers("x"), t.numbers("y")) for t in (train, got))
    assert fake == pytest.approx(real, abs=0.1)


def test_heavy_gaps_in_many_columns_leave_relations_of_the_others_alone(rng):
    noise = np.random.default_rng(0)
    z = noise.normal(size=(500, 8))
    z[:, 1] += 2 * z[:, 0]
    columns = {f"c{i}": pa.array(z[:, i], mask=noise.random(500) < (0.5 if i > 1 else 0)) for i in range(8)}
    train = make_table(columns)
    got = Vine().fit(train, FitContext(rng=rng)).sample(2000, rng)
    real, fake = (kendall(t.numbers("c0"), t.numbers("c1")) for t in (train, got))
    assert fake == pytest.approx(real, abs=0.08)


def test_a_model_shows_no_value_when_it_is_printed(model):
    assert "red" not in repr(model)
    assert len(repr(model)) < 1000


def test_truncation_cuts_what_the_later_trees_hold(rng):
    """Kidney is tied to urea; with one tree, only what both share with the response is left."""
    train = costs_table()
    full = Vine().fit(train, FitContext(rng=rng))
    tau = {
        level: kendall(*(m.sample(3000, np.random.default_rng(1)).numbers(n) for n in ("kidney", "urea")))
        for level, m in {1: full.truncated(1), 7: full}.items()
    }
    assert tau[7] == pytest.approx(kendall(train.numbers("kidney"), train.numbers("urea")), abs=0.08)
    assert tau[1] < 0.3


def test_one_fit_serves_every_level_and_is_not_changed(rng):
    train = costs_table(n=300)
    full = Vine().fit(train, FitContext(rng=rng))
    before = full.sample(40, np.random.default_rng(1)).data
    for level in (1, 3, 7):
        cut = full.truncated(level)
        fitted = Vine(truncation=level).fit(train, FitContext(rng=rng))
        rows = [m.sample(40, np.random.default_rng(1)).data for m in (cut, fitted)]
        assert rows[0].equals(rows[1])
        assert cut.order == full.order
    assert full.sample(40, np.random.default_rng(1)).data.equals(before)
    assert not full.truncated(1).sample(40, np.random.default_rng(1)).data.equals(before)
    assert full.truncated(7) is full
    cut = full.truncated(3)
    assert cut.truncated(4) is cut
    with pytest.raises(ValueError, match="at least one tree"):
        full.truncated(0)


def test_declared_bounds_hold_and_categories_stay_known(rng):
    z = np.random.default_rng(0).normal(size=300)
    share = 1 / (1 + np.exp(-3 * z))
    train = make_table(
        {"share": share, "kind": np.where(z > 0, "a", "b"), "y": z},
        share={"bounds": [0, 1]},
        kind={"categories": ["a", "b", "never"]},
    )
    got = Vine().fit(train, FitContext(rng=rng)).sample(3000, rng)
    assert got.numbers("share").min() >= 0
    assert got.numbers("share").max() <= 1
    assert set(got.labels("kind")) == {"a", "b"}


def test_a_nominal_column_carries_its_whole_effect_on_the_target(rng):
    """The middle label of the alphabet has the highest rate: its order follows the target."""
    noise = np.random.default_rng(0)
    wards = noise.choice(["a", "b", "c"], size=900)
    rates = {"a": 0.3, "b": 0.9, "c": 0.1}
    died = noise.random(900) < np.array([rates[w] for w in wards])
    train = make_table({"ward": wards, "died": died}, died={"role": "target"})
    got = Vine().fit(train, FitContext(rng=rng)).sample(4000, rng)
    for ward, rate in rates.items():
        deaths = got.labels("died")[got.labels("ward") == ward] == "true"
        assert deaths.mean() == pytest.approx(rate, abs=0.08)


@pytest.mark.parametrize("kind", ["text", "number", "constant", "gaps"])
def test_one_column(kind, rng):
    column = {
        "text": ["a", "b", "c"] * 10,
        "number": np.arange(30) / 7,
        "constant": [1.5] * 30,
        "gaps": [1.5, None, None] * 10,
    }[kind]
    train = make_table({"x": column})
    got = Vine().fit(train, FitContext(rng=rng)).sample(900, rng)
    assert got.data.schema == train.data.schema
    assert got.missing("x").mean() == pytest.approx(train.missing("x").mean(), abs=0.08)
    assert Vine().fit(train, FitContext(rng=rng)).truncated(1).sample(5, rng).n_rows == 5


def test_a_constant_target_is_no_root(rng):
    z = np.random.default_rng(0).normal(size=(2, 50))
    train = make_table({"a": z[0], "b": z[1], "y": ["always"] * 50}, y={"role": "target"})
    model = Vine().fit(train, FitContext(rng=rng))
    assert sorted(model.order) == ["a", "b"]
    assert set(model.sample(20, rng).labels("y")) == {"always"}


def test_few_rows(rng):
    wide = {f"c{i}": np.random.default_rng(i).normal(size=MIN_ROWS) for i in range(5)}
    got = Vine().fit(make_table(wide), FitContext(rng=rng)).sample(100, rng)
    assert all(np.isfinite(got.numbers(name)).all() for name in wide)
    with pytest.raises(DataError, match="too few for the generator"):
        fit(Vine(), make_table({"a": np.arange(MIN_ROWS - 1) / 3}), FitContext(rng=rng))


def test_columns_that_are_hardly_ever_present_together(rng):
    z = np.random.default_rng(0).normal(size=(200, 3))
    masks = [np.arange(200) % 2 == 0, np.arange(200) % 2 == 1, np.zeros(200, dtype=bool)]
    train = make_table({n: pa.array(z[:, i], mask=masks[i]) for i, n in enumerate("abc")})
    got = Vine().fit(train, FitContext(rng=rng)).sample(500, rng)
    assert (got.missing("a") ^ got.missing("b")).mean() > 0.9


def test_all_parametric_families_and_empirical_margins(rng):
    train = make_table({k: costs(n=200)[k] for k in ("cost", "micro", "died")}, died={"role": "target"})
    got = Vine(families="parametric", margins="empirical").fit(train, FitContext(rng=rng)).sample(500, rng)
    assert kendall(got.numbers("cost"), got.numbers("micro")) > 0.85
    assert got.numbers("cost").max() <= train.numbers("cost").max()


def test_a_forest_learns_from_the_release_what_it_learns_from_train(rng):
    train, control = costs_table(), costs_table(seed=1)
    release = Vine().fit(train, FitContext(rng=rng)).sample(500, rng)
    names = [n for n in train.names if n != "died"]

    def area(table):
        x, held_out = (np.column_stack([t.numbers(n) for n in names]) for t in (table, control))
        forest = RandomForestClassifier(100, random_state=0).fit(x, table.labels("died") == "1")
        return roc_auc_score(control.labels("died") == "1", forest.predict_proba(held_out)[:, 1])

    assert area(train) > 0.8
    assert area(release) > area(train) - 0.05


def test_there_is_no_formal_claim(mixed, rng):
    context = FitContext(rng=rng)
    Vine(truncation=1).fit(mixed, context)
    assert context.accountant.guarantee() is None
    assert "truncation limits, it does not bound" in context.accountant.why_none
