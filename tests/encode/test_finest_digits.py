"""The digits that some numbers of a column have, and the little room that a release has for them."""

from __future__ import annotations

import numpy as np
import pytest

from synth_audit.audits.fidelity.novel_content import FinestDigits
from synth_audit.table.resolution import ValueGrid, decimal_grids, resolution_of

WHOLE = np.rint(np.random.default_rng(0).normal(50, 10, 400))


def finest_of(values):
    return FinestDigits.of(values, resolution_of(values, decimal_grids()))


def with_one(value):
    return np.append(WHOLE, [np.nan, value])


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (WHOLE, ValueGrid()),
        (WHOLE * 5, ValueGrid(5.0)),
        (WHOLE / 2, ValueGrid(1.0, 10.0)),
        (WHOLE / 4, ValueGrid(1.0, 100.0)),
        (with_one(51.5), ValueGrid(1.0, 10.0)),
        (with_one(51.25), ValueGrid(1.0, 100.0)),
        (with_one(51.125), None),
        (with_one(1 / 3), None),
        (np.append(WHOLE * 5, 12.0), ValueGrid()),
    ],
    ids=[
        "all whole",
        "fives",
        "halves",
        "quarters",
        "a half",
        "a quarter",
        "three digits more",
        "noise",
        "a whole among fives",
    ],
)
def test_it_is_the_grid_of_all_numbers_unless_that_is_far_finer(values, expected):
    found = finest_of(values)
    assert (found.finest if found else None) == expected


def test_it_holds_the_digits_that_train_has_and_none_beyond():
    finest = finest_of(with_one(51.5))
    assert finest.holds(np.array([40.3, 0.0, -7.9, np.nan])).all()
    assert not finest.holds(np.array([40.31, 40.3 + 1e-9])).any()


def test_large_numbers_get_two_digits_more_at_most():
    values = np.array([float(f"{x:.3g}") for x in np.exp(np.random.default_rng(1).normal(0, 1.5, 800))])
    finest = finest_of(values)
    assert finest.resolution.digits == 3
    step = finest.finest.step
    assert finest.holds(np.array([12345 * step, 999 * step])).all()
    assert not finest.holds(np.array([123456 * step, 12.3451, 45612.0])).any()
