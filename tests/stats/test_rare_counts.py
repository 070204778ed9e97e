"""The comparison of two rare counts."""

from __future__ import annotations

import numpy as np
import pytest

from synth_audit.stats.proportions import chance_of_more


def test_it_is_the_tail_of_a_binomial():
    coins = np.random.default_rng(0).binomial(9, 0.25, 400_000)
    assert chance_of_more(4, 5, 100, 300) == pytest.approx((coins >= 4).mean(), abs=2e-3)
    assert chance_of_more(7, 0, 50, 50) == pytest.approx(0.5**7)


def test_nothing_new_is_no_surprise():
    assert chance_of_more(0, 3, 10, 10) == 1.0
