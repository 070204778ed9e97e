"""The grid that leaves rows out before a search."""

import numpy as np
import pytest

from synth_audit.audits.privacy.partial_knowledge import grid


@pytest.mark.parametrize("cells", [2**3, 2**22])
@pytest.mark.parametrize("sizes", [(1,), (40,), (3, 900), (50, 1, 60, 70)])
def test_no_row_that_a_query_reaches_is_left_out(sizes, cells, monkeypatch):
    monkeypatch.setattr(grid, "_CELLS", cells)
    monkeypatch.setattr(grid, "_BLOCK", 64)
    rng = np.random.default_rng(len(sizes))
    codes = np.column_stack([rng.integers(0, k, 400) for k in sizes])
    asked = np.column_stack([rng.integers(0, k, 9) for k in sizes])
    low, high = (
        np.maximum(asked - 2, 0),
        np.minimum(asked + rng.integers(-3, 3, asked.shape), codes.max(axis=0)),
    )
    met = ((codes[:, None] >= low) & (codes[:, None] <= high)).all(axis=2).any(axis=1)
    found = grid.reachable(list(codes.T), low, high)
    assert np.isin(np.flatnonzero(met), found).all()
    if cells > np.prod(sizes):
        assert np.array_equal(np.flatnonzero(met), found)
