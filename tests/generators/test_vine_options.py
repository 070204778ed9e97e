"""The vine with a root per class, other topologies, orders and families; as text; given values."""

import pickle
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest

from synth_audit.errors import DataError
from synth_audit.execution.context import RunContext
from synth_audit.generators._model_files import read_model, write_model
from synth_audit.generators.vine import Vine
from synth_audit.generators.vine.columns import (
    central,
    fewest_class_rows,
    least_important_first,
    sensitive_first,
)
from synth_audit.plugins.fitting import FitRecipe, fit_shared
from synth_audit.plugins.generator import FitContext, Truncatable
from synth_audit.registry import build, config_of
from synth_audit.stats.association import kendall

from .conftest import make_table

SETTINGS = [
    {"root": "simplified"},
    {"root": "per_class"},
    {"topology": "r_vine"},
    {"topology": "r_vine_star1"},
    {"order": "importance"},
    {"families": "nonparametric"},
    {"criterion": "aic", "margins": "empirical"},
]


def ident(settings):
    return "-".join(map(str, settings.values()))


def two_faced(n=800, seed=0, **more):
    """Columns that are tied one way in one class and the other way in the other; ``s`` is the secret."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.4
    s, noise = rng.normal(size=(2, n))
    columns = {"s": s, "a": np.where(y, s, -s) + 0.5 * noise, "b": rng.normal(size=n) + y, "y": y}
    return make_table(columns | more, s={"role": "sensitive"}, y={"role": "target"})


def slopes(table):
    """τ of s and a in each class."""
    y = table.labels("y") == "true"
    return [kendall(table.numbers("s")[k], table.numbers("a")[k]) for k in (~y, y)]


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(s, marks=[pytest.mark.slow] * (ident(s) in ("importance", "nonparametric", "r_vine")))
        for s in SETTINGS
    ],
    ids=ident,
)
def test_every_option_keeps_types_gaps_and_bits(settings, mixed, tmp_path):
    """All kinds and storages, zero-inflated and constant columns, missing values."""
    vine = build("generator", "vine", settings)
    assert build("generator", "vine", config_of(vine)) == vine
    model = vine.fit(mixed, FitContext(rng=np.random.default_rng(0)))
    assert model.per_class == (settings.get("topology") is None and settings.get("root") != "simplified")
    drawn = model.sample(2000, np.random.default_rng(1))
    assert drawn.data.schema == mixed.data.schema
    for name in mixed.names:
        assert drawn.missing(name).mean() == pytest.approx(mixed.missing(name).mean(), abs=0.05), name
    zeros = (drawn.numbers("f64") == 0).mean()
    assert zeros == pytest.approx((mixed.numbers("f64") == 0).mean(), abs=0.05)
    assert kendall(drawn.numbers("i8"), drawn.numbers("day")) > 0.8
    write_model(tmp_path, model)
    again = [pickle.loads(pickle.dumps(model)), read_model(tmp_path, type(model))]  # noqa: S301
    few = model.sample(200, np.random.default_rng(1)).data
    for copy in again:
        assert copy.sample(200, np.random.default_rng(1)).data.equals(few)
        assert copy.schema == model.schema
        cut = [m.truncated(2).sample(30, np.random.default_rng(1)).data for m in (copy, model)]
        assert cut[0].equals(cut[1])


@pytest.mark.parametrize("settings", SETTINGS, ids=ident)
def test_one_fit_serves_every_level(settings, rng):
    vine = build("generator", "vine", settings | {"truncation": 2})
    train = two_faced(n=300)
    assert isinstance(vine, Truncatable)
    whole = vine.untruncated()
    assert whole.truncation is None
    assert config_of(whole) | {"truncation": 2} == config_of(vine)
    fitted = vine.fit(train, FitContext(rng=np.random.default_rng(3)))
    model = whole.fit(train, FitContext(rng=np.random.default_rng(3)))
    rows = [m.sample(50, np.random.default_rng(1)).data for m in (fitted, model.truncated(2))]
    assert rows[0].equals(rows[1])
    assert fitted.truncated(2) is fitted
    assert fitted.truncated(5) is fitted
    assert model.truncated(3) is model
    shared = fit_shared(FitRecipe(vine), train, 3, RunContext()).model
    assert shared.sample(50, np.random.default_rng(1)).data.equals(rows[0])
    with pytest.raises(ValueError, match="at least one tree"):
        model.truncated(0)


def test_a_root_per_class_keeps_what_differs_between_classes_and_the_simplified_vine_cannot(rng):
    train = two_faced()
    real = slopes(train)
    assert real[0] < -0.6
    assert real[1] > 0.6
    drawn = {
        r: Vine(root=r).fit(train, FitContext(rng=rng)).sample(3000, rng)
        for r in ("per_class", "simplified", "auto")
    }
    assert slopes(drawn["per_class"]) == pytest.approx(real, abs=0.06)
    assert slopes(drawn["auto"]) == pytest.approx(real, abs=0.06)
    assert abs(np.subtract(*slopes(drawn["simplified"]))) < 0.3
    for table in drawn.values():
        assert (table.labels("y") == "true").mean() == pytest.approx(0.4, abs=0.04)


def test_one_tree_leaves_columns_independent_within_a_class_and_the_second_does_not(rng):
    model = Vine(root="per_class").fit(two_faced(), FitContext(rng=rng))
    assert model.order == ("s", "a", "b", "y")
    one, two, three = (model.truncated(t).sample(4000, np.random.default_rng(1)) for t in (1, 2, 3))
    assert slopes(one) == pytest.approx([0, 0], abs=0.05)
    assert slopes(two) == pytest.approx([0, 0], abs=0.05)  # b is the first root within a class, a the second
    assert abs(slopes(three)[0]) > 0.6
    y = one.labels("y") == "true"
    assert one.numbers("b")[y].mean() - one.numbers("b")[~y].mean() == pytest.approx(1, abs=0.15)


@pytest.mark.parametrize("missing", [0.02, 0.3])
def test_missing_targets_are_a_class_if_many_and_fall_on_all_if_few(missing, rng):
    base = two_faced()
    gaps = np.random.default_rng(5).random(800) < missing
    y = pa.array(base.labels("y") == "true", mask=gaps)
    b = np.where(gaps, 9.0, 0.0) + base.numbers("b")
    train = two_faced(y=y, b=b)
    model = Vine(root="per_class").fit(train, FitContext(rng=rng))
    assert model.order == ("s", "a", "b", "y is missing", "y")
    drawn = model.sample(4000, rng)
    assert drawn.missing("y").mean() == pytest.approx(gaps.mean(), abs=0.03)
    moved = drawn.numbers("b")[drawn.missing("y")].mean() > 5
    assert moved == (missing > 0.1)
    assert slopes(drawn) == pytest.approx(slopes(train), abs=0.08)


def test_few_rows_in_a_class_mean_the_simplified_vine_or_a_clear_refusal(rng):
    labels = np.array(["often"] * 380 + ["seldom"] * 20)
    train = two_faced(n=400, y=np.random.default_rng(0).permutation(labels))
    assert not Vine().fit(train, FitContext(rng=rng)).per_class
    with pytest.raises(DataError, match="fewer than 30 rows") as refused:
        Vine(root="per_class").fit(train, FitContext(rng=rng))
    assert "seldom" not in str(refused.value)


@pytest.mark.parametrize("fewest", [29, 30])
def test_a_class_needs_thirty_rows_for_a_vine_of_its_own(fewest, rng):
    y = np.arange(90) < fewest
    assert Vine().fit(two_faced(n=90, y=y), FitContext(rng=rng)).per_class == (fewest == 30)


def test_a_class_needs_rows_for_each_other_column_and_six_where_nobody_asked(rng):
    assert [fewest_class_rows(d, "per_class") for d in (1, 30, 31, 200)] == [30, 30, 31, 200]
    assert [fewest_class_rows(d, "auto") for d in (1, 5, 6, 30)] == [30, 30, 36, 180]
    noise = np.random.default_rng(1).normal(size=(30, 120))
    for root, fewest, n, enough in (
        ("per_class", 32, 29, True),
        ("per_class", 32, 30, False),
        ("auto", 36, 3, True),
        ("auto", 35, 3, False),
    ):  # besides s, a and b
        columns = {f"x{i}": noise[i] for i in range(n)}
        train = two_faced(n=120, y=np.arange(120) < fewest, **columns)
        vine = Vine(root=root, truncation=1)
        if enough or root == "auto":
            assert vine.fit(train, FitContext(rng=rng)).per_class == enough
        else:
            with pytest.raises(DataError, match=f"fewer than {n + 3} rows"):
                vine.fit(train, FitContext(rng=rng))


def test_a_root_per_class_needs_a_label_with_several_values(rng):
    columns = {"a": np.arange(100) / 7, "b": np.sin(np.arange(100.0)), "y": np.arange(100) / 3}
    for specs in ({}, {"y": {"role": "target"}}):
        train = make_table(columns, **specs)
        assert not Vine().fit(train, FitContext(rng=rng)).per_class
        with pytest.raises(DataError, match="needs a categorical or boolean target"):
            Vine(root="per_class").fit(train, FitContext(rng=rng))
    train = make_table(columns | {"y": ["same"] * 100}, y={"role": "target"})
    assert not Vine().fit(train, FitContext(rng=rng)).per_class
    with pytest.raises(ValueError, match="c_vine alone"):
        Vine(root="per_class", topology="r_vine")
    assert not Vine(topology="r_vine_star1").fit(two_faced(n=100), FitContext(rng=rng)).per_class


def test_a_column_that_is_constant_or_gone_in_one_class(rng):
    base = two_faced()
    y = base.labels("y") == "true"
    train = two_faced(
        still=np.where(y, 2.5, base.numbers("b")),
        gone=pa.array(base.numbers("s") ** 2, mask=y),
        word=np.where(y, "x", np.where(base.numbers("a") > 0, "x", "z")),
    )
    drawn = Vine(root="per_class").fit(train, FitContext(rng=rng)).sample(2000, rng)
    y = drawn.labels("y") == "true"
    assert set(drawn.numbers("still")[y]) == {2.5}
    assert len(set(drawn.numbers("still")[~y])) > 100
    assert np.array_equal(drawn.missing("gone"), y)
    assert set(drawn.labels("word")[y]) == {"x"}
    assert set(drawn.labels("word")[~y]) == {"x", "z"}


def test_several_classes_and_a_sensitive_target(rng):
    noise = np.random.default_rng(0)
    y = noise.choice(["u", "v", "w"], size=600, p=[0.5, 0.3, 0.2])
    x = noise.normal(size=600) + 3.0 * (y == "w")
    train = make_table({"x": x, "z": -x, "y": y}, y={"role": ["sensitive", "target"]})
    model = Vine().fit(train, FitContext(rng=rng))
    assert model.order[-1] == "y"
    assert len(model.joints) == 3
    drawn = model.sample(3000, rng)
    for label in "uvw":
        here = drawn.labels("y") == label
        assert here.mean() == pytest.approx((y == label).mean(), abs=0.04)
        assert drawn.numbers("x")[here].mean() == pytest.approx(x[y == label].mean(), abs=0.25)


def test_collinear_columns_and_the_smallest_tables(rng):
    z = np.random.default_rng(0).normal(size=300)
    y = np.random.default_rng(1).random(300) < 0.5
    train = make_table({"a": z, "b": 2 * z, "c": -z, "d": z + 1, "y": y}, y={"role": "target"})
    for root in ("simplified", "per_class"):
        drawn = Vine(root=root).fit(train, FitContext(rng=rng)).sample(500, rng)
        assert all(np.isfinite(drawn.numbers(n)).all() for n in "abcd")
        assert kendall(drawn.numbers("a"), drawn.numbers("b")) > 0.95
    alone = Vine().fit(make_table({"y": y}, y={"role": "target"}), FitContext(rng=rng))
    assert alone.sample(50, rng).names == ("y",)
    pair = Vine().fit(make_table({"a": z, "y": y}, y={"role": "target"}), FitContext(rng=rng))
    assert pair.per_class
    assert pair.truncated(1) is pair
    assert pair.sample(0, rng).n_rows == 0


def test_an_order_by_name(rng):
    train = two_faced(n=200)
    assert Vine(order=("b", "a", "s")).fit(train, FitContext(rng=rng)).order == ("b", "a", "s", "y")
    assert Vine(order=("b", "a", "s", "y")).fit(train, FitContext(rng=rng)).order == ("b", "a", "s", "y")
    elsewhere = Vine(order=("y", "b", "a", "s")).fit(train, FitContext(rng=rng))
    assert elsewhere.order == ("y", "b", "a", "s")
    assert not elsewhere.per_class
    with pytest.raises(DataError, match="last in the order"):
        Vine(order=("y", "b", "a", "s"), root="per_class").fit(train, FitContext(rng=rng))
    for names, problem in {("a", "b"): "lacks 's'", ("a", "b", "s", "q"): "unknown 'q'"}.items():
        with pytest.raises(DataError, match=problem):
            Vine(order=names).fit(train, FitContext(rng=rng))
    with pytest.raises(ValueError, match="each column once"):
        Vine(order=("a", "a"))


def test_an_order_by_importance(rng):
    noise = np.random.default_rng(0).normal(size=(3, 400))
    y = noise[1] + 0.2 * noise[0] > 0
    columns = {"weak": noise[0], "strong": noise[1], "none": noise[2], "y": y}
    train = make_table(columns, y={"role": "target"})
    assert Vine(order="importance").fit(train, FitContext(rng=rng)).order[2:] == ("strong", "y")
    with pytest.raises(DataError, match="no target that varies"):
        Vine(order="importance").fit(make_table(columns), FitContext(rng=rng))


def naive_tau_b(x, y):
    concordant = discordant = tied_x = tied_y = 0
    for i, j in combinations(range(len(x)), 2):
        a, b = np.sign(x[i] - x[j]), np.sign(y[i] - y[j])
        concordant += a * b > 0
        discordant += a * b < 0
        tied_x += a == 0 and b != 0
        tied_y += b == 0 and a != 0
    total = concordant + discordant
    return (concordant - discordant) / np.sqrt((total + tied_x) * (total + tied_y))


def test_kendall_agrees_with_counting_pairs_and_skips_missing_ones():
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 6, size=(2, 40)).astype(float)
    y = y + x
    full = naive_tau_b(x, y)
    assert kendall(x, y) == pytest.approx(full)
    gaps = np.array([np.nan, 1.0, np.nan])
    assert kendall(np.append(x, gaps), np.append(y, [3.0, np.nan, np.nan])) == pytest.approx(full)


@pytest.mark.parametrize("y", [np.full(5, 2.0), np.full(5, np.nan), np.array([1.0, *[np.nan] * 4])])
def test_kendall_is_zero_where_it_is_undefined(y):
    assert kendall(np.arange(5.0), y) == 0


def test_kendall_of_many_rows_uses_an_even_subset():
    x = np.arange(50_000.0)
    assert kendall(x, -x) == pytest.approx(-1)


def correlated(seed=0, n=600):
    """Columns 1 and 5 are sensitive, 4 and then 2 close to 1, 7 close to 5, 6 the response, 0 and 3 apart."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 8))
    z[:, 2] = z[:, 1] + 0.4 * z[:, 2]
    z[:, 4] = -z[:, 1] + 0.1 * z[:, 4]
    z[:, 7] = z[:, 5] + 0.25 * z[:, 7]
    return z


