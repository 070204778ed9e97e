"""Trees of cliques for tables of counts that overlap (Lauritzen & Spiegelhalter 1988)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from synth_audit.kernels.cell_counts import Attributes, cells_of


@dataclass(frozen=True)
class JunctionTree:
    """Cliques of columns, so that those which share a column hang together.

    Attributes:
        sizes: cells of every column.
        cliques: each in ascending order; a parent stands before its children, the root first.
        parents: the position of each clique's parent; −1 for the root.
    """

    sizes: tuple[int, ...]
    cliques: tuple[Attributes, ...]
    parents: tuple[int, ...]

    @classmethod
    def of(cls, sizes: Sequence[int], together: Iterable[Attributes]) -> JunctionTree:
        """The tree in which each of these sets of columns lies in some clique, and every column in one."""
        cliques = _cliques(sizes, together)
        order, parents = [0], [-1]
        best = {i: (len(set(cliques[0]) & set(cliques[i])), 0) for i in range(1, len(cliques))}
        while best:  # Prim's tree of the largest overlaps has the running intersection property
            chosen = max(best, key=lambda i: (best[i][0], -i))
            parents.append(best.pop(chosen)[1])
            order.append(chosen)
            for i, (overlap, _) in best.items():
                shared = len(set(cliques[chosen]) & set(cliques[i]))
                if shared > overlap:
                    best[i] = (shared, len(order) - 1)
        return cls(tuple(sizes), tuple(cliques[i] for i in order), tuple(parents))

    @cached_property
    def separators(self) -> tuple[Attributes, ...]:
        """What each clique shares with its parent; nothing for the root."""
        return tuple(
            () if parent < 0 else tuple(a for a in clique if a in self.cliques[parent])
            for clique, parent in zip(self.cliques, self.parents, strict=True)
        )

    @property
    def cells(self) -> int:
        """Cells of all cliques."""
        return sum(cells_of(self.sizes, clique) for clique in self.cliques)

    def holder(self, attributes: Attributes) -> int | None:
        """The smallest clique that has all these columns; None if there is none."""
        wanted = set(attributes)
        found = [i for i, clique in enumerate(self.cliques) if wanted <= set(clique)]
        return min(found, key=lambda i: cells_of(self.sizes, self.cliques[i])) if found else None

    def connecting(self, attributes: Attributes) -> list[int]:
        """The cliques of the smallest subtree that holds all these columns, ascending."""
        wanted = set(attributes)
        kept = set(range(len(self.cliques)))
        while True:
            spare = next((i for i in sorted(kept) if len(kept) > 1 and self._idle(i, kept, wanted)), None)
            if spare is None:
                return sorted(kept)
            kept.remove(spare)

    def _idle(self, clique: int, kept: set[int], wanted: set[int]) -> bool:
        """True for a leaf of what is kept that adds none of the columns to its neighbour."""
        beside = [i for i in kept if self.parents[i] == clique]
        beside += [self.parents[clique]] * (self.parents[clique] in kept)
        return len(beside) == 1 and wanted & set(self.cliques[clique]) <= set(self.cliques[beside[0]])


def _cliques(sizes: Sequence[int], together: Iterable[Attributes]) -> list[Attributes]:
    """Maximal cliques of the graph, made chordal by taking out the column of the smallest table first."""
    beside: list[set[int]] = [set() for _ in sizes]
    for members in together:
        for a, b in combinations(members, 2):
            beside[a].add(b)
            beside[b].add(a)
    left = set(range(len(sizes)))
    found: list[set[int]] = []
    while left:
        column = min(left, key=lambda a: (cells_of(sizes, (a, *beside[a])), a))
        clique = {column} | beside[column]
        if not any(clique <= other for other in found):
            found.append(clique)
        for a in beside[column]:
            beside[a] |= beside[column] - {a}
            beside[a].discard(column)
        left.remove(column)
    return [tuple(sorted(clique)) for clique in found]
