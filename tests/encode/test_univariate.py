import numpy as np
import pytest

from synth_audit.encode import scales
from synth_audit.encode.scales import FIRST_LABEL, MISSING, REGULAR, RobustScale
from synth_audit.encode.univariate import empirical_margin, kde_margin, outlying, rarest, stepwise_margin
from synth_audit.neighbours.gower import NEAR

NAN = float("nan")


def uniforms(n=4000):
    return (np.arange(n) + 0.5) / n


def samples():
    rng = np.random.default_rng(1)
    n = 500
    return {
        "normal": rng.normal(size=n),
        "lognormal": np.exp(2 * rng.normal(size=n)),
        "cauchy": rng.standard_cauchy(size=n),
        "microseconds": 1.6e15 + 1e12 * rng.normal(size=n),
        "tiny": 1e-12 * rng.normal(size=n),
        "zero_inflated": np.where(rng.random(n) < 0.4, 0.0, rng.exponential(size=n)),
        "coarse": np.round(rng.normal(size=n), 1),
        "two_values_rare": np.array([1.0] * 490 + [5.0] * 5 + [6.0] * 5),
        "lone_outlier": np.array([3.0] * 499 + [1e6]),
        "nearly_constant": np.array([3.0] * 300 + [3.0 + 1e-9] * 200),
        "two_rows": np.array([1.0, 2.0]),
        "one_row": np.array([7.0]),
        "constant": np.full(50, -2.0),
    }


@pytest.mark.parametrize("name", samples())
@pytest.mark.parametrize("fit", [kde_margin, empirical_margin])
def test_any_sample_gives_a_distribution_function(fit, name):
    values = samples()[name]
    margin = fit(values)
    assert np.isfinite(margin.knots).all()
    assert (np.diff(margin.knots) >= 0).all()
    assert (np.diff(margin.levels) >= 0).all()
    assert margin.levels[0] == 0
    assert margin.levels[-1] == 1
    below, at = margin.interval(values)
    assert ((below >= 0) & (below <= at) & (at <= 1)).all()
    drawn = margin.quantile(uniforms())
    assert np.isfinite(drawn).all()
    assert (np.diff(drawn) >= 0).all()


@pytest.mark.parametrize("name", ["normal", "lognormal", "zero_inflated", "coarse", "cauchy", "microseconds"])
def test_the_kernel_density_stays_close_to_the_sample(name):
    values = samples()[name]
    drawn = np.sort(kde_margin(values).quantile(uniforms()))
    distance = max(
        abs((values <= x).mean() - (drawn <= x).mean())
        for x in np.quantile(values, np.linspace(0.02, 0.98, 25))
    )
    assert distance < 0.06


def test_quantile_inverts_the_distribution_function():
    values = samples()["normal"]
    margin = kde_margin(values)
    below, at = margin.interval(values)
    assert np.array_equal(below, at)
    assert margin.quantile(at) == pytest.approx(values, abs=1e-6)


def test_the_kernel_density_reaches_past_the_extremes_and_copies_nothing():
    values = samples()["normal"]
    drawn = kde_margin(values).quantile(uniforms())
    assert not np.isin(drawn, values).any()
    assert drawn.max() > values.max() or drawn.min() < values.min()


def test_the_empirical_margin_keeps_the_range_and_interpolates():
    values = np.array([1.0, 2.0, 4.0, 4.0, 9.0])
    margin = empirical_margin(values)
    assert margin.quantile(np.array([0.0, 0.1, 0.2, 0.3, 0.6, 1.0])) == pytest.approx([1, 1, 1.5, 2, 4, 9])
    below, at = margin.interval(values)
    assert at - below == pytest.approx([0.1, 0, 0.2, 0.2, 0.1])


def test_a_mass_is_kept_as_a_mass():
    values = samples()["zero_inflated"]
    margin = kde_margin(values)
    below, at = margin.interval(np.array([0.0]))
    assert below == 0
    assert at == pytest.approx([(values == 0).mean()])
    assert (margin.quantile(uniforms()) == 0).mean() == pytest.approx((values == 0).mean(), abs=0.001)


def test_a_lone_rare_value_beside_a_mass_is_not_reproduced():
    assert set(kde_margin(samples()["lone_outlier"]).quantile(uniforms())) == {3.0}


def test_a_value_that_many_rows_share_is_kept_even_when_it_stands_alone():
    values = np.array([0.0] * 960 + [2.5] * 40)
    drawn = kde_margin(values).quantile(uniforms())
    assert (drawn == 2.5).mean() == pytest.approx(0.04, abs=0.001)


def test_values_that_are_never_negative_stay_so():
    assert kde_margin(samples()["lognormal"]).quantile(uniforms()).min() >= 0


