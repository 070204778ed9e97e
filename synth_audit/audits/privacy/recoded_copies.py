"""Recoded copies: are people linked to single rows once it is learnt what the release's labels stand for?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from synth_audit.audits._targets import drawn
from synth_audit.audits.privacy._asked_people import different_people
from synth_audit.audits.privacy._linked_people import HALVINGS, linked_share
from synth_audit.audits.privacy._related_numbers import related_numbers
from synth_audit.core.arrays import Bools, Floats, Positions
from synth_audit.core.audit import AuditInfo, Need
from synth_audit.core.context import RunContext
from synth_audit.core.errors import NotApplicable
from synth_audit.core.measurement import Findings, Quantity
from synth_audit.core.schema import Column
from synth_audit.core.subject import Subject
from synth_audit.encoding.known_columns import KnownColumn, known_columns
from synth_audit.encoding.plain_numbers import plain_numbers
from synth_audit.kernels.held_out import halved
from synth_audit.kernels.learnt_linkage import LinkageWeights
from synth_audit.kernels.learnt_moves import learnt_moves
from synth_audit.kernels.linked_columns import BLOCK, Blocks, LinkedColumn
from synth_audit.kernels.nearest_people import NearestPeople

LINKED = Quantity(
    "linked_people",
    "People linked to one row, whatever its labels are called",
    range=(-1.0, 1.0),
    help="Share of people in the training data to whom one row of the release fits so much better than all "
    "others as it does to hardly any stranger, less the share of strangers; 0 is none.",
)

_QUANTILE, _OF_FEW = 0.97, 60
"""The quantile of control above which a row stands out, times one and this over their number: of few it is
uncertain."""

_WORK = 1.6e8
"""Cells compared in one pass over the people."""

_MOST_COLUMNS = 50
"""Columns that are compared: over more fewer people could be looked up, and whoever is copied is in these."""

_FEWEST_PEOPLE = 400
"""People looked up in any case."""

_ROUNDS = 2
"""Times that weights are learnt where labels are not known."""


@dataclass(frozen=True, kw_only=True)
class RecodedCopies:
    """Links people to release rows by weights that are learnt, and counts those to whom one row stands out.

    A pair of a person and a row weighs ``Σ_j W_j(x_j, s_j)``, the log ratio of how often two records of one
    person have these cells in column j and of how often any two have (Fellegi & Sunter 1969). Numbers weigh
    by the share of the release that is as near by rank; which release label stands for which real one is
    learnt, from which labels the row that fits a person best by all *other* columns has more often than the
    next 16 rows; people teach by the eighth power of the share of others whose best row stands out less.
    Learnt is from train and control people together, whose sides are not looked at, so that strangers are as
    near by luck as anybody.

    Somebody is linked whose best row outweighs the mean of the fifth to eighth best (further down where the
    release has more rows than train) by more than ``1 + 60 / n`` times the 97 % quantile of n of control.
    ``linked_people`` is the share of train people who are, less that of control, in the worst of several
    ways, chosen on one half of the people and counted on the other, both ways round and on average over
    several halvings: labels as they are, the same with weights learnt once (labels renamed in a part of the
    columns and rows), either also by how far some row outweighs what it weighs to its second to fourth best
    person (:mod:`nearest_people`; not where rows are compared with few people), labels learnt, and labels
    learnt with all numbers turned round by rank; where train has two columns of more than a dozen numbers
    four more, by what stays where a secret of each person or group changed all numbers alike: differences in
    shares of their ranges mod 1 and ratios, with labels learnt; differences in central ranges and distances
    from the middle of the range, with labels as they are. Of at most 4,096 release rows one more learns by
    which share of the range, or which factor, the numbers of each column and group were moved, or in which
    other column of the release they stand by rank, from rows that labels lead to.

    Fields:
        max_people: at most this many train people, and as many control people, are looked up; fewer where
            people times columns times rows compared is above 1.6·10⁸ (2,800 together in Adult), but 400.
            Of more than 50 columns so many are compared, drawn at random. Of more than 4,096 release rows
            those are that are nearest in one of the two numbers that tell most, 2,048 in each, and the last
            four ways are tried on every second of the people.

    Raises:
        ValueError: the field is out of range.
        NotApplicable: no column varies in train, there is only one person on a side, or fewer than three
            release rows.

    Source: Fellegi & Sunter 1969; without known pairs: Winkler 1988; learning from runners-up is ours.
    """

    max_people: int = 2000

    info: ClassVar[AuditInfo] = AuditInfo(
        title="Recoded copies",
        question="Can people be linked to single rows, though values were renamed, moved or turned round?",
        threat_model=(
            "An adversary who knows a person's record learns from the release what its labels stand for, "
            "how far its numbers were moved and which columns tell nothing, links the record to the row that "
            "fits far better than any other, and reads the other values off it."
        ),
        not_covered=(
            "Labels renamed where the numbers tell little, since one of the two must lead to the other; "
            "numbers recoded by neither a share of their range nor a factor; a few columns of a person "
            "beside many of strangers; so few people that labels are not learnt."
        ),
        quantities=(LINKED,),
        risk="membership",
        needs=(Need.CONTROL,),
        cost="seconds",
        source="Fellegi & Sunter 1969; Winkler 1988",
    )

    def __post_init__(self) -> None:
        if self.max_people < 1:
            raise ValueError("max_people must be at least 1")

    def run(self, subject: Subject, context: RunContext) -> Findings:
        """Look people of train and of control up in the release."""
        assert subject.control is not None
        if subject.synthetic.n_rows < 3:
            raise NotApplicable("no row can stand out among fewer than three")
        real = (subject.train, subject.control)
        features = self._columns(subject, context)
        rows = self._people(subject, len(features), context)
        tables = [subject.synthetic, *(t.take(chosen) for t, chosen in zip(real, rows, strict=True))]
        n_release = subject.synthetic.n_rows
        known = known_columns(tables, features, real)
        columns = [(c.name, _linked(c, n_release)) for c in known]
        del known  # each column is read and dropped
        if not columns:
            raise NotApplicable("no column varies in train")
        repeats = math.ceil(n_release / subject.train.n_rows)
        member = np.arange(sum(map(len, rows))) < len(rows[0])
        second, everybody = halved(member, HALVINGS, context.rng), np.arange(len(member))
        found = [(*way, everybody) for way in _by_columns([c for _, c in columns], repeats)]
        numbers = plain_numbers(tables, features, real)
        # Where not all rows are compared, every second of the people is enough for what is tried besides.
        some = np.arange(0, len(member), 2 if n_release > 2 * BLOCK else 1)
        plain = {x.name for x in numbers}
        others = [replace(c, people=c.people[some]) for name, c in columns if name not in plain]
        asked = np.concatenate([np.arange(n_release), n_release + some])
        for view in related_numbers(others, numbers, asked, n_release):
            found.append(
                (
                    view.name,
                    _standing_out(view.columns, Blocks.of(view.columns), repeats, learnt=view.learnt),
                    some,
                )
            )
        if others and numbers and n_release <= 2 * BLOCK:
            moved = learnt_moves(others, [x.read() for x in numbers], n_release)
            found.append(("numbers as each group's were moved", moved.standing_out(repeats), everybody))
        return _measured(found, member, second, subject.level, max(self.max_people, len(rows[1])))

    def _columns(self, subject: Subject, context: RunContext) -> list[Column]:
        """All columns, or some at random."""
        every = subject.features
        return [every[i] for i in drawn(np.arange(len(every)), _MOST_COLUMNS, context.rng)]

    def _people(self, subject: Subject, d: int, context: RunContext) -> tuple[Positions, Positions]:
        """Positions in train and control; of control a quarter of all, where not all can be looked up."""
        assert subject.control is not None
        train, control = (
            different_people(t, self.max_people, context.rng) for t in (subject.train, subject.control)
        )
        if min(len(train), len(control)) < 2:
            raise NotApplicable("a share needs two people on either side")
        compared = min(subject.synthetic.n_rows, 2 * BLOCK) * d
        most = max(_FEWEST_PEOPLE, int(_WORK / compared))
        if len(train) + len(control) > most:
            n_control = min(len(control), max(most // 4, most - len(train)))
            train, control = (
                np.sort(context.rng.permutation(who)[:n])
                for who, n in ((train, most - n_control), (control, n_control))
            )
        return train, control


def _linked(column: KnownColumn, n_release: int) -> LinkedColumn:
    numeric = any(level.any() for level in column.levels)
    return LinkedColumn.of(column.known_place(), n_release, numeric)


def _by_columns(columns: Sequence[LinkedColumn], repeats: int) -> Iterator[tuple[str, Floats]]:
    """How far a row stands out to each person by the columns as they are, in six ways."""
    blocks = Blocks.of(columns)
    as_they_are, among = LinkageWeights.before(columns, blocks, labels_known=True), NearestPeople(blocks)
    at_once, at_first = as_they_are.standing_out_and_learnt(repeats, among)
    yield from _two_ways("labels as they are", at_once, among)
    among = NearestPeople(blocks)
    yield from _two_ways("labels as they are at first", at_first.standing_out(repeats, among), among)
    yield "labels learnt", _standing_out(columns, blocks, repeats)
    del blocks, as_they_are, at_first, among  # of large releases each holds two copies
    turned = [replace(c, mirrored=c.numeric) for c in columns]
    yield "labels learnt, numbers turned round", _standing_out(turned, Blocks.of(turned), repeats)


def _two_ways(name: str, among_rows: Floats, among: NearestPeople) -> Iterator[tuple[str, Floats]]:
    yield name, among_rows
    if among.able:
        yield f"{name}, among people", among.standing_out()


def _standing_out(
    columns: Sequence[LinkedColumn], blocks: Blocks, repeats: int, *, learnt: bool = True
) -> Floats:
    weights = LinkageWeights.before(columns, blocks, labels_known=not learnt)
    for _ in range(_ROUNDS if learnt else 0):
        weights = weights.learnt()
    return weights.standing_out(repeats)


def _measured(
    ways: Sequence[tuple[str, Floats, Positions]], member: Bools, second: Bools, level: float, requested: int
) -> Findings:
    """The worst way by either half of the people, on the other; the notes name it.

    Args:
        ways: name, how far each person's best row stands out, and which people these are.
        member: who is in train; second: who is in the second half, each time.
    """
    linked, asked = (np.zeros((len(ways), len(member)), dtype=np.bool_) for _ in range(2))
    for k, (_, out, who) in enumerate(ways):
        strangers = out[~member[who]]
        linked[k, who] = out > (1 + _OF_FEW / len(strangers)) * float(np.quantile(strangers, _QUANTILE))
        asked[k, who] = True
    found, worst = linked_share(
        LINKED,
        linked.T,
        member,
        second,
        level,
        requested=requested,
        usual="one row stands out to strangers as often",
        asked=asked.T,
    )
    return Findings((found,), notes=(f"most people were linked by {ways[worst[0]][0]}",))
