"""Every set of known columns tried on every person, and what came of it in each half of the people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Self

import numpy as np

from synth_audit.audits.privacy._asked_people import AskedPeople
from synth_audit.audits.privacy.partial_knowledge.column_sets import ColumnSets
from synth_audit.audits.privacy.partial_knowledge.derived_sets import following
from synth_audit.core.arrays import Bools, Floats, Positions
from synth_audit.encoding.known_columns import SECRET_STEP, KnownColumn
from synth_audit.kernels.held_out import CAUTION, ClaimTable
from synth_audit.kernels.partial_match import KnownCells

TOLERANCE = 0.045
"""Robust ranges by which a guessed number may be off: 5 % of the range of the central nine tenths."""

_CAUTION_EQUAL = 2.0
"""Standard errors by which claims from many equal values must stand out: of many, some do by chance."""

_FEWEST_GAPS = 0.05
"""Share of people whose value is missing, or is not, from which on it is a secret whether it is."""

_FEWEST_EQUAL = 3
"""Columns drawn together from which on claims are made of all equal rows too."""

_NO_GUESS = -1.0
"""What a release row guesses that has no value there: no secret lies near it."""


@dataclass(frozen=True)
class Knowledge:
    """What an adversary knows.

    Attributes:
        known: positions of columns. equal: all values must be equal, and a claim is made of whoever has a row
            where they are.
        halves: of the people that may choose it; not the one in which it was not looked for, for where it
            was it stands out by selection.
        together: it was tried since the generator drew these columns together.
    """

    known: tuple[int, ...]
    equal: bool = False
    halves: tuple[int, ...] = (0, 1)
    together: bool = False

    @property
    def caution(self) -> float:
        """Standard errors by which claims must stand out to be the worst."""
        return _CAUTION_EQUAL if self.equal else CAUTION


@dataclass(frozen=True, eq=False)
class ClaimsOfSet:
    """What one set of known columns came to.

    Attributes:
        secrets: positions of the other columns' secrets.
        who: people claimed, ascending. made, right: claims about them, shape (claimed, secrets).
    """

    secrets: Positions
    who: Positions
    made: Bools
    right: Bools


@dataclass(frozen=True, eq=False)
class Attacks:
    """All that was tried.

    Attributes:
        tried: what was known.
        table: claims of every set about every other column. pairs: position in ``tried``, and of the secret.
    """

    search: _Search
    sets: ColumnSets
    people: AskedPeople
    alpha: float
    tried: Sequence[Knowledge]
    table: ClaimTable
    pairs: Sequence[tuple[int, int]]

    def worst_pair(self, half: int, *, told: bool = True) -> int:
        """Position in ``pairs`` of what gives most people away in one half, of what that half may choose.

        Args:
            told: whether the adversary knows which columns were drawn together.
        """
        of = [self.tried[i] for i, _ in self.pairs]
        able = np.array([half in k.halves and (told or not k.together) for k in of])
        return self.table.worst(half, able, np.array([k.caution for k in of]))

    def again(self, knowledge: Knowledge, about: int | None = None) -> ClaimsOfSet:
        """One attack, person by person; about one secret alone, where it is given."""
        return self.search.claims(knowledge, self.people, self.alpha, about)

    def name(self, column: int) -> str:
        """Of the column at a position, or of that of a secret."""
        return self.search.columns[int(self.search.owners[column])].name

    def plain(self, column: int) -> tuple[int, ...]:
        """The columns of the table that the one at a position, or that of a secret, is made of."""
        place = int(self.search.owners[column])
        return self.search.columns[place].parents or (place,)

    def secret(self, secret: int) -> str:
        """What a claim is about."""
        gap = secret >= len(self.search.columns)
        return f"whether {self.name(secret)} is missing" if gap else self.name(secret)


def attack_all(
    columns: Sequence[KnownColumn], sets: ColumnSets, n_release: int, people: AskedPeople, alpha: float
) -> Attacks:
    """Try every set.

    Args:
        columns: rows of the release first, then those of the people.
    """
    search = _Search.of(columns, n_release)
    tried = _knowledge(sets)
    counts, pairs = [np.zeros((4, 2, 0))], []
    for i, knowledge in enumerate(tried):
        found = search.claims(knowledge, people, alpha)
        both = [people.counted(what, found.who) for what in (found.made, found.right)]
        counts.append(np.concatenate(list(zip(*both, strict=True))))
        pairs += [(i, int(j)) for j in found.secrets]
    table = ClaimTable(people.sizes, *np.concatenate(counts, axis=2))
    return Attacks(search, sets, people, alpha, tried, table, pairs)


def _knowledge(sets: ColumnSets) -> list[Knowledge]:
    """All sets, each once for each half that may choose it."""
    drawn = dict.fromkeys(sets.drawn)
    by_set: dict[tuple[int, ...], tuple[int, ...]] = {}
    for half, guided in enumerate(sets.guided):
        for s in guided:
            if s not in drawn:
                by_set[s] = (*by_set.get(s, ()), half)
    found = [Knowledge(s) for s in sets.drawn]
    found += [Knowledge(s, halves=halves) for s, halves in by_set.items()]
    found += [Knowledge(s) for s in sets.derived]
    found += [Knowledge(s, together=True) for s in sets.together if s not in drawn and s not in by_set]
    found += [Knowledge(s, equal=True) for s in sets.weak]
    # Of labels that tell little each many strangers share all but one too: a claim need not be rare.
    equal = [s for s in sets.together if len(s) >= _FEWEST_EQUAL and s not in sets.weak]
    return found + [Knowledge(s, equal=True, together=True) for s in equal]


@dataclass(frozen=True, eq=False)
class _Search:
    """Columns prepared for many searches.

    Attributes:
        secrets: every cell of the people, then whether it is missing, of columns where that is a secret;
            shape (people, secrets).
        owners: position of each secret's column.
    """

    columns: Sequence[KnownColumn]
    n_release: int
    secrets: Floats
    owners: Positions

    @classmethod
    def of(cls, columns: Sequence[KnownColumn], n_release: int) -> Self:
        secrets = np.column_stack([c.secret(slice(n_release, None)) for c in columns])
        missing = np.isnan(secrets)
        share = missing.mean(axis=0)
        plain = np.array([not c.parents for c in columns])
        gaps = np.flatnonzero((np.minimum(share, 1 - share) >= _FEWEST_GAPS) & plain)
        secrets = np.hstack([secrets, missing[:, gaps] * SECRET_STEP])
        owners = np.concatenate([np.arange(len(columns)), gaps])
        return cls(columns, n_release, secrets, owners)

    def claims(
        self, knowledge: Knowledge, people: AskedPeople, alpha: float, about: int | None = None
    ) -> ClaimsOfSet:
        """Look all people up by the known columns."""
        matches = self._cells(knowledge).matches()
        told = following(knowledge.known, [c.parents for c in self.columns])
        # A difference to what is known is another form of the other column, which is a secret itself.
        told |= {i for i, c in enumerate(self.columns) if told.intersection(c.parents)}
        secrets = np.flatnonzero(~np.isin(self.owners, list(told)))
        secrets = secrets if about is None else np.array([about])
        who = np.flatnonzero(matches.equal if knowledge.equal else matches.claimed(~people.member, alpha))
        guesses = matches.guesses(who, partial(self._votes, secrets), TOLERANCE)
        truth = self.secrets[who][:, secrets]
        made = ~np.isnan(guesses) & ~np.isnan(truth)
        off = np.where(made, np.abs(guesses - truth), np.inf)
        return ClaimsOfSet(secrets, who, made, off <= TOLERANCE)

    def _votes(self, secrets: Positions, rows: Positions) -> Floats:
        """Some secrets of some rows of the release as guesses, shape (rows, secrets)."""
        found = np.empty((len(rows), len(secrets)))
        for place, i in enumerate(secrets):
            cells = self.columns[self.owners[i]].secret(rows)
            gap = i >= len(self.columns)
            found[:, place] = np.isnan(cells) * SECRET_STEP if gap else np.nan_to_num(cells, nan=_NO_GUESS)
        return found

    def _cells(self, knowledge: Knowledge) -> KnownCells:
        if knowledge.equal:
            return KnownCells([self.columns[i].values for i in knowledge.known], (), (), self.n_release)
        known = [self.columns[i] for i in knowledge.known]
        return KnownCells(
            [column.labels for column in known],
            [rank for column in known for rank in column.ranks.T],
            [level for column in known for level in column.levels],
            self.n_release,
        )