def test_bounds_hold_and_their_mass_survives():
    values = np.clip(np.random.default_rng(0).normal(0.5, 0.5, size=800), 0, 1)
    drawn = kde_margin(values, bounds=(0.0, 1.0)).quantile(uniforms())
    assert drawn.min() == 0
    assert drawn.max() == 1
    assert (drawn == 1).mean() == pytest.approx((values == 1).mean(), abs=0.002)


def test_a_few_values_on_a_bound_do_not_swallow_their_neighbours():
    rng = np.random.default_rng(0)
    values = np.concatenate([np.zeros(3), rng.uniform(1, 100, size=500)])
    drawn = kde_margin(values, bounds=(0.0, 100.0)).quantile(uniforms())
    assert np.median(drawn) == pytest.approx(np.median(values), abs=3)


def test_limits_are_never_passed():
    values = np.random.default_rng(0).integers(-128, 128, size=400).astype(float)
    drawn = kde_margin(values, step=1, limits=(-128, 127)).quantile(uniforms())
    assert drawn.min() >= -128
    assert drawn.max() <= 127


def test_integers_come_back_as_integers_with_the_frequencies_of_common_ones():
    values = np.random.default_rng(3).poisson(2, size=2000).astype(float)
    margin = kde_margin(values, step=1)
    drawn = margin.quantile(uniforms(20_000))
    assert np.array_equal(drawn, np.rint(drawn))
    for k in range(6):
        assert (drawn == k).mean() == pytest.approx((values == k).mean(), abs=0.01)
    below, at = margin.interval(np.arange(6.0))
    assert (margin.quantile((below + at) / 2) == np.arange(6)).all()
    assert at[:-1] == pytest.approx(below[1:])


def test_steps_reproduce_frequencies_and_left_limits():
    margin = stepwise_margin(np.array([0.0, 1, 1, 2, np.nan, 2, 2, 2]))
    below, at = margin.interval(np.array([0.0, 1, 2, np.nan]))
    assert below == pytest.approx([0, 1 / 7, 3 / 7, np.nan], nan_ok=True)
    assert at == pytest.approx([1 / 7, 3 / 7, 1, np.nan], nan_ok=True)
    assert margin.quantile(np.array([0.0, 0.1, 0.2, 0.5, 1.0])).tolist() == [0, 0, 1, 2, 2]


def test_a_margin_cannot_be_changed():
    margin = kde_margin(samples()["normal"])
    with pytest.raises(ValueError, match="read-only"):
        margin.knots[0] = 0


@pytest.mark.parametrize("fit", [kde_margin, empirical_margin, stepwise_margin])
def test_no_value_at_all_is_refused(fit):
    with pytest.raises(ValueError, match="at least one value"):
        fit(np.array([np.nan, np.nan]))


def test_outlying_values_lie_beyond_the_outer_quantiles():
    values = np.arange(1000.0)
    found = outlying(np.random.default_rng(0).permutation(values), 0.05)
    assert len(found) == 50
    assert outlying(values, 0.05).tolist() == [*range(25), *range(975, 1000)]


def test_a_missing_value_or_one_that_many_share_is_no_outlier():
    assert outlying(np.array([NAN, *np.arange(100.0), NAN])).tolist() == [1, 2, 3, 98, 99, 100]
    assert not len(outlying(np.zeros(50)))
    assert not len(outlying(np.full(5, NAN)))
    assert outlying(np.array([0.0] * 90 + [5.0])).tolist() == [90]


@pytest.mark.parametrize(
    ("codes", "found"),
    [
        ([0] * 90 + [1] * 6 + [2] * 4, [96, 97, 98, 99]),
        ([0] * 95 + [1] * 3 + [2] * 2, [95, 96, 97, 98, 99]),
        ([0] * 60 + [1] * 40, list(range(60, 100))),  # the rarest counts even if it is frequent
        ([0] * 98 + [1, 2], [98, 99]),
        ([0, 1, 2], []),
        ([0, 0], []),
        ([-1] * 5, []),
        ([-1, 0, 0, 1], [3]),
    ],
)
def test_rarest_categories_up_to_the_tail(codes, found):
    assert rarest(np.array(codes)).tolist() == found


def test_the_names_of_categories_do_not_decide_which_are_rare():
    codes = np.random.default_rng(0).choice(5, 400, p=[0.5, 0.4, 0.06, 0.02, 0.02])
    assert rarest(codes).tolist() == rarest(4 - codes).tolist()


@pytest.fixture
def normal():
    return np.random.default_rng(0).normal(50.0, 10.0, 4000)


def test_a_uniform_column_has_its_range():
    assert RobustScale.of(np.linspace(3.0, 7.0, 1001)).span == pytest.approx(4.0, rel=0.01)


