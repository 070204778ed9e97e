"""Who is looked up in a release by attackers who know part of a record: people of either side, in halves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from synth_audit.audits._targets import drawn
from synth_audit.core.arrays import Bools, Floats, Positions
from synth_audit.core.entities import key_columns, persons
from synth_audit.core.table import Table
from synth_audit.encoding.known_columns import SECRET_STEP, KnownColumn
from synth_audit.kernels.co_agreement import co_agreement


@dataclass(frozen=True, eq=False)
class AskedPeople:
    """Who is looked up: train people first, then control people, each once.

    Attributes:
        train, control: positions in their tables, ascending.
        second: who is in the second half, shape (people,).
    """

    train: Positions
    control: Positions
    second: Bools

    @classmethod
    def halved(cls, train: Positions, control: Positions, rng: np.random.Generator) -> Self:
        """Halve either side at random."""
        sides = [rng.permutation(len(rows)) < len(rows) // 2 for rows in (train, control)]
        return cls(train, control, np.concatenate(sides))

    @cached_property
    def member(self) -> Bools:
        """Who is in train, shape (people,)."""
        return np.arange(len(self.train) + len(self.control)) < len(self.train)

    def of(self, half: int) -> Bools:
        """Who is in a half, shape (people,)."""
        judged: Bools = self.second == bool(half)
        return judged

    @property
    def sizes(self) -> Floats:
        """Train people in each half, shape (2,)."""
        return np.array([(self.member & self.of(half)).sum() for half in (0, 1)], np.float64)

    def counted(self, what: Bools, who: Positions | None = None) -> Floats:
        """How many there are on each side and in each half.

        Args:
            what: of people, by column, shape (people, columns). who: which people these are; all in order if
                left out.

        Returns:
            of train, then of control; shape (2, 2, columns).
        """
        rows = slice(None) if who is None else who
        found = [
            [what[(side & self.of(half))[rows]].sum(axis=0) for half in (0, 1)]
            for side in (self.member, ~self.member)
        ]
        return np.array(found, np.float64)


def different_people(table: Table, most: int, rng: np.random.Generator) -> Positions:
    """At most so many rows of a table, drawn at random, of different people, one each, ascending.

    Which of somebody's rows it is, is drawn as well: a release may give away later rows than the first.
    """
    rows = drawn(np.arange(table.n_rows), most, rng)
    if not key_columns(table.schema):
        return rows
    shuffled = rng.permutation(rows)
    return np.sort(shuffled[np.unique(persons(table.take(shuffled)), return_index=True)[1]])


def looked_at(columns: Sequence[KnownColumn], n_release: int, people: AskedPeople, half: int) -> Floats:
    """How much each pair of columns stands out on one half of the people; see :func:`co_agreement`.

    Args:
        columns: rows of the release first, then those of the people.
    """
    chosen = n_release + np.flatnonzero(people.of(half))
    cells = ((c.known_place(slice(n_release)), c.known_place(chosen)) for c in columns)
    return co_agreement(cells, people.member[people.of(half)], SECRET_STEP)
