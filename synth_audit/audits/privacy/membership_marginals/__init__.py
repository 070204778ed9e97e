"""Membership by the marginals that a generator keeps: a tailored attack without shadow models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from synth_audit.audits.privacy._membership_rates import (
    QUANTITIES,
    TOLD_RATES,
    Scored,
    curves,
    rates,
    told,
    worst,
)
from synth_audit.audits.privacy._target_pool import TargetPool
from synth_audit.audits.privacy.membership_marginals.scores import by_marginals
from synth_audit.core.audit import AuditInfo, Need
from synth_audit.core.context import RunContext
from synth_audit.core.measurement import Findings
from synth_audit.core.subject import Subject


@dataclass(frozen=True, kw_only=True)
class MembershipMarginals:
    """Ranks training rows and strangers by how much fuller their cells are in the release than in a sample.

    A generator that keeps marginals, such as MST, AIM or PrivBayes, hands on counts, and each training row
    has added one to those of its cells. The attacker needs no shadow models: the tree of columns is read off
    the release, where its pairs are the ones that depend most on each other. Scores, from log ratios
    ``log r_C = log((s + 1) / (n r / (N − 1) + 1))`` of the rows in a person's cell of columns C, s of n in
    the release and r of the N − 1 others among train and control *pooled*, which know nobody's side:

    * ``tree``: ``Σ_edges log r_ij − Σ_i (degree_i − 1) log r_i``, the log ratio of densities under the tree;
    * ``pairs``: the mean of ``log r_ij`` over all pairs, for generators that keep more than a tree;
    * ``columns``: the sum of ``log r_i`` over single columns.

    Above 0 a person is called a member, the natural threshold of a ratio of densities. Numbers are cut at
    quantiles of the pool; what is missing has a cell of its own, and so has each label and each text.

    Where the release comes with a guarantee, the most that it allows any attacker is drawn beside the curves:
    ``TPR ≤ min(e^ε FPR + δ, 1 − e^−ε (1 − δ − FPR))``.

    Fields:
        max_members, max_others: at most this many training rows and strangers are tested, drawn at random.
        max_reference: at most this many real rows besides those tested are in the reference.
        max_counted: at most this many rows of the release are counted.
        bins: of a number, at least 2.

    Raises:
        NotApplicable: control has fewer than 20 rows or people, or train or the release fewer than 2.

    Source: Andrey, Le Bars & Tommasi 2025 (TAMIS); Golob et al. 2024 (MAMA-MIA); Chow & Liu 1968 (tree).
    """

    max_members: int = 5_000
    max_others: int = 5_000
    max_reference: int = 40_000
    max_counted: int = 100_000
    bins: int = 25

    info: ClassVar[AuditInfo] = AuditInfo(
        title="Membership by marginals",
        question="Do the marginals that the release keeps tell who was in the training data?",
        threat_model=(
            "An adversary holds the release, records of candidates and a sample of the same population, "
            "knows that the generator keeps tables of few columns, finds out which from the release, and "
            "names those whose cells are fuller than the population's."
        ),
        not_covered=(
            "An adversary who knows the generator's bins and noise sees more, and so does one who can run "
            "it. Tables of more than two columns are not looked at."
        ),
        quantities=QUANTITIES,
        risk="membership",
        needs=(Need.CONTROL,),
        default=False,
        cost="seconds",
        source="Andrey et al. 2025; Golob et al. 2024; Chow & Liu 1968; Newcombe 2006, DeLong et al. 1988",
    )

    def __post_init__(self) -> None:
        for name in ("max_members", "max_others", "max_reference", "max_counted"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be positive, got {getattr(self, name)}")
        if self.bins < 2:
            raise ValueError(f"bins must be at least 2, got {self.bins}")

    def run(self, subject: Subject, context: RunContext) -> Findings:
        """Score sampled training rows and strangers against the counts of the release."""
        rng = context.rng
        people = TargetPool.of(subject, self.max_members, self.max_others, self.max_reference, rng)
        scores = by_marginals(subject, people, self.bins, self.max_counted, rng)
        scored = [Scored(name, *people.split(values), 0.0) for name, values in scores.items()]
        found = [m for attack in scored for m in rates(attack, subject.level)]
        n = len(people.others)
        notes = tuple(
            f"{n} control rows are too few to tell a rate of {rate:.1%} false alarms"
            for rate in TOLD_RATES.values()
            if not told(rate, n)
        )
        return Findings((*found, worst(scored, subject.level)), (curves(scored, subject),), notes)
