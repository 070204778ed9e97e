"""Sets of a few telling columns and others that tell little, by which single rows are shared with people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from synth_audit.audits.privacy._asked_people import AskedPeople
from synth_audit.core.arrays import Positions
from synth_audit.encoding.known_columns import SECRET_STEP, KnownColumn
from synth_audit.kernels.grown_blocks import grown_blocks, rare_blocks, recognised
from synth_audit.kernels.recognition import FEWEST_STRANGERS, SharedSets
from synth_audit.kernels.shared_windows import window_width

_MOST_SETS, _MOST_ROWS = 40, 4000
"""Sets of telling columns and others that either half of the people grows, and rows of a release in which
they do: among more rows two numbers and a few answers are nobody's own."""

_FEWEST_COLUMNS, _MOST_COLUMNS = 5, 40
"""Columns from which on such sets are looked for, and of how many, those with most different values."""

_MOST_RARE = 8
"""Sets that people share with the release alone."""

_SUREST = 4
"""Of these so many are also what somebody knows who looks people up, and claims the other columns."""

_NEXT, _WIDER = 1, (0.03, 0.06)
"""Rows that share a number where it was copied as it is: strangers hardly do; and shares of the release that
share it, for sets that hold where numbers were moved or swapped."""


@dataclass(frozen=True, eq=False)
class GrownSet:
    """Columns that train people share with single rows more than strangers do.

    Attributes:
        columns: positions, ascending. halves: of the people on which it grew, which alone may choose it.
        recognised: whom it recognises. rank: place among those of its width there, the surest 0.
        sideless: nobody's side led to it, and either half may choose it.
    """

    columns: tuple[int, ...]
    halves: tuple[int, ...]
    recognised: Positions
    rank: int
    sideless: bool = False

    def known(self) -> list[tuple[int, ...]]:
        """What somebody may know of them: all, and of those that stand out most all but one, the secret."""
        but_one = combinations(self.columns, len(self.columns) - 1) if len(self.columns) > 2 else ()
        return [self.columns] * (self.rank < _SUREST) + [*but_one] * (self.rank == 0)


def grown_sets(columns: Sequence[KnownColumn], n_release: int, people: AskedPeople) -> list[GrownSet]:
    """Sets of telling columns and others together, for each of several widths in which a number is shared.

    Args:
        columns: rows of the release first, then those of the people.
    """
    plain = [i for i, c in enumerate(columns) if not c.parents]
    if n_release > _MOST_ROWS or len(plain) < _FEWEST_COLUMNS:
        return []
    order = np.argsort([-int(columns[i].values.max()) for i in plain], kind="stable")
    plain = sorted(plain[i] for i in order[:_MOST_COLUMNS])
    cells = np.column_stack([columns[i].known_secret() for i in plain])
    release, asked = cells[:n_release], cells[n_release:]
    least, found = window_width(n_release), []
    for width in (_NEXT, least, *(max(least, round(part * n_release)) for part in _WIDER)):
        halves: dict[tuple[int, ...], list[int]] = {}
        rank: dict[tuple[int, ...], int] = {}
        for half in (0, 1):
            chosen = people.of(half)
            grown = grown_blocks(release, asked, people.member, chosen, SECRET_STEP, _MOST_SETS, width)
            for place, s in enumerate(grown):
                halves.setdefault(s, []).append(half)
                rank[s] = min(place, rank.get(s, place))
        hits = recognised(release, asked, list(halves), SECRET_STEP, width)
        found += [
            GrownSet(tuple(plain[i] for i in s), tuple(of), hit, rank[s])
            for (s, of), hit in zip(halves.items(), hits, strict=True)
        ]
    if len(people.control) >= FEWEST_STRANGERS:
        for s, who in rare_blocks(release, asked, SECRET_STEP, _MOST_RARE):
            found.append(GrownSet(tuple(plain[i] for i in s), (0, 1), who, _SUREST, sideless=True))
    return found


def beside(shared: SharedSets, grown: Sequence[GrownSet]) -> SharedSets:
    """Those sets, and the grown ones, which either half may choose that they grew on."""
    for sideless in (False, True):
        some = [g for g in grown if g.sideless is sideless]
        able = np.array([[half in g.halves for g in some] for half in (0, 1)], dtype=bool).reshape(2, -1)
        columns, hits = [g.columns for g in some], [g.recognised for g in some]
        shared = shared.beside(columns, hits, able, sideless=sideless)
    return shared
