"""Blocks over threads: every row once, in order, the same for any number of threads."""

from __future__ import annotations

import sys
from types import ModuleType

import numpy as np
import pytest
import sklearn.ensemble  # noqa: F401  (brings libraries of its own)
from threadpoolctl import threadpool_info, threadpool_limits

from synth_audit.execution import executor as parallel
from synth_audit.execution.executor import over_blocks, single_threaded


@pytest.mark.parametrize("n", [0, 1, 7, 100])
@pytest.mark.parametrize("threads", [None, 1, 3])
def test_every_row_once_and_in_order(n, threads):
    rows = np.arange(n)
    parts = over_blocks(n, 7, lambda block: rows[block], threads)
    assert np.array_equal(np.concatenate([*parts, rows[:0]]), rows)


@pytest.mark.parametrize(("told", "workers"), [("3", 3), ("1", 1), ("0", 1), ("4,2", 5), ("", 5)])
def test_the_threads_are_those_that_libraries_are_told(told, workers, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", told)
    monkeypatch.setattr("os.cpu_count", lambda: 5)
    made, pool = [], parallel.ThreadPoolExecutor
    monkeypatch.setattr(parallel, "ThreadPoolExecutor", lambda n: made.append(n) or pool(n))
    assert over_blocks(20, 1, lambda block: block.start) == list(range(20))
    assert made == [workers] * (workers > 1)


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


def threads():
    return {library["num_threads"] for library in threadpool_info()}


def test_every_library_is_held_to_one_thread_and_let_go_again():
    with threadpool_limits(3):
        before = threads()
        with single_threaded():
            assert threads() == {1}
        assert threads() == before != {1}


def test_libraries_are_looked_up_again_when_a_module_was_loaded(monkeypatch):
    made = []
    found = parallel.ThreadpoolController
    monkeypatch.setattr(parallel, "ThreadpoolController", lambda: made.append(1) or found())
    parallel._controller.cache_clear()
    for _ in range(3):
        with single_threaded():
            pass
    assert made == [1]
    monkeypatch.setitem(sys.modules, "loaded_since", ModuleType("loaded_since"))
    with single_threaded():
        pass
    assert made == [1, 1]
