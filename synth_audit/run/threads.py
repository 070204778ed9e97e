"""Spreads blocks of array work over threads; the numbers do not depend on how many there are."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from typing import TypeVar

from threadpoolctl import ThreadpoolController

Part = TypeVar("Part")


def over_blocks(n: int, size: int, work: Callable[[slice], Part], threads: int | None = None) -> list[Part]:
    """Results of ``work`` on the slices of 0 … n−1 of at most ``size`` rows, in order.

    Numpy lets go of the interpreter inside its loops, so threads are enough. Linear algebra is held to
    one thread of its own meanwhile: each block is then computed alike, whoever computes it.

    Args:
        threads: as many as ``OMP_NUM_THREADS`` says if left out, as for the libraries underneath, which
            processes of a pool are told so that they do not contend; else as many as there are cores.
    """
    blocks = [slice(start, min(start + size, n)) for start in range(0, n, size)]
    workers = min(len(blocks), threads or allowed_threads())
    with single_threaded_algebra():
        if workers < 2:
            return [work(block) for block in blocks]
        with ThreadPoolExecutor(workers) as pool:
            return list(pool.map(work, blocks))


def allowed_threads() -> int:
    """Threads that this process may use."""
    told = os.environ.get("OMP_NUM_THREADS", "")
    return max(1, int(told)) if told.isdecimal() else os.cpu_count() or 1


@contextmanager
def single_threaded_algebra() -> Iterator[None]:
    """Hold the linear algebra library to one thread, whose rounding does not depend on the machine's load."""
    with _controller(len(sys.modules)).limit(limits=1, user_api="blas"):
        yield


@contextmanager
def single_threaded() -> Iterator[None]:
    """Hold every library that has been loaded to one thread; models bring libraries of their own, so import
    first what fits them."""
    with _controller(len(sys.modules)).limit(limits=1):
        yield


@lru_cache(maxsize=1)
def _controller(n_modules: int) -> ThreadpoolController:
    """What holds the libraries, looked up again only when a module was imported since: a look-up takes
    milliseconds, a search of few rows less."""
    return ThreadpoolController()
