"""What is claimed of a mechanism, and its test: repeated noise, a pilot over all pairs, fresh runs."""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol

import numpy as np
from pydantic import TypeAdapter

from synth_audit.arrays import Bools, Floats, Integers
from synth_audit.dp.guarantee import Neighbouring
from synth_audit.errors import PlanError
from synth_audit.execution.context import SERIAL, RunContext
from synth_audit.mechanism_test import distinguishing
from synth_audit.mechanism_test.distinguishing import CurvePoint, RuleCounts, ThresholdRule

LEVEL = 0.999
"""A true claim is called violated with probability 1 − LEVEL at most: a tenth of it for repeated noise, two
fifths for the one test; the rest is kept back, so that a thousand true claims show it."""

LEVEL_SHOWN = 0.95
"""Of the bound by which tightness is told."""

TIGHT = 0.5
"""Share of the claimed ε from which on a claim is called tight."""

_REPEATS = (1 - LEVEL) * 0.1
"""Error rate of the check for repeated results."""

_TEST = (1 - LEVEL) * 0.4
"""Error rate of the bound on ε."""

_FEWEST, _LEAST_PILOT = 60, 4
"""Runs at least of a test, and of a pilot of each pair."""

_MANY = 100_000
"""Runs from which on a second pilot on the chosen pair is worth its share."""

_PILOT, _PILOT_OF_MANY, _AGAIN = 0.5, 0.1, 0.2
"""Shares of all runs: for a pilot over all pairs, and of many runs for another on the pair that it chose."""

_CURVE = 12
"""Thresholds at which the trade-off is shown: as many as a chart can tell apart."""

FAILED = "no release: the run failed"
"""What is looked at in runs that may give no release."""


@dataclass(frozen=True)
class Claim:
    """(ε, δ)-differential privacy.

    Attributes:
        epsilon: above 0, finite. delta: in [0, 1).
        neighbouring: how two tables differ that must look alike.
        rows: the most rows of whoever is protected.

    Raises:
        PlanError: a number is out of range.
    """

    epsilon: float
    delta: float = 0.0
    neighbouring: Neighbouring = Neighbouring.ADD_OR_REMOVE
    rows: int = 1

    def __post_init__(self) -> None:
        if not (0 < self.epsilon < np.inf and 0 <= self.delta < 1 and self.rows >= 1):
            raise PlanError(
                "the claim is out of range",
                where="epsilon, delta, rows",
                expected="0 < epsilon < ∞, 0 ≤ delta < 1 and at least one row",
                fix="give the claim as its author states it",
            )

    @property
    def sentence(self) -> str:
        """As a reader has it."""
        return f"ε = {self.epsilon:.4g}, δ = {self.delta:g}, {self.neighbouring}"


@dataclass(frozen=True, eq=False)
class Job:
    """Some runs in a row.

    Attributes:
        case: position of the pair of neighbours.
        having: for each run whether it is on the neighbour with the canary, shape (n,).
        seeds: for each run a fresh seed below 2³¹ for what takes one, shape (n,).
    """

    case: int
    having: Bools
    seeds: Integers


class RunnableMechanism(Protocol):
    """What is tested; it must survive the way to another process."""

    @property
    def cases(self) -> tuple[str, ...]:
        """The pairs of neighbours, by what sets them apart."""
        ...

    @property
    def at_once(self) -> int:
        """Runs that are worth asking for together."""
        ...

    def scores(self, case: int) -> tuple[str, ...]:
        """What is looked at in each result of a case."""
        ...

    def run(self, job: Job) -> Floats:
        """What is seen of each run, finite, shape (n, scores)."""
        ...

    def repeated(self) -> Integers | None:
        """Results of a few runs as codes, shape (m,), if the same runs again gave the same; else None."""
        ...


