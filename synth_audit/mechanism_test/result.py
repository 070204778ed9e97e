"""What a test of a mechanism found, as values and as JSON."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from synth_audit.kernels.distinguishing import CurvePoint, RuleCounts
from synth_audit.mechanism_test.claim import Claim


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
    notes: tuple[str, ...] = field(default=())

    @property
    def tightness(self) -> float | None:
        """Share of the claimed ε that was shown; None where it is more."""
        shown = self.epsilon_shown
        return None if shown is None or shown > self.claim.epsilon else shown / self.claim.epsilon

    def plain(self) -> dict[str, Any]:
        """As JSON values; a number that has no bound is null."""
        found = asdict(self)
        found["claim"]["neighbouring"] = str(self.claim.neighbouring)
        found["answer"] = str(self.answer)
        found["tightness"] = self.tightness
        return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in found.items()}

    def to_json(self) -> str:
        """As text."""
        return json.dumps(self.plain(), indent=2)
