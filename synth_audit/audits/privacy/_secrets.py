"""Guesses at secrets: the people attacked, the columns an adversary knows, and the success of guesses."""

import math
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Self, TypeAlias, TypeVar

import numpy as np

from synth_audit.arrays import Bools, Codes, Floats, Positions
from synth_audit.audits._shared import FEWEST_GUESSES, different_people, drawn, random_places
from synth_audit.audits.privacy import _known_columns as pairs
from synth_audit.column_kinds import number_kind
from synth_audit.encode.codes import codes
from synth_audit.encode.encoded import Encoded
from synth_audit.findings import measurement
from synth_audit.neighbours.coordinates import MISSING
from synth_audit.neighbours.gower import Mixed
from synth_audit.neighbours.search import nearest_k
from synth_audit.plugins.audit import Subject
from synth_audit.stats.attack_success import risk
from synth_audit.stats.cross_fitting import CAUTION, SECOND_PART, ClaimTable, held_out_excess
from synth_audit.stats.proportions import Proportion
from synth_audit.table.schema import Column
from synth_audit.table.table import Table

NO_EXCESS = measurement.Reference(0.0, "as often as for people the generator never saw")

FEW = (2, 3, 4, 5)
"""Columns that an adversary who knows little knows."""

CAUTION_EQUAL = 2.0
"""Standard errors by which claims from many equal values must stand out: of many, some do by chance."""

_MOST_COLUMNS, _MOST_ROWS = 50, 4_000
"""Columns, and rows of the release, in which a look at all pairs of columns is taken."""

_ATTEMPTS = 20
"""Draws in a row that may give what is there already."""

_CENTRES = (0.05, 0.01, 0.0)
"""Tails left out of the central range, tried in turn until a range is left."""

_BINS = 20
"""Parts of equal weight into which a model cuts a number; a value as common as a part gets its own."""

_MOST_CLASSES = 64
"""Rarer labels are not told apart by the model, so that its memory does not grow with them."""

Names = tuple[str, ...]

Known = TypeVar("Known", bound=Hashable)


@dataclass(frozen=True, eq=False)
class AskedPeople:
    """The people that are attacked: those of train first, then those of control, each once.

    Attributes:
        train, control: positions in their tables, ascending.
        second: true for people of the second half, shape (people,).
    """

    train: Positions
    control: Positions
    second: Bools

    @classmethod
    def drawn(cls, subject: Subject, most: int, rng: np.random.Generator) -> Self:
        """At most so many different people of either side, each side halved at random."""
        chosen = [different_people(table, most, rng) for table in subject.real]
        halves = [rng.permutation(len(rows)) < int(SECOND_PART * len(rows)) for rows in chosen]
        return cls(chosen[0], chosen[1], np.concatenate(halves))

    @property
    def fewest(self) -> int:
        """People of the smaller side."""
        return min(len(self.train), len(self.control))

    @cached_property
    def member(self) -> Bools:
        """True for people of train, shape (people,)."""
        return np.arange(len(self.second)) < len(self.train)

    def of(self, half: int) -> Bools:
        """True for people of a half, shape (people,)."""
        judged: Bools = self.second == bool(half)
        return judged

    def looked_at(self, columns: Sequence[pairs.KnownColumn], half: int) -> Floats:
        """How much each pair of columns stands out on one half; see :func:`co_agreement`.

        Args:
            columns: rows of the release first, then those of the people.
        """
        n_release = len(columns[0].labels) - len(self.second)
        chosen = n_release + np.flatnonzero(self.of(half))
        rows = pairs.looked_rows(n_release, len(columns))
        cells = ((c.known_place(rows), c.known_place(chosen)) for c in columns)
        return pairs.co_agreement(cells, self.member[self.of(half)], pairs.SECRET_STEP)


@dataclass(frozen=True)
class Knowledge:
    """What an adversary knows.

    Attributes:
        known: columns, by name in each source, or by position.
        halves: of the people that may choose it. A set that was found on one half stands out there by
            selection, so the other half may not choose it.
        together: it was tried because the generator drew these columns together.
        equal: all values must be equal, and every person with an equal row is claimed.
    """

    known: tuple[Any, ...]
    halves: tuple[int, ...] = (0, 1)
    together: bool = False
    equal: bool = False


