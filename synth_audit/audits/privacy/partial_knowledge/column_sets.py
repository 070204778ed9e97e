"""Which sets of known columns are tried: all pairs or those that stand out, and larger sets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np

from synth_audit.core.arrays import Floats
from synth_audit.kernels.co_agreement import grown, strongest_pairs

LARGEST = 5
"""Columns that the adversary knows at most."""

_NARROW = 4
"""Columns up to which single ones are tried too."""


@dataclass(frozen=True)
class ColumnSets:
    """Sets of columns, by position, each ascending.

    Attributes:
        drawn: at random, or all there are.
        guided: chosen on one half of the people, which alone may choose among them; one tuple for each half.
        possible: sets of two to :data:`LARGEST` columns that there are, by size.
        weak: larger ones, of columns that tell little each. blocks: such columns, each the secret in turn.
        derived: with differences of columns among them.
        together: of columns that the generator drew together.
    """

    drawn: tuple[tuple[int, ...], ...]
    guided: tuple[tuple[tuple[int, ...], ...], ...]
    possible: dict[int, int]
    weak: tuple[tuple[int, ...], ...] = ()
    blocks: tuple[tuple[int, ...], ...] = ()
    derived: tuple[tuple[int, ...], ...] = ()
    together: tuple[tuple[int, ...], ...] = ()

    @property
    def shares(self) -> dict[int, tuple[int, int]]:
        """Sets tried and sets there are, by size."""
        different = {*self.drawn, *(s for half in self.guided for s in half)}
        tried = Counter(map(len, different))
        return {k: (tried[k], n) for k, n in self.possible.items() if n}


Look = Callable[[int], Floats]
"""How much each pair of columns stands out on one half of the people; (d, d)."""


def column_sets(d: int, budget: int, look: Look, rng: np.random.Generator) -> ColumnSets:
    """Choose sets of d columns.

    Where three fifths of the budget hold all pairs these are tried, and with the rest triples, quadruples and
    quintuples at random, in equal parts. Otherwise a fifth each goes to random pairs, to random larger sets
    and, on each half of the people, to the pairs that stand out most and (half as many) what these grow to.
    In a narrow table single columns are tried too: who knows two of three may know all that was copied
    together.
    """
    possible = {k: comb(d, k) for k in range(2, LARGEST + 1)}
    every = possible[2] <= budget * 3 // 5
    drawn = drawn_of(d, 2, budget * 3 // 5 if every else budget // 5, rng)
    if d <= _NARROW:
        drawn += [(i,) for i in range(d)]
    left = budget - len(drawn) if every else budget // 5
    for k in range(3, LARGEST + 1):
        found = drawn_of(d, k, left // (LARGEST + 1 - k), rng)
        drawn += found
        left -= len(found)
    guided = ((), ()) if every else tuple(_guided(look(half), budget // 5) for half in (0, 1))
    return ColumnSets(tuple(drawn), guided, possible)


def _guided(apart: Floats, most: int) -> tuple[tuple[int, ...], ...]:
    """The pairs that stand out most, and larger sets that the first of them grow to."""
    pairs = strongest_pairs(apart, most)
    sizes = range(3, LARGEST + 1)
    larger = [grown(apart, pair, k) for pair in pairs[: most // (2 * len(sizes))] for k in sizes]
    return tuple(dict.fromkeys([*pairs, *larger]))


def drawn_of(d: int, k: int, most: int, rng: np.random.Generator) -> list[tuple[int, ...]]:
    """All sets of k of d columns, or so many of them at random, each once."""
    if comb(d, k) <= most:
        return list(combinations(range(d), k))
    found: dict[tuple[int, ...], None] = {}
    while len(found) < most:
        found[tuple(sorted(rng.choice(d, k, replace=False).tolist()))] = None
    return list(found)
