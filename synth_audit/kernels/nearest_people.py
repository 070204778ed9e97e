"""By how much a row of the release is nearer to one person than to the next ones: arrays only.

The record that a row was made from outweighs other people's there, also where many rows are as near to the
person. What the row weighs to the next people says how alike people are around it, whichever columns go
together there, of which weights that are added up over columns know nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import numpy as np

from synth_audit.core.arrays import Floats, Floats32, Positions
from synth_audit.kernels.compared_rows import ComparedRows
from synth_audit.kernels.linked_columns import Blocks

_FIRST, _LAST = 1, 4
"""A row must be nearer to a person than to those at these places, on average: one of them may be a twin."""

_FEWEST = 64
"""People that rows must be compared with on average, so that there are next ones."""

_COMPARED = np.float32(-1e4)
"""What any row weighs at least that was compared."""

_Rows: TypeAlias = slice | Positions


class _Block(NamedTuple):
    """Rows compared with one person, by their places in the first order, and what they weigh."""

    person: int
    rows: _Rows
    weights: Floats32


@dataclass(eq=False)
class NearestPeople:
    """The people to whom each row of the release weighs most, found while all are compared once.

    Attributes:
        blocks: which rows are compared with whom.
    """

    blocks: Blocks
    _seen: list[tuple[Positions, Floats32]] = field(default_factory=list, repr=False)

    @property
    def able(self) -> bool:
        """Whether rows are compared with enough people."""
        people = int(self.blocks.starts.shape[1])
        return people * self.blocks.compared >= _FEWEST * self.blocks.n_release

    def take(self, some: ComparedRows) -> None:
        """What rows weigh to some people, each of whom comes once."""
        if self.able:
            self._seen.append((some.people, some.total))

    def standing_out(self) -> Floats:
        """By how much a row outweighs, to each person, what it weighs to the next ones; shape (n,).

        ``max_r (W(x, r) − mean of the second to fourth largest W(y, r) over all people y)``, at least 0.
        """
        most = np.full((_LAST, self.blocks.n_release), -np.inf, np.float32)
        for _, rows, weights in self._by_person():
            of_rows = most[:, rows]
            _take_in(of_rows, weights)
            most[:, rows] = of_rows
        usual = most[_FIRST:].mean(axis=0)
        usual[usual < _COMPARED] = np.inf  # nobody's: too few people were compared with it
        out = np.zeros(self.blocks.starts.shape[1])
        for person, rows, weights in self._by_person():
            out[person] = max(out[person], float((weights - usual[rows]).max()))
        return out

    def _by_person(self) -> Iterator[_Block]:
        starts, width, places = self.blocks.starts, self.blocks.width, self.blocks.first_place
        for people, totals in self._seen:
            for person, total in zip(people.tolist(), totals, strict=True):
                first = slice(starts[0, person], starts[0, person] + width)
                yield _Block(person, first, total[:width])
                if places is not None:
                    second = slice(starts[1, person], starts[1, person] + width)
                    yield _Block(person, places[second], total[width:])


def _take_in(most: Floats32, weights: Floats32) -> None:
    """Take weights in among the largest of each row, from the largest down, shape (places, rows)."""
    for place in most:
        smaller = np.minimum(place, weights)
        np.maximum(place, weights, out=place)
        weights = smaller
