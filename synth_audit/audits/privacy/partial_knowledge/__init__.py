"""Partial knowledge: does the release give people away to one who knows a few of their values?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from synth_audit.audits.privacy._known_columns import KnownColumn, differences, known_columns
from synth_audit.audits.privacy._known_sets import AskedPeople, different_people, looked_at
from synth_audit.audits.privacy.partial_knowledge.attacks import QUANTITIES, attack_all, measured
from synth_audit.audits.privacy.partial_knowledge.column_sets import (
    column_sets,
    derived_sets,
    together_sets,
    weak_columns,
    weak_sets,
)
from synth_audit.errors import NotApplicable
from synth_audit.execution.context import RunContext
from synth_audit.findings.measurement import Findings
from synth_audit.plugins.audit import AuditInfo, Leak, Need, Subject
from synth_audit.table.kind import TIME


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
        quantities=QUANTITIES,
        risk="inference",
        needs=(Need.CONTROL,),
        leak=Leak.SUBSETS,
        cost="seconds",
        source="Giomi et al. 2022, with many sets of known columns",
    )

    def __post_init__(self) -> None:
        if min(self.max_sets, self.max_people) < 1:
            raise ValueError("max_sets and max_people must be at least 1")
        if not 0 < self.alpha <= 0.5:
            raise ValueError("alpha must be in (0, 0.5]")

    def run(self, subject: Subject, context: RunContext) -> Findings:
        """Look at most ``max_people`` people of train and of control up in the whole release."""
        assert subject.control is not None
        real = (subject.train, subject.control)
        train, control = rows = [different_people(table, self.max_people, context.rng) for table in real]
        if min(len(train), len(control)) < 2:
            raise NotApplicable("people on either side are halved, so there must be two")
        asked = [table.take(chosen) for table, chosen in zip(real, rows, strict=True)]
        columns = list(known_columns([subject.synthetic, *asked], subject.features, real))
        if not columns:
            raise NotApplicable("no column varies in train")
        derived = differences(columns, [subject.synthetic, *asked], subject.features, real)
        people = AskedPeople.halved(train, control, context.rng)
        n = subject.synthetic.n_rows
        sets = column_sets(
            len(columns),
            self.max_sets,
            lambda half: looked_at(columns, n, people, half),
            context.child("partial knowledge", "sets").rng,
        )
        rng = context.child("partial knowledge", "weak").rng
        blocks, weak = weak_sets(columns, weak_columns(columns), n, rng)
        groups = _positions(columns, subject)
        sets = replace(
            sets,
            weak=weak,
            blocks=blocks,
            together=together_sets(groups, self.max_sets, context.child("partial knowledge", "together").rng),
            derived=derived_sets(
                len(columns),
                [c.parents for c in derived],
                self.max_sets // 4,
                context.child("partial knowledge", "derived").rng,
                # The only interval there is may be told to the minute, and give away what else was copied.
                alone=len(derived) == 1 and derived[0].unit == TIME,
            ),
        )
        attacks = attack_all([*columns, *derived], sets, n, people, self.alpha)
        return measured(attacks, subject, self.max_people)


def _positions(columns: Sequence[KnownColumn], subject: Subject) -> list[list[int]]:
    """Which columns the generator drew together, as far as they vary."""
    at = {column.name: i for i, column in enumerate(columns)}
    return [[at[name] for name in group if name in at] for group in subject.column_groups]