class ClaimAnswer(StrEnum):
    """Whether the claim holds, as far as runs can tell."""

    VIOLATED = "violated"
    """The claim is false, with an error of at most 1 − ``level``."""

    TIGHT = "tight"
    """Not refuted, and at least half of the claimed ε was shown to be spent."""

    DOUBTFUL = "doubtful"
    """Not refuted, but the bound with 95 % confidence is above the claim: more runs would decide."""

    NOT_REFUTED = "not refuted"

    NOT_TESTABLE = "not testable"
    """So few runs could not have refuted the claim, whatever they had shown."""


@dataclass(frozen=True)
class Finding:
    """Something that a look inside found, beside what the runs show.

    Attributes:
        what: the fault in one sentence.
    """

    what: str


@dataclass(frozen=True, eq=False)
class ClaimedMechanism:
    """A mechanism with its claim.

    Attributes:
        name: for a reader. findings: of a look inside. notes: what a reader should know.
    """

    name: str
    mechanism: RunnableMechanism
    claim: Claim
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class MechanismResult:
    """The answer, and what it rests on.

    Attributes:
        mechanism: what was run, for a reader.
        reason: the answer in a sentence.
        epsilon_at_least: the truth is at least this, with an error of at most 1 − ``level``; None when it has
            no bound, as where noise repeats.
        epsilon_shown: the same with an error of at most 1 − ``level_shown``: what tightness is told by.
        largest: the largest ``epsilon_at_least`` that so many runs could have shown.
        runs_to_refute: the fewest tested runs that could refute the claim.
        pilot, tested: runs by which the rule was chosen, and on which it was tested.
        case: the pair of neighbours. score: what was looked at. rule: what was claimed when.
        rules: that were tested at once, the error divided among them. counts: how the best of them did.
        curve: the trade-off curve at thresholds that the pilot fixed, all intervals valid together.
        repeats: probability that independent noise would have repeated itself so; None where it did not.
        failed: of the tested runs, those without a release.
        findings: what a look inside found.
        notes: what a reader should know.
    """

    mechanism: str
    claim: Claim
    answer: ClaimAnswer
    reason: str
    level: float
    level_shown: float
    epsilon_at_least: float | None = 0.0
    epsilon_shown: float | None = 0.0
    largest: float = 0.0
    runs_to_refute: int = 0
    pilot: int = 0
    tested: int = 0
    case: str = ""
    score: str = ""
    rule: str = ""
    rules: int = 1
    counts: RuleCounts | None = None
    curve: tuple[CurvePoint, ...] = ()
    repeats: float | None = None
    failed: int = 0
    seconds: float = 0.0
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def tightness(self) -> float | None:
        """Share of the claimed ε that was shown; None where it is more."""
        shown = self.epsilon_shown
        return None if shown is None or shown > self.claim.epsilon else shown / self.claim.epsilon

    def to_json(self) -> str:
        """As JSON text; a number that has no bound is null."""
        plain = json.loads(TypeAdapter(MechanismResult).dump_json(self))
        return json.dumps(plain | {"tightness": self.tightness}, indent=2)


@dataclass(frozen=True)
class Effort:
    """How much is run.

    Attributes:
        runs: of the mechanism in all, pilot included; at least 60.
        seconds: about how long; None for as long as it takes. Fewer runs are made where they are slow, and
            how many is settled before the first tested run, so that no result decides when to stop.

    Raises:
        PlanError: a number is out of range.
    """

    runs: int = 1000
    seconds: float | None = 1500.0

    def __post_init__(self) -> None:
        if self.runs < _FEWEST or (self.seconds is not None and self.seconds <= 0):
            raise PlanError(
                "too few runs to test anything",
                where="runs, seconds",
                expected=f"at least {_FEWEST} runs, and time above 0",
                fix="raise them",
            )


@dataclass(frozen=True, eq=False)
class _Lab:
    """What runs the mechanism: draws the coins and hands out the work."""

    mechanism: RunnableMechanism
    context: RunContext
    rng: np.random.Generator

    def runs(self, case: int, n: int, what: str) -> tuple[Floats, Bools]:
        """Scores and sides of n runs, each on a side that a fair coin decides."""
        having = self.rng.random(n) < 0.5
        seeds = self.rng.integers(0, 2**31, n)
        size = self.mechanism.at_once
        jobs = [Job(case, having[i : i + size], seeds[i : i + size]) for i in range(0, n, size)]
        return np.concatenate(self.context.map(what, self.mechanism.run, jobs)), having


