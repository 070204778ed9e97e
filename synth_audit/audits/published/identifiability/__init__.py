"""Identifiability: which people have a release row nearer than their fellows, overall and by subgroup?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from synth_audit.audits._targets import drawn
from synth_audit.audits.published._fellows import Fellows, most_independent
from synth_audit.audits.published.identifiability.subgroups import (
    FEWEST_CONTROL,
    Partition,
    by_column,
    by_number,
)
from synth_audit.core.arrays import Floats, Positions
from synth_audit.core.audit import AuditInfo, Need
from synth_audit.core.context import RunContext
from synth_audit.core.entities import persons
from synth_audit.core.errors import NotApplicable
from synth_audit.core.measurement import Findings, Measurement, Quantity, Reference
from synth_audit.core.schema import Column
from synth_audit.core.subject import Subject
from synth_audit.encoding.gower import GowerEncoder
from synth_audit.kernels.dcr import independent_number
from synth_audit.kernels.gower import nearest
from synth_audit.kernels.near_copies import (
    Excess,
    People,
    excess,
    excess_of_parts,
    near_parts,
    nearer_than_most,
    nearness,
    worst_excess,
)
from synth_audit.kernels.neighbours import Nearest, most_queries
from synth_audit.kernels.proportion_interval import proportion_difference

_NAMED = 10
"""Columns that a note names."""

LOSS = Quantity(
    "loss",
    "Identifiability beyond that of strangers, columns weighed alike",
    range=(-1.0, 1.0),
    proportional=False,  # f / (2 − f) at a share f of copies
    help="0: training rows are no nearer to the release than strangers are; 1: every one of them is.",
)
NEAR_COPIES = Quantity(
    "near_copies",
    "People with an unusually near row, beyond strangers",
    range=(-1.0, 1.0),
    help="0: as many as among people the generator never saw; 1: everybody in train has a near copy.",
)
MOVED_COPIES = Quantity(
    "moved_copies",
    "People whose nearest row is nearer than most strangers', beyond strangers",
    range=(-1.0, 1.0),
    help="Counted like near copies, but up to where 5 of 100 strangers are, the nearer the more; 0: as many "
    "as among these.",
)
WORST_SUBGROUP = Quantity(
    "worst_subgroup_near_copies",
    "People with an unusually near row in the worst subgroup, beyond strangers",
    range=(-1.0, 1.0),
    proportional=False,  # the largest of many is above 0 by chance
    help="The largest share over subgroups by label, by tenth of a number and by isolation.",
)
UNJUDGED = Quantity(
    "unjudged_people",
    "People in subgroups too small to be judged",
    help="The largest share over columns; a release may hold near copies of all of them unseen.",
)

_MOVED = 0.05
"""Share of control, but those with an equal row, that counts as nearer than most."""

_NULL = Reference(0.0, "a release that is independent of the training rows")


@dataclass(frozen=True, kw_only=True)
class Identifiability:
    """Judges each person by the own surroundings: is a release row nearer than the nearest fellow?

    ``nearness = d(x, release) / d(x, train rows of other people)`` by Gower's distance on the robust scale,
    all columns weighed alike; for control rows a random row of train is left out, or all rows of a random
    person where people have several, so both have as many others.
    ``loss`` is the share of train with nearness below 1 less that of control: ε-identifiability (Yoon et al.
    2020) without its weights, one over the entropy, which make numbers that nobody rounded nearly weightless.

    ``near_copies`` counts *people*: those nearer than three quarters of the α-quantile of control, less
    the share of such people in control; ``moved_copies`` those as near as the nearest 5 % of the control
    rows without an equal row, for copies that were moved so far that strangers come as near. Each counts by
    ``1 − F / 0.05``, F the share of these control rows that are nearer, and fellows are the mean of the two
    nearest: so chance moves the number of few people least.
    ``worst_subgroup_near_copies`` is the largest excess of near copies over subgroups (labels, tenths of
    numbers, tenths by distance to the nearest fellow, and all people), at least 0, its interval at
    ``1 − (1 − level) / subgroups``: a poor release of most people buys no room for copies of a minority.
    A label held by fewer than 100 people of train or 20 of control is judged together with others of its
    column that are; where these are too few together, they are ``unjudged_people``. Of several rows of one
    person in a subgroup the nearest counts.

    Fields:
        alpha: the quantile of control that near is measured by, in (0, 0.5].
        max_queries: at most this many rows of train and of control are looked up, drawn at random; all rows
            of train and release stay in the reference. In more than 800,000 rows fewer: 2,500 of 1,600,000.
        max_columns: of more columns, so many are drawn to make subgroups of.

    Raises:
        ValueError: a field is out of range.
        NotApplicable: all rows of train are one person's.
    """

    alpha: float = 0.02
    max_queries: int = 5_000
    max_columns: int = 50

    info: ClassVar[AuditInfo] = AuditInfo(
        title="Identifiability",
        question="Do people, or those of some subgroup, have a row in the release that follows them?",
        threat_model=(
            "An adversary who knows a person's record finds a release row that is nearer to it than any "
            "other person is, and concludes that it was made from this person, whose other values it tells."
        ),
        not_covered=(
            "Subgroups by several columns at once, and those that are too small; the notes name the columns "
            "that have such. Rows that follow a person in a few columns only."
        ),
        quantities=(LOSS, NEAR_COPIES, MOVED_COPIES, WORST_SUBGROUP, UNJUDGED),
        risk="membership",
        needs=(Need.CONTROL,),
        cost="seconds",
        source="Yoon et al. 2020; shares of people and subgroups are ours",
    )

    def __post_init__(self) -> None:
        if not 0 < self.alpha <= 0.5:
            raise ValueError("alpha must be in (0, 0.5]")
        if min(self.max_queries, self.max_columns) < 1:
            raise ValueError("max_queries and max_columns must be at least 1")

    def run(self, subject: Subject, context: RunContext) -> Findings:
        """Look at most ``max_queries`` rows of train and of control up in the release and in train."""
        assert subject.control is not None
        columns, level = self._columns(subject, context), subject.level
        known, base = _surroundings(subject, self.max_queries, context.rng)
        near = near_parts(known.nearness, base.nearness, self.alpha)
        train, control = subject.train.take(known.rows), subject.control.take(base.rows)
        who = persons(train), persons(control)
        people = People(near[0], who[0]), People(near[1], who[1])
        near = nearer_than_most(known.nearness_of_two, base.nearness_of_two, _MOVED)
        followed = People(near[0], who[0]), People(near[1], who[1])
        parts = {
            "distance to the nearest fellow": by_number(known.others.first, base.others.first, who),
            **{c.name: by_column(c, train, control, who) for c in columns},
        }
        everybody = np.ones(train.n_rows, dtype=np.bool_), np.ones(control.n_rows, dtype=np.bool_)
        subgroups = [everybody, *(sides for part in parts.values() for sides in part.judged)]
        n = min(people[0].tally(everybody[0])[1], people[1].tally(everybody[1])[1])
        return Findings(
            (
                _loss(known, base, level),
                _measured(NEAR_COPIES, excess(*people, everybody, level), n),
                _measured(MOVED_COPIES, excess_of_parts(*followed, level), n),
                _measured(WORST_SUBGROUP, worst_excess(*people, subgroups, level), n),
                _unjudged(list(parts.values()), people[0].tally(everybody[0])[1], subject.suppression),
            ),
            notes=_notes(parts),
        )

    def _columns(self, subject: Subject, context: RunContext) -> Sequence[Column]:
        """Those that make subgroups; the draw is the same in every examination with one seed."""
        every = subject.features
        if len(every) <= self.max_columns:
            return every
        rng = context.child("identifiability", "columns").rng
        return [every[i] for i in np.sort(rng.choice(len(every), self.max_columns, replace=False))]


@dataclass(frozen=True, eq=False)
class _Surroundings:
    """The nearest release row and the nearest fellow of some real rows, at these positions of their table.

    Attributes:
        independent: how many draws these rows are worth at most.
    """

    rows: Positions
    release: Nearest
    others: Nearest
    independent: float

    @property
    def nearness(self) -> Floats:
        """See :func:`~synth_audit.kernels.near_copies.nearness`."""
        return nearness(self.release.first, self.others.first)

    @property
    def nearness_of_two(self) -> Floats:
        """The same by the mean distance of the two nearest fellows, which chance moves less.

        By the nearest where it is an equal row, or the only one.
        """
        first, second = self.others.first, self.others.second
        return nearness(
            self.release.first, np.where((first > 0) & np.isfinite(second), (first + second) / 2, first)
        )

    def followed(self, n_train: int, own: Positions | None) -> tuple[float, float]:
        """How many rows are nearer to the release than to any fellow, of how many independent ones."""
        nearer = self.release.first < self.others.first
        n = independent_number(np.where(nearer, n_train + self.release.index, self.others.index), own)
        n = min(n, self.independent)
        return min(float(np.mean(nearer)) * n, n), n


def _surroundings(
    subject: Subject, most: int, rng: np.random.Generator
) -> tuple[_Surroundings, _Surroundings]:
    """Of rows of train and of control, each among as many other rows of train."""
    assert subject.control is not None
    encoder = GowerEncoder.anchored_on(subject.train, subject.features, beside=[subject.control])
    train, control, release = encoder.encode([subject.train, subject.control, subject.synthetic])
    most = most_queries(most, max(len(train), len(release)))
    rows, strangers = (drawn(np.arange(len(t)), most, rng) for t in (train, control))
    one = int(rng.integers(len(train))) if len(train) > 1 else None
    queries, fellows = control.take(strangers), Fellows.of(subject.train)
    if fellows.whose is not None and not fellows.whose.any():
        raise NotApplicable("all rows of train are one person's, who has no fellows")
    return (
        _Surroundings(
            rows,
            nearest(train.take(rows), release),
            fellows.of_members(train, rows),
            most_independent(subject.train, rows),
        ),
        _Surroundings(
            strangers,
            nearest(queries, release),
            fellows.of_strangers(queries, train, one, rng),
            most_independent(subject.control, strangers),
        ),
    )


def _loss(known: _Surroundings, base: _Surroundings, level: float) -> Measurement:
    n_train = 1 + int(max(known.others.index.max(), base.others.index.max(), known.rows.max()))
    one, other = known.followed(n_train, known.rows), base.followed(n_train, None)
    n = min(len(known.rows), len(base.rows))
    return LOSS.at(
        one[0] / one[1] - other[0] / other[1],
        interval=proportion_difference(*one, *other, level),
        n_requested=n,
        n_achieved=n,
        n_minimum=FEWEST_CONTROL,
        reference=_NULL,
    )


def _measured(quantity: Quantity, found: Excess, n: int) -> Measurement:
    return quantity.at(
        found.value,
        interval=found.interval,
        n_requested=n,
        n_achieved=n,
        n_minimum=FEWEST_CONTROL,
        reference=_NULL,
    )


def _unjudged(parts: Sequence[Partition], people: int, suppression: int) -> Measurement:
    """The share, its count rounded up to what may be shown."""
    most, step = max(part.unjudged for part in parts), max(1, suppression)
    return UNJUDGED.at(min(1.0, -(-most // step) * step / people))


def _notes(parts: Mapping[str, Partition]) -> tuple[str, ...]:
    """Which columns have subgroups that are too small; nothing about the subgroups."""
    told = []
    for what, names in (
        ("judged together, since each is too small", [n for n, p in parts.items() if p.pooled]),
        ("too small to be judged, also together", [n for n, p in parts.items() if p.unjudged]),
    ):
        if names:
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            told.append(f"some subgroups are {what}: {', '.join(names[:_NAMED])}{more}")
    return tuple(told)
