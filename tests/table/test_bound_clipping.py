"""Numbers outside declared bounds, where a plan has them set to the nearest."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from synth_audit.table.arrow import numbers_of
from synth_audit.table.coarsening import BoundClipping
from synth_audit.table.schema_inference import ColumnSpec


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