def examine_claim(
    subject: ClaimedMechanism,
    effort: Effort,
    context: RunContext = SERIAL,
    rng: np.random.Generator | None = None,
) -> MechanismResult:
    """Whether (ε, δ) can be refuted by telling neighbours apart.

    Noise that repeats under equal seeds is looked for first. Then a pilot runs all pairs of neighbours and
    chooses pair, score and rule; they are tested on fresh runs, once. No choice looks at what it is tested
    on, the sides are fair coins and Clopper and Pearson's interval is exact, so that a true claim is called
    violated with probability 0.001 at most, whatever the mechanism.

    Args:
        subject: the mechanism and its claim; each finding of a look inside breaks it.
        rng: decides the sides; from the system's entropy if left out.

    Raises:
        PluginError, DataError: the mechanism cannot be run.
    """
    started = time.monotonic()
    context.progress("repeated noise", 0, 1)
    found = MechanismResult(
        mechanism=subject.name,
        claim=subject.claim,
        answer=ClaimAnswer.NOT_TESTABLE,
        reason="",
        level=LEVEL,
        level_shown=LEVEL_SHOWN,
        runs_to_refute=distinguishing.runs_to_refute(subject.claim.epsilon, _TEST),
        findings=subject.findings,
        notes=subject.notes,
    )
    repeated = subject.mechanism.repeated()
    chance = 1.0 if repeated is None else distinguishing.repeats_by_chance(repeated)
    if chance <= _REPEATS:
        reason = "the noise repeats: the same seed gave the same results, so that whoever learns the seed "
        found = replace(
            found,
            answer=ClaimAnswer.VIOLATED,
            reason=f"{reason}takes the noise off",
            epsilon_at_least=None,
            epsilon_shown=None,
            repeats=chance,
        )
    else:
        lab = _Lab(subject.mechanism, context, rng or np.random.default_rng())
        found = _measured(lab, subject.claim, effort, found, started)
    return replace(found, seconds=time.monotonic() - started)


