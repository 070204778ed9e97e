"""One run: what this release costs at least, from the secret coins of the split and no further fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from synth_audit.arrays import Bools
from synth_audit.audits.privacy.one_run.measures import (
    FEWEST_JUDGED,
    QUANTITIES,
    Judgement,
    gaussian_bound,
    gaussian_measured,
    gaussian_told,
    measured,
    told,
)
from synth_audit.audits.privacy.one_run.people import ClaimablePeople, PeopleScores, gather, score
from synth_audit.dp.guarantee import Neighbouring, PrivacyGuarantee
from synth_audit.errors import NotApplicable
from synth_audit.findings.measurement import Findings
from synth_audit.plugins.audit import AuditInfo, Need, Subject
from synth_audit.run.context import RunContext
from synth_audit.run.seeds import as_int_seed, public_key
from synth_audit.stats.epsilon import Claims, Coins, FixedSizes, allowed_pool, beyond_most, choose_rule

FEWEST_PEOPLE, FEWEST_PLANTED = 200, 60
"""Of fewer people no claims could be right often enough to prove much, nor, among those of a planted leak, to
tell a full copy from none."""

FEWEST_CLAIMS = 30
"""No rule is chosen that claims fewer on the half where sides are known."""

_SPENT_ON_DELTA = 0.2
"""Share of α that δ may take; the pool of people is cut down until it does."""


@dataclass(frozen=True, kw_only=True)
class OneRun:
    """A lower bound on ε from one release, for any generator, which is not run again.

    The split tossed an independent secret coin for every entity. Claims of who is in train, from the release
    and from real rows whose side is not told, are right no more often than (ε, δ)-DP allows: see
    :mod:`synth_audit.stats.epsilon`. Which score is claimed by, and from which value on, is chosen on
    one half of the people, by a coin of their own; ``empirical_epsilon`` is the largest ε that the claims
    about the other half refute at level 1 − α, its interval reaching to the ε at which so many would be right
    with probability 1 − α.

    Under a guarantee its δ is used, and only units that it is made to are claimed: entities, or those of one
    row. Where δ is above 0 the people judged are the most isolated ones, so few that δ takes no more than a
    fifth of α. Where the sizes of train and control were fixed, or the guarantee is one of replacing, the
    bound is that for divisions of fixed sizes.

    ``gaussian_mu`` is a second lower bound from the same scores: the largest μ for which no μ-GDP mechanism
    would let so many guesses be right (`measures.py`). It has its own α and
    is never called ε, because a generator need not behave like Gaussian noise.

    Fields:
        max_rows: people of at most so many rows are drawn at random, and as many further real rows beside
            them are a reference. The release is searched whole.
        subsets: random subsets of two to five columns that are tried as what the adversary knows.

    Raises:
        NotApplicable: nothing says that chance alone divided train and control; or there are too few people
            of whom claims could be made.

    Source: Steinke, Nasr & Jagielski 2023; Mahloujifar, Melis & Chaudhuri 2024 (``gaussian_mu``).
    """

    max_rows: int = 50_000
    subsets: int = 20

    info: ClassVar[AuditInfo] = AuditInfo(
        title="What this release costs at least",
        question="By how much does this release provably give away who was in the training data?",
        threat_model=(
            "An adversary holds the release and the records of all candidates, and claims of some that they "
            "were in the training data. Secret coins of the split decided who really was, so that luck can "
            "be told from knowledge without running the generator again."
        ),
        not_covered=(
            "A lower bound proves a cost and never its absence: 0 says that these claims proved nothing, and "
            "better ones might. It can only be as large as the number of claims allows."
        ),
        quantities=QUANTITIES,
        risk="membership",
        needs=(Need.CONTROL,),
        cost="seconds",
        source=(
            "Steinke, Nasr & Jagielski 2023; Wallenius 1963; van Breugel et al. 2023 (density ratio); "
            "Mahloujifar, Melis & Chaudhuri 2024 (mu)"
        ),
    )

    def __post_init__(self) -> None:
        if self.max_rows < FEWEST_PEOPLE:
            raise ValueError(f"max_rows must be at least {FEWEST_PEOPLE}, got {self.max_rows}")
        if self.subsets < 0:
            raise ValueError(f"subsets must not be negative, got {self.subsets}")

    def run(self, subject: Subject, context: RunContext) -> Findings:
        """Choose claims on one half of the people and count the right ones on the other."""
        guarantee, rng = subject.guarantee, context.rng
        if subject.random_split is None:
            raise NotApplicable(
                "nothing says that chance alone decided who is in train and who in control; where it did, "
                "the plan may declare `split: {made_elsewhere: random}`"
            )
        key = public_key(as_int_seed(rng), "one run")
        single = guarantee is not None and not guarantee.covers_entities
        people = gather(subject, self.max_rows, self.max_rows, key, single=single)
        fewest = FEWEST_PLANTED if subject.planted else FEWEST_PEOPLE
        if len(people) < fewest:
            raise NotApplicable(f"fewer than {fewest} people of whom claims could be made")
        scores = score(subject, people, self.subsets, rng)
        judged = _judge(subject, people, scores)
        p = None if judged.fixed else judged.p
        gaussian = gaussian_bound(scores.values, people, p, judged.alpha, judged.delta)
        return Findings(
            (*measured(judged, subject.level), *gaussian_measured(gaussian)),
            notes=(*told(judged, scores.names), gaussian_told(gaussian, subject.level, fixed=judged.fixed)),
        )


def _judge(subject: Subject, people: ClaimablePeople, scores: PeopleScores) -> Judgement:
    """Choose on the half whose sides are known, count on the other."""
    split, guarantee, alpha = subject.random_split, subject.guarantee, 1 - subject.level
    assert split is not None
    by_replacing = guarantee is not None and guarantee.neighbouring is Neighbouring.REPLACE
    fixed = split.train is None or by_replacing
    p = split.train or _share(people.members[people.known])
    delta = guarantee.delta if guarantee else 0.0
    asked = _asked(scores, people, p, guarantee, _SPENT_ON_DELTA * alpha)
    known, secret = people.known & asked, ~people.known & asked
    rule = choose_rule(
        scores.values[:, known],
        people.members[known],
        p,
        alpha,
        FEWEST_CLAIMS,
        both=not fixed and delta == 0,
    )
    claims = rule.counted(scores.values[:, secret], people.members[secret])
    n, inside = int(secret.sum()), int(people.members[secret].sum())
    return Judgement(
        chances=FixedSizes(inside, n - inside, delta) if fixed else Coins(p, delta, n),
        claims=claims if claims.made >= FEWEST_JUDGED else Claims(0, 0, 0),
        rule=rule,
        alpha=alpha,
        p=p,
        delta=delta,
        pool=n,
        members=inside,
        claimed=guarantee.epsilon if guarantee and (by_replacing or not fixed) else None,
    )


def _asked(
    scores: PeopleScores, people: ClaimablePeople, p: float, guarantee: PrivacyGuarantee | None, most: float
) -> Bools:
    """Of whom claims may be made so that the δ of the guarantee takes no more than ``most``, shape (n,)."""
    if guarantee is None or guarantee.delta == 0:
        return np.ones(len(people), dtype=bool)
    allowed = allowed_pool(p, guarantee.epsilon, guarantee.delta, most)
    return beyond_most(scores.isolation, scores.isolation[~people.known], allowed)


def _share(members: Bools) -> float:
    """The share of members, within (0, 1) even if all are."""
    return (float(members.sum()) + 0.5) / (len(members) + 1)
