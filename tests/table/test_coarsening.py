"""Coarser values by rules that a plan fixes, and numbers set to declared bounds."""

import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_tables import table_of  # made importable by conftest.py

from synth_audit.plan.sections import span_grid
from synth_audit.table.arrow import numbers_of
from synth_audit.table.coarsening import BoundClipping, Coarsening, Merging, Rounding
from synth_audit.table.resolution import (
    TIME_UNITS,
    Resolution,
    ValueGrid,
    decimal_grids,
    resolution_of,
    time_grids,
)
from synth_audit.table.schema_inference import ColumnSpec

FIVE = ValueGrid.of_step(5)


def table(specs=None, **columns):
    return table_of(columns, specs)


def coarse(rule, values, **spec):
    made = Coarsening({"x": rule}).applied(table({"x": ColumnSpec(**spec)} if spec else None, x=values))
    return made.column("x")


@pytest.mark.parametrize(
    ("values", "rule", "expected"),
    [
        (pa.array([1, 7, 8, None, 93]), Rounding(FIVE, top=85), [0, 5, 10, None, 85]),
        (pa.array([0.12, None, 9.9, -4]), Rounding(ValueGrid.of_step(0.25), bottom=0.0), [0, None, 10, 0]),
        (pa.array([0.12, 3.0, 9.9]), Rounding(top=3.0), [0.12, 3.0, 3.0]),
        (pa.array([0.125, 3.0, 9.9], pa.float32()), Rounding(ValueGrid.of_step(0.5)), [0, 3, 10]),
        (pa.array([Decimal("1.26"), Decimal("3.50"), Decimal("2.00")]), Rounding(ValueGrid.of_step(0.5)),
         [Decimal("1.50"), Decimal("3.50"), Decimal("2.00")]),
        (pa.array([datetime.date(2020, 1, 3), datetime.date(2020, 6, 20), datetime.date(2021, 9, 9)]),
         Rounding(span_grid("month")),
         [datetime.date(2020, 1, 1), datetime.date(2020, 7, 1), datetime.date(2021, 9, 1)]),
    ],
)  # fmt: skip
def test_numbers_and_dates_are_rounded_and_cut_off_in_the_type_they_have(values, rule, expected):
    made = coarse(rule, values)
    assert made.to_pylist() == expected
    assert made.type == values.type
    assert coarse(rule, made).to_pylist() == expected


def test_rounding_up_stays_within_declared_bounds():
    assert coarse(Rounding(FIVE), pa.array([1, 6, 8]), bounds=(0, 8)).to_pylist() == [0, 5, 5]


def test_numbers_that_are_not_cut_off_keep_every_digit():
    fine = pa.array([2**53 - 1, 3, 2**53 - 3, 900])
    assert coarse(Rounding(bottom=10), fine).to_pylist() == [2**53 - 1, 10, 2**53 - 3, 900]


