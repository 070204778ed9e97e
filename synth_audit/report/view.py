"""What templates are given beside the evidence, typed and frozen."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from synth_audit.verdict.criteria import Answer


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
        answers: what became of each question about people.
        questions: whether it is safe to release, and whether it is fit for purpose.
        silence: what else was not measured.
    """

    sign: Sign
    headline: str
    explanation: str
    silence: str
    obstacles: tuple[str, ...]
    answers: tuple[Answer, ...] = ()
    questions: tuple[VerdictQuestion, ...] = ()


@dataclass(frozen=True)
class Fact:
    """A label with its value, and a remark."""

    label: str
    value: str
    detail: str = ""


@dataclass(frozen=True)
class Sign:
    """A result as shape and words. ``kind`` is ``pass``, ``fail`` or ``open``."""

    kind: str
    word: str
    icon: Markup


@dataclass(frozen=True)
class SensitivityLine:
    """What the audit would have seen, in one line; ``kind`` as of a sign, ``warning`` may be empty."""

    kind: str
    text: str
    warning: str = ""


@dataclass(frozen=True)
class Cells:
    """A plain table; the first column heads its rows."""

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Panel:
    """One of several drawings that are to be compared."""

    title: str
    drawing: Markup


@dataclass(frozen=True)
class Picture:
    """A picture with its caption, the numbers behind it and perhaps a remark under the caption.

    Attributes:
        drawing: the picture, or the scale that its panels share.
        panels: drawings side by side, of which three fit into a line where they are narrow, else two.
    """

    title: str
    drawing: Markup
    table: Cells
    note: str = ""
    panels: tuple[Panel, ...] = ()
    narrow: bool = False


@dataclass(frozen=True)
class ScopeTable:
    """One quantity for each column or setting, worst first; ``worst`` names a few with their values.

    It is empty where no direction is worse.
    """

    title: str
    summary: str
    worst: str
    table: Cells
