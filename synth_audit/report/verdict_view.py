"""What a page shows of the verdict, typed and frozen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from synth_audit.report.view import Fact, Sign


@dataclass(frozen=True)
class VerdictQuestion:
    """One of the two answers; ``kind`` as of a sign, ``detail`` says why where it is not a yes."""

    label: str
    answer: str
    kind: str
    detail: str = ""


@dataclass(frozen=True)
class VerdictView:
    """The verdict as sentences, with what stands in the way of a release.

    Attributes:
        answers: each question about people: answered, undecided or not asked, and why.
        questions: whether it is safe to release, and whether it is fit for purpose.
        silence: what else was not measured.
    """

    sign: Sign
    headline: str
    explanation: str
    silence: str
    obstacles: tuple[str, ...]
    answers: tuple[Fact, ...] = ()
    questions: tuple[VerdictQuestion, ...] = ()
