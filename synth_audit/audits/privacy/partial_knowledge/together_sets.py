"""Sets of columns that the generator drew together, for an adversary who knows which these are."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import comb

import numpy as np

from synth_audit.audits.privacy.partial_knowledge.column_sets import LARGEST, drawn_of


def together_sets(
    groups: Sequence[Sequence[int]], budget: int, rng: np.random.Generator
) -> tuple[tuple[int, ...], ...]:
    """About ``budget`` sets, none of which crosses groups, in equal parts for each group.

    Of a group all pairs are tried, or three fifths of its budget at random; then all its columns but one, so
    far as a fifth allows; then triples to quintuples. In a group of two, each column alone. A generator keeps
    what it copies within a group, and who knows some of that needs nothing of the others.

    Args:
        groups: positions of columns; each column in one group at most.
    """
    able = [sorted(group) for group in groups if len(group) > 1]
    found: dict[tuple[int, ...], None] = {}
    for group in able:
        found |= dict.fromkeys(_of_group(group, max(budget // len(able), LARGEST), rng))
    return tuple(found)


def _of_group(group: list[int], budget: int, rng: np.random.Generator) -> list[tuple[int, ...]]:
    if len(group) == 2:
        return [(i,) for i in group]
    places = drawn_of(len(group), 2, min(comb(len(group), 2), budget * 3 // 5), rng)
    most = list(combinations(range(len(group)), len(group) - 1))
    places += [most[i] for i in np.sort(rng.permutation(len(most))[: max(budget // 5, LARGEST)])]
    for k in range(3, min(LARGEST, len(group) - 2) + 1):
        places += drawn_of(len(group), k, max(0, budget - len(places)) // (LARGEST + 1 - k), rng)
    return [tuple(group[i] for i in chosen) for chosen in places]