def by_halves(free: Iterable[Known], guided: Sequence[Iterable[Known]]) -> dict[Known, tuple[int, ...]]:
    """Sets of columns, each once, with the halves of the people that may choose it.

    Args:
        free: sets that both halves may choose. guided: sets that a look at each half found.
    """
    found: dict[Known, tuple[int, ...]] = dict.fromkeys(free, (0, 1))
    both = set(found)
    for half, sets in enumerate(guided):
        found |= {s: (*found.get(s, ()), half) for s in dict.fromkeys(sets) if s not in both}
    return found


@dataclass(frozen=True, eq=False)
class Attacks:
    """Attacks on the people, and how often each was right.

    Attributes:
        tried: what the adversary knew, and the position of the secret. claims: counts, in the same order.
    """

    people: AskedPeople
    tried: list[tuple[Knowledge, int]] = field(default_factory=list)
    claims: list[ClaimTable] = field(default_factory=list)

    def add(
        self,
        knowledge: Knowledge,
        secrets: Iterable[int],
        made: Bools,
        right: Bools,
        who: Positions | None = None,
    ) -> None:
        """Count guesses at secrets on each side and in each half.

        Args:
            made, right: guesses by person, shape (people, secrets).
            who: positions of these people; all in order if left out.
        """
        rows = slice(None) if who is None else who
        member = self.people.member
        train, control = ([side & self.people.of(half) for half in (0, 1)] for side in (member, ~member))
        cells = [
            np.array([what[people[rows]].sum(axis=0) for people in side], np.float64)
            for side in (train, control)
            for what in (made, right)
        ]
        self.claims.append(ClaimTable(np.array([people.sum() for people in train], np.float64), *cells))
        self.tried.extend((knowledge, int(secret)) for secret in secrets)

    def worst(
        self, level: float, *, told: bool = True
    ) -> tuple[measurement.IntervalEstimate, list[tuple[Knowledge, int]]]:
        """The largest excess, chosen on one half of the people and measured on the other, both ways.

        Args:
            told: whether the adversary knows which columns the generator drew together.

        Returns:
            NaN where a side has fewer than two people or a half nothing to choose; and the attack measured on
            each half.
        """
        able = [[half in k.halves and (told or not k.together) for k, _ in self.tried] for half in (0, 1)]
        if self.people.fewest < 2 or not all(map(any, able)):
            anything = measurement.Interval(-1.0, 1.0, level, "nothing to choose")
            return measurement.IntervalEstimate(math.nan, anything), []
        caution = np.array([CAUTION_EQUAL if k.equal else CAUTION for k, _ in self.tried])
        table = ClaimTable.joined(self.claims)
        excess, chosen = held_out_excess(table, np.array(able), level, caution)
        return excess, [self.tried[i] for i in chosen]

    def excess(
        self,
        quantity: measurement.Quantity,
        found: measurement.IntervalEstimate,
        requested: int,
        null: measurement.Reference = NO_EXCESS,
    ) -> measurement.Measurement:
        """Such an excess as a measurement."""
        n = self.people.fewest
        return risk_at(quantity, found, max(requested, n), n, null=null)


def known_sets(
    subject: Subject,
    names: Names,
    people: AskedPeople,
    n_sets: int,
    rng: np.random.Generator,
    *,
    sources: Literal[1, 2],
    sizes: Sequence[int],
    together: Sequence[tuple[Names, ...]] = (),
) -> tuple[list[Knowledge], str]:
    """About so many sets of columns, and how many of each sort for a reader.

    Half are drawn, and half grow from the pairs that stand out most on either half of the people.

    Args:
        sources: among which the columns of a set are shared out.
        sizes: to which pairs grow, in turn; empty for none that do. together: sets that are tried as well.
    """
    each = n_sets // 4  # for either half of the people
    random_sets = (drawn_sets if sources == 1 else drawn_sources)(names, n_sets - 2 * each, rng)
    guided: list[list[tuple[Names, ...]]] = []
    if each and sizes and people.fewest > 1:
        grow_to = [sizes[i % len(sizes)] for i in range(each)]
        found = _standing_out(subject, [subject.schema[name] for name in names], people, grow_to, rng)
        guided = [[tuple(s[i::sources] for i in range(sources)) for s in half] for half in found]
    free = dict.fromkeys([*random_sets, *together])
    sets = by_halves(free, guided)
    counts = {
        "drawn at random": len(random_sets),
        "of columns that the generator drew together": len(free) - len(random_sets),
        "that stand out": len(sets) - len(free),
    }
    told = [f"{n} {sort}" for sort, n in counts.items() if n or sort == "drawn at random"]
    return [Knowledge(s, halves) for s, halves in sets.items()], " and ".join(told)