@pytest.mark.parametrize("share", [0.001, 0.005, 0.05, 0.3, 0.7])
@pytest.mark.parametrize("code", [9999.0, -999.0])
def test_a_code_for_unknown_moves_nothing_however_frequent_it_is(normal, share, code):
    spoilt = normal.copy()
    spoilt[: round(share * len(normal))] = code
    expected, found = RobustScale.of(normal[spoilt != code]), RobustScale.of(spoilt)
    assert found.labels.tolist() == [code]
    assert (found.centre, found.span) == (expected.centre, expected.span)


def test_a_scale_is_read_off_some_of_many_values(monkeypatch):
    values = np.random.default_rng(3).normal(size=20_000)
    whole = RobustScale.of(values).span
    monkeypatch.setattr(scales, "_MOST", 5_000)
    part = RobustScale.of(values).span
    assert part == RobustScale.of(values).span != whole
    assert part == pytest.approx(whole, rel=0.1)


def test_rare_extremes_are_numbers_far_away_and_hide_no_code_behind_them(normal):
    spoilt = normal.copy()
    spoilt[:3] = 1e5, 1e7, 1e9
    spoilt[3:9] = 9999.0
    found = RobustScale.of(spoilt)
    assert found.labels.tolist() == [9999.0]
    assert found.span == pytest.approx(RobustScale.of(normal).span, rel=0.02)
    numbers, what = found.read(np.array([1e9, 9999.0, 50.0]))
    assert what.tolist() == [REGULAR, FIRST_LABEL, REGULAR]
    assert numbers[0] > 1e6
    assert abs(numbers[2]) < 0.1


def test_a_value_that_most_rows_share_is_a_label_and_the_others_set_the_scale():
    rng = np.random.default_rng(0)
    gains = np.where(rng.random(5000) < 0.92, 0.0, rng.uniform(1000.0, 9000.0, 5000))
    found = RobustScale.of(gains)
    assert found.labels.tolist() == [0.0]
    assert found.span == pytest.approx(8000.0, rel=0.1)


def test_a_column_of_few_numbers_keeps_their_range():
    found = RobustScale.of(np.tile([0.0, 1.0], 50))
    assert found.span == 1.0
    assert not len(found.labels)


def test_a_code_for_unknown_that_was_moved_is_that_code_still(normal):
    spoilt = np.concatenate([normal, np.full(30, 9999.0)])
    found = RobustScale.of(spoilt)
    what = found.read(np.array([9990.0, 10_050.0, 6000.0, 200.0, np.nan]))[1]
    assert what.tolist() == [FIRST_LABEL, FIRST_LABEL, FIRST_LABEL, REGULAR, MISSING]


def test_levels_far_apart_are_told_apart_with_noise_on_them():
    rng = np.random.default_rng(0)
    levels = 3.0 ** rng.integers(0, 9, 500)
    found = RobustScale.of(levels)
    assert len(found.labels) > 3
    assert np.array_equal(found.read(levels * rng.uniform(0.95, 1.05, 500))[1], found.read(levels)[1])


def test_a_shared_value_ends_within_a_thirtieth_of_the_range():
    gains = np.concatenate([np.zeros(900), np.linspace(1000.0, 9000.0, 100)])
    found = RobustScale.of(gains)
    reach = found.span / NEAR
    assert found.read(np.array([0.9, 1.1]) * reach)[1].tolist() == [FIRST_LABEL, REGULAR]


def test_two_labels_never_reach_each_other():
    found = RobustScale.of(np.array([0.0] * 97 + [5.0] * 3))
    assert found.labels.tolist() == [0.0, 5.0]
    assert found.reach.max() < 2.5
    assert found.read(np.array([2.4, 2.5, 2.6, 9.0]))[1].tolist() == [
        FIRST_LABEL,
        REGULAR,
        FIRST_LABEL + 1,
        REGULAR,
    ]


@pytest.mark.parametrize(
    "values",
    [
        [],
        [np.nan] * 4,
        [7.0] * 4,
        [1.7e308, -1.7e308, 0.0, 1.0],
        [5e-324, 1e-323, *[0.0] * 40],
        [-1.5e308, np.nan] * 3,
    ],
)
def test_no_value_is_nowhere(values):
    scale = RobustScale.of(np.array(values, dtype=float))
    numbers, what = scale.read(np.array([1.7e308, -1.7e308, 5e-324, 0.0, np.nan]))
    assert np.isfinite(numbers).all()
    assert what[-1] == MISSING
    assert scale.span > 0


def test_neither_order_nor_unit_moves_a_place(normal):
    values = np.concatenate([normal, np.full(20, 9999.0), [np.nan]])
    numbers, what = RobustScale.of(values).read(values)
    for other in (values * 1000.0, values / 7.0 - 3.0):
        moved, same = RobustScale.of(np.random.default_rng(1).permutation(other)).read(other)
        assert np.array_equal(same, what)
        assert moved == pytest.approx(numbers, abs=1e-9)
