"""Every set of known columns tried on every person, and what came of it in each half of the people."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from synth_audit.arrays import Bools, Codes, Floats, Integers, Positions
from synth_audit.audits._targets import FEWEST_GUESSES, rate
from synth_audit.audits.privacy._known_columns import SECRET_STEP, KnownColumn
from synth_audit.audits.privacy._known_sets import AskedPeople
from synth_audit.audits.privacy.partial_knowledge.column_sets import ColumnSets, following
from synth_audit.errors import NotApplicable
from synth_audit.findings.measurement import (
    Direction,
    Estimate,
    Exposure,
    Findings,
    Interval,
    Measurement,
    Quantity,
    Reference,
    SampleCounts,
)
from synth_audit.plugins.audit import Subject
from synth_audit.stats.attack_success import SuccessCount
from synth_audit.stats.cross_fitting import CAUTION, ClaimTable, mean_of_halves
from synth_audit.stats.proportions import proportion_difference
from synth_audit.stats.resampling import critical_value

MOST_VOTES = 256
"""A claim that rests on more rows would say what is true of a group."""

_MOST_TIED = 3
"""Times the share of control that is near enough, beyond which those tied at the last place are not."""

_SPACE = 1e4
"""Distance between groups of rows whose labels differ, in a search that only looks half as far."""

_WIDEST = 2**62
_MOST_GROUPS = 2**32
_SAME = 1e-9
"""Distances that differ by less are tied."""

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

_FEWEST_CLAIMED = 10
"""Control people of a half of whom claims must be made; where hardly any are, single columns tell enough."""

EXCESS = Quantity(
    "excess_people",
    "People given away to one who knows a few columns",
    range=(-1.0, 1.0),
    proportional=False,  # a claim that is right by luck is no excess, and luck differs by column
    help="Share of people in the training data of whom a further column is claimed rightly, beyond what "
    "claims about strangers come to; 0 is none.",
)

CLAIMED = Quantity(
    "claimed",
    "Training people of whom a claim is made",
    direction=Direction.NEUTRAL,
    help="Those as near to the release as the nearest strangers, on whom all nearest rows agree.",
)

TRAIN_RATE = Quantity(
    "train_rate",
    "Training people claimed rightly",
    direction=Direction.NEUTRAL,
    help="Share of training people of whom a claim is made that is right, in the worst set of columns.",
)

CONTROL_RATE = Quantity(
    "control_rate",
    "Control people claimed rightly",
    direction=Direction.NEUTRAL,
    help="The same for people the generator never saw: what the population gives away, not the release.",
)

QUANTITIES = (EXCESS, CLAIMED, TRAIN_RATE, CONTROL_RATE)

_SIZES = {2: "pairs", 3: "triples", 4: "quadruples", 5: "quintuples"}


@dataclass(frozen=True, eq=False)
class KnownCells:
    """Cells of some columns, those of the release in the first rows.

    Attributes:
        labels: one array of shape (n,) per label that must be equal, each 0 … k−1, in whatever type; at least
            one.
        ranks: one array of shape (n,) for each number, likewise. levels: the number of each rank.
        n_release: m.
    """

    labels: Sequence[npt.NDArray[Any]]
    ranks: Sequence[npt.NDArray[Any]]
    levels: Sequence[Floats]
    n_release: int

    def matches(self) -> NearestCombinations:
        """The nearest rows of the release of every other row."""
        n, m = len((*self.labels, *self.ranks)[0]), self.n_release
        groups = combined(self.labels, n, _MOST_GROUPS)
        cells = combined([groups, *self.ranks], n, _WIDEST)
        combinations = _Combinations.of(cells[:m])
        if not self.ranks:
            found, distance = _equal(combinations, cells[m:])
        elif len(self.ranks) == 1:
            found, distance = self._beside(combinations, cells[m:], groups)
        else:
            found, distance = self._in_tree(combinations, groups)
        return NearestCombinations(combinations, found, distance)

    def _numbers(self, rows: Positions | slice) -> Iterator[Floats]:
        """Each number of some rows."""
        return (level[rank[rows]] for level, rank in zip(self.levels, self.ranks, strict=True))

    def _beside(self, combinations: _Combinations, asked: Codes, groups: Codes) -> tuple[Positions, Floats]:
        """With one number the nearest row stands beside the place where the person would stand."""
        rows, m = combinations.first_rows, self.n_release
        [numbers] = self._numbers(slice(m, None))
        place = np.searchsorted(combinations.cells, asked)
        distance = np.full((len(place), 2), np.inf)
        sides = np.stack([place - 1, place], axis=1)
        for i in range(2):
            row = rows[np.clip(sides[:, i], 0, len(rows) - 1)]
            inside = (sides[:, i] >= 0) & (sides[:, i] < len(rows)) & (groups[row] == groups[m:])
            [others] = self._numbers(row)
            distance[inside, i] = np.abs(others - numbers)[inside]
        least = distance.min(axis=1)
        near = (distance <= least[:, None] + _SAME) & np.isfinite(distance)
        found = np.where(near, sides, -1)
        found = np.where(found[:, :1] < 0, found[:, ::-1], found)
        return np.column_stack([found, np.full(len(found), -1)]), least

    def _in_tree(self, combinations: _Combinations, groups: Codes) -> tuple[Positions, Floats]:
        from scipy.spatial import cKDTree  # here, since a code location must not load it

        first, asked = (
            np.column_stack([*self._numbers(rows), groups[rows] * _SPACE])
            for rows in (combinations.first_rows, slice(self.n_release, None))
        )
        tree = cKDTree(first, balanced_tree=False, compact_nodes=False)
        distance, found = tree.query(asked, k=3, p=1, distance_upper_bound=_SPACE / 2)
        near = (distance <= distance[:, :1] + _SAME) & np.isfinite(distance)
        return np.where(near, found, -1), distance[:, 0]


@dataclass(frozen=True, eq=False)
class _Combinations:
    """The different combinations of cells in the release.

    Attributes:
        order: its rows, equal ones side by side, shape (m,).
        starts: where in ``order`` each combination begins, and m; shape (combinations + 1,).
        cells: each combination, ascending.
    """

    order: Positions
    starts: Positions
    cells: Codes

    @classmethod
    def of(cls, cells: Codes) -> Self:
        order = np.argsort(cells)
        ordered = cells[order]
        starts = np.flatnonzero(np.diff(ordered, prepend=-1) != 0)
        return cls(order, np.append(starts, len(cells)), ordered[starts])

    @property
    def first_rows(self) -> Positions:
        """A row of each."""
        return self.order[self.starts[:-1]]

    @cached_property
    def sizes(self) -> Positions:
        """Rows of each."""
        sizes: Positions = np.diff(self.starts)
        return sizes


@dataclass(frozen=True, eq=False)
class NearestCombinations:
    """The nearest combinations of each person.

    Attributes:
        found: up to three that are equally near, −1 for none, shape (people, 3).
        distance: sum of what numbers differ by; infinite where no row has the labels, shape (people,).
    """

    combinations: _Combinations
    found: Positions
    distance: Floats

    @cached_property
    def crowd(self) -> Integers:
        """Rows at the least distance, shape (people,); more than any if these are of three combinations or
        more, or if there is none."""
        sizes = np.append(self.combinations.sizes, 0)
        crowd = sizes[self.found].sum(axis=1)
        unclear = (self.found[:, 2] >= 0) | (self.found[:, 0] < 0)
        return np.where(unclear, len(self.combinations.order) + 1, crowd)

    def claimed(self, control: Bools, share: float) -> Bools:
        """People as near, and with as few rows as near, as the ``share`` of control that is nearest.

        Where many are tied there, so that three times as many of control would be, only those before them.

        Args:
            control: which of the people are control's, shape (people,).
        """
        where = np.flatnonzero(control)
        order = np.lexsort((self.crowd[where], self.distance[where]))
        last = where[order[max(0, int(np.ceil(share * len(where))) - 1)]]
        level = self.distance == self.distance[last]
        before = (self.distance < self.distance[last]) | (level & (self.crowd < self.crowd[last]))
        tied = level & (self.crowd == self.crowd[last])
        most = min(MOST_VOTES, len(self.combinations.order))
        able = np.isfinite(self.distance) & (self.crowd <= most)
        if (able & (before | tied))[where].sum() <= _MOST_TIED * share * len(where):
            before |= tied
        kept: Bools = able & before
        return kept

    @property
    def equal(self) -> Bools:
        """People who have equal rows, and not too many for a claim, shape (people,)."""
        equal: Bools = (self.distance == 0.0) & (self.crowd <= MOST_VOTES)
        return equal

    def guesses(self, people: Positions, secrets: Callable[[Positions], Floats], tolerance: float) -> Floats:
        """What all nearest rows of each person agree on, NaN where they do not; shape (people, secrets).

        Args:
            people: whose nearest rows are one or two combinations.
            secrets: cells of the release in r of its rows, none NaN, shape (r, secrets).
        """
        used, place = np.unique(self.found[people, :2], return_inverse=True)
        place = place.reshape(len(people), 2)
        rows, starts = _rows_of(self.combinations, used[used >= 0])
        cells = secrets(rows)
        low, high = (
            f.reduceat(cells, starts, axis=0) if len(rows) else cells for f in (np.minimum, np.maximum)
        )
        if len(used) and used[0] < 0:  # none votes for nothing
            low = np.vstack([np.full((1, low.shape[1]), np.inf), low])
            high = np.vstack([np.full((1, high.shape[1]), -np.inf), high])
        least = np.minimum(low[place[:, 0]], low[place[:, 1]])
        most = np.maximum(high[place[:, 0]], high[place[:, 1]])
        return np.where(most - least <= tolerance, least + (most - least) / 2, np.nan)


def combined(codes: Sequence[npt.NDArray[Any]], n: int, most: int) -> Codes:
    """One code for each combination of codes, equal for equal ones, below ``most``; shape (n,).

    The order is that of the last code within the others.
    """
    total, size = np.zeros(n, dtype=np.int64), 1
    for code in codes:
        k = int(code.max(initial=0)) + 1
        if size * k >= most:
            total = np.unique(total, return_inverse=True)[1].astype(np.int64)
            size = int(total.max(initial=0)) + 1
        total, size = total * k + code, size * k
    if size >= most:
        total = np.unique(total, return_inverse=True)[1].astype(np.int64)
    return total


def _equal(combinations: _Combinations, asked: Codes) -> tuple[Positions, Floats]:
    place = np.minimum(np.searchsorted(combinations.cells, asked), len(combinations.cells) - 1)
    there = combinations.cells[place] == asked
    found = np.full((len(asked), 3), -1, dtype=np.intp)
    found[there, 0] = place[there]
    return found, np.where(there, 0.0, np.inf)


def _rows_of(combinations: _Combinations, used: Positions) -> tuple[Positions, Positions]:
    """Rows of some combinations, one after the other, and where each begins."""
    sizes = combinations.sizes[used]
    starts = np.cumsum(sizes) - sizes
    inside = np.arange(int(sizes.sum())) - np.repeat(starts, sizes)
    return combinations.order[np.repeat(combinations.starts[used], sizes) + inside], starts


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
    counts, pairs = [], list[tuple[int, int]]()
    for i, knowledge in enumerate(tried):
        found = search.claims(knowledge, people, alpha)
        counts.append(people.claims(found.made, found.right, found.who))
        pairs += [(i, int(j)) for j in found.secrets]
    return Attacks(search, sets, people, alpha, tried, ClaimTable.joined(counts), pairs)


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


def pooled_excess(attacks: Attacks, blocks: Sequence[tuple[int, ...]], level: float) -> Estimate | None:
    """Share of train people claimed rightly beyond luck, on average over the columns of a block.

    The worse block of one half of the people is measured on the other, both ways. None without a block, or
    where hardly a claim is made about control.
    """
    of_blocks = [_claims(attacks, block) for block in blocks]
    halves = []
    for half in (0, 1):
        found = [_of_halves(attacks, claims, half, level) for claims in of_blocks]
        known = [pair for pair in found if pair is not None]
        if not known:
            return None
        halves.append(max(known, key=lambda pair: pair[0].value)[1])
    return mean_of_halves(halves, level)


def _claims(attacks: Attacks, block: tuple[int, ...]) -> tuple[Floats, Floats]:
    """For each person the share of the block's columns that are claimed, and that are claimed rightly."""
    made, right = (np.zeros(len(attacks.people.member)) for _ in range(2))
    for secret in block:
        known = tuple(i for i in block if i != secret)
        found = attacks.again(Knowledge(known, equal=True), about=secret)
        made[found.who] += found.made[:, 0] / len(block)
        right[found.who] += found.right[:, 0] / len(block)
    return made, right