def test_algorithm_1():
    assert sensitive_first(correlated(), [1, 5], 6, 0.6) == (1, 5, 4, 7, 2, 0, 3, 6)


def test_a_high_threshold_leaves_the_original_order():
    assert sensitive_first(correlated(), [1, 5], 6, 1.0) == (1, 5, 0, 2, 3, 4, 7, 6)


def test_a_sensitive_root_stays_the_root():
    assert sensitive_first(correlated(), [6, 1], 6, 0.6)[0] == 1
    assert sensitive_first(correlated(), [6, 1], 6, 0.6)[-1] == 6


def test_without_sensitive_columns_only_the_root_moves():
    assert sensitive_first(correlated(), [], 2, 0.6) == (0, 1, 3, 4, 5, 6, 7, 2)


def test_the_central_column_has_most_association():
    z = np.random.default_rng(0).normal(size=(300, 4))
    z[:, 0] += z[:, 2]
    z[:, 3] += z[:, 2]
    assert central(z, [0, 1, 2, 3]) == 2
    assert central(z, [1]) == 1


@pytest.mark.parametrize("is_class", [True, False])
def test_the_most_important_column_is_next_to_the_root(is_class):
    z = np.random.default_rng(0).normal(size=(400, 4))
    y = 2 * z[:, 2] + z[:, 0] + 0.3 * np.random.default_rng(1).normal(size=400)
    values = np.column_stack([z, (y > 0) if is_class else y]).astype(float)
    values[:30, 1] = np.nan
    values[-5:, 4] = np.nan
    order = least_important_first(values, 4, is_class=is_class, rng=np.random.default_rng(2))
    assert order[2:] == (0, 2, 4)
    assert order == least_important_first(values, 4, is_class=is_class, rng=np.random.default_rng(2))
    assert least_important_first(values[:, 4:], 0, is_class=is_class, rng=np.random.default_rng(2)) == (0,)
