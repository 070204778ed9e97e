"""Which few columns an attacker knows of a person: sets drawn at random, and those that stand out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from synth_audit.audits._targets import FEWEST_GUESSES, drawn
from synth_audit.audits.privacy._asked_people import AskedPeople, looked_at
from synth_audit.core.arrays import Bools, Floats, Positions
from synth_audit.core.measurement import Interval, Measurement, Quantity, Reference, SampleCounts
from synth_audit.core.schema import Column
from synth_audit.core.subject import Subject
from synth_audit.encoding.known_columns import known_columns
from synth_audit.kernels.co_agreement import grown, strongest_pairs
from synth_audit.kernels.held_out import ClaimTable, held_out_excess

Names = tuple[str, ...]
Known = tuple[Names, ...]
"""Columns that an attacker knows: in one source, or in each of two."""

FEW = (2, 3, 4, 5)
"""Columns that who knows little knows."""

_MOST_COLUMNS, _MOST_ROWS = 50, 4_000
"""Columns, and rows of the release, in which a look at all pairs of columns is taken."""

_ATTEMPTS = 20
"""Draws in a row that may give what is there already."""


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


def parts_of(n_sets: int) -> tuple[int, int]:
    """How many of so many sets are drawn at random, and how many each half of the people looks for."""
    return n_sets - 2 * (n_sets // 4), n_sets // 4


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


@dataclass(frozen=True, eq=False)
class PairsApart:
    """How much each pair of columns stands out on each half of the people.

    Attributes:
        columns: that were looked at, ascending. apart: shape (2, columns, columns).
    """

    columns: Names
    apart: Sequence[Floats]

    @classmethod
    def of(
        cls, subject: Subject, columns: Sequence[Column], people: AskedPeople, rng: np.random.Generator
    ) -> PairsApart:
        """Look at all pairs of at most 50 columns in at most 4,000 rows of the release."""
        assert subject.control is not None
        real = (subject.train, subject.control)
        kept = [columns[i] for i in drawn(np.arange(len(columns)), _MOST_COLUMNS, rng)]
        rows = drawn(np.arange(subject.synthetic.n_rows), _MOST_ROWS, rng)
        tables = [subject.synthetic.take(rows)]
        tables += [t.take(who) for t, who in zip(real, (people.train, people.control), strict=True)]
        cells = list(known_columns(tables, kept, real))
        if len(cells) < 2:
            return cls((), ())
        apart = [looked_at(cells, len(rows), people, half) for half in (0, 1)]
        return cls(tuple(c.name for c in cells), apart)

    def grown(self, half: int, sizes: Sequence[int]) -> list[Names]:
        """The pairs that stand out most on a half, one for each size, each grown to its size."""
        if not self.columns:
            return []
        apart = self.apart[half]
        pairs = strongest_pairs(apart, len(sizes))
        found = [grown(apart, pair, k) for pair, k in zip(pairs, sizes, strict=False)]
        return [tuple(dict.fromkeys(self.columns[i] for i in chosen)) for chosen in found]


@dataclass(frozen=True, eq=False)
class SetTrials:
    """Attacks on the same people, with different columns known.

    Attributes:
        made, right: attacks that were made, and that succeeded, on train and control people in each half,
            shape (2, 2, attacks).
        able: which attacks each half may choose, shape (2, attacks).
    """

    people: AskedPeople
    made: Floats
    right: Floats
    able: Bools

    @classmethod
    def of(
        cls, sets: KnownSets, people: AskedPeople, trials: Sequence[tuple[int, Bools, Bools]]
    ) -> SetTrials:
        """Count, given the position of what was known, and on whom each attack was made and succeeded."""
        made, right = (
            people.counted(np.array([t[i] for t in trials], np.bool_).reshape(len(trials), -1).T)
            for i in (1, 2)
        )
        able = np.array([[half in sets.halves[i] for i, _, _ in trials] for half in (0, 1)], np.bool_)
        return cls(people, made, right, able)

    def worst(self, quantity: Quantity, requested: int, level: float) -> tuple[Measurement, tuple[int, ...]]:
        """The largest excess, chosen on one half of the people and measured on the other, both ways.

        Returns:
            NaN where a side has fewer than two people or a half nothing to choose; and the attacks measured.
        """
        n = min(len(self.people.train), len(self.people.control))
        counts = SampleCounts(n_requested=max(requested, n), n_achieved=n, n_minimum=FEWEST_GUESSES)
        null = Reference(0.0, "as often as for people the generator never saw")
        if n < 2 or not self.able.any(axis=1).all():
            unknown = Interval(-1.0, 1.0, level, "nothing to choose")
            return quantity.at(math.nan, interval=unknown, reference=null, **counts), ()
        cells = (*self.made[:1], *self.right[:1], *self.made[1:], *self.right[1:])
        excess, chosen = held_out_excess(ClaimTable(self.people.sizes, *cells), self.able, level)
        return quantity.at(excess.value, interval=excess.interval, reference=null, **counts), chosen
