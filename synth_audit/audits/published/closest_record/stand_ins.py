"""People of train who stand in for strangers where control has few."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from synth_audit.core.arrays import Integers, Positions
from synth_audit.core.entities import entities_of, key_columns, persons
from synth_audit.core.subject import Subject

ENOUGH_STRANGERS = 2_000
"""Control rows from which on nobody stands in."""


@dataclass(frozen=True, eq=False)
class StandIns:
    """Some rows of train, each as far from the others as a stranger is from train.

    Chance alone divided people into train and control. So how near a person of train is to the other people
    there has the distribution that a stranger's distance has, but for one row in n; and no release can move
    it. That is known of divisions that this program made, and of no others: who holds back a person's key
    divides rows by chance and has one person's rows on one side all the same.

    Attributes:
        rows: their positions, ascending. whose: number of the entity of each row of train, whose other rows
            are not looked at; None where every row is one.
    """

    rows: Positions
    whose: Integers | None

    @classmethod
    def of(cls, subject: Subject, rng: np.random.Generator) -> Self | None:
        """As many as control lacks of :data:`ENOUGH_STRANGERS`; None where nobody can or need stand in."""
        assert subject.control is not None
        missing = ENOUGH_STRANGERS - subject.control.n_rows
        if subject.random_split is None or not subject.random_split.ours or missing <= 0:
            return None
        n, whose = subject.train.n_rows, _entities(subject)
        if whose is not None and whose.min() == whose.max():
            return None
        rows = np.arange(n) if n <= missing else np.sort(rng.choice(n, missing, replace=False))
        return cls(rows, whose)


def _entities(subject: Subject) -> Integers | None:
    """Numbers of those who had a coin: of equal rows without a key one, or each, as they were divided."""
    train = subject.train
    if key_columns(train.schema):
        return persons(train)
    found = np.unique(np.array(entities_of(train), dtype=object), return_inverse=True)[1]
    own = np.flatnonzero(subject.own_coins)
    found[own] = len(found) + own
    return None if len(np.unique(found)) == len(found) else found
