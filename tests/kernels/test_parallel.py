"""Blocks over threads: every row once, in order, the same for any number of threads."""

from __future__ import annotations

import numpy as np
import pytest

from synth_audit.kernels.parallel import over_blocks


@pytest.mark.parametrize("n", [0, 1, 7, 100])
@pytest.mark.parametrize("threads", [None, 1, 3])
def test_every_row_once_and_in_order(n, threads):
    rows = np.arange(n)
    parts = over_blocks(n, 7, lambda block: rows[block], threads)
    assert np.array_equal(np.concatenate([*parts, rows[:0]]), rows)


def test_products_do_not_depend_on_the_threads():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(500, 37)), rng.normal(size=(37, 800))
    one, many = (np.vstack(over_blocks(500, 64, lambda s: a[s] @ b, threads)) for threads in (1, 4))
    assert np.array_equal(one, many)


def test_an_error_in_a_block_is_raised():
    def fail(block):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        over_blocks(10, 2, fail, 2)
