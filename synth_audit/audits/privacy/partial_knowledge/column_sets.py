"""Which sets of known columns are tried: all pairs as far as the budget goes, and random larger sets."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np

LARGEST = 5
"""Columns that the adversary knows at most."""


@dataclass(frozen=True)
class ColumnSets:
    """Sets of columns, by position.

    Attributes:
        plain: each ascending. mirrored: of columns whose numbers are turned round.
        possible: sets of two to :data:`LARGEST` columns that there are, by size.
    """

    plain: tuple[tuple[int, ...], ...]
    mirrored: tuple[tuple[int, ...], ...]
    possible: dict[int, int]

    @property
    def shares(self) -> dict[int, tuple[int, int]]:
        """Sets tried and sets there are, by size."""
        tried = np.bincount([len(s) for s in self.plain], minlength=LARGEST + 1)
        return {k: (int(tried[k]), n) for k, n in self.possible.items() if n}


def column_sets(d: int, numeric: tuple[int, ...], budget: int, rng: np.random.Generator) -> ColumnSets:
    """Draw sets of d columns.

    Three fifths of the budget, or what it takes, go to pairs; the rest to triples, quadruples and quintuples
    in equal parts; a tenth more to sets with numbers turned round.

    Args:
        numeric: columns that hold numbers.
    """
    possible = {k: comb(d, k) for k in range(2, LARGEST + 1)}
    if d < 2:
        return ColumnSets(((0,),) if d else (), (), possible)
    plain: list[tuple[int, ...]] = []
    left = budget
    for k in range(2, LARGEST + 1):
        share = budget * 3 // 5 if k == 2 else left // (LARGEST + 1 - k)
        found = _drawn(d, k, share, rng)
        plain += found
        left -= len(found)
    turned = _drawn(len(numeric), 2, budget // 20, rng) + _drawn(len(numeric), 3, budget // 20, rng)
    mirrored = [tuple(numeric[i] for i in s) for s in turned]
    if len(numeric) == 1:
        mirrored = [(numeric[0],)]
    return ColumnSets(tuple(plain), tuple(mirrored), possible)


def _drawn(d: int, k: int, most: int, rng: np.random.Generator) -> list[tuple[int, ...]]:
    """All sets of k of d columns, or so many of them at random, each once."""
    if comb(d, k) <= most:
        return list(combinations(range(d), k))
    found: dict[tuple[int, ...], None] = {}
    while len(found) < most:
        found[tuple(sorted(rng.choice(d, k, replace=False).tolist()))] = None
    return list(found)