@pytest.mark.parametrize("storage", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_labels_are_merged_by_name_and_by_how_rare_the_release_has_them(storage):
    values = pa.array(["a"] * 4 + ["b"] * 2 + ["c", None], pa.string()).cast(storage)
    named = coarse(Merging("z", labels=frozenset("ab")), values)
    assert named.to_pylist() == ["z"] * 6 + ["c", None]
    rare = coarse(Merging("other", rarer_than=2), values)
    assert rare.to_pylist() == ["a"] * 4 + ["b"] * 2 + ["other", None]
    both = coarse(Merging("other", labels=frozenset("a"), rarer_than=3), values)
    assert both.to_pylist() == ["other"] * 7 + [None]


def test_how_rare_a_label_is_the_release_says_and_never_train():
    train, release = table(x=["a"] * 9 + ["b"] + ["c"] * 5), table(x=["a"] * 3 + ["b"] * 9 + ["d"])
    rules = Coarsening({"x": Merging("other", rarer_than=2)})
    assert rules.needs_release
    fixed = rules.fixed_on(release)
    assert not fixed.needs_release
    assert fixed.of(release).column("x").to_pylist() == ["a"] * 3 + ["b"] * 9 + ["other"]
    assert fixed == rules.fixed_on(fixed.of(release))
    known, _ = fixed.view(train, None)
    assert known.column("x").to_pylist() == ["a"] * 9 + ["b"] + ["other"] * 5


def test_real_rows_are_seen_as_the_release_is_with_a_domain_of_their_own():
    specs = {"k": ColumnSpec(categories=("a", "b", "c"))}
    train = table(specs, x=np.arange(40.0), k=["a", "b"] * 20, y=range(40))
    control = table(specs, x=np.arange(3.0), k=["c"] * 3, y=range(3))
    rules = Coarsening({"x": Rounding(FIVE, top=20.0), "k": Merging("u", labels=frozenset("bc"))})
    known, other = rules.view(train, control)
    assert known.schema["x"].bounds == (0.0, 20.0)
    assert known.schema["x"].declared_resolution.grid == FIVE
    assert known.schema["x"].kind is train.schema["x"].kind
    assert known.schema["k"].categories == ("a", "u")
    assert known.schema["y"] == train.schema["y"]
    assert other.column("k").to_pylist() == ["u"] * 3
    assert train.column("x").to_pylist() == list(np.arange(40.0))


def test_the_label_that_others_are_merged_into_is_declared_by_the_plan():
    rule = Coarsening({"k": Merging("other", labels=frozenset("z"))})
    train = table(k=["a", "b", "a", "b"])
    assert rule.view(train, None)[0].schema["k"].declared_categories == ("a", "b", "other")
    declared = table({"k": ColumnSpec(categories=("a", "b", "z"))}, k=["a", "b"])
    assert rule.admitted(declared.schema)["k"].declared_categories == ("a", "b", "z", "other")
    assert rule.admitted(train.schema)["k"].declared_categories is None


def clipped(values, storage, bounds=(0, 9.5), outside="clip"):
    """What becomes of them in two batches, and how many were counted."""
    spec = ColumnSpec(bounds=bounds, outside=outside)
    clipping = BoundClipping({"x": spec, "absent": spec})
    data = pa.table({"x": pa.array(values, storage), "y": pa.array(range(len(values)))})
    made = pa.Table.from_batches(clipping.applied(iter(data.to_batches(max_chunksize=2))))
    assert made.schema == data.schema
    assert made["y"].equals(data["y"])
    return made["x"].to_pylist(), clipping.counts["x"]


@pytest.mark.parametrize(
    ("storage", "values", "expected"),
    [
        (pa.int8(), [-3, 0, 9, 10, None], [0, 0, 9, 9, None]),
        (pa.int64(), [2**62 + 1, 5], [9, 5]),
        (pa.float64(), [-0.5, 9.5, 9.75, None], [0.0, 9.5, 9.5, None]),
        (pa.float32(), [float("inf"), float("-inf"), 1.0], [9.5, 0.0, 1.0]),
        (pa.decimal128(6, 2), [Decimal("9.51"), Decimal("1.00")], [Decimal("9.50"), Decimal("1.00")]),
    ],
    ids=str,
)
def test_what_lies_outside_is_set_to_the_nearest_that_the_type_holds_and_counted(storage, values, expected):
    found, count = clipped(values, storage)
    assert found == expected
    assert count == sum(a != b for a, b in zip(values, expected, strict=True))


@pytest.mark.parametrize(
    "storage",
    [
        pa.int8(),
        pa.uint8(),
        pa.uint64(),
        pa.float16(),
        pa.float32(),
        pa.decimal128(4, 2),
        pa.decimal128(38, 20),
        pa.decimal256(76, 76),
    ],
    ids=str,
)
@pytest.mark.parametrize("bounds", [(-5, 70_000), (-8e307, 8e307), (-1e-9, 0.1234567), (-1e300, 0)])
def test_bounds_beyond_what_a_type_holds_or_between_its_steps(storage, bounds):
    zero = Decimal(0) if pa.types.is_decimal(storage) else np.float16(0)
    assert clipped([zero, None], storage, bounds) == ([0, None], 0)


def test_bounds_without_a_value_of_the_type_leave_the_column_to_be_refused():
    assert clipped([0, 3], pa.int64(), (0.125, 0.375)) == ([0, 3], 0)
    assert clipped([0, 3], pa.int8(), (1e18, 2e19)) == ([0, 3], 0)


def test_bounds_of_decimals_are_drawn_inwards_to_their_steps():
    values = [Decimal("0.10"), Decimal("0.30"), Decimal("0.13"), Decimal("0.37")]
    found, count = clipped(values, pa.decimal128(6, 2), (0.125, 0.375))
    assert (found, count) == ([Decimal("0.13"), Decimal("0.30"), Decimal("0.13"), Decimal("0.37")], 1)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("bounds", [(0.2, 0.8), (-0.8, -0.2), (0.1, 0.123456789), (0.123456789, 0.7)])
def test_floats_that_were_clipped_are_read_as_numbers_within_the_bounds(kind, bounds):
    storage = pa.from_numpy_dtype(kind)
    found, _ = clipped([kind(-1), *map(kind, bounds), kind(1)], storage, bounds)
    read = numbers_of(pa.chunked_array([pa.array(found, storage)])).to_numpy()
    assert (read >= bounds[0]).all()
    assert (read <= bounds[1]).all()
    assert read == pytest.approx([bounds[0], *bounds, bounds[1]], rel=2 * float(np.finfo(kind).eps))


def test_what_is_no_number_and_what_is_not_to_be_clipped_stays():
    nothing = float("nan")
    found, count = clipped([nothing, 99.0], pa.float64())
    assert found[0] != found[0]
    assert (found[1], count) == (9.5, 1)
    assert clipped([99], pa.int64(), outside="refuse") == ([99], 0)
    assert clipped(["99"], pa.string()) == (["99"], 0)


@pytest.mark.parametrize("spec", [{}, {"bounds": ["2020-01-01", "2021-01-01"]}, {"categories": ["a"]}])
def test_only_bounds_of_numbers_can_be_clipped_to(spec):
    with pytest.raises(ValueError, match="goes with bounds of numbers"):
        ColumnSpec.model_validate({**spec, "outside": "clip"})


NOISE = np.random.default_rng(0).normal(50, 10, 800)
WHOLE = np.rint(NOISE)


def found(values, **more):
    return resolution_of(np.asarray(values, dtype=float), decimal_grids(), **more)


def step(resolution):
    return resolution.grid.numerator / resolution.grid.denominator


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.round(NOISE, 2), 0.01),
        (WHOLE, 1),
        (WHOLE * 100, 100),
        (np.rint(NOISE / 5) * 5, 5),
        (np.rint(NOISE * 4) / 4, 0.25),
        (np.rint(NOISE * 3) / 3, 1 / 3),
        (WHOLE * 2500, 2500),
        (np.rint(NOISE / 2) * 2, 2),
        (np.where(np.arange(800) % 9, 0, np.round(NOISE, 1)), 0.1),
    ],
    ids=["cents", "whole", "hundreds", "fives", "quarters", "thirds", "2500", "twos", "mostly zero"],
)
def test_the_coarsest_step_is_found(values, expected):
    resolution = found(values)
    assert step(resolution) == pytest.approx(expected, rel=1e-12)
    assert resolution.holds(values).all()
    assert not resolution.holds(values + expected / 2).any()


