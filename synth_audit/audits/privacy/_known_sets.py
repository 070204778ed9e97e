"""Which columns attackers know of which people: sets that are drawn or stand out, and how each was tried."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Self

import numpy as np
import numpy.typing as npt

from synth_audit.arrays import Bools, Floats, Positions
from synth_audit.audits._targets import drawn
from synth_audit.audits.privacy._guesses import risk_at
from synth_audit.audits.privacy._known_columns import SECRET_STEP, KnownColumn, known_columns
from synth_audit.findings.measurement import Interval, IntervalEstimate, Measurement, Quantity
from synth_audit.plugins.audit import Subject
from synth_audit.stats.cross_fitting import ClaimTable, held_out_excess
from synth_audit.table.people import key_columns, persons
from synth_audit.table.schema import Column
from synth_audit.table.table import Table

Places = npt.NDArray[np.int32]


_NEAR = 0.02
"""Share of the release that is near a number."""

_FAR = 10.0
"""A pair of rare values agrees no more than so much: one person must not decide for all."""

_WORK, _FEWEST, _MOST = 2e10, 25, 250
"""Products that may be taken, and people of each side that are looked at in any case and at most."""

_MOST_COLUMNS, _MOST_ROWS = 50, 4_000
"""Columns, and rows of the release, in which a look at all pairs of columns is taken."""

_ROWS = 2**16
"""Rows of the release whose products are taken at a time."""


Names = tuple[str, ...]


Known = tuple[Names, ...]
"""Columns that an attacker knows: in one source, or in each of two."""


FEW = (2, 3, 4, 5)
"""Columns that who knows little knows."""


_ATTEMPTS = 20
"""Draws in a row that may give what is there already."""


@dataclass(frozen=True, eq=False)
class _Windows:
    """Which cells of a release are near to cells of people.

    Attributes:
        places: of each cell of the release among those of its column, shape (d, m).
        first, last: places near to each cell of a person, shape (people, d).
    """

    places: Places
    first: Places
    last: Places

    @classmethod
    def of(cls, columns: Iterable[tuple[Floats, Floats]], step: float) -> Self:
        places, first, last = zip(*(_near_places(*column, step) for column in columns), strict=True)
        return cls(np.array(places), np.column_stack(first), np.column_stack(last))

    def agreement(self, person: int) -> Floats:
        """Rows near in both columns of each pair, in standard deviations of those by chance; (d, d)."""
        first, last = self.first[person], self.last[person]
        d, m = self.places.shape
        both = np.zeros((d, d), np.float32)
        for start in range(0, m, _ROWS):
            places = self.places[:, start : start + _ROWS]
            near = (places >= first[:, None]) & (places <= last[:, None])
            ones = near.astype(np.float32)  # of which products are whole numbers, and sums exact
            both += ones @ ones.T
        counts = last - first + 1.0
        scale = np.where(counts > 0, np.maximum(counts, 1) ** -0.5, 0.0) * m**0.25
        together: Floats = np.minimum(both * np.outer(scale, scale), _FAR)
        return together


def _near_places(release: Floats, people: Floats, step: float) -> tuple[Places, Places, Places]:
    """Of one column the places of the release's cells, and the first and last near to each person's."""
    m, reach = len(release), max(1, round(_NEAR * len(release) / 2))
    ordered = np.sort(release)
    low = np.searchsorted(ordered, people, "left") - reach
    high = np.searchsorted(ordered, people, "right") + reach - 1
    # No further than to other labels.
    low = np.maximum(low, np.searchsorted(ordered, people - step / 2, "left"))
    high = np.minimum(high, np.searchsorted(ordered, people + step / 2, "right") - 1)
    inside = high >= low
    low_value, high_value = ordered[np.clip(low, 0, m - 1)], ordered[np.clip(high, 0, m - 1)]
    last = np.where(inside, np.searchsorted(ordered, high_value, "right") - 1, -1)
    found = (np.searchsorted(ordered, release), np.searchsorted(ordered, low_value, "left"), last)
    places, first, last = (x.astype(np.int32) for x in found)
    return places, first, last


def co_agreement(columns: Iterable[tuple[Floats, Floats]], member: Bools, step: float) -> Floats:
    """How much more train people agree with single rows in two columns at once than strangers, shape (d, d).

    For each person and pair of columns, the number of release rows that are near in both over the square root
    of how many there were if the columns had nothing to do with each other; of that the difference of the
    means of train and control, in standard errors. Near are equal labels, and the nearest 2 % of numbers.

    Args:
        columns: d of them, cells of the release and of people of both sides, none NaN, shape (m,) and
            (people,); each is asked for once. member: who is in train, shape (people,).
        step: what lies further apart is not the same label.
    """
    windows = _Windows.of(columns, step)
    d, m = windows.places.shape
    most = int(np.clip(_WORK / (2 * m * d * d), _FEWEST, _MOST))
    chosen = [np.flatnonzero(member)[:most], np.flatnonzero(~member)[:most]]
    means, errors = [], []
    for rows in chosen:
        total, squares = np.zeros((d, d)), np.zeros((d, d))
        for person in rows:
            found = windows.agreement(int(person))
            total += found
            squares += found * found
        mean = total / len(rows)
        means.append(mean)
        errors.append((np.maximum(squares / len(rows) - mean * mean, 0) + 1 / len(rows)) / len(rows))
    apart: Floats = (means[0] - means[1]) / np.sqrt(errors[0] + errors[1])
    np.fill_diagonal(apart, -np.inf)
    return apart


def strongest_pairs(apart: Floats, most: int) -> list[tuple[int, int]]:
    """The pairs that stand out most, from the largest down."""
    rows, columns = np.triu_indices(len(apart), 1)
    order = np.argsort(-apart[rows, columns], kind="stable")[:most]
    return [(int(rows[i]), int(columns[i])) for i in order]


def grown(apart: Floats, pair: tuple[int, int], size: int) -> tuple[int, ...]:
    """A pair with the columns that stand out most beside all that are in already, ascending."""
    members = list(pair)
    while len(members) < min(size, len(apart)):
        beside = np.clip(apart[members], -_FAR, _FAR).sum(axis=0)
        beside[members] = -np.inf
        members.append(int(np.argmax(beside)))
    return tuple(sorted(members))


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
    def drawn(cls, subject: Subject, most: int, rng: np.random.Generator) -> Self:
        """At most so many different people of either side, each side halved at random."""
        chosen = [different_people(table, most, rng) for table in subject.real]
        halves = [rng.permutation(len(rows)) < len(rows) // 2 for rows in chosen]
        return cls(chosen[0], chosen[1], np.concatenate(halves))

    @cached_property
    def member(self) -> Bools:
        """Who is in train, shape (people,)."""
        return np.arange(len(self.train) + len(self.control)) < len(self.train)

    def of(self, half: int) -> Bools:
        """Who is in a half, shape (people,)."""
        judged: Bools = self.second == bool(half)
        return judged

    def claims(self, made: Bools, right: Bools, who: Positions | None = None) -> ClaimTable:
        """Count claims on each side and in each half.

        Args:
            made, right: of people, by attack, shape (people, attacks). who: which people these are; all in
                order if left out.
        """
        rows = slice(None) if who is None else who
        train, control = ([side & self.of(half) for half in (0, 1)] for side in (self.member, ~self.member))
        cells = [
            np.array([what[people[rows]].sum(axis=0) for people in side], np.float64)
            for side in (train, control)
            for what in (made, right)
        ]
        return ClaimTable(np.array([people.sum() for people in train], np.float64), *cells)


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


@dataclass(frozen=True)
class KnownSets:
    """What an attacker may know, each once.

    Attributes:
        sets: names of columns. halves: of the people that may choose each: what was found by a look at one
            half stands out there by selection, and the other may not choose it.
        n_drawn: how many of them, the first, are drawn at random. n_together: how many follow of columns that
            the generator drew together.
    """

    sets: tuple[Known, ...]
    halves: tuple[tuple[int, ...], ...]
    n_drawn: int
    n_together: int = 0

    @classmethod
    def of(
        cls, drawn: Sequence[Known], guided: Sequence[Sequence[Known]], together: Sequence[Known] = ()
    ) -> KnownSets:
        """Join those that were drawn, or are of columns drawn together, with those that either half found."""
        both = dict.fromkeys((*drawn, *together))
        by_set: dict[Known, tuple[int, ...]] = dict.fromkeys(both, (0, 1))
        for half, found in enumerate(guided):
            for known in dict.fromkeys(found):
                if known not in both:
                    by_set[known] = (*by_set.get(known, ()), half)
        return cls(tuple(by_set), tuple(by_set.values()), len(drawn), len(both) - len(drawn))

    @property
    def told(self) -> str:
        """How many were tried, for a reader."""
        guided = len(self.sets) - self.n_drawn - self.n_together
        told = [f"{self.n_drawn} drawn at random"]
        told += [f"{self.n_together} of columns that the generator drew together"] * bool(self.n_together)
        told += [f"{guided} that stand out"] * bool(guided)
        return " and ".join(told)


def drawn_sets(columns: Names, most: int, rng: np.random.Generator) -> list[Known]:
    """Two, three, four, five and half of the columns, at random and in turn; single ones of two or three."""
    sizes = [k for k in (*FEW, len(columns) // 2) if 2 <= k < len(columns)] or [1]

    def draw(turn: int) -> Known:
        return (_named(columns, rng.choice(len(columns), sizes[turn % len(sizes)], replace=False)),)

    return _different(draw, most)


def drawn_sources(columns: Names, most: int, rng: np.random.Generator) -> list[Known]:
    """Two sources of two, three and five columns each, and halves of all, at random and in turn."""
    half = len(columns) // 2
    sizes = [k for k in (2, 3, 5) if k < half] + [half]

    def draw(turn: int) -> Known:
        k = sizes[turn % len(sizes)]
        order = rng.permutation(len(columns))[: 2 * k if k < half else None]
        one, other = sorted([_named(columns, order[:k]), _named(columns, order[k:])])
        return one, other

    return _different(draw, most)


def _named(columns: Names, positions: Positions) -> Names:
    return tuple(columns[i] for i in sorted(positions))


def _different(draw: Callable[[int], Known], most: int) -> list[Known]:
    """So many different draws, or as many as are found."""
    found: dict[Known, None] = {}
    turn = again = 0
    while len(found) < most and again < _ATTEMPTS:
        before = len(found)
        found[draw(turn)] = None
        turn, again = turn + 1, 0 if len(found) > before else again + 1
    return list(found)


def known_sets(
    subject: Subject,
    names: Names,
    people: AskedPeople,
    n_sets: int,
    rng: np.random.Generator,
    *,
    sources: Literal[1, 2],
    sizes: Sequence[int],
    together: Sequence[Known] = (),
) -> KnownSets:
    """About so many sets of columns: half are drawn, and half grow from pairs that stand out.

    Args:
        sources: among which the columns of a grown set are shared out.
        sizes: to which pairs grow, in turn; empty for none that do. together: sets that are tried as well.
    """
    each = n_sets // 4  # for either half of the people
    random_sets = (drawn_sets if sources == 1 else drawn_sources)(names, n_sets - 2 * each, rng)
    if not each or not sizes or min(len(people.train), len(people.control)) < 2:
        return KnownSets.of(random_sets, (), together)
    columns = [subject.schema[name] for name in names]
    grow_to = [sizes[i % len(sizes)] for i in range(each)]
    grown_sets = [
        [tuple(s[i::sources] for i in range(sources)) for s in half]
        for half in standing_out(subject, columns, people, grow_to, rng)
    ]
    return KnownSets.of(random_sets, grown_sets, together)


def standing_out(
    subject: Subject,
    columns: Sequence[Column],
    people: AskedPeople,
    sizes: Sequence[int],
    rng: np.random.Generator,
) -> list[list[Names]]:
    """For each half of the people the pairs that stand out most, one for each size, each grown to its size.

    All pairs of at most 50 columns are looked at in at most 4,000 rows of the release.
    """
    real = subject.real
    kept = [columns[i] for i in drawn(np.arange(len(columns)), _MOST_COLUMNS, rng)]
    rows = drawn(np.arange(subject.synthetic.n_rows), _MOST_ROWS, rng)
    tables = [subject.synthetic.take(rows)]
    tables += [t.take(who) for t, who in zip(real, (people.train, people.control), strict=True)]
    cells = list(known_columns(tables, kept, real))
    found: list[list[Names]] = [[], []]
    for half in (0, 1) if len(cells) > 1 else ():
        apart = looked_at(cells, len(rows), people, half)
        for pair, size in zip(strongest_pairs(apart, len(sizes)), sizes, strict=False):
            found[half].append(tuple(dict.fromkeys(cells[i].name for i in grown(apart, pair, size))))
    return found


@dataclass(frozen=True, eq=False)
class Trial:
    """One attack on the people, with one set known.

    Attributes:
        known: position of the set. told: what the attack tells, for a reader.
        made, right: on whom it was made and succeeded, shape (people,).
    """

    known: int
    told: str
    made: Bools
    right: Bools


def worst_of_sets(
    quantity: Quantity,
    sets: KnownSets,
    people: AskedPeople,
    trials: Sequence[Trial],
    requested: int,
    level: float,
) -> tuple[Measurement, list[str]]:
    """The largest excess, chosen on one half of the people and measured on the other, both ways.

    Returns:
        NaN where a side has fewer than two people or a half nothing to choose; and what the attacks that were
        measured tell.
    """
    n = min(len(people.train), len(people.control))
    able = np.array([[half in sets.halves[t.known] for t in trials] for half in (0, 1)], np.bool_)
    if n < 2 or not able.any(axis=1).all():
        unknown = IntervalEstimate(math.nan, Interval(-1.0, 1.0, level, "nothing to choose"))
        return risk_at(quantity, unknown, max(requested, n), n), []
    table = people.claims(
        np.column_stack([t.made for t in trials]), np.column_stack([t.right for t in trials])
    )
    excess, chosen = held_out_excess(table, able, level)
    told = list(dict.fromkeys(trials[i].told for i in chosen))
    return risk_at(quantity, excess, max(requested, n), n), told