def _measured(
    lab: _Lab, claim: Claim, effort: Effort, empty: MechanismResult, started: float
) -> MechanismResult:
    """Pilot and test."""
    runs = _affordable(lab, effort, started)
    cases = lab.mechanism.cases
    each = max(_LEAST_PILOT, int(runs * (_PILOT_OF_MANY if runs >= _MANY else _PILOT)) // len(cases))
    again = int(runs * _AGAIN) if runs >= _MANY else 0
    tested = max(runs - each * len(cases) - again, _LEAST_PILOT)
    pilots = [lab.runs(case, each, f"pilot: {name}") for case, name in enumerate(cases)]
    _refuse_dead(lab.mechanism, [scores for scores, _ in pilots])
    picks = [distinguishing.choose(*pilot, tested=tested, delta=claim.delta) for pilot in pilots]
    case = max(range(len(cases)), key=lambda i: picks[i].hoped)
    pick, (looked, _) = picks[case], pilots[case]
    if again:
        looked, sides = lab.runs(case, again, f"pilot: {cases[case]}")
        pick = distinguishing.choose(looked, sides, tested=tested, delta=claim.delta)
    rules = distinguishing.rules_to_test(pick, looked, tested=tested)
    signed = pick.rule.sign * pick.scorer.of(looked)
    thresholds = np.unique(np.quantile(signed, np.linspace(0.02, 0.98, _CURVE)))
    scores, having = lab.runs(case, tested, f"test: {cases[case]}")
    names = lab.mechanism.scores(case)
    seen = pick.scorer.of(scores)
    counts = [(rule.counts(seen, having), share) for rule, share in rules]
    sure, done, best = distinguishing.best_bound(counts, claim.delta, _TEST)
    shown, _, _ = distinguishing.best_bound(counts, claim.delta, 1 - LEVEL_SHOWN)
    rule = rules[best][0]
    found = replace(
        empty,
        largest=distinguishing.largest_epsilon(tested, claim.delta, _TEST * max(w for _, w in rules)),
        pilot=each * len(cases) + again,
        tested=tested,
        case=cases[case],
        score=pick.scorer.named(names),
        failed=int(scores[:, names.index(FAILED)].sum()) if FAILED in names else 0,
        rule=_told(rule),
        rules=len(rules),
        counts=done,
        epsilon_at_least=sure,
        epsilon_shown=shown,
        curve=distinguishing.trade_off(rule.sign * seen, having, thresholds, LEVEL_SHOWN),
    )
    return _answered(found)


def _affordable(lab: _Lab, effort: Effort, started: float) -> int:
    """Runs that fit the time, by the pace of two on each pair; these are thrown away."""
    if effort.seconds is None:
        return effort.runs
    before = time.monotonic()
    n = 2
    for case, name in enumerate(lab.mechanism.cases):
        lab.runs(case, n, f"pace: {name}")
    pace = (time.monotonic() - before) / (n * len(lab.mechanism.cases))
    left = effort.seconds - (time.monotonic() - started)
    if lab.mechanism.at_once > 1 or pace * effort.runs <= left:
        return effort.runs
    return max(_FEWEST, min(effort.runs, int(left / pace)))


def _refuse_dead(mechanism: RunnableMechanism, pilots: Sequence[Floats]) -> None:
    """Raise where no run of the pilot gave a release."""
    for case, scores in enumerate(pilots):
        names = mechanism.scores(case)
        if FAILED not in names or not scores[:, names.index(FAILED)].all():
            return
    raise PlanError(
        "no run of the mechanism gave a release",
        where="mechanism",
        expected="a table of the same columns from each run",
        fix="run it by hand on a small table; the command must read {train} and write {synthetic}",
    )


def _told(rule: ThresholdRule) -> str:
    """The rule for a reader."""
    sign = rule.sign
    above, below = ("or more", "or less") if sign == 1 else ("or less", "or more")
    parts = []
    if rule.high is not None:
        parts.append(f"claim the canary at {sign * rule.high:.6g} {above}")
    if rule.low is not None:
        parts.append(f"claim its absence at {sign * rule.low:.6g} {below}")
    return "; ".join(parts)


def _answered(found: MechanismResult) -> MechanismResult:
    """The answer that follows from the numbers."""
    claimed, sure, shown = found.claim.epsilon, found.epsilon_at_least or 0.0, found.epsilon_shown or 0.0
    sureness = f"{100 * found.level_shown:g} % confidence"
    answer = ClaimAnswer.VIOLATED
    if sure > claimed:
        reason = f"ε is at least {sure:.3g}, not {claimed:.4g} (an error of at most {1 - found.level:.3g})"
    elif found.findings:
        reason = found.findings[0].what
    elif found.largest <= claimed:
        answer = ClaimAnswer.NOT_TESTABLE
        reason = (
            f"{found.tested:,} tested runs cannot show more than ε = {found.largest:.3g}; at least "
            f"{found.runs_to_refute:,} are needed to refute {claimed:.4g}"
        )
    elif shown > claimed:
        answer = ClaimAnswer.DOUBTFUL
        reason = f"at {sureness} ε is at least {shown:.3g}, more than is claimed; more runs would decide"
    elif shown >= TIGHT * claimed:
        answer = ClaimAnswer.TIGHT
        reason = f"tight to {100 * shown / claimed:.0f} %: ε is at least {shown:.3g} ({sureness})"
    else:
        answer = ClaimAnswer.NOT_REFUTED
        reason = (
            f"ε is at least {shown:.3g} of {claimed:.4g} ({sureness}); "
            f"these runs could have shown {found.largest:.3g}"
        )
    return replace(found, answer=answer, reason=reason)