def _of_halves(
    attacks: Attacks, claims: tuple[Floats, Floats], half: int, level: float
) -> tuple[Estimate, Estimate] | None:
    """What the other half chooses by, and what this one has."""
    of = [
        excess_of_shares(*claims, attacks.people.member, attacks.people.of(h), level)
        for h in (1 - half, half)
    ]
    return None if of[0] is None or of[1] is None else (of[0], of[1])


def excess_of_shares(
    made: Floats, right: Floats, member: Bools, judged: Bools, level: float
) -> Estimate | None:
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
    return Estimate(value, Interval(value - half_width, value + half_width, level, "delta, by person"))


def measured(attacks: Attacks, subject: Subject, requested: int) -> Findings:
    """Findings of the worst sets."""
    level, people = subject.level, attacks.people
    n = min(len(people.train), len(people.control))
    counts = SampleCounts(n_requested=max(requested, n), n_achieved=n, n_minimum=FEWEST_GUESSES)
    if not attacks.pairs:
        raise NotApplicable("a known and a further column are needed")
    notes = [_tried(attacks)]
    excess, worst = _worst_claims(attacks, level)
    pooled = pooled_excess(attacks, attacks.sets.blocks, level)
    if pooled and _high(pooled) > _high(excess):
        excess = pooled
        notes.append("as many are given away on average over the columns of a block that tell little each")
    null = Reference(0.0, "claims about people the generator never saw are right as often")
    found = [EXCESS.at(excess.value, interval=excess.interval, reference=null, **counts)]
    if attacks.sets.together:
        blind, _ = _worst_claims(attacks, level, told=False)
        notes.append(
            f"to one who does not know which columns were drawn together {blind.value:.1%} are given away"
        )
    named = [f"{_known(k, attacks)} claim {attacks.secret(secret)}" for k, secret in worst]
    notes.append("most given away where " + " and ".join(dict.fromkeys(named)))
    exposure = _exposed(attacks, worst)
    found += _rates(exposure, people, requested, level)
    notes += _success(exposure, subject)
    return Findings(tuple(found), notes=tuple(notes), exposures=(exposure,))


