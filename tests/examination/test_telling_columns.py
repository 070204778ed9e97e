"""Which columns planted leaks copy: those that tell people apart together, not each by itself."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from synth_audit.examination.planted_leaks import most_telling
from synth_audit.table.schema_inference import infer_schema
from synth_audit.table.table import read_table

N = 800


@pytest.fixture(scope="module")
def districts():
    """What is true of a whole district, in five columns, and three answers of each person."""
    rng = np.random.default_rng(2)
    district = rng.integers(0, 60, N)
    of_district = {f"d{k}": rng.permutation(30 - k)[district % (30 - k)].astype(float) for k in range(5)}
    own = {f"p{k}": rng.integers(0, 6, N).astype(float) for k in range(3)}
    table = pa.table(of_district | own | {"flat": np.zeros(N)})
    return read_table(table, infer_schema(table, {}), where="train")


def test_what_follows_from_columns_chosen_before_comes_last(districts):
    told = most_telling(districts, districts.schema.features, 5)
    assert {"p0", "p1", "p2"} < set(told)
    assert next(iter(told)) == "d0", "the largest entropy of all"
    assert told["d0"] == pytest.approx(np.log2(30), abs=0.2)
    assert sum(told.values()) < 15, "four columns of the district would have told as much"


def test_columns_that_hang_together_with_none_are_taken_by_entropy_and_none_that_is_constant(districts):
    own = [c for c in districts.schema.features if c.name[0] in "pf"]
    told = most_telling(districts, own, 5)
    assert set(told) == {"p0", "p1", "p2"}
    assert all(bits > 0.8 * np.log2(6) for bits in told.values())


def test_the_same_number_in_two_columns_tells_nothing_twice():
    x = np.random.default_rng(3).normal(size=N)
    table = pa.table({"x": x, "again": 2 * x, "sex": np.arange(N) % 2})
    rows = read_table(table, infer_schema(table, {}), where="train")
    told = most_telling(rows, rows.schema.features, 3)
    assert list(told)[1] == "sex"
    assert told["x"] < 0.01 * told["again"]
