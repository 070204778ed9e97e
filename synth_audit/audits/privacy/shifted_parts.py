"""Shifted parts: do rows keep a few values of people, moved by what is common to all of them?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from synth_audit.audits._targets import drawn
from synth_audit.audits.privacy._asked_people import different_people
from synth_audit.audits.privacy._lag_views import LagView, labels_beside, lag_views, numbers_beside
from synth_audit.audits.privacy._linked_people import HALVINGS, linked_share, stranger_limit
from synth_audit.audits.privacy._other_columns import RankedColumns
from synth_audit.audits.privacy._shared_words import told_by_words
from synth_audit.core.arrays import Bools, Floats
from synth_audit.core.audit import AuditInfo, Leak, Need
from synth_audit.core.context import RunContext
from synth_audit.core.errors import NotApplicable
from synth_audit.core.measurement import Findings, Quantity
from synth_audit.core.subject import Subject
from synth_audit.kernels.held_out import halved
from synth_audit.kernels.lag_spikes import LagColumn
from synth_audit.kernels.lagged_links import Shift, followed, linked_bits
from synth_audit.kernels.near_links import NearColumns
from synth_audit.kernels.rank_links import RankPlace

SHIFTED = Quantity(
    "linked_people",
    "People linked to a row by a few values moved alike",
    range=(-1.0, 1.0),
    proportional=False,
    help="Share of people in the training data of whom some row holds several values, each moved by a "
    "constant of its column, as of hardly any stranger, less the share of strangers; 0 is none.",
)

_MOST_COLUMNS = 40
"""Columns that are looked at."""

_BITS = 3.0
"""A row that tells so much more than it takes to find one among all rows is somebody's."""

_WORK, _MOST_FOLLOWED, _FEWEST_FOLLOWED = 5e6, 120, 8
"""Rows searched to follow spikes of a view, and how many are followed."""

_KEPT = 12
"""Shifts of a view of which the worst is chosen."""

_WEIGHED, _CLEARLY = 1, 5.0
"""Shifts of a view of near values whose columns are weighed by how near they are, and standard errors above
chance that they must have."""

_NAMED = 2
"""Shifts named."""


class _Found(NamedTuple):
    """Who is linked by one shift, and how it was read."""

    name: str
    linked: Bools


@dataclass(frozen=True, kw_only=True)
class ShiftedParts:
    """Looks for lags that hold in several columns at once between people and rows, and counts who has one.

    A row that keeps a few numbers of a person, each moved by a constant of its column, is apart from the
    person by the same lags as all such rows are from theirs. In each pair of columns the lags are looked for
    at which more pairs of a person and a row are apart than by chance (a peak of the cross-correlation of
    their counts), and the surest ones are followed into the other columns. A person is *linked* whose best
    row tells, by the lags and equal labels that hold, three bits more than it takes to find one among all
    rows, more than 1 + 60 / k times as much as those of 98 % of the k of control, and more than of 99 %; what
    the row tells of the fifth person is deducted. Lags are learnt from train and control together, whose
    sides are not looked at. ``linked_people`` is the share of train people less that of control for the worst
    shift, chosen on one half of the people and counted on the other, both ways round and on average over
    several halvings.

    Lags are looked for in the numbers as they are given, in their low digits (the last two; seconds, or
    minutes, of times), in steps of a 64th of their spread, in factors; with columns of one sort further on
    (a series that begins later); and without lags where numbers are within such a step, or a 24th of their
    spread, of one another, however each was moved: columns near in more pairs of a person and a row than in
    pairs of people that are near in the same two others. There a value that is not near speaks against a
    row, two bits. Of numbers in the distributions of others, by rank or its reverse, it is learnt which
    stand in the place of which (:mod:`rank_links`); these, and sets of columns that are near, are also
    weighed by how near they are, as record linkage does (:mod:`learnt_linkage`). Dates, text that reads as
    numbers and numbers within texts are numbers; labels of which there are many are equal whose words are
    the same in any order. Texts of four words and more lead to people too by the rarer words that one shares
    with theirs beyond what the fifth to eighth best shares.

    Fields:
        max_people: at most this many train people, and as many control people, are linked; lags are looked
            for with all rows. Of more than 40 columns so many are looked at, drawn at random.

    Raises:
        ValueError: the field is out of range.
        NotApplicable: there is only one person on a side, fewer than three release rows or two columns.

    Source: ours; frequency weights as in Fellegi & Sunter 1969.
    """

    max_people: int = 2000

    info: ClassVar[AuditInfo] = AuditInfo(
        title="Shifted parts",
        question="Do rows keep a few values of people, moved by what is common to all of them?",
        threat_model=(
            "An adversary who knows a few values of a person finds in the release by how much such values "
            "were moved, or into which columns, looks up the row that holds them so, and reads the others "
            "off it."
        ),
        not_covered=(
            "Values moved by an amount of each person, or by noise beyond a 24th of their spread; two values "
            "of few digits; a few columns among more than forty."
        ),
        quantities=(SHIFTED,),
        risk="membership",
        needs=(Need.CONTROL,),
        leak=Leak.SHIFTED,
        cost="seconds",
        source="Fellegi & Sunter 1969",
    )

    def __post_init__(self) -> None:
        if self.max_people < 1:
            raise ValueError("max_people must be at least 1")

    def run(self, subject: Subject, context: RunContext) -> Findings:
        """Find shifts with all people and choose and measure the worst with some."""
        assert subject.control is not None
        if subject.synthetic.n_rows < 3:
            raise NotApplicable("no row can be told from others among fewer than three")
        real = (subject.train, subject.control)
        every = subject.features
        columns = [every[i] for i in drawn(np.arange(len(every)), _MOST_COLUMNS, context.rng)]
        rows = [different_people(t, self.max_people, context.rng) for t in real]
        if min(map(len, rows)) < 2:
            raise NotApplicable("a share needs two people on either side")
        member = np.arange(sum(map(len, rows))) < len(rows[0])
        second = halved(member, HALVINGS, context.rng)
        asked = np.concatenate([rows[0], subject.train.n_rows + rows[1]])
        bits = math.log2(subject.synthetic.n_rows) + _BITS
        tables = (subject.synthetic, *real)
        numbers = numbers_beside(tables, columns, real)
        labels = labels_beside(tables, columns, real, numbers)
        ranked = RankedColumns(numbers, labels, subject.train.n_rows, asked, context.rng)
        found: list[_Found] = []
        for view in lag_views(numbers, labels):
            some = [c.of(asked) for c in view.columns]
            shifts = _shifts(view, some)
            for told in _told(view, some, shifts, bits):
                found.append(_Found(view.name, told > stranger_limit(told[~member], bits)))
            for told in _outweighing(view, shifts, ranked, len(numbers)):
                found.append(_Found(view.name, told > stranger_limit(told[~member])))
        for name, ways in (
            ("in the distributions of others", ranked.told_in_others()),
            ("in their words", told_by_words(tables, columns, real, asked)),
        ):
            found.extend(_Found(name, told > stranger_limit(told[~member])) for told in ways)
        if not found:
            raise NotApplicable("there are no two columns that differ")
        return _measured(found, member, second, subject.level, max(self.max_people, len(rows[1])))


