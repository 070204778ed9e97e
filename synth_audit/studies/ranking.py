"""The candidates of a sweep side by side: their numbers, their scores and the choice among them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from synth_audit.core.plan import Plan
from synth_audit.core.plan_sections.frontier import FrontierSpec
from synth_audit.judging.judge import load_suite
from synth_audit.store.evidence import Evidence
from synth_audit.studies.candidates import Candidate
from synth_audit.studies.comparison import (
    PRIVACY,
    UTILITY,
    Measure,
    reliable,
    replacement,
    settle,
    shortfall,
)
from synth_audit.studies.correlations import NO_CORRELATIONS, Correlations
from synth_audit.studies.frontier import (
    ERROR,
    CandidateResult,
    FrontierRecord,
    GateOutcome,
    Number,
    choose,
    scored,
)

_SHARED = "known answer."
"""What the timings call the check that is made once for all candidates."""


@dataclass(frozen=True, eq=False)
class CandidateRun:
    """What became of a candidate; without evidence there is a problem."""

    candidate: Candidate
    evidence: Evidence | None
    correlations: Correlations = NO_CORRELATIONS
    kept: bool = False
    problem: str = ""


def ranked(
    plan: Plan, tried: Sequence[CandidateRun], real: Correlations, split_kept: str = ""
) -> FrontierRecord:
    """The record of a sweep of ``plan`` with the choice among its candidates.

    Args:
        real: correlations of the training rows.
        split_kept: when the split was made, if an earlier run made it.
    """
    spec = plan.frontier or FrontierSpec.model_validate({})
    found = [t.evidence for t in tried if t.evidence is not None]
    privacy = settle(spec.privacy, PRIVACY, "privacy", found)
    utility = settle(spec.utility, UTILITY, "utility", found)
    candidates = scored(
        tuple(_candidate(t, privacy, utility) for t in tried),
        spec.alpha,
        higher_privacy=privacy is not None and privacy.higher,
        higher_utility=utility is not None and utility.higher,
    )
    best, reason = choose(candidates)
    for named, measure in ((spec.privacy, privacy), (spec.utility, utility)):
        reason += shortfall(measure, found) if named else ""
    reason += "" if spec.utility else replacement(utility, UTILITY, "Usefulness")
    return FrontierRecord(
        table=plan.name,
        plan_sha256=plan.digest,
        seed=plan.seed,
        level=tried[0].candidate.plan.corrected_level,
        alpha=spec.alpha,
        utility=utility.id if utility else None,
        privacy=privacy.id if privacy else None,
        candidates=candidates,
        chosen=best.name if best else None,
        reason=reason,
        real_correlations=real,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        split_kept=split_kept,
        releasable=plan.release is not None,
        privacy_gated=privacy is None or _gated(plan, privacy),
    )


def _gated(plan: Plan, measure: Measure) -> bool:
    """True when a deciding gate judges this measurement, for the whole table or for any scope."""
    limits = (g.limit for g in load_suite(plan.gates, plan.base).measured if g.blocking)
    return any(limit is not None and limit.applies_to(measure.id) for limit in limits)


def _candidate(tried: CandidateRun, privacy: Measure | None, utility: Measure | None) -> CandidateResult:
    candidate, evidence = tried.candidate, tried.evidence
    plain = CandidateResult(
        name=candidate.name,
        slug=candidate.slug,
        generator={"name": candidate.generator.name, "config": candidate.generator.config},
        varied=candidate.varied,
        verdict=ERROR,
        problem=tried.problem,
    )
    if evidence is None:
        return plain
    return replace(
        plain,
        verdict=str(evidence.verdict),
        gates=tuple(
            GateOutcome(g.gate, g.title, str(g.result)) for g in evidence.gates.results if g.blocking
        ),
        privacy=_number(evidence, privacy),
        utility=_number(evidence, utility),
        boxes=tuple(s for o in evidence.outcomes for s in o.series if s.kind == "box"),
        correlations=tried.correlations,
        seconds=round(sum(s for step, s in evidence.timings.items() if not step.startswith(_SHARED)), 3),
        kept=tried.kept,
    )


def _number(evidence: Evidence, measure: Measure | None) -> Number | None:
    m = reliable(evidence, measure)
    if m is None:
        return None
    low, high = (m.interval.low, m.interval.high) if m.interval else (math.nan, math.nan)
    return Number(m.value, low, high)
