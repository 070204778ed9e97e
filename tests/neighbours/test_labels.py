"""Labels of many pairs of rows compared at once."""

from __future__ import annotations

import numpy as np
import pytest

from synth_audit.neighbours.coordinates import add_unlike
from synth_audit.neighbours.gower import Mixed
from synth_audit.neighbours.search import Pairs


@pytest.mark.parametrize("steps", [(3,), (3, 3, 3), (1, 2, 4), (5, 2, 5, 2)])
def test_what_unlike_labels_weigh_is_added_to_each_pair(steps):
    rng = np.random.default_rng(len(steps))
    mine, others = (rng.integers(0, 3, (len(steps), n)).astype(np.uint8) for n in (11, 17))
    out = np.full((11, 17), 7, np.int16)
    add_unlike(out, steps, mine, others)
    unlike = mine[:, :, None] != others[:, None, :]
    assert out.tolist() == (7 + np.tensordot(np.array(steps), unlike, 1)).tolist()


def test_labels_of_a_reference_in_leaves_lie_column_by_column():
    """Scattered through memory they take four times as long to compare."""
    rng = np.random.default_rng(0)
    rows = Mixed.of(rng.random((5000, 2)), rng.integers(0, 5, (5000, 3)), np.ones(5))
    space = Pairs(rows, rows)
    assert space.leaves is not None
    assert space.theirs.flags.c_contiguous
    assert np.array_equal(space.theirs.T, rows.labels[space.leaves.order] + 1)
