"""Recognition: who was in the training set? One engine, and one file for each family of views."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from synth_audit.audits.recognition.engine import Recognised, ViewScores, information, recognise
from synth_audit.audits.recognition.people import PooledPeople, Sides, pooled
from synth_audit.audits.recognition.view import View
from synth_audit.core import registry
from synth_audit.core.arrays import Floats
from synth_audit.core.audit import AuditInfo, Need
from synth_audit.core.context import RunContext
from synth_audit.core.errors import NotApplicable
from synth_audit.core.measurement import Exposure, Findings, Quantity, Reference, SampleCounts
from synth_audit.core.subject import Subject
from synth_audit.kernels.roc import auroc

EXCESS = Quantity(
    "excess",
    "Training people recognised, beyond control people",
    range=(-1.0, 1.0),
    help="Share of training people whom the attack claims, minus that of control people. 0 without a leak.",
)
AUC = Quantity(
    "auc",
    "AUC of the attack",
    help="Probability that the attack ranks a training person above a control person; 0.5 without a leak.",
    proportional=False,
)
TPR = Quantity(
    "true_positive_rate",
    "True positive rate at 1 % false positives",
    help="Share of training people ranked above all but 1 % of control people. 0.01 without a leak.",
)

FEWEST = 100
"""Control people with fewer of whom the excess is insufficient evidence: its error is two points at least."""

FALSE_POSITIVES = 0.01
"""False positive rate at which the true positive rate is reported, as is usual for membership inference."""


@dataclass(frozen=True, kw_only=True)
class Recognition:
    """Measures how many training people an adversary recognises in the release, beyond control people.

    The adversary knows the records of all people and wants to know who was in the training set. Views score
    each person by the release (:mod:`synth_audit.audits.recognition.view`). The engine chooses a combination
    on one half of the people and evaluates it on the other (:mod:`synth_audit.audits.recognition.engine`).

    Fields:
        max_people: people drawn from either side; fewer where the release is large.
        draws: draws of the views' own randomness, whose variance is part of the interval.

    Raises:
        ValueError: a field is out of range.
        NotApplicable: see :func:`~synth_audit.audits.recognition.people.pooled`.

    Source: membership inference as in Yeom et al. 2018, low false positive rates as in Carlini et al. 2022;
    record linkage as in Fellegi & Sunter 1969.
    """

    max_people: int = 2000
    draws: int = 3

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
        quantities=(EXCESS, AUC, TPR),
        risk="membership",
        needs=(Need.CONTROL,),
        default=False,
        source="Yeom et al. 2018; Carlini et al. 2022; Fellegi & Sunter 1969",
    )

    def __post_init__(self) -> None:
        if self.max_people < 4 or self.draws < 1:
            raise ValueError("max_people must be at least 4 and draws at least 1")

    def run(self, subject: Subject, context: RunContext) -> Findings:
        """Score people by every view, and recognise them."""
        pool, sides = pooled(subject, self.max_people, context.rng)
        scored = list(_scored(pool, self.draws, context))
        if not scored[0].names:
            raise NotApplicable("no view has anything to compare")
        found = recognise([s.views for s in scored], sides.member, context.rng)
        standing = [found.standing[side] for side in (sides.member, ~sides.member)]
        limit = float(np.quantile(standing[1], 1 - FALSE_POSITIVES))
        counts: SampleCounts = {
            "n_requested": self.max_people,
            "n_achieved": int(min(map(len, standing))),
            "n_minimum": FEWEST,
        }
        measurements = (
            EXCESS.at(
                found.excess,
                interval=found.interval(subject.level),
                reference=Reference(0.0, "claims of training people are right by chance alone"),
                **counts,
            ),
            AUC.at(auroc(*standing), reference=Reference(0.5, "chance"), **counts),
            TPR.at(
                float((standing[0] > limit).mean()),
                reference=Reference(FALSE_POSITIVES, "chance"),
                **counts,
            ),
        )
        return Findings(measurements, notes=_notes(found, scored), exposures=(_exposure(found, sides),))


@dataclass(frozen=True, eq=False)
class _Scored:
    """The views in one draw, with the name of each."""

    views: ViewScores
    names: tuple[str, ...]


def _scored(pool: PooledPeople, draws: int, context: RunContext) -> Iterator[_Scored]:
    """Every view's scores, once for each draw; views without randomness are computed once."""
    kept: dict[str, dict[str, Floats]] = {}
    for draw in range(draws):
        for name in registry.catalogue("view"):
            view: View = registry.build("view", name, {})
            if view.info.random or name not in kept:
                rng = context.child("recognition", name, str(draw)).rng
                kept[name] = {
                    f"{view.info.title}: {s.name}": pool.of_people(s.values) for s in view.scores(pool, rng)
                }
        scores = {name: values for of_view in kept.values() for name, values in of_view.items()}
        values = np.array(list(scores.values())).reshape(len(scores), pool.people)
        yield _Scored(ViewScores(information(values)), tuple(scores))


def _notes(found: Recognised, scored: Sequence[_Scored]) -> tuple[str, ...]:
    """Which view the rules rest on most."""
    used = Counter(scored[draw].names[rule.views[0]] for draw, rule in found.rules)
    [(name, _)] = used.most_common(1)
    return (f"the attack relied most on {name}",)


def _exposure(found: Recognised, sides: Sides) -> Exposure:
    """The people claimed in most evaluations, as positions in their tables."""
    claimed = found.claims >= 0.5
    (train, hit), (control, control_hit) = (
        (sides.positions(side), sides.positions(side & claimed)) for side in (sides.member, ~sides.member)
    )
    return Exposure(EXCESS.id(), (), train, hit, control, control_hit)
