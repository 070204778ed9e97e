"""Claims about people by what rows of the release agree on that are nearest in a few known columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Self

import numpy as np

from synth_audit.arrays import Bools, Floats, Positions
from synth_audit.audits.privacy._known_columns import SECRET_STEP, KnownColumn
from synth_audit.audits.privacy._known_sets import AskedPeople
from synth_audit.audits.privacy.partial_knowledge.column_sets import Knowledge, following
from synth_audit.audits.privacy.partial_knowledge.nearest import NearestRows
from synth_audit.findings.measurement import Interval, IntervalEstimate
from synth_audit.stats.cross_fitting import mean_of_halves
from synth_audit.stats.resampling import critical_value

TOLERANCE = 0.045
"""Robust ranges by which a guessed number may be off: 5 % of the range of the central nine tenths."""

_FEWEST_GAPS = 0.05
"""Share of people whose value is missing, or is not, from which on it is a secret whether it is."""

_NO_GUESS = -1.0
"""What a release row guesses that has no value there: no secret lies near it."""

_FEWEST_CLAIMED = 10
"""Control people of a half of whom claims must be made; where hardly any are, single columns tell enough."""


@dataclass(frozen=True, eq=False)
class SetClaims:
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
class Adversary:
    """One who looks all people up by whatever columns are known.

    Attributes:
        columns: rows of the release first, ``n_release`` of them, then those of the people.
        alpha: share of control that is near enough for a claim.
        secrets: every cell of the people, then whether it is missing, of columns where that is a secret;
            shape (people, secrets).
        owners: position of each secret's column.
    """

    columns: Sequence[KnownColumn]
    n_release: int
    people: AskedPeople
    alpha: float
    secrets: Floats
    owners: Positions

    @classmethod
    def of(cls, columns: Sequence[KnownColumn], n_release: int, people: AskedPeople, alpha: float) -> Self:
        """Read the secrets."""
        secrets = np.column_stack([c.secret(slice(n_release, None)) for c in columns])
        missing = np.isnan(secrets)
        share = missing.mean(axis=0)
        plain = np.array([not c.parents for c in columns])
        gaps = np.flatnonzero((np.minimum(share, 1 - share) >= _FEWEST_GAPS) & plain)
        secrets = np.hstack([secrets, missing[:, gaps] * SECRET_STEP])
        owners = np.concatenate([np.arange(len(columns)), gaps])
        return cls(columns, n_release, people, alpha, secrets, owners)

    def name(self, column: int) -> str:
        """Of the column at a position, or of that of a secret."""
        return self.columns[int(self.owners[column])].name

    def plain(self, column: int) -> tuple[int, ...]:
        """The columns of the table that the one at a position, or that of a secret, is made of."""
        place = int(self.owners[column])
        return self.columns[place].parents or (place,)

    def claims(self, knowledge: Knowledge, about: int | None = None) -> SetClaims:
        """Look all people up by the known columns; about one secret alone, where it is given."""
        nearest = self._nearest(knowledge)
        told = following(knowledge.known, [c.parents for c in self.columns])
        # A difference to what is known is another form of the other column, which is a secret itself.
        told |= {i for i, c in enumerate(self.columns) if told.intersection(c.parents)}
        secrets = np.flatnonzero(~np.isin(self.owners, list(told)))
        secrets = secrets if about is None else np.array([about])
        near = nearest.equal if knowledge.equal else nearest.claimed(~self.people.member, self.alpha)
        who = np.flatnonzero(near)
        guesses = nearest.guesses(who, partial(self._votes, secrets), TOLERANCE)
        truth = self.secrets[who][:, secrets]
        made = ~np.isnan(guesses) & ~np.isnan(truth)
        off = np.where(made, np.abs(guesses - truth), np.inf)
        return SetClaims(secrets, who, made, off <= TOLERANCE)

    def _nearest(self, knowledge: Knowledge) -> NearestRows:
        known = [self.columns[i] for i in knowledge.known]
        if knowledge.equal:
            return NearestRows.of([column.values for column in known], (), (), self.n_release)
        return NearestRows.of(
            [column.labels for column in known],
            [rank for column in known for rank in column.ranks.T],
            [level for column in known for level in column.levels],
            self.n_release,
        )

    def _votes(self, secrets: Positions, rows: Positions) -> Floats:
        """Some secrets of some rows of the release as guesses, shape (rows, secrets)."""
        found = np.empty((len(rows), len(secrets)))
        for place, i in enumerate(secrets):
            cells = self.columns[self.owners[i]].secret(rows)
            gap = i >= len(self.columns)
            found[:, place] = np.isnan(cells) * SECRET_STEP if gap else np.nan_to_num(cells, nan=_NO_GUESS)
        return found


def pooled_excess(
    adversary: Adversary, blocks: Sequence[tuple[int, ...]], level: float
) -> IntervalEstimate | None:
    """Share of train people claimed rightly beyond luck, on average over the columns of a block.

    The worse block of one half of the people is measured on the other, both ways. None without a block, or
    where hardly a claim is made about control.
    """
    people, shares = adversary.people, []
    for block in blocks:
        made, right = (np.zeros(len(people.member)) for _ in range(2))
        for secret in block:
            known = tuple(i for i in block if i != secret)
            found = adversary.claims(Knowledge(known, equal=True), about=secret)
            made[found.who] += found.made[:, 0] / len(block)
            right[found.who] += found.right[:, 0] / len(block)
        shares.append((made, right))
    halves = []
    for half in (0, 1):
        able = []
        for made, right in shares:
            chooses, judges = (
                excess_of_shares(made, right, people.member, people.of(h), level) for h in (1 - half, half)
            )
            if chooses and judges:
                able.append((chooses.value, judges))
        if not able:
            return None
        halves.append(max(able, key=lambda pair: pair[0])[1])
    return mean_of_halves(halves, level)


def excess_of_shares(
    made: Floats, right: Floats, member: Bools, judged: Bools, level: float
) -> IntervalEstimate | None:
    """``r_t − c_t · r_c / c_c``, r and c being the mean shares claimed rightly and claimed.

    Its interval is by the delta method. Claims about one person hang together, so people are the units.

    Args:
        made, right: shares of a block's columns for each person; member: who is in train; judged: whose
            claims count; shape (people,).
    """
    train, control = judged & member, judged & ~member
    if (made[control] > 0).sum() < _FEWEST_CLAIMED:
        return None
    luck = float(right[control].sum() / made[control].sum())
    beyond = right - luck * made
    more = float(made[train].mean() / made[control].mean())
    error = np.sqrt(beyond[train].var() / train.sum() + more**2 * beyond[control].var() / control.sum())
    value, half_width = float(beyond[train].mean()), critical_value(level) * float(error)
    return IntervalEstimate(
        value, Interval(value - half_width, value + half_width, level, "delta, by person")
    )
