"""Small steps of searches against the plain ways to take them."""

from __future__ import annotations

import numpy as np
import pytest

from synth_audit.neighbours.search import rounded_down, smallest


@pytest.mark.parametrize("k", [1, 2, 3, 5])
@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.float32, np.float64])
def test_the_smallest_are_those_of_sorted_rows_and_nothing_is_changed(k, dtype):
    values = np.random.default_rng(0).integers(0, 9, (50, 7)).astype(dtype)
    values[3] = np.iinfo(dtype).max if np.dtype(dtype).kind == "i" else np.inf
    before = values.copy()
    found = smallest(values, k)
    assert found.dtype == dtype
    assert np.sort(found, axis=1).tolist() == np.sort(before, axis=1)[:, :k].tolist()
    assert np.array_equal(values, before)
    few = values[:, :k]
    assert np.sort(smallest(few, k), axis=1).tolist() == np.sort(few, axis=1).tolist()


@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.float32, np.float64])
def test_a_limit_of_the_same_type_tells_the_same(dtype):
    rng = np.random.default_rng(1)
    scores = rng.integers(-50, 50, 400).astype(dtype) if np.dtype(dtype).kind == "i" else rng.random(400)
    scores = scores.astype(dtype)
    near = np.nextafter(scores.astype(np.float64), np.inf), np.nextafter(scores.astype(np.float64), -np.inf)
    limit = np.concatenate([rng.uniform(-60, 60, 100), rng.random(100), *near, [np.inf, 1e9, -1e9]])
    found = rounded_down(limit, np.dtype(dtype))
    assert found.dtype == dtype
    assert np.array_equal(scores[:, None] <= found, scores[:, None] <= limit)
