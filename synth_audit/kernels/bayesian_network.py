"""Bayesian networks of bounded degree, built greedily (Zhang et al. 2017)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from synth_audit.core.arrays import Codes, Floats
from synth_audit.kernels.ancestral import Conditional
from synth_audit.kernels.cell_counts import Attributes, cells_of, counted, nearest_counts

DEPENDENCE_SENSITIVITY = 2.0
"""The most that one row added or removed moves :func:`dependence`.

A row in cell (a, b) moves ``c_xy − c_x c_y / n`` by exactly n / (n + 1) · (e_a − p)_x (e_b − q)_y, where p
and q are the shares of cells before. Either factor has an L1 norm of 2 at most; half of their product is
below 2 at every n.
"""


@dataclass(frozen=True)
class Family:
    """A column and those that it depends on, which are drawn before."""

    child: int
    parents: Attributes

    @property
    def members(self) -> Attributes:
        """Parents, then child."""
        return (*self.parents, self.child)


def dependence(joint: Floats) -> float:
    """½ Σ |c_xy − c_x c_y / n|: rows to be moved for independence of the last axis from the others; 0 to n.

    It is n times the score R of Zhang et al. (2017), which is made for labels of any number. Its sensitivity
    knows no n, where that of mutual information does.

    Args:
        joint: counts, shape (…, k).
    """
    counts = joint.reshape(-1, joint.shape[-1])
    n = counts.sum()
    if not n:
        return 0.0
    expected = counts.sum(axis=1, keepdims=True) * (counts.sum(axis=0, keepdims=True) / n)
    return float(np.abs(counts - expected).sum() / 2)


def greedy_network(
    codes: Codes,
    sizes: Sequence[int],
    *,
    first: int,
    degree: int,
    most_cells: int,
    choose: Callable[[Floats], int],
) -> list[Family]:
    """Families in the order in which columns can be drawn.

    Of all columns left and all sets of ``degree`` columns placed before (of as many as there are, or as fit
    ``most_cells``) one pair is chosen by its :func:`dependence`, until none is left.

    Args:
        first: the column that depends on none.
        most_cells: cells of a family's table at most; one of a single column may have more.
        choose: position of the chosen score; called once for every column but the first.
    """
    families = [Family(first, ())]
    left = [column for column in range(len(sizes)) if column != first]
    known: dict[Family, float] = {}

    def score(family: Family) -> float:
        if family not in known:
            joint = counted(codes, sizes, family.members) if family.parents else np.zeros((1, 1))
            known[family] = dependence(joint)
        return known[family]

    while left:
        placed = sorted(family.child for family in families)
        candidates = [
            Family(child, parents)
            for child in left
            for parents in _parent_sets(child, placed, sizes, degree, most_cells)
        ]
        chosen = candidates[choose(np.array([score(family) for family in candidates]))]
        families.append(chosen)
        left.remove(chosen.child)
    return families


def tables_needed(sizes: Sequence[int], degree: int, most_cells: int) -> int:
    """How many tables at most hold all families of any network; follows from public sizes alone.

    The first ``degree`` families lie within the next one, if its table is sure to fit.
    """
    degree = min(degree, len(sizes) - 1)
    widest = sorted(sizes)[-(degree + 1) :]
    return len(sizes) - degree if cells_of(widest, tuple(range(len(widest)))) <= most_cells else len(sizes)


def outermost(families: Sequence[Family]) -> list[Family]:
    """The families that lie in no other."""
    members = [frozenset(family.members) for family in families]
    return [f for f, own in zip(families, members, strict=True) if not any(own < other for other in members)]


def conditionals(families: Sequence[Family], tables: Sequence[tuple[Family, Floats]]) -> list[Conditional]:
    """How the columns are drawn, from noisy counts.

    Args:
        tables: of :func:`outermost` families, in the order of their members; the nearest
            table of counts is taken.
    """
    return [_conditional(family, tables) for family in families]


def _conditional(family: Family, tables: Sequence[tuple[Family, Floats]]) -> Conditional:
    own = set(family.members)
    holder, counts = next((f, t) for f, t in tables if own <= set(f.members))
    others = tuple(i for i, column in enumerate(holder.members) if column not in own)
    held = [column for column in holder.members if column in own]
    weights = nearest_counts(counts).sum(axis=others)
    return Conditional(
        family.parents,
        (family.child,),
        np.ascontiguousarray(weights.transpose([held.index(c) for c in family.members])),
    )


def _parent_sets(
    child: int, placed: Sequence[int], sizes: Sequence[int], degree: int, most_cells: int
) -> list[Attributes]:
    for count in range(min(degree, len(placed)), 0, -1):
        found = [s for s in combinations(placed, count) if cells_of(sizes, (*s, child)) <= most_cells]
        if found:
            return found
    return [()]
