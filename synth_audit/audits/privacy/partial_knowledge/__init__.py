"""Partial knowledge: does the release give people away to one who knows a few of their values?"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from synth_audit.arrays import Bools, Codes, Floats, Integers, Positions
from synth_audit.audits._shared import at_least, descriptive, excess_over_control, share
from synth_audit.audits.privacy import _secrets as secrecy
from synth_audit.audits.privacy._known_columns import SECRET_STEP, KnownColumn, known_columns
from synth_audit.audits.privacy.partial_knowledge import column_sets
from synth_audit.audits.privacy.partial_knowledge.grid import reachable
from synth_audit.errors import NotApplicable
from synth_audit.execution.context import RunContext
from synth_audit.findings import measurement
from synth_audit.neighbours.coordinates import stable_order
from synth_audit.plugins.audit import AuditInfo, Leak, Need, Subject
from synth_audit.stats.cross_fitting import mean_of_halves
from synth_audit.stats.proportions import Proportion
from synth_audit.stats.resampling import critical_value

TOLERANCE = 0.045
"""Robust ranges by which a guessed number may be off: 5 % of the range of the central nine tenths."""

_FEWEST_GAPS = 0.05
"""Share of people whose value is missing, or is not, from which on it is a secret whether it is."""

_NO_GUESS = -1.0
"""What a release row guesses that has no value there: no secret lies near it."""

_FEWEST_CLAIMED = 10
"""Control people of a half of whom claims must be made; where hardly any are, single columns tell enough."""

MOST_VOTES = 256
"""A claim that rests on more rows would say what is true of a group."""

_MOST_TIED = 3
"""Times the share of control that is near enough, beyond which those tied at the last place are not."""

_SPACE = 1e4
"""Distance between groups of rows whose labels differ, in a search that only looks half as far."""

_WIDEST = 2**62
"""Combined codes stay below this, so that they fit 64 bits."""
_MOST_GROUPS = 2**32
"""Combined labels stay below this, so that their distance is exact as a float."""
_SAME = 1e-9
"""Distances that differ by less are tied."""
_LARGE = 2**18
"""Rows of the release that are searched whole, 64 for each of 4,000 people: in more of them, so many spread
evenly tell first how far off the nearest ones are at most."""

EXCESS = excess_over_control(
    "excess_people",
    "People given away by the worst set of known columns",
    unit=measurement.PEOPLE,
    proportional=False,  # a claim that is right by luck is no excess, and luck differs by column
    help="Share of people in the training data of whom a further column is claimed rightly, beyond what "
    "claims about control people come to; 0 is none.",
)

CLAIMED = descriptive(
    "claimed",
    "Training people of whom a claim is made",
    help="Those as near to the release as the nearest control people, on whom all nearest rows agree.",
)

TRAIN_RATE = descriptive(
    "train_rate",
    "Training people claimed rightly",
    help="Share of training people of whom a claim is made that is right, in the worst set of columns.",
)

CONTROL_RATE = descriptive(
    "control_rate",
    "Control people claimed rightly",
    help="The same for people the generator never saw: what the population gives away, not the release.",
)


@dataclass(frozen=True, eq=False)
class NearestRows:
    """Rows of the release nearest to each person, equal ones as one combination of cells.

    Attributes:
        order: rows of the release, equal ones side by side, shape (m,).
        starts: where in ``order`` each combination begins, and m; shape (combinations + 1,).
        found: up to three combinations that are equally near, −1 for none, shape (people, 3).
        distance: sum of what numbers differ by; infinite where no row has the labels, shape (people,).
    """

    order: Positions
    starts: Positions
    found: Positions
    distance: Floats

    @classmethod
    def of(
        cls,
        labels: Sequence[npt.NDArray[Any]],
        ranks: Sequence[npt.NDArray[Any]],
        levels: Sequence[Floats],
        n_release: int,
        *,
        whole: bool = False,
    ) -> Self:
        """Look people up who follow the release in every array.

        Args:
            labels: one array of shape (n,) per label that must be equal, each 0 … k−1, in whatever type.
            ranks: one array of shape (n,) for each number, likewise. levels: the number of each rank.
            n_release: m, the first rows.
            whole: search all of them, however many; otherwise those of many that may be nearest to somebody.
        """
        n, m = len((*labels, *ranks)[0]), n_release
        if m > _LARGE and not whole:
            rows = _reached(labels, ranks, levels, m)
            some = np.append(rows, np.arange(m, n))
            few = [x[some] for x in labels], [x[some] for x in ranks]
            among = cls.of(*few, levels, len(rows), whole=True)
            return replace(among, order=rows[among.order])
        groups = combined(labels, n, _MOST_GROUPS)
        cells = combined([groups, *ranks], n, _WIDEST)
        order = np.argsort(cells[:m]) if ranks else stable_order(cells[:m])  # of labels there are few codes
        ordered = cells[order]
        starts = np.flatnonzero(np.diff(ordered, prepend=-1) != 0)
        if ranks:
            first, asked = (
                np.column_stack(
                    [*(x[r[rows]] for x, r in zip(levels, ranks, strict=True)), groups[rows] * _SPACE]
                )
                for rows in (order[starts], slice(m, None))
            )
            from scipy.spatial import cKDTree  # here, since a code location must not load it

            tree = cKDTree(first, balanced_tree=False, compact_nodes=False)
            apart, found = tree.query(asked, k=3, p=1, distance_upper_bound=_SPACE / 2)
            found[(apart > apart[:, :1] + _SAME) | ~np.isfinite(apart)] = -1
            distance = apart[:, 0]
        else:
            first, asked = ordered[starts], cells[m:]
            place = np.minimum(np.searchsorted(first, asked), len(first) - 1)
            there = first[place] == asked
            found = np.full((len(asked), 3), -1, dtype=np.intp)
            found[there, 0] = place[there]
            distance = np.where(there, 0.0, np.inf)
        return cls(order, np.append(starts, m), found, distance)

    @cached_property
    def sizes(self) -> Positions:
        """Rows of each combination."""
        sizes: Positions = np.diff(self.starts)
        return sizes

    @cached_property
    def crowd(self) -> Integers:
        """Rows at the least distance, shape (people,); more than any if these are of three combinations or
        more, or if there is none."""
        crowd = np.append(self.sizes, 0)[self.found].sum(axis=1)
        unclear = (self.found[:, 2] >= 0) | (self.found[:, 0] < 0)
        return np.where(unclear, len(self.order) + 1, crowd)

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
        able = np.isfinite(self.distance) & (self.crowd <= min(MOST_VOTES, len(self.order)))
        if (able & (before | tied))[where].sum() <= _MOST_TIED * share * len(where):
            before |= tied
        kept: Bools = able & before
        return kept

    def guesses(self, people: Positions, secrets: Callable[[Positions], Floats], tolerance: float) -> Floats:
        """What all nearest rows of each person agree on, NaN where they do not; shape (people, secrets).

        Args:
            people: whose nearest rows are one or two combinations.
            secrets: cells of the release in r of its rows, none NaN, shape (r, secrets).
        """
        used, place = np.unique(self.found[people, :2], return_inverse=True)
        place = place.reshape(len(people), 2)
        sizes, begins = (x[used[used >= 0]] for x in (self.sizes, self.starts[:-1]))
        starts = np.cumsum(sizes) - sizes
        rows = self.order[np.repeat(begins - starts, sizes) + np.arange(int(sizes.sum()))]
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


def _reached(
    labels: Sequence[npt.NDArray[Any]], ranks: Sequence[npt.NDArray[Any]], levels: Sequence[Floats], m: int
) -> Positions:
    """Rows of the release, every nearest one of each person among them, ascending; at least one.

    They lie no further off than what is nearest among rows that are spread evenly.
    """
    windows = [(x[m:], x[m:]) for x in labels]
    if ranks:
        some = np.append(np.arange(0, m, -(-m // _LARGE)), np.arange(m, len(ranks[0])))
        of_labels, of_ranks = ([x[some] for x in columns] for columns in (labels, ranks))
        near = NearestRows.of(of_labels, of_ranks, levels, len(some) + m - len(ranks[0]), whole=True)
        reach = near.distance * (1 + _SAME) + 2 * _SAME
        for level, rank in zip(levels, ranks, strict=True):
            first = np.searchsorted(level, level[rank[m:]] - reach)
            beyond = np.searchsorted(level, level[rank[m:]] + reach, "right")
            windows.append((first, beyond - 1))
    low, high = (np.column_stack(ends).astype(np.int64) for ends in zip(*windows, strict=True))
    found = reachable([x[:m] for x in (*labels, *ranks)], low, high)
    return found if len(found) else np.zeros(1, dtype=np.intp)


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
    people: secrecy.AskedPeople
    alpha: float
    secrets: Floats
    owners: Positions

    @classmethod
    def of(
        cls, columns: Sequence[KnownColumn], n_release: int, people: secrecy.AskedPeople, alpha: float
    ) -> Self:
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

    def claims(self, knowledge: secrecy.Knowledge, about: int | None = None) -> SetClaims:
        """Look all people up by the known columns; about one secret alone, where it is given."""
        known = [self.columns[i] for i in knowledge.known]
        if knowledge.equal:
            nearest = NearestRows.of([column.values for column in known], (), (), self.n_release)
            who = np.flatnonzero((nearest.distance == 0.0) & (nearest.crowd <= MOST_VOTES))
        else:
            nearest = NearestRows.of(
                [column.labels for column in known],
                [rank for column in known for rank in column.ranks.T],
                [level for column in known for level in column.levels],
                self.n_release,
            )
            who = np.flatnonzero(nearest.claimed(~self.people.member, self.alpha))
        told = column_sets.following(knowledge.known, [c.parents for c in self.columns])
        # A difference to what is known is another form of the other column, which is a secret itself.
        told |= {i for i, c in enumerate(self.columns) if told.intersection(c.parents)}
        secrets = np.flatnonzero(~np.isin(self.owners, list(told)))
        secrets = secrets if about is None else np.array([about])
        guesses = nearest.guesses(who, partial(self._votes, secrets), TOLERANCE)
        truth = self.secrets[who][:, secrets]
        made = ~np.isnan(guesses) & ~np.isnan(truth)
        off = np.where(made, np.abs(guesses - truth), np.inf)
        return SetClaims(secrets, who, made, off <= TOLERANCE)

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
) -> measurement.IntervalEstimate | None:
    """Share of train people claimed rightly beyond luck, on average over the columns of a block.

    The worse block of one half of the people is measured on the other, both ways. None without a block, or
    where hardly a claim is made about control.
    """
    people, shares = adversary.people, []
    for block in blocks:
        made, right = (np.zeros(len(people.member)) for _ in range(2))
        for secret in block:
            known = tuple(i for i in block if i != secret)
            found = adversary.claims(secrecy.Knowledge(known, equal=True), about=secret)
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
) -> measurement.IntervalEstimate | None:
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
    return measurement.IntervalEstimate(
        value, measurement.Interval(value - half_width, value + half_width, level, "delta, by person")
    )


@dataclass(frozen=True, kw_only=True)
class PartialKnowledge:
    """Looks people up in the release by a few columns at a time, and reads off what the nearest rows say.

    For a set K of known columns, ``d_K(x)`` is the distance of a person to the nearest release row with the
    same labels in K: the sum of the differences of the numbers in K, in robust ranges. A claim about a
    further column is made where all rows at that distance agree on it, for people who are as near, and with
    as few rows as near, as the nearest ``alpha`` of control. A label is right when equal, a number within 5 %
    of its central range (relative to itself beyond it).

    ``excess_people = claims_t / people_t · (s_t − s_c)``, s being the share of right claims, is the share of
    train people claimed rightly beyond luck, for the worst K and secret. Each is chosen on one half of the
    people and measured on the other, halves swapped, so that having tried many sets raises no false
    alarm. Where a generator draws groups of columns apart from one another, the adversary knows which, and
    about as many sets again are tried inside these. Differences of dates and times, and of numbers of one
    sort, are columns too. Where K is of six to sixteen columns that tell little each, claims are made of
    whoever has equal rows; where the mean over a block's columns, each the secret in turn, may be larger
    (upper end), it is ``excess_people``.

    Fields:
        max_sets: about how many sets of columns are tried: all pairs where three fifths of them suffice, else
            pairs at random, from the plan's seed, and those in which train people agree with single rows more
            often than strangers do; triples to quintuples.
        max_people: at most this many train people, and as many control people, are looked up.
        alpha: share of control that is near enough for a claim, in (0, 0.5].

    Raises:
        ValueError: a field is out of range.
        NotApplicable: fewer than two columns vary in train, or there is only one person on a side.
    """

    max_sets: int = 200
    max_people: int = 2000
    alpha: float = 0.05

    info: ClassVar[AuditInfo] = AuditInfo(
        title="Partial knowledge",
        question="Does the release give people away to one who knows a few of their values?",
        threat_model=(
            "An adversary knows two to five values of a person, or up to sixteen that tell little each, such "
            "as answers of yes or no; differences of dates are values too. The adversary looks for the "
            "synthetic rows nearest in these alone, and takes what they agree on in another column for the "
            "person's. Which values these are is unknown, so many sets are tried and the worst counts."
        ),
        not_covered=(
            "Sets of columns that were not tried, where the table has many, and many answers among tens of "
            "thousands of rows; rotations of several numbers together; leaks so scattered that no set of "
            "columns is hit for 5 % of the people; and who was in the training set, which `recognition` asks."
        ),
        quantities=(EXCESS, CLAIMED, TRAIN_RATE, CONTROL_RATE),
        risk="inference",
        needs=(Need.CONTROL,),
        leak=Leak.SUBSETS,
        cost="seconds",
        source="Giomi et al. 2022, with many sets of known columns",
    )

    def __post_init__(self) -> None:
        at_least(self, max_sets=1, max_people=1)
        share(self, "alpha", 0.5)

    def run(self, subject: Subject, context: RunContext) -> measurement.Findings:
        """Look at most ``max_people`` people of train and of control up in the whole release."""
        real, level = subject.real, subject.level
        people = secrecy.AskedPeople.drawn(subject, self.max_people, context.rng)
        if people.fewest < 2:
            raise NotApplicable("people on either side are halved, so there must be two")
        tables = [subject.synthetic, real[0].take(people.train), real[1].take(people.control)]
        columns = list(known_columns(tables, subject.features, real))
        if not columns:
            raise NotApplicable("no column varies in train")
        derived = column_sets.differences(columns, tables, subject.features, real)
        adversary = Adversary.of([*columns, *derived], subject.synthetic.n_rows, people, self.alpha)
        at = {column.name: i for i, column in enumerate(columns)}
        groups = [[at[name] for name in group if name in at] for group in subject.column_groups]
        sets, blocks, told = column_sets.sets_to_try(
            columns,
            derived,
            groups,
            people,
            self.max_sets,
            lambda name: context.child("partial knowledge", name).rng,
        )
        attacks, notes = secrecy.Attacks(people), [told]
        for knowledge in sets:
            found = adversary.claims(knowledge)
            attacks.add(knowledge, found.secrets, found.made, found.right, found.who)
        if not attacks.tried:
            raise NotApplicable("a known and a further column are needed")
        excess, worst = attacks.worst(level)
        pooled = pooled_excess(adversary, blocks, level)
        if pooled and pooled.interval.high > excess.interval.high:
            excess = pooled
            notes.append(
                "the excess is the average over the columns of a block, each with little information"
            )
        if any(len(group) > 1 for group in groups):
            blind, _ = attacks.worst(level, told=False)
            notes.append(
                "an adversary who does not know which columns were drawn together has an excess of "
                f"{blind.value:.1%}"
            )
        claims = dict.fromkeys(_told(adversary, *attack) for attack in worst)
        notes.append(f"the excess over control is largest where {' and '.join(claims)}")
        exposed = _exposed(adversary, worst)
        null = measurement.Reference(0.0, "claims about people the generator never saw are right as often")
        measured = [attacks.excess(EXCESS, excess, self.max_people, null)]
        for quantity, met, of in (
            (CLAIMED, exposed.train_tried, people.train),
            (TRAIN_RATE, exposed.train_hit, people.train),
            (CONTROL_RATE, exposed.control_hit, people.control),
        ):
            measured.append(
                secrecy.success_rate(quantity, Proportion(len(met), len(of)), self.max_people, level)
            )
        notes += _success(exposed, subject)
        return measurement.Findings(tuple(measured), notes=tuple(notes), exposures=(exposed,))


def _told(adversary: Adversary, knowledge: secrecy.Knowledge, secret: int) -> str:
    """What is claimed by which columns, for a reader."""
    known = ", ".join(dict.fromkeys(adversary.name(i) for i in knowledge.known))
    gap = secret >= len(adversary.columns)
    name = adversary.name(secret)
    return f"{known} claim {f'whether {name} is missing' if gap else name}"


def _exposed(adversary: Adversary, worst: Sequence[tuple[secrecy.Knowledge, int]]) -> measurement.Exposure:
    """Of whom the worst set claims the secret in the half where it was measured, and of whom rightly."""
    people = adversary.people
    tried, hit = (np.zeros(len(people.member), dtype=np.bool_) for _ in range(2))
    columns = set[int]()
    for half, (knowledge, secret) in enumerate(worst):
        found = adversary.claims(knowledge, about=secret)
        here = people.of(half)[found.who]
        tried[found.who[here & found.made[:, 0]]] = True
        hit[found.who[here & found.right[:, 0]]] = True
        columns.update(i for of in (*knowledge.known, secret) for i in adversary.plain(of))
    names = dict.fromkeys(adversary.name(i) for i in sorted(columns))
    sides = [np.split(x, [len(people.train)]) for x in (tried, hit)]
    chosen = [rows[made] for rows, made in zip((people.train, people.control), sides[0], strict=True)]
    hits = [right[made] for made, right in zip(*sides, strict=True)]
    return secrecy.exposure(EXCESS.id(), tuple(names), chosen, hits)


def _success(exposed: measurement.Exposure, subject: Subject) -> Iterator[str]:
    """How often claims are right, of those made, where there are enough to be shown."""
    train, control = sides = secrecy.successes(exposed)
    level = subject.level
    if any(min(s.successes, s.trials - s.successes) < subject.suppression for s in sides):
        return
    ends = [side.interval(level) for side in sides]
    apart = train.less(control, level).interval
    of = [f"{s.share:.0%} ({i.low:.0%} to {i.high:.0%})" for s, i in zip(sides, ends, strict=True)]
    yield (
        f"of the claims made, {of[0]} are right about training people and {of[1]} about control people, "
        f"{apart.low:+.0%} to {apart.high:+.0%} apart"
    )