def _standing_out(
    subject: Subject,
    columns: Sequence[Column],
    people: AskedPeople,
    sizes: Sequence[int],
    rng: np.random.Generator,
) -> list[list[Names]]:
    """For each half of the people the pairs that stand out most, one for each size, each grown to its size.

    All pairs of at most 50 columns are looked at in at most 4,000 rows of the release.
    """
    kept = [columns[i] for i in drawn(np.arange(len(columns)), _MOST_COLUMNS, rng)]
    rows = drawn(np.arange(subject.synthetic.n_rows), _MOST_ROWS, rng)
    tables = [subject.synthetic.take(rows)]
    tables += [t.take(who) for t, who in zip(subject.real, (people.train, people.control), strict=True)]
    cells = list(pairs.known_columns(tables, kept, subject.real))
    found: list[list[Names]] = [[], []]
    for half in (0, 1) if len(cells) > 1 else ():
        apart = people.looked_at(cells, half)
        for pair, size in zip(pairs.strongest_pairs(apart, len(sizes)), sizes, strict=False):
            found[half].append(tuple(dict.fromkeys(cells[i].name for i in pairs.grown(apart, pair, size))))
    return found


def drawn_sets(columns: Names, most: int, rng: np.random.Generator) -> list[tuple[Names, ...]]:
    """Two, three, four, five and half of the columns, at random and in turn; single ones of two or three."""
    sizes = [k for k in (*FEW, len(columns) // 2) if 2 <= k < len(columns)] or [1]

    def draws(turn: int) -> list[Positions]:
        return [rng.choice(len(columns), sizes[turn % len(sizes)], replace=False)]

    return _different(columns, draws, most)


def drawn_sources(columns: Names, most: int, rng: np.random.Generator) -> list[tuple[Names, ...]]:
    """Two sources of two, three and five columns each, and halves of all, at random and in turn."""
    half = len(columns) // 2
    sizes = [k for k in (2, 3, 5) if k < half] + [half]

    def draws(turn: int) -> list[Positions]:
        k = sizes[turn % len(sizes)]
        order = rng.permutation(len(columns))[: 2 * k if k < half else None]
        return [order[:k], order[k:]]

    return _different(columns, draws, most)


def _different(columns: Names, draws: Callable[[int], list[Positions]], most: int) -> list[tuple[Names, ...]]:
    """So many different sets by positions that are drawn in turn, or as many as are found."""
    found: dict[tuple[Names, ...], None] = {}
    turn = again = 0
    while len(found) < most and again < _ATTEMPTS:
        before = len(found)
        found[tuple(sorted(tuple(columns[i] for i in sorted(source)) for source in draws(turn)))] = None
        turn, again = turn + 1, 0 if len(found) > before else again + 1
    return list(found)


def known_columns(subject: Subject, columns: Sequence[Column]) -> Encoded:
    """Train, control and release on the columns that an adversary knows, anchored on all real rows."""
    return Encoded([*subject.real, subject.synthetic], columns, subject.real)


@dataclass(frozen=True, eq=False)
class KnownRows:
    """Rows on the columns that an adversary knows, encoded once: of people, and of the whole release.

    Attributes:
        order: name of the column of each number, then of each label.
        people: positions in train and in control, ascending. train, control: their rows.
    """

    order: Names
    people: tuple[Positions, Positions]
    train: Mixed
    control: Mixed
    release: Mixed

    @classmethod
    def of(cls, columns: Encoded, train: Positions, control: Positions) -> Self:
        """Encode the release, and train and control rows at these positions, which are ascending."""
        return cls(columns.order, (train, control), *columns.mixed([train, control, None]))

    @property
    def varying(self) -> Names:
        """Names of the columns that vary in train, each once."""
        return tuple(dict.fromkeys(self.order))

    def places(self, names: Collection[str]) -> Positions:
        """Where columns stand among the numbers and labels of a row."""
        return np.array([i for i, name in enumerate(self.order) if name in names], dtype=np.intp)

    def without(self, name: str, rows: Mixed) -> Mixed:
        """Encoded rows without a column."""
        for place in self.places([name])[::-1]:
            rows = rows.without(int(place))
        return rows

    def asked(self, train: Positions | None = None, control: Positions | None = None) -> Mixed:
        """Rows of people in train, then in control, at these positions; of all people here if left out.

        One search for both sides, since a search of half as many rows takes more than half as long.
        """
        sides = zip((self.train, self.control), self.people, (train, control), strict=True)
        mine, others = (
            rows if chosen is None else rows.take(np.searchsorted(people, chosen))
            for rows, people, chosen in sides
        )
        return mine.followed_by(others)

    def nearest(self, names: Collection[str], asked: Mixed, k: int, rng: np.random.Generator) -> Positions:
        """Positions of the k release rows nearest by some columns, ties at random, shape (asked, k)."""
        kept, place = self.places(names), random_places(len(self.release), rng)
        return nearest_k(asked.only(kept), self.release.only(kept), k, place)


def exposure(
    of: measurement.MeasurementId, columns: Sequence[str], chosen: Sequence[Positions], hits: Sequence[Bools]
) -> measurement.Exposure:
    """Whom an attack was tried on, and where it was right.

    Args:
        chosen: positions of the rows guessed at, in train and in control. hits: which guesses were right.
    """
    (train, control), (train_hits, control_hits) = chosen, hits
    return measurement.Exposure(of, tuple(columns), train, train[train_hits], control, control[control_hits])


def successes(exposed: measurement.Exposure) -> tuple[Proportion, Proportion]:
    """Guesses at train and at control rows, and how many were right."""
    return (
        Proportion(len(exposed.train_hit), len(exposed.train_tried)),
        Proportion(len(exposed.control_hit), len(exposed.control_tried)),
    )


def success_rate(
    quantity: measurement.Quantity, tally: Proportion, requested: int, level: float, *, column: str = ""
) -> measurement.Measurement:
    """A success rate with its interval."""
    made = int(tally.trials)
    found = tally.estimate(level)
    return quantity.at(found, column=column, n_requested=max(requested, made), n_achieved=made)


def risk_at(
    quantity: measurement.Quantity,
    found: measurement.IntervalEstimate,
    requested: int,
    achieved: float,
    column: str = "",
    null: measurement.Reference = NO_EXCESS,
) -> measurement.Measurement:
    """A risk as a measurement, which needs guesses at enough records of either side."""
    return quantity.at(
        found,
        column=column,
        n_requested=requested,
        n_achieved=int(achieved),
        n_minimum=FEWEST_GUESSES,
        reference=null,
    )


def risk_and_rates(
    quantities: Sequence[measurement.Quantity],
    sides: tuple[Proportion, Proportion],
    requested: int,
    level: float,
    column: str = "",
    null: measurement.Reference = NO_EXCESS,
) -> Iterator[measurement.Measurement]:
    """The risk, then the rates that it comes from, as far as they are asked for; none without a guess.

    Args:
        quantities: of the risk, of the rate on train and of that on control.
        sides: right guesses at train and at control rows.
    """
    achieved = min(side.trials for side in sides)
    yield risk_at(quantities[0], risk(*sides, level), requested, achieved, column, null)
    for quantity, side in zip(quantities[1:], sides, strict=False):
        if side.trials:
            yield success_rate(quantity, side, requested, level, column=column)


@dataclass(frozen=True)
class GuessTolerance:
    """When a guess at a number is right: ``|guess − s| ≤ tolerance · max(C, min(|s|, |s − M|))``.

    s is the secret, M the median of train and C the range of train's central 90 % (of 98 % or all of it where
    the narrower has no length). So a guess is right within the tolerance of the usual range or, far from
    it, relative to the secret. C is not the whole range, or one outlier would make every guess right; |s|
    counts no more than |s − M|, or every guess at a year would be. No sign enters: −100 is no guess at 900.

    Attributes:
        tolerance: relative, in [0, 1).
        centre, median: C and M, in the secret's unit.
    """

    tolerance: float
    centre: float
    median: float

    @classmethod
    def from_train(cls, values: Floats, tolerance: float) -> Self:
        """Measure the present values of train, shape (n,), at least one of them."""
        known = values[~np.isnan(values)]
        ends = (np.quantile(known, [tail, 1 - tail], method="nearest") for tail in _CENTRES)
        # Lengths are finite also where numbers are as far apart as can be.
        most = np.finfo(np.float64).max / 2
        ranges = (2 * float(min(high / 2 - low / 2, most)) for low, high in ends)
        return cls(tolerance, next((x for x in ranges if x > 0), 0.0), _median(known))

    def right(self, guesses: Floats, secrets: Floats) -> Bools:
        """Which guesses are right, shape (n,); a missing guess is wrong."""
        with np.errstate(over="ignore"):  # infinitely far is far
            outlying = np.minimum(np.abs(secrets), np.abs(secrets - self.median))
            allowed = self.tolerance * np.maximum(self.centre, outlying)
            # A hair more, since 1.15 − 1.1 is a little above 0.05.
            close: Bools = np.abs(guesses - secrets) <= allowed * (1 + 1e-9)
        return close

    def typical(self, values: Floats) -> float:
        """The guess of one who knows the population only: the median of the present values."""
        return _median(values[~np.isnan(values)])

    def classes(self, values: Floats) -> tuple[Codes, Floats]:
        """Part of each present value among up to 20 of equal weight, shape (n,), and each part's median."""
        edges = np.unique(np.quantile(values, np.arange(1, _BINS) / _BINS, method="lower"))
        # The sum of both places is one of its own for values equal to an edge.
        places = np.searchsorted(edges, values, "left") + np.searchsorted(edges, values, "right")
        used, part = np.unique(places, return_inverse=True)
        medians = [_median(values[part == i]) for i in range(len(used))]
        return part.astype(np.int64), np.array(medians)


@dataclass(frozen=True)
class Equality:
    """When a guess at a label, given by its code, is right: it is the same; a missing one (NaN) never is."""

    def right(self, guesses: Floats, secrets: Floats) -> Bools:
        """Which guesses are right, shape (n,)."""
        same: Bools = guesses == secrets
        return same

    def typical(self, values: Floats) -> float:
        """The guess of one who knows the population only: the commonest label."""
        return float(self.classes(values[~np.isnan(values)])[1][0])

    def classes(self, values: Floats) -> tuple[Codes, Floats]:
        """Rank of each present label by how common it is, shape (n,), and the label of each rank.

        The rarest share the last rank.
        """
        used, position, counts = np.unique(values, return_inverse=True, return_counts=True)
        by_count = np.argsort(-counts, kind="stable")
        rank = np.empty(len(used), dtype=np.int64)
        rank[by_count] = np.arange(len(used))
        return np.minimum(rank[position], _MOST_CLASSES - 1), used[by_count[:_MOST_CLASSES]]


GuessRule: TypeAlias = GuessTolerance | Equality
"""When a guess at a secret is right, and what can be guessed without a release."""


def column_secret(
    tables: Sequence[Table], column: Column, tolerance: float
) -> tuple[list[Floats], GuessRule]:
    """A secret in each table, train first, as numbers, NaN where missing, and when a guess is right.

    Labels are given by codes that the tables share.

    Args:
        tolerance: relative error at which a guessed number is right, in [0, 1).
    """
    if not number_kind(column):
        return [np.where(x == MISSING, np.nan, x) for x in codes(tables, column)], Equality()
    numbers = [table.numbers(column.name) for table in tables]
    return numbers, GuessTolerance.from_train(numbers[0], tolerance)


def _median(values: Floats) -> float:
    """A middle value that occurs, so that a number which many share can be hit exactly."""
    return float(np.quantile(values, 0.5, method="nearest"))
