"""What the certificate shows, typed and frozen: every text is ready, its template only places them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from synth_audit.report.verdict_view import VerdictQuestion
from synth_audit.report.view import Fact, Sign


@dataclass(frozen=True)
class CriterionRow:
    """One question about people.

    Attributes:
        state: answered, undecided or not asked; ``kind`` as of a sign. why: where it is not answered.
        finding: the number that comes nearest to its limit, in words.
        share, people: what is left, with interval. allowed, allowed_people: its limit.
        compared: against the last release.
    """

    criterion: str
    kind: str
    state: str
    why: str
    finding: str = ""
    share: str = "–"
    people: str = "–"
    allowed: str = "–"
    allowed_people: str = ""
    compared: str = ""


@dataclass(frozen=True)
class DemandRow:
    """One demand of a guideline: measured or not, and where or why not."""

    framework: str
    demand: str
    measured: bool
    where: str


@dataclass(frozen=True)
class SignatureRow:
    """One approval; ``doubt`` says why it would not count, and is empty where nothing is known against it."""

    by: str
    signed: str
    until: str
    note: str
    key: str
    doubt: str = ""


@dataclass(frozen=True)
class CertificateView:
    """Two pages for the one who signs.

    Attributes:
        questions: whether it is safe to release, and whether it is fit for purpose.
        reasons: of the verdict, in plain words. silence: what was not measured beside the criteria.
        sharpness: the smallest leak that would have been seen, and the widest that numbers alone allow.
        comparison: with what release numbers are compared, or that there is none.
        waiting: how many approvals there are of how many; empty where the plan asks for none.
    """

    title: str
    table: str
    subject: str
    alerts: tuple[str, ...]
    sign: Sign
    headline: str
    questions: tuple[VerdictQuestion, ...]
    reasons: tuple[str, ...]
    more_reasons: str
    silence: str
    warnings: tuple[str, ...]
    scope: tuple[Fact, ...]
    no_scope: str
    criteria: tuple[CriterionRow, ...]
    people_note: str
    sharpness: tuple[str, ...]
    comparison: str
    compared: bool
    demands: tuple[DemandRow, ...]
    signatures: tuple[SignatureRow, ...]
    waiting: str
    statement: str
    facts: tuple[Fact, ...]
    marks: Mapping[str, str]
