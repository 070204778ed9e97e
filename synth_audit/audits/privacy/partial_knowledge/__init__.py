"""Partial knowledge: does the release give people away to one who knows a few of their values?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from synth_audit.audits._declarations import at_least, descriptive, excess_over_control, share
from synth_audit.audits.privacy._known_columns import known_columns
from synth_audit.audits.privacy._secrets import (
    AskedPeople,
    Attacks,
    Knowledge,
    exposure,
    success_rate,
    successes,
)
from synth_audit.audits.privacy.partial_knowledge import column_sets
from synth_audit.audits.privacy.partial_knowledge.adversary import Adversary, pooled_excess
from synth_audit.errors import NotApplicable
from synth_audit.execution.context import RunContext
from synth_audit.findings.measurement import PEOPLE, Exposure, Findings, Reference
from synth_audit.plugins.audit import AuditInfo, Leak, Need, Subject
from synth_audit.stats.proportions import Proportion

EXCESS = excess_over_control(
    "excess_people",
    "People given away by the worst set of known columns",
    unit=PEOPLE,
    proportional=False,  # a claim that is right by luck is no excess, and luck differs by column
    help="Share of people in the training data of whom a further column is claimed rightly, beyond what "
    "claims about strangers come to; 0 is none.",
)

CLAIMED = descriptive(
    "claimed",
    "Training people of whom a claim is made",
    help="Those as near to the release as the nearest strangers, on whom all nearest rows agree.",
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

    def run(self, subject: Subject, context: RunContext) -> Findings:
        """Look at most ``max_people`` people of train and of control up in the whole release."""
        real, level = subject.real, subject.level
        people = AskedPeople.drawn(subject, self.max_people, context.rng)
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
        attacks, notes = Attacks(people), [told]
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
        null = Reference(0.0, "claims about people the generator never saw are right as often")
        measured = [attacks.excess(EXCESS, excess, self.max_people, null)]
        for quantity, met, of in (
            (CLAIMED, exposed.train_tried, people.train),
            (TRAIN_RATE, exposed.train_hit, people.train),
            (CONTROL_RATE, exposed.control_hit, people.control),
        ):
            measured.append(success_rate(quantity, Proportion(len(met), len(of)), self.max_people, level))
        notes += _success(exposed, subject)
        return Findings(tuple(measured), notes=tuple(notes), exposures=(exposed,))


def _told(adversary: Adversary, knowledge: Knowledge, secret: int) -> str:
    """What is claimed by which columns, for a reader."""
    known = ", ".join(dict.fromkeys(adversary.name(i) for i in knowledge.known))
    gap = secret >= len(adversary.columns)
    name = adversary.name(secret)
    return f"{known} claim {f'whether {name} is missing' if gap else name}"


def _exposed(adversary: Adversary, worst: Sequence[tuple[Knowledge, int]]) -> Exposure:
    """Of whom the worst set claims the secret in the half where it was measured, and of whom rightly."""
    people = adversary.people
    tried, hit = (np.zeros(len(people.member), dtype=np.bool_) for _ in range(2))
    columns = set[int]()
    for half, (knowledge, secret) in enumerate(worst):
        found = adversary.claims(knowledge)
        column = int(np.searchsorted(found.secrets, secret))
        here = people.of(half)[found.who]
        tried[found.who[here & found.made[:, column]]] = True
        hit[found.who[here & found.right[:, column]]] = True
        columns.update(i for of in (*knowledge.known, secret) for i in adversary.plain(of))
    names = dict.fromkeys(adversary.name(i) for i in sorted(columns))
    sides = [np.split(x, [len(people.train)]) for x in (tried, hit)]
    chosen = [rows[made] for rows, made in zip((people.train, people.control), sides[0], strict=True)]
    hits = [right[made] for made, right in zip(*sides, strict=True)]
    return exposure(EXCESS.id(), tuple(names), chosen, hits)


def _success(exposed: Exposure, subject: Subject) -> Iterator[str]:
    """How often claims are right, of those made, where there are enough to be shown."""
    train, control = sides = successes(exposed)
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
