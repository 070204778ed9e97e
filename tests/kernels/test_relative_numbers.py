"""Numbers relative to one another: what stays under a secret, and edges."""

from __future__ import annotations

import numpy as np
import pytest

from synth_audit.kernels.relative_numbers import difference, folded, in_range, ratio

ONE, OTHER = np.array([0.1, 0.5, 0.9]), np.array([0.3, 0.5, 0.2])
KEY = np.array([0.2, 0.7, 0.95])


def test_what_a_secret_share_leaves_as_it_was():
    moved = [np.mod(x + KEY, 1) for x in (ONE, OTHER)]
    assert difference(*moved, circular=True) == pytest.approx(difference(ONE, OTHER, circular=True))
    assert difference(ONE + KEY, OTHER + KEY, circular=False) == pytest.approx(ONE - OTHER)
    # What floats lose must not turn a difference of nothing into one of a whole range.
    assert difference(np.array([0.1 + 0.2]), np.array([0.3]), circular=True) == 0
    assert difference(np.array([0.3]), np.array([0.1 + 0.2]), circular=True) == 0


def test_what_a_secret_factor_leaves_as_it_was():
    assert ratio(KEY * ONE, KEY * OTHER) == pytest.approx(ratio(ONE, OTHER))
    signs = [ratio(np.array([x]), np.array([y]))[0] for x in (-2.0, 0.0, 2.0) for y in (-3.0, 0.0, 3.0)]
    assert min(np.diff(sorted(signs))) > 1000


def test_what_turning_round_leaves_as_it_was():
    assert folded(1 - ONE) == pytest.approx(folded(ONE))


def test_ranges_of_nothing_and_of_everything():
    huge = np.finfo(float).max
    assert in_range(np.array([-huge, 0, huge]), -huge, huge).tolist() == [0, 0.5, 1]
    assert in_range(np.array([3.0, np.nan]), 3.0, 3.0)[0] == 0
    missing = np.array([np.nan])
    assert np.isnan(ratio(missing, ONE[:1])).all()
    assert np.isnan(difference(missing, ONE[:1], circular=True)).all()
