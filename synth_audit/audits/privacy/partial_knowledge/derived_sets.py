"""Sets of known columns with differences of columns among them, and what follows from a set."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product

import numpy as np

Parents = Sequence[tuple[int, ...]]
"""Of each column, the two whose difference it is; empty for a column of the table."""


def derived_sets(
    d: int, parents: Parents, budget: int, rng: np.random.Generator, *, alone: bool = False
) -> tuple[tuple[int, ...], ...]:
    """About ``budget`` sets: half pairs of differences; a quarter each triples, and one beside a column.

    None holds a column that follows from its others.

    Args:
        d: columns of the table; the differences, whose parents are given, stand behind them.
        alone: whether each is also tried alone.
    """
    of = [*([()] * d), *parents]
    made = range(d, len(of))
    families: list[tuple[list[tuple[int, ...]], int]] = [
        (list(combinations(made, 2)), budget // 2),
        (list(combinations(made, 3)), budget // 4),
        ([(column, one) for one, column in product(made, range(d))], budget // 4),
    ]
    if alone:
        families.append(([(i,) for i in made], len(parents)))
    found: list[tuple[int, ...]] = []
    for family, most in families:
        able = [s for s in family if _independent(s, of)]
        found += [able[i] for i in np.sort(rng.permutation(len(able))[:most])]
    return tuple(found)


def following(known: Sequence[int], parents: Parents) -> set[int]:
    """All columns that are known where these are: themselves, and what differences tell of others.

    Of a difference that is known, both columns are told not to be missing, but not their values.
    """
    group = list(range(len(parents)))
    for column in known:
        if parents[column]:
            first, second = (group[i] for i in parents[column])
            group = [first if g == second else g for g in group]
    told = {group[i] for i in known if not parents[i]}
    return {
        i
        for i, of in enumerate(parents)
        if (all(group[j] in told for j in of) or len({group[j] for j in of}) == 1 if of else group[i] in told)
    }


def _independent(columns: tuple[int, ...], parents: Parents) -> bool:
    return all(
        column not in following([other for other in columns if other != column], parents)
        for column in columns
    )