def _high(estimate: Estimate) -> float:
    return math.inf if estimate.interval is None else estimate.interval.high


def _worst_claims(
    attacks: Attacks, level: float, *, told: bool = True
) -> tuple[Estimate, list[tuple[Knowledge, int]]]:
    """The worst excess, and for each half by what and about which column it was measured."""
    halves, worst = [], []
    for half in (0, 1):
        pair = attacks.worst_pair(1 - half, told=told)
        halves.append(attacks.table.count(half, pair).excess(level))
        tried, secret = attacks.pairs[pair]
        worst.append((attacks.tried[tried], secret))
    return mean_of_halves(halves, level), worst


def _exposed(attacks: Attacks, worst: Sequence[tuple[Knowledge, int]]) -> Exposure:
    """Of whom the worst set claims the secret in the half where it was measured, and of whom rightly."""
    people = attacks.people
    tried, hit = (np.zeros(len(people.member), dtype=bool) for _ in range(2))
    for half, (knowledge, secret) in enumerate(worst):
        found = attacks.again(knowledge)
        column = int(np.searchsorted(found.secrets, secret))
        here = people.of(half)[found.who]
        tried[found.who[here & found.made[:, column]]] = True
        hit[found.who[here & found.right[:, column]]] = True
    n = len(people.train)
    columns = {
        i for knowledge, secret in worst for of in (*knowledge.known, secret) for i in attacks.plain(of)
    }
    return Exposure(
        measurement=EXCESS.id(),
        columns=tuple(dict.fromkeys(attacks.name(i) for i in sorted(columns))),
        train_tried=people.train[tried[:n]],
        train_hit=people.train[hit[:n]],
        control_tried=people.control[tried[n:]],
        control_hit=people.control[hit[n:]],
    )


