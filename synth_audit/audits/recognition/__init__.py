"""Recognition: who was in the training set? One engine, and one file for each family of views."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np

from synth_audit.arrays import Bools
from synth_audit.audits.recognition.detection_limit import (
    DetectionLimit,
    classes_of,
    detection_limits,
)
from synth_audit.audits.recognition.engine import FAMILY, Recognised, p_value, recognise
from synth_audit.audits.recognition.people import ReleaseMemory, Sides, pooled
from synth_audit.audits.recognition.row_nearness import RowNearness, row_nearness
from synth_audit.audits.recognition.side_test import NAMED, SideTest, side_test
from synth_audit.audits.recognition.view import ScoredPeople, ScoreInfo, scored
from synth_audit.errors import NotApplicable
from synth_audit.execution.context import RunContext
from synth_audit.findings import measurement
from synth_audit.findings.detection_power import SURELY
from synth_audit.plugins.audit import AuditInfo, Leak, Need, Subject
from synth_audit.stats.attack_success import corrected_level
from synth_audit.stats.roc import auroc
from synth_audit.table.schema import Column, nominal

EXCESS = measurement.Quantity(
    "excess",
    "Training people recognised, beyond control people",
    unit=measurement.PEOPLE,
    range=(-1.0, 1.0),
    help="Share of training people whom the attack claims, minus that of control people. 0 without a leak.",
)
AUC = measurement.Quantity(
    "auc",
    "AUC of the attack",
    help="Probability that the attack ranks a training person above a control person; 0.5 without a leak.",
    proportional=False,
)
TPR = measurement.Quantity(
    "true_positive_rate",
    "True positive rate at 1 % false positives",
    help="Share of training people ranked above all but 1 % of control people. 0.01 without a leak.",
)

FOUND = measurement.Quantity(
    "found",
    "Training people recognised where a leak was found",
    unit=measurement.PEOPLE,
    range=(-1.0, 1.0),
    help=(
        "The excess with its 98 % interval where a permutation test finds a leak (p at most 0.01), "
        "otherwise exactly 0: nothing beyond chance was found."
    ),
    proportional=False,
)
FOUND_IN_SUBGROUP = measurement.Quantity(
    "found_in_subgroup",
    "People of one category surely recognised where a leak was found",
    unit=measurement.OF_SUBGROUP,
    help=(
        "Lower bound of the excess in the category where it is largest, corrected for the number of "
        "categories, where a leak was found; otherwise 0. Once more for the column of that category."
    ),
    proportional=False,
)
LIMIT = measurement.Quantity(
    "detection_limit",
    "Smallest leak that would have been found",
    help=(
        f"Share of training people whose leak this audit would have found on this table {SURELY}: "
        "for each class of leak, and the largest of those in which a row is of one person. "
        "A smaller leak may stay unseen. 1 where no limit is established."
    ),
    proportional=False,
)
NEARER = measurement.Quantity(
    "row_nearness",
    "People clearly nearer to a row than to other people",
    unit=measurement.PEOPLE,
    range=(-1.0, 1.0),
    help=(
        "Among people with a clear nearest neighbour: share whose neighbour is a row, minus share whose "
        "neighbour is a person. 0 for rows of other people, 1 where rows follow people."
    ),
    proportional=False,
)

FEWEST = 100
"""Control people with fewer of whom the excess is insufficient evidence: its error is two points at least."""

SEEN_CONTROL = 0.5
"""Row nearness above which control people count as seen by the generator. SMOTE, kernel density and CART with
one person a leaf, fitted on train and control, reached 0.8 or more, and rows of others at most 0.4. CART with
leaves of five reached 0.2 to 0.8, so that it is not always seen."""

FEW = 20
"""Control people of a category with fewer of whom its excess is not judged, and people with a clear nearest
neighbour with fewer of whom row nearness is insufficient evidence."""

FALSE_POSITIVES = 0.01
"""False positive rate at which the true positive rate is reported, as is usual for membership inference."""


@dataclass(frozen=True, kw_only=True)
class Recognition:
    """Measures how many training people an adversary recognises in the release, beyond control people.

    The adversary knows the records of all people and wants to know who was in the training set. Views score
    each person by the release (:mod:`synth_audit.audits.recognition.view`). The engine chooses a combination
    on one half of the people and evaluates it on the other (:mod:`synth_audit.audits.recognition.engine`).

    A leak is *found* when the permutation test's p is at most 0.01. It exceeds the tolerance when the lower
    bound of the excess does. With ``detection``, what would have been found is measured by planted
    leaks (`detection_limit.py`), unless a leak beyond the tolerance was found.
    Where rows are so near to people that the generator must have seen control people too
    (`row_nearness.py`), comparison with control finds nothing, and no limit
    is established.

    Where the split was not made here, training and control people must not differ by themselves
    (:mod:`synth_audit.audits.recognition.side_test`).

    Fields:
        max_people: people drawn from either side; fewer where the release is large.
        draws: draws of the views' own randomness, whose variance is part of the interval.
        tolerance: excess above which a leak fails; detection limits are not measured then.
        detection: whether detection limits are measured, at ten times the cost of all else. Without them
            nobody knows what would have been found.

    Raises:
        ValueError: a field is out of range.
        NotApplicable: see :func:`~synth_audit.audits.recognition.people.pooled`; or the sides differ.

    Source: membership inference as in Yeom et al. 2018, low false positive rates as in Carlini et al. 2022;
    record linkage as in Fellegi & Sunter 1969.
    """

    max_people: int = 2000
    draws: int = 3
    tolerance: float = 0.01
    detection: bool = True

    info: ClassVar[AuditInfo] = AuditInfo(
        title="Recognition",
        question="Can an adversary tell who was in the training set?",
        threat_model=(
            "An adversary who knows people's records compares them with the release in many ways. On some "
            "people the adversary learns which way works, and then claims others as training people."
        ),
        not_covered=(
            "Traces that none of the views reads, such as values encoded by a secret rule, and leaks of so "
            "few people that they stay within the interval."
        ),
        quantities=(FOUND, FOUND_IN_SUBGROUP, LIMIT, NEARER, EXCESS, AUC, TPR),
        risk="membership",
        needs=(Need.CONTROL,),
        leak=Leak.OWN,
        spreads=True,
        cost="minutes",
        source="Yeom et al. 2018; Carlini et al. 2022; Fellegi & Sunter 1969",
    )

    def __post_init__(self) -> None:
        if self.max_people < 4 or self.draws < 1 or not 0 <= self.tolerance < 1:
            raise ValueError("max_people must be at least 4, draws at least 1, and tolerance in [0, 1)")

    def run(self, subject: Subject, context: RunContext) -> measurement.Findings:
        """Score people by every view, recognise them, and measure what would have been found."""
        pool, sides = pooled(subject, self.max_people, context.rng)
        if subject.random_split is None or not subject.random_split.ours:
            _refuse_unlike_sides(side_test(pool, sides.member, context.rng))
        seed = int(context.rng.integers(2**63))
        if self.detection:
            pool = replace(pool, memory=ReleaseMemory())
        draws = scored(pool, self.draws, seed, partial(context.map, "view"))
        if not draws[0].scores:
            raise NotApplicable("no view has anything to compare")
        views = [d.views for d in draws]
        found = recognise(views, sides.member, context.rng)
        interval = found.interval(1 - 2 * FAMILY)
        leak = p_value(views, sides.member, context.rng) <= FAMILY
        nearer = row_nearness(pool, context.rng)
        seen = nearer is not None and nearer.p <= FAMILY and nearer.value > SEEN_CONTROL
        limits: list[DetectionLimit] = []
        if self.detection and not (leak and interval.low > self.tolerance):
            remembering = replace(pool, memory=ReleaseMemory(draws[0].found))
            limits = (
                [DetectionLimit(c, None, ()) for c in classes_of(pool)]
                if seen
                else detection_limits(remembering, sides.member, views[0], self.draws, seed, context)
            )
        counts: measurement.SampleCounts = {
            "n_requested": self.max_people,
            "n_achieved": int(min(sides.member.sum(), (~sides.member).sum())),
            "n_minimum": FEWEST,
        }
        by = _relied_on(found, draws)
        none = measurement.Interval(0.0, 0.0, interval.level, "permutation test")
        worst, column, n = worst_category(found, sides, subject) if leak else (0.0, "", 0)
        measurements = (
            FOUND.at(found.excess, interval=interval, **counts)
            if leak
            else FOUND.at(0.0, interval=none, **counts),
            FOUND_IN_SUBGROUP.at(max(0.0, worst)),
            *([FOUND_IN_SUBGROUP.at(worst, column=column, n=n)] if worst > 0 else []),
            *_limits(limits, counts),
            *([_nearness(nearer, subject.level)] if nearer else []),
            EXCESS.at(
                found.excess,
                interval=found.interval(subject.level),
                reference=measurement.Reference(0.0, "claims of training people are right by chance alone"),
                **counts,
            ),
            *_standing(found, counts),
        )
        notes = [*_notes(leak, by, [] if seen else limits)]
        if self.detection and not limits:
            notes.append("detection limits were not measured, since a leak beyond the tolerance was found")
        if seen:
            notes.append(
                "synthetic rows are nearer to training and control people than real people are to one "
                "another. So the generator may have learned from control people, too, and a comparison "
                "with them would find no leak"
            )
        return measurement.Findings(
            measurements, notes=tuple(notes), exposures=(_exposure(found, sides, by.columns),)
        )


def _limits(
    found: Sequence[DetectionLimit], counts: measurement.SampleCounts
) -> list[measurement.Measurement]:
    """The limit of each class, and the largest of those in which a row is of one person.

    Args:
        counts: people of the smaller side, which set what can be found.
    """
    share = {x.leak.name: 1.0 if x.share is None else x.share for x in found}
    of_one = [share[x.leak.name] for x in found if x.leak.of_one_person]
    asked, n = counts["n_requested"], counts["n_achieved"]
    largest = [LIMIT.at(max(of_one), n_requested=asked, n_achieved=n)] if of_one else []
    return largest + [LIMIT.at(limit, setting=name) for name, limit in share.items()]


def worst_category(found: Recognised, sides: Sides, subject: Subject) -> tuple[float, str, int]:
    """Largest lower bound of the excess within a category of a column, corrected for their number.

    Categories with fewer than :data:`FEWEST` training or :data:`FEW` control people are left out.

    Returns:
        The bound, the column, and how many training people of the category were examined, 0 where those are
        suppressed. ``(-1, "", 0)`` where no category is left.
    """
    every = [(c.name, p) for c in nominal(subject.features) for p in _categories(c, sides, subject)]
    level = corrected_level(1 - 2 * FAMILY, max(1, len(every)))
    bounds = ((found.interval(level, among=p).low, name, int((p & sides.member).sum())) for name, p in every)
    worst, column, n = max(bounds, default=(-1.0, "", 0))
    return worst, column, n if n >= subject.suppression else 0


def _categories(column: Column, sides: Sides, subject: Subject) -> Iterator[Bools]:
    """People with a record of each category that is large enough on both sides, shape (people,)."""
    assert subject.control is not None
    labels = np.empty(len(sides.rows), object)
    in_train = sides.member[sides.person]
    for table, here in ((subject.train, in_train), (subject.control, ~in_train)):
        labels[here] = table.take(sides.rows[here]).labels(column.name)
    for label in sorted({str(x) for x in labels if x is not None}):
        people = np.zeros(len(sides.member), dtype=np.bool_)
        people[sides.person[labels == label]] = True
        if (people & sides.member).sum() >= FEWEST and (people & ~sides.member).sum() >= FEW:
            yield people


def _nearness(found: RowNearness, level: float) -> measurement.Measurement:
    return NEARER.at(
        found.value,
        interval=found.interval(level),
        n_requested=found.clear,
        n_achieved=found.clear,
        n_minimum=FEW,
        reference=measurement.Reference(0.0, "rows of other people"),
    )


def _refuse_unlike_sides(found: SideTest) -> None:
    if found.p <= FAMILY:
        raise NotApplicable(
            f"training and control people differ by themselves (p {found.p:.2g}), most in "
            f"{', '.join(found.columns)}: no finding can rest on comparison with control"
        )


def _standing(found: Recognised, counts: measurement.SampleCounts) -> tuple[measurement.Measurement, ...]:
    """How well the attack ranks people."""
    train, control = found.standing[found.member], found.standing[~found.member]
    rate = float((train > np.quantile(control, 1 - FALSE_POSITIVES)).mean())
    return (
        AUC.at(auroc(train, control), reference=measurement.Reference(0.5, "chance"), **counts),
        TPR.at(rate, reference=measurement.Reference(FALSE_POSITIVES, "chance"), **counts),
    )


def _relied_on(found: Recognised, draws: Sequence[ScoredPeople]) -> ScoreInfo:
    """The view that carries most weight in the rules, with those of its columns that most of it rests on."""
    views: dict[str, float] = {}
    columns: dict[str, dict[str, float]] = {}
    infos = {}
    for draw, rule in found.rules:
        for view, weight in zip(rule.views, rule.weights, strict=True):
            score = draws[draw].scores[view]
            name = score.view.title
            infos[name] = score.view
            views[name] = views.get(name, 0.0) + weight
            for column in score.columns:
                of = columns.setdefault(name, {})
                of[column] = of.get(column, 0.0) + weight
    name = max(views, key=views.__getitem__)
    named = sorted(columns.get(name, {}).items(), key=lambda pair: -pair[1])[:NAMED]
    return ScoreInfo(infos[name], tuple(column for column, _ in named))


def _notes(leak: bool, by: ScoreInfo, limits: Sequence[DetectionLimit]) -> list[str]:
    """How people are recognised, and classes of leak without a limit."""
    notes = []
    if leak:
        where = f", mostly in {', '.join(by.columns)}" if by.columns else ""
        notes.append(f"people are recognised by {by.view.finds}{where}")
    notes += [
        f"no detection limit is established for {x.leak.title.lower()}: "
        f"even a leak of {100 * max(x.planted):.3g} % of the people may be missed"
        for x in limits
        if x.share is None
    ]
    return notes


def _exposure(found: Recognised, sides: Sides, columns: tuple[str, ...]) -> measurement.Exposure:
    """The people claimed in most evaluations, as positions in their tables."""
    claimed = found.claims >= 0.5
    (train, hit), (control, control_hit) = (
        (sides.positions(side), sides.positions(side & claimed)) for side in (sides.member, ~sides.member)
    )
    return measurement.Exposure(EXCESS.id(), columns, train, hit, control, control_hit)
