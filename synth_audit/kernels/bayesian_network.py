"""Bayesian networks of bounded degree, built greedily (Zhang et al. 2017)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from synth_audit.core.arrays import Codes, Floats
from synth_audit.kernels.ancestral import Conditional
from synth_audit.kernels.cell_counts import Attributes, cells_of, nearest_counts

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


def information(joint: Floats) -> float:
    """n · MI(last axis; the others), less one for each free cell: (rows in use − 1)(columns in use − 1).

    That is Akaike's price, twice what chance adds on average. Without it, of two sets of parents the one with
    more cells wins, whatever it says.

    Args:
        joint: counts, shape (…, k).
    """
    counts = joint.reshape(-1, joint.shape[-1])
    sides = [side[side > 0] for side in (counts.sum(axis=1), counts.sum(axis=0))]
    n = float(counts.sum())
    if not n:
        return 0.0
    together = _weighted_logarithms(counts[counts > 0]) + _weighted_logarithms(np.array([n]))
    apart = sum(_weighted_logarithms(side) for side in sides)
    return together - apart - (len(sides[0]) - 1) * (len(sides[1]) - 1)


def _weighted_logarithms(counts: Floats) -> float:
    return float(counts @ np.log(counts))


def greedy_network(
    codes: Codes,
    sizes: Sequence[int],
    *,
    first: int,
    degree: int,
    most_cells: int,
    choose: Callable[[Floats], int],
    score: Callable[[Floats], float] = dependence,
    fewer: bool = False,
) -> list[Family]:
    """Families in the order in which columns can be drawn.

    Of all columns left and all sets of ``degree`` columns placed before (of as many as there are, or as fit
    ``most_cells``) one pair is chosen by its score, until none is left. No table is counted twice: of d
    columns there are d² / 2 of them for one parent, d³ / 6 for two.

    Args:
        first: the column that depends on none.
        most_cells: cells of a family's table at most; one of a single column may have more.
        choose: position of the chosen score; called once for every column but the first.
        score: of a table of counts whose last axis is the column left.
        fewer: let sets of less than ``degree`` columns compete too, and none, whose score is 0.
    """
    counting = _Counting(np.ascontiguousarray(codes.T), tuple(sizes), most_cells, score)
    families = [Family(first, ())]
    left = {column: _Candidates() for column in range(len(sizes)) if column != first}
    while left:
        newest, before = families[-1].child, sorted(family.child for family in families[:-1])
        new = {
            count: [tuple(sorted((*others, newest))) for others in combinations(before, count - 1)]
            for count in range(1, min(degree, len(families)) + 1)
        }
        for count, sets in new.items():
            for parents in sets:
                counting.add(parents, {c: found for c, found in left.items() if fewer or found.size <= count})
            if not fewer:
                left = {c: found.only(count) for c, found in left.items()}
        scores = [np.array(found.scores) for found in left.values()]
        starts = np.cumsum([0, *map(len, scores)])
        place = choose(np.concatenate(scores))
        which = int(np.searchsorted(starts, place, side="right")) - 1
        child = [*left][which]
        families.append(Family(child, left.pop(child).sets[place - starts[which]]))
    return families


@dataclass
class _Candidates:
    """Sets of parents for one column, and their scores; with ``fewer`` of any size, else of one."""

    sets: list[Attributes] = field(default_factory=lambda: [()])
    scores: list[float] = field(default_factory=lambda: [0.0])

    @property
    def size(self) -> int:
        """Of the largest set."""
        return len(self.sets[-1])

    def only(self, count: int) -> _Candidates:
        """Without smaller sets, if there is one of that size."""
        if self.size != count or len(self.sets[0]) == count:
            return self
        kept = [i for i, parents in enumerate(self.sets) if len(parents) == count]
        return _Candidates([self.sets[i] for i in kept], [self.scores[i] for i in kept])


@dataclass(frozen=True, eq=False)
class _Counting:
    """Tables of counts of a column and its parents, and their scores; ``codes`` has shape (d, n)."""

    codes: Codes
    sizes: tuple[int, ...]
    most_cells: int
    score: Callable[[Floats], float]

    def add(self, parents: Attributes, to: Mapping[int, _Candidates]) -> None:
        """One more set of parents for some columns, where the table does not get too large."""
        cells = cells_of(self.sizes, parents)
        fitting = {c: found for c, found in to.items() if cells * self.sizes[c] <= self.most_cells}
        if not fitting:
            return
        group = np.ravel_multi_index(tuple(self.codes[[*parents]]), tuple(self.sizes[a] for a in parents))
        for child, found in fitting.items():
            k = self.sizes[child]
            joint = np.bincount(group * k + self.codes[child], minlength=cells * k).reshape(cells, k)
            found.sets.append(parents)
            found.scores.append(self.score(joint.astype(np.float64)))


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