def test_noise_has_none_nor_have_a_constant_and_gaps():
    assert found(NOISE) is None
    assert found([4.0, 4.0]) is None
    assert found([np.nan, np.nan]) is None


def test_few_finer_numbers_do_not_set_it_and_a_frequent_one_is_kept():
    few = np.where(np.arange(800) % 200 == 0, NOISE, np.round(NOISE, 1))
    assert step(found(few)) == 0.1
    mean = np.where(np.arange(800) % 5 == 0, NOISE.mean(), WHOLE)
    resolution = found(mean)
    assert (step(resolution), resolution.atoms) == (1, (NOISE.mean(),))
    assert resolution.nearest(np.array([NOISE.mean(), NOISE.mean() + 0.1])).tolist() == [NOISE.mean(), 50]


def test_what_arithmetic_leaves_is_no_finer_digit():
    summed = np.round(NOISE, 2) + 0.1 + 0.2
    resolution = found(summed)
    assert (step(resolution), resolution.rounded) == (0.01, True)
    assert resolution.holds(summed).all()
    assert not resolution.holds(summed + 1e-9).any()


def test_significant_digits_are_counted_where_large_numbers_are_coarser():
    values = np.array([float(f"{x:.3g}") for x in np.exp(np.random.default_rng(1).normal(0, 4, 800))])
    resolution = found(values)
    assert resolution.digits == 3
    assert resolution.holds(np.array([1.23, 45600.0])).all()
    assert not resolution.holds(np.array([1.234, 45612.0])).any()