def _rates(exposure: Exposure, people: AskedPeople, requested: int, level: float) -> Iterator[Measurement]:
    """How often claims are made, and how often rightly, of all people."""
    n, k = len(people.train), len(people.control)
    yield rate(CLAIMED, SuccessCount(len(exposure.train_tried), n), requested, level)
    yield rate(TRAIN_RATE, SuccessCount(len(exposure.train_hit), n), requested, level)
    yield rate(CONTROL_RATE, SuccessCount(len(exposure.control_hit), k), requested, level)


def _success(exposure: Exposure, subject: Subject) -> Iterator[str]:
    """How often claims are right, of those made, where there are enough to be shown."""
    train = SuccessCount(len(exposure.train_hit), len(exposure.train_tried))
    control = SuccessCount(len(exposure.control_hit), len(exposure.control_tried))
    sides, level = (train, control), subject.level
    if any(min(s.successes, s.guesses - s.successes) < subject.suppression for s in sides):
        return
    ends = [side.interval(level) for side in sides]
    apart = proportion_difference(train.successes, train.guesses, control.successes, control.guesses, level)
    of = [f"{s.share:.0%} ({i.low:.0%} to {i.high:.0%})" for s, i in zip(sides, ends, strict=True)]
    yield (
        f"of the claims made, {of[0]} are right about training people and {of[1]} about control people, "
        f"{apart.low:+.0%} to {apart.high:+.0%} apart"
    )


def _known(knowledge: Knowledge, attacks: Attacks) -> str:
    return ", ".join(dict.fromkeys(attacks.name(i) for i in knowledge.known))


def _tried(attacks: Attacks) -> str:
    """How many of the sets of columns that there are were tried."""
    shares = [f"{tried:,} of {there:,} {_SIZES[k]}" for k, (tried, there) in attacks.sets.shares.items()]
    if derived := attacks.sets.derived:
        shares.append(f"{len(derived)} sets with differences of columns")
    if together := attacks.sets.together:
        shares.append(f"{len(together)} sets of columns that the generator drew together")
    if weak := attacks.sets.weak:
        shares.append(
            f"{len(weak)} sets of {min(map(len, weak))} to {max(map(len, weak))} that tell little each"
        )
    return f"known columns tried: {', '.join(shares) or 'the only one'}"
