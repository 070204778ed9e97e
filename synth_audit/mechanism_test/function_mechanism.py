"""A mechanism as a Python function that draws many results at once."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from synth_audit.arrays import Floats, Integers
from synth_audit.dp.guarantee import Neighbouring
from synth_audit.errors import PlanError, PluginError
from synth_audit.mechanism_test.claim import Claim, Job

Draws = Callable[[Any, int], Any]
"""Takes a table and a number n of runs, and returns n results: shape (n,) or (n, k)."""

_AT_ONCE = 50_000
_AGAIN = 24
_MOST_RESULTS = 2**24


@dataclass(frozen=True, eq=False)
class Pair:
    """Two neighbouring tables, in whatever form the function takes."""

    name: str
    without: Any
    having: Any


@dataclass(frozen=True, eq=False)
class FunctionMechanism:
    """A function ``(table, n) → n independent results``.

    Attributes:
        draws: the function.
        pairs: neighbours it is run on.
        at_once: runs asked for in one call.
    """

    draws: Draws
    pairs: tuple[Pair, ...]
    at_once: int = _AT_ONCE

    @property
    def cases(self) -> tuple[str, ...]:
        """What sets the pairs apart."""
        return tuple(pair.name for pair in self.pairs)

    def scores(self, case: int) -> tuple[str, ...]:
        """The numbers of a result."""
        width = self._results(self.pairs[case].having, 1).shape[1]
        return ("the result",) if width == 1 else tuple(f"number {j + 1} of the result" for j in range(width))

    def run(self, job: Job) -> Floats:
        """Results, NaN as a very small number, shape (n, k)."""
        pair, having = self.pairs[job.case], job.having
        parts = {
            side: self._results(table, int((having == side).sum()))
            for side, table in ((False, pair.without), (True, pair.having))
            if (having == side).any()
        }
        widths = {part.shape[1] for part in parts.values()}
        if len(widths) > 1:
            raise _bad("results whose size tells which table they are from")
        found = np.empty((len(having), widths.pop()))
        for side, part in parts.items():
            found[having == side] = part
        return found

    def repeated(self) -> Integers | None:
        """Whether a second call returns what the first did."""
        table = self.pairs[0].having
        first, second = (self._results(table, _AGAIN) for _ in range(2))
        if first.shape != second.shape or not np.array_equal(first, second):
            return None
        return np.unique(first, axis=0, return_inverse=True)[1].ravel().astype(np.int64)

    def _results(self, table: Any, n: int) -> Floats:
        try:
            found = np.asarray(self.draws(table, n), dtype=np.float64)
        except Exception as error:  # its text may hold a cell value
            raise PluginError(
                "the mechanism failed", where=type(error).__name__, fix="call it by hand to see more"
            ) from None
        if found.ndim == 1:
            found = found[:, None]
        if found.ndim != 2 or len(found) != n or found.size > _MOST_RESULTS * 8:
            raise _bad("something else than n results")
        return np.nan_to_num(found, nan=-1e300, posinf=1e300, neginf=-1e300)


def named(text: str, where: str) -> Any:
    """What ``module:name`` names; modules of the working folder are found too.

    Raises:
        PlanError: there is no such thing.
    """
    module, _, name = text.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise PlanError(
            f"{text!r} cannot be imported ({type(error).__name__})",
            where=where,
            expected="module:function, in the working folder or installed",
            fix="check both names",
        ) from None
    if not callable(found):
        raise PlanError(f"{text!r} is no function", where=where, expected="module:function")
    return found


def array_pairs(claim: Claim, rows: int) -> tuple[Pair, ...]:
    """Neighbouring arrays of numbers in [0, 1], shape (rows,): the canary is 1 among zeros, and 0 among ones.

    Under *add or remove one* there is also one more row of zeros, which the number of rows alone tells of.
    """
    zeros, ones = np.zeros(rows), np.ones(rows)
    if claim.neighbouring is Neighbouring.REPLACE:
        high, low = zeros.copy(), ones.copy()
        high[: claim.rows], low[: claim.rows] = 1.0, 0.0
        return Pair("extremes", zeros, high), Pair("lowest", ones, low)
    more = np.ones(claim.rows)
    return (
        Pair("extremes", zeros, np.append(zeros, more)),
        Pair("lowest", ones, np.append(ones, 0 * more)),
        Pair("one more", zeros, np.append(zeros, 0 * more)),
    )


def given_pairs(found: Sequence[Any]) -> tuple[Pair, ...]:
    """Pairs as a function of the user's returns them: (name, without, having), or (without, having).

    Raises:
        PluginError: they are something else.
    """
    pairs = []
    for number, item in enumerate(found, 1):
        if not isinstance(item, (tuple, list)) or len(item) not in (2, 3):
            raise PluginError(
                "the neighbours are given badly",
                where="neighbours",
                expected="a list of (name, without, having)",
            )
        name = item[0] if len(item) == 3 else f"pair {number}"
        pairs.append(Pair(str(name), item[-2], item[-1]))
    return tuple(pairs)


def _bad(what: str) -> PluginError:
    return PluginError(
        f"the mechanism returned {what}",
        where="function",
        expected="for (table, n) an array of n numbers, or of n rows of equally many",
        fix="return one result for each run",
    )