def _shifts(view: LagView, some: Sequence[LagColumn]) -> list[Shift]:
    """The surest shifts of a view, followed through its columns of some people."""
    if len(some) < 2:
        return []
    n_release = len(some[0].release)
    most = int(np.clip(_WORK / n_release, _FEWEST_FOLLOWED, _MOST_FOLLOWED))
    best: dict[tuple[tuple[int, int], ...], Shift] = {}
    near = NearColumns(some, [replace(c, release=c.people) for c in some]) if view.near else None
    for spike in sorted(view.spikes(), reverse=True)[:most]:
        shift = near.with_two(spike) if near else followed(some, spike)
        if shift is not None:
            key = tuple(sorted((x.column, x.lag) for x in shift.lags))
            if key not in best or best[key].score < shift.score:
                best[key] = shift
    return sorted(best.values(), key=lambda x: -x.score)[: max(2, most // (_MOST_FOLLOWED // _KEPT))]


def _told(view: LagView, some: Sequence[LagColumn], shifts: Sequence[Shift], enough: float) -> list[Floats]:
    """How much each person's best row tells by each of the shifts."""
    return [
        linked_bits(some, shift, enough, near=view.near)
        for shift in (*shifts, view.shift)
        if shift is not None
    ]


def _outweighing(
    view: LagView, shifts: Sequence[Shift], ranked: RankedColumns, n_numbers: int
) -> Iterator[Floats]:
    """How far one row stands out to each person by the columns of the surest shifts that are near in it."""
    for shift in shifts[:_WEIGHED] if view.near else ():
        of = sorted(x.column for x in shift.lags)
        places = [RankPlace(k, k, False) for k in of if k < n_numbers]
        if len(places) > 1 and shift.score > _CLEARLY:
            yield from ranked.told(places, [k - n_numbers for k in of if k >= n_numbers])


def _measured(found: list[_Found], member: Bools, second: Bools, level: float, requested: int) -> Findings:
    """The worst shift by either half of the people, on the other."""
    share, worst = linked_share(
        SHIFTED,
        np.column_stack([x.linked for x in found]),
        member,
        second,
        level,
        requested=requested,
        usual="values of strangers are moved alike as often",
    )
    names = list(dict.fromkeys(found[k].name for k in worst))[:_NAMED]
    return Findings((share,), notes=(f"most people were linked by values {' and '.join(names)}",))
