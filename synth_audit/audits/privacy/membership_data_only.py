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
from synth_audit.audits.privacy._targets import drawn
from synth_audit.core.arrays import Floats, Positions
from synth_audit.core.audit import AuditInfo, Need
from synth_audit.core.context import RunContext
from synth_audit.core.errors import NotApplicable
from synth_audit.core.measurement import Exposure, Findings
from synth_audit.core.subject import Subject
from synth_audit.encoding.gower import GowerEncoder
from synth_audit.encoding.value_ranks import value_ranks
from synth_audit.kernels import membership
from synth_audit.kernels.density import log_density_ratio, tree_share
from synth_audit.kernels.gower import Mixed, nearest, nearest_other
from synth_audit.kernels.neighbours import Nearest, most_queries

FEWEST_CONTROL = 20
"""With fewer control rows there is neither a reference for the attacker nor anyone to be told apart."""


@dataclass(frozen=True, eq=False)
class _Draw:
    """Which rows play which part: positions in train and control, ascending."""

    members: Positions
    others: Positions
    reference: Positions


@dataclass(frozen=True, kw_only=True)
class MembershipDataOnly:
    """Ranks training rows and strangers by what the release alone says of them.

    Control is split at random: one half is the attacker's reference of the population, the other half are the
    strangers tested, so no stranger is judged by itself. Three scores:

    * ``distance``: minus Gower's distance to the nearest synthetic row;
    * ``density_ratio``: density of the release over density of the reference, after DOMIAS, by the distances
      to the nearest row of each;
    * ``classifier``: randomised trees learn to tell synthetic rows from reference rows, and call a record a
      member the more it looks like a synthetic one: the worst-case attack of disjoint generative models.

    ``auc = P(member > stranger) + ½ P(tie)``; the true-positive rates at 1 % and 0.1 % false alarms;
    ``precision``, ``recall`` and ``advantage = TPR − FPR`` at a threshold that needs no labels: the median
    score of 1,000 reference rows, each left out of the reference (distance, density ratio), or equal density
    of both tables (classifier). ``worst_auc`` is the largest area, its interval at ``1 − (1 − level) / 3``.

    Fields:
        max_members, max_others: at most this many training rows and strangers are tested, drawn at random; in
            a release of more than 800,000 rows fewer: 2,500 in 1,600,000.
        max_learnt: the trees learn from at most this many synthetic and as many reference rows, drawn at
            random; distances search all of them.
        n_trees: randomised trees of the classifier.

    Raises:
        NotApplicable: control has fewer than 20 rows, or train or the release fewer than 2.

    Source: van Breugel et al. 2023 (DOMIAS); El Emam et al. 2022; disjoint generative models, appendix A.
    """

    max_members: int = 5_000
    max_others: int = 5_000
    max_learnt: int = 100_000
    n_trees: int = 100

    info: ClassVar[AuditInfo] = AuditInfo(
        title="Membership from the data alone",
        question="Can somebody who holds the release tell who was in the training data?",
        threat_model=(
            "An adversary holds the release, records of candidates and a sample of the same population, and "
            "names those candidates around whom the release is denser than the population. The adversary "
            "cannot run the generator."
        ),
        not_covered=(
            "An adversary who can run the generator again on chosen data sees more. Scores look at whole "
            "records: who is betrayed by a few columns only may be missed."
        ),
        quantities=QUANTITIES,
        risk="membership",
        needs=(Need.CONTROL,),
        cost="seconds",
        source="van Breugel et al. 2023; El Emam et al. 2022; Newcombe 2006, DeLong et al. 1988 (intervals)",
    )

    def __post_init__(self) -> None:
        for name in ("max_members", "max_others", "max_learnt", "n_trees"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be positive, got {getattr(self, name)}")

    def run(self, subject: Subject, context: RunContext) -> Findings:
        """Score sampled training rows and strangers against the whole release."""
        rng = context.rng
        draw = self._draw(subject, rng)
        scored = [*_by_distance(subject, draw, rng), self._by_trees(subject, draw, rng)]
        found = [m for attack in scored for m in rates(attack, subject.level)]
        found.append(worst(scored, subject.level))
        n = len(draw.others)
        notes = tuple(
            f"{n} control rows are too few to tell a rate of {rate:.1%} false alarms"
            for rate in TOLD_RATES.values()
            if not told(rate, n)
        )
        exposures = tuple(_exposure(attack, draw) for attack in scored if told(ONE_PERCENT, n))
        return Findings(tuple(found), (curves(scored, subject.suppression),), notes, exposures)

    def _draw(self, subject: Subject, rng: np.random.Generator) -> _Draw:
        assert subject.control is not None
        n_train, n_control = subject.train.n_rows, subject.control.n_rows
        if n_control < FEWEST_CONTROL:
            raise NotApplicable(
                f"fewer than {FEWEST_CONTROL} control rows to split into reference and strangers"
            )
        if n_train < 2 or subject.synthetic.n_rows < 2:
            raise NotApplicable("fewer than two training or synthetic rows")
        n_made = subject.synthetic.n_rows
        members = rng.choice(n_train, min(n_train, most_queries(self.max_members, n_made)), replace=False)
        order = rng.permutation(n_control)
        others, reference = order[: n_control // 2], order[n_control // 2 :]
        others = others[: most_queries(self.max_others, n_made)]
        return _Draw(np.sort(members), np.sort(others), np.sort(reference))

    def _by_trees(self, subject: Subject, draw: _Draw, rng: np.random.Generator) -> Scored:
        assert subject.control is not None
        n = subject.synthetic.n_rows
        learnt = np.sort(rng.choice(n, min(n, self.max_learnt), replace=False))
        reference = drawn(draw.reference, self.max_learnt, rng)
        seed = int(rng.integers(2**31))
        real = [subject.train, subject.control]
        members, control, made = value_ranks(
            [*real, subject.synthetic],
            subject.features,
            real=real,
            rows=[draw.members, np.concatenate([draw.others, reference]), learnt],
        )
        others, strangers = np.split(control, [len(draw.others)])
        share = tree_share(np.concatenate([members, others]), made, strangers, self.n_trees, seed)
        even = round(len(learnt) / (len(learnt) + len(reference)), 9)
        n_members = len(draw.members)
        return Scored("classifier", share[:n_members], share[n_members:], even)


def _by_distance(subject: Subject, draw: _Draw, rng: np.random.Generator) -> list[Scored]:
    assert subject.control is not None
    encoder = GowerEncoder.anchored_on(subject.train, subject.features, beside=[subject.control])
    real = np.concatenate([draw.others, draw.reference])
    members, control, synthetic = encoder.encode(
        [subject.train, subject.control, subject.synthetic], [draw.members, real, None]
    )
    others, reference = (control.take(some) for some in np.split(np.arange(len(real)), [len(draw.others)]))
    width = len(subject.features)

    def scores(queries: Mixed, known: Nearest) -> tuple[Floats, Floats]:
        found = nearest(queries, synthetic)
        return -found.first, log_density_ratio(found, known, width)

    few = np.sort(rng.choice(len(reference), min(len(reference), _CALIBRATION), replace=False))
    of_members = scores(members, nearest(members, reference))
    of_others = scores(others, nearest(others, reference))
    known = scores(reference.take(few), nearest_other(reference, few))
    return [
        Scored(name, of_members[i], of_others[i], float(np.median(known[i])))
        for i, name in enumerate(("distance", "density_ratio"))
    ]


_CALIBRATION = 1_000
"""Reference rows behind the median score that serves as threshold."""


def _exposure(attack: Scored, draw: _Draw) -> Exposure:
    """Whom the attack names at 1 % false alarms, more surely than not."""
    members = membership.alarm(attack.members, attack.others, ONE_PERCENT) >= 0.5
    others = membership.own_alarm(attack.others, ONE_PERCENT) >= 0.5
    return Exposure(
        measurement=AUC.id(attack.name),
        columns=(),
        train_tried=draw.members,
        train_hit=draw.members[members],
        control_tried=draw.others,
        control_hit=draw.others[others],
    )
