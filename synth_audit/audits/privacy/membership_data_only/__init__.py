"""Membership from the data alone: can an attacker who holds the release tell training rows from strangers?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from synth_audit.audits.privacy._membership_rates import (
    AUC,
    ONE_PERCENT,
    QUANTITIES,
    TOLD_RATES,
    Scored,
    curves,
    rates,
    told,
    worst,
)
from synth_audit.audits.privacy._target_pool import TargetPool
from synth_audit.audits.privacy.membership_data_only.exposed import EXPOSED_FOUND, exposed_found
from synth_audit.audits.privacy.membership_data_only.scores import by_distance, by_trees
from synth_audit.core.arrays import Floats
from synth_audit.core.audit import AuditInfo, Need
from synth_audit.core.context import RunContext
from synth_audit.core.measurement import Exposure, Findings
from synth_audit.core.subject import Subject
from synth_audit.kernels import membership
from synth_audit.kernels.neighbours import most_queries

_RANKING = ("dpi", "neighbourhood")
"""Scores that only rank: they count among few rows, so that no threshold has a meaning of its own."""


@dataclass(frozen=True, kw_only=True)
class MembershipDataOnly:
    """Ranks training rows and strangers by what the release alone says of them.

    The attacker's reference are train and control *pooled*, without the person in question: members and
    strangers are looked at alike, so that a release which is independent of the split has area ½ in
    expectation, whatever the score. (A reference of control rows alone knows the side of whoever is in it.)
    All control rows are strangers; of somebody with several rows one is tested. Scores, by Gower's distance
    on robust ranges but for the last:

    * ``distance``: minus the distance to the nearest synthetic row;
    * ``density_ratio``: density of the release over density of the reference, after DOMIAS, by the distances
      to the nearest row of each;
    * ``gen_lra``: by how much knowing the person makes the five synthetic rows near them likelier;
    * ``dpi``: share of synthetic rows among the five nearest rows of release and reference together;
    * ``neighbourhood``: synthetic rows, up to five, within the median distance to the nearest one;
    * ``classifier``: randomised trees learn to tell synthetic rows from one half of the reference, and call a
      record of the other half a member the more it looks like a synthetic one: the worst-case attack of
      disjoint generative models.

    ``auc = P(member > stranger) + ½ P(tie)``; the true-positive rates at 1 % and 0.1 % false alarms;
    ``precision``, ``recall`` and ``advantage = TPR − FPR`` at a threshold: the median score of strangers,
    which an attacker with a sample of the population knows, or equal density of both tables (classifier).
    ``worst_auc`` is the largest area, its interval at ``1 − (1 − level) / 6``.

    ``exposed_found`` is the share found at 1 % false alarms of everybody, of the more exposed half, quarter,
    … of the people, as far as strangers suffice; see :mod:`.exposed`.

    Fields:
        max_members, max_others: at most this many training rows and strangers are tested, drawn at random; in
            a release of more than 800,000 rows fewer: 2,500 in 1,600,000.
        max_reference: at most this many real rows besides those tested are in the reference, drawn at random.
        max_learnt: the trees learn from at most this many synthetic rows, drawn at random, and from at most
            10,000 real ones; distances search all of them.
        n_trees: randomised trees of the classifier.

    Raises:
        NotApplicable: control has fewer than 20 rows or people, or train or the release fewer than 2.

    Source: van Breugel et al. 2023 (DOMIAS); Ward et al. 2025 (Gen-LRA); Ward, Wang & Cheng 2024 (DPI);
    Hilprecht et al. 2019 (neighbourhood); El Emam et al. 2022; disjoint generative models, appendix A.
    """

    max_members: int = 5_000
    max_others: int = 5_000
    max_reference: int = 40_000
    max_learnt: int = 100_000
    n_trees: int = 100

    info: ClassVar[AuditInfo] = AuditInfo(
        title="Membership from the data alone",
        question="Can somebody who holds the release tell who was in the training data?",
        threat_model=(
            "An adversary holds the release, records of candidates and a sample of the same population, and "
            "names those candidates around whom the release is denser than the population, or whom release "
            "rows are nearer to than to anybody else. The adversary cannot run the generator."
        ),
        not_covered=(
            "An adversary who can run the generator again on chosen data sees more. Scores look at whole "
            "records: who is betrayed by a few columns only may be missed."
        ),
        quantities=(*QUANTITIES, EXPOSED_FOUND),
        risk="membership",
        needs=(Need.CONTROL,),
        cost="seconds",
        source="van Breugel et al. 2023; Ward et al. 2024, 2025; Hilprecht et al. 2019; El Emam et al. 2022; "
        "Newcombe 2006, DeLong et al. 1988 (intervals)",
    )

    def __post_init__(self) -> None:
        for name in ("max_members", "max_others", "max_reference", "max_learnt", "n_trees"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be positive, got {getattr(self, name)}")

    def run(self, subject: Subject, context: RunContext) -> Findings:
        """Score sampled training rows and strangers against the whole release."""
        rng = context.rng
        members, others = (
            most_queries(most, subject.synthetic.n_rows) for most in (self.max_members, self.max_others)
        )
        people = TargetPool.of(subject, members, others, self.max_reference, rng)
        scores = by_distance(subject, people, rng)
        trees = by_trees(subject, people, self.max_learnt, self.n_trees, rng)
        every = scores.values | {"classifier": trees}
        scored = [_scored(name, *people.split(values)) for name, values in every.items()]
        found = [m for attack in scored for m in rates(attack, subject.level)]
        found.append(worst(scored, subject.level))
        exposed, said = exposed_found(scored, *people.split(scores.isolation), subject.level)
        n = len(people.others)
        notes = tuple(
            f"{n} control rows are too few to tell a rate of {rate:.1%} false alarms"
            for rate in TOLD_RATES.values()
            if not told(rate, n)
        )
        naming = [attack for attack in scored if attack.threshold is not None and told(ONE_PERCENT, n)]
        exposures = tuple(_exposure(attack, people) for attack in naming)
        return Findings((*found, *exposed), (curves(scored, subject),), notes + said, exposures)


def _scored(name: str, members: Floats, others: Floats) -> Scored:
    if name in _RANKING:
        return Scored(name, members, others)
    return Scored(name, members, others, 0.0 if name == "classifier" else float(np.median(others)))


def _exposure(attack: Scored, people: TargetPool) -> Exposure:
    """Whom the attack names at 1 % false alarms, more surely than not."""
    members = membership.alarm(attack.members, attack.others, ONE_PERCENT) >= 0.5
    others = membership.own_alarm(attack.others, ONE_PERCENT) >= 0.5
    return Exposure(
        measurement=AUC.id(attack.name),
        columns=(),
        train_tried=people.members,
        train_hit=people.members[members],
        control_tried=people.others,
        control_hit=people.others[others],
    )