def test_single_precision_is_compared_as_it_was_stored():
    cents = np.round(NOISE, 2).astype(np.float32).astype(float)
    resolution = found(cents, single=True)
    assert step(resolution) == 0.01
    assert resolution.holds(cents, single=True).all()
    assert resolution.holds(np.round(NOISE, 2)).all()


@pytest.mark.parametrize("unit", TIME_UNITS)
def test_units_of_time(unit):
    start = np.datetime64("2011-03-01T07:11:13.017", "us").astype(np.int64)
    moments = TIME_UNITS[unit].nearest(start + np.arange(60.0) * 5.0e13 + np.arange(60) ** 2 * 1.01e9)
    resolution = resolution_of(moments, time_grids(), decimal=False)
    assert resolution == Resolution(TIME_UNITS[unit])
    assert not resolution.holds(moments + 1000 * (unit != "millisecond") + 1).any()


def test_quarters_of_an_hour():
    moments = np.arange(50.0) * 900e6
    assert resolution_of(moments, time_grids(), decimal=False).grid == ValueGrid(900e6)


def test_the_nearest_month_may_be_the_next():
    days = np.array(["2024-01-20", "2024-01-02", "NaT"], dtype="datetime64[us]")
    values = np.where(np.isnat(days), np.nan, days.astype(np.int64))
    near = TIME_UNITS["month"].nearest(values)
    expected = np.array(["2024-02-01", "2024-01-01"], dtype="datetime64[us]").astype(float)
    assert near[:2].tolist() == expected.tolist()
    assert np.isnan(near[2])


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20),
    st.sampled_from([0.01, 0.25, 1.0, 5.0, 100.0]),
    st.floats(-50, 0),
    st.floats(1, 50),
)
def test_what_is_rounded_lies_on_the_grid_and_within_the_ends(values, width, low, high):
    resolution = Resolution(ValueGrid.of_step(width))
    made = resolution.nearest(np.array(values), (low, high))
    assert ((made >= low) & (made <= high)).all()
    assert resolution.holds(made).all()  # 0 lies between the ends, and on every grid
    free = resolution.nearest(np.array(values))
    assert np.abs(free - values).max() <= width / 2 * (1 + 1e-6)


def test_ends_that_hold_no_step_are_kept():
    assert Resolution(ValueGrid(5.0)).nearest(np.array([1.0, 9.0]), (2.0, 3.0)).tolist() == [2, 3]


def test_huge_numbers_stay():
    assert Resolution(ValueGrid(1.0, 100.0)).nearest(np.array([1e300, np.nan]))[0] == 1e300


@pytest.mark.parametrize("values", [np.round(NOISE, 2), WHOLE * 100, np.rint(NOISE * 3) / 3])
def test_it_survives_as_json(values):
    resolution = found(values)
    assert Resolution.from_plain(resolution.plain()) == resolution


@pytest.mark.parametrize("width", [0.3333333333333333, 1 / 7, 0.0123456789, 5e-324, 1e308])
def test_a_step_of_any_digits_puts_numbers_on_it(width):
    grid, values = ValueGrid.of_step(width), np.append(np.round(NOISE, 2) * 1e7, np.round(NOISE, 2))
    made = grid.nearest(values)
    np.testing.assert_array_equal(grid.nearest(made), made)
    told_apart = np.abs(values) < width * 2.0**53
    assert (np.abs(made - values) <= 0.5 * width + 1e-9 * np.abs(values)).all()
    times = made[told_apart] / width
    np.testing.assert_allclose(times, np.rint(times), rtol=1e-12, atol=1e-6)
