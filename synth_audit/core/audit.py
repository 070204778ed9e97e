"""The contract of an audit: what it says of itself, and what it is handed.

An audit is one file in a family's folder, or a folder of that name, holding one frozen dataclass with a
class variable ``info``. Its fields are its configuration, its name is the file's name.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol, runtime_checkable

from synth_audit.core.measurement import Findings, Quantity

if TYPE_CHECKING:
    from synth_audit.core.context import RunContext
    from synth_audit.core.subject import Subject


class Need(StrEnum):
    """What an audit cannot do without; lacking it, the audit is *not applicable*, never weaker."""

    CONTROL = "control rows"
    TARGET = "a target column"
    SENSITIVE = "a sensitive column"
    GENERATOR = "a generator that can be run again"


class Leak(StrEnum):
    """What must be planted for an audit to see it, and what a release must lack to be clean for it."""

    COPIES = "copied records"
    SUBSETS = "a few columns of records, copied together"
    SHIFTED = "a few numbers of records, each moved by one constant"
    ASSOCIATIONS = "real associations between columns"
    OWN = "leaks that it plants itself, so the known-answer check leaves it out"


@dataclass(frozen=True, kw_only=True)
class AuditInfo:
    """What the catalogue, the plan's schema, the gate vocabulary and the report say of an audit.

    Attributes:
        title: name for a reader.
        question: the question it answers, in plain language.
        threat_model: what the adversary knows and does (privacy), or who would be let down (usefulness).
        not_covered: what a good number here does not promise.
        quantities: every number it may report.
        risk: the section of the report it belongs to.
        needs: what it cannot do without.
        leak: what the known-answer check plants for it.
        default: whether a plan that names no audits runs it; a gate brings an audit along in any case.
        spreads: it gives its work to ``context.map``, so it runs alone instead of beside others.
        cost: rough order of its running time on tens of thousands of rows.
        source: where the definitions come from.
    """

    title: str
    question: str
    threat_model: str
    not_covered: str
    quantities: tuple[Quantity, ...]
    risk: Literal["singling out", "linkability", "inference", "membership", "fidelity", "utility"]
    needs: tuple[Need, ...] = ()
    leak: Leak = Leak.COPIES
    default: bool = True
    spreads: bool = False
    cost: Literal["instant", "seconds", "minutes", "hours"] = "seconds"
    source: str = ""

    def quantity(self, name: str) -> Quantity:
        """Look up a declared quantity; raises ``KeyError`` for a name that was not declared."""
        return {q.name: q for q in self.quantities}[name]


@runtime_checkable
class Audit(Protocol):
    """Measures one kind of risk or usefulness; returns numbers, never HTML, a verdict or a real row."""

    info: ClassVar[AuditInfo]

    def run(self, subject: Subject, context: RunContext) -> Findings:
        """Measure ``subject``.

        All randomness comes from ``context.rng``; an instrument that several audits share draws from a child
        of ``context.seed``. Equal pieces of work go through ``context.map`` if ``info.spreads`` says so.
        """
        ...
