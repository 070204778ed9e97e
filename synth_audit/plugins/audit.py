"""The contract of an audit: what it says of itself, what it looks at, and what became of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np

from synth_audit.arrays import Bools
from synth_audit.dp.accountant import NO_BUDGET, FitTerms
from synth_audit.dp.guarantee import PrivacyGuarantee
from synth_audit.errors import OUT_OF_TIME, PROCESS_LOST
from synth_audit.execution.context import RunContext
from synth_audit.findings.measurement import Findings, Measurement, Quantity, Series
from synth_audit.findings.sensitivity import CHECK_CUT_SHORT, SensitivityCurve
from synth_audit.plugins.generator import Generator
from synth_audit.table.coarsening import NO_COARSENING, Coarsening
from synth_audit.table.people import chance_equals
from synth_audit.table.schema import Column, Schema
from synth_audit.table.table import Table, joined


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


Cost = Literal["instant", "seconds", "minutes", "hours"]
"""From the shortest to the longest."""


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
        cost: rough order of its running time on tens of thousands of rows; what takes longest starts first.
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
    cost: Cost = "seconds"
    source: str = ""

    def quantity(self, name: str) -> Quantity:
        """Look up a declared quantity; raises ``KeyError`` for a name that was not declared."""
        return {q.name: q for q in self.quantities}[name]


@runtime_checkable
class Audit(Protocol):
    """Measures one kind of risk or usefulness; returns numbers, never HTML, a verdict or a real row."""

    info: ClassVar[AuditInfo]

    def run(self, subject: "Subject", context: RunContext) -> Findings:
        """Measure ``subject``.

        All randomness comes from ``context.rng``; an instrument that several audits share draws from a child
        of ``context.seed``. Equal pieces of work go through ``context.map`` if ``info.spreads`` says so.
        """
        ...


@dataclass(frozen=True)
class RandomSplit:
    """That chance alone decided which entities are in train, and which in control.

    Attributes:
        train: probability of train, by an independent coin for each entity, in (0, 1); None where the sizes
            were fixed and every division of these sizes was equally likely.
        ours: this program tossed the coins; else that chance did is somebody's word.
        apart: equal rows of a table without keys had coins of their own where chance explains them, see
            :func:`~synth_audit.table.people.chance_equals`.
    """

    train: float | None = None
    ours: bool = False
    apart: bool = False


@dataclass(frozen=True, eq=False)
class Subject:
    """One candidate release under audit.

    Attributes:
        train: the real rows the generator saw.
        control: real rows of the same population it never saw; None when there are none.
        synthetic: the candidate.
        generator: its configuration, for audits that refit it; None for a table made elsewhere.
        level: confidence level of every interval, in (0, 1).
        suppression: no count below this may appear in findings.
        planted: whether the release holds planted leaks: then only measurements that have a direction are
            asked for, and an audit may leave the others out.
        terms: under which the generator may spend on privacy. base: where paths in its settings start.
        random_split: how train and control were divided; None where it is not known to have been by chance.
        guarantee: what differential privacy promises of the candidate; None where nothing does.
        coarsening: what was done to the rows that the generator drew, as everybody may know.
        column_groups: names of columns that the generator drew together, apart from the others; whoever
            attacks knows them. Empty where it drew all together, or nothing is known.
    """

    train: Table
    control: Table | None
    synthetic: Table
    generator: Generator | None = None
    level: float = 0.95
    suppression: int = 10
    planted: bool = False
    terms: FitTerms = NO_BUDGET
    base: Path = field(default_factory=Path.cwd)
    random_split: RandomSplit | None = None
    guarantee: PrivacyGuarantee | None = None
    coarsening: Coarsening = NO_COARSENING
    column_groups: tuple[tuple[str, ...], ...] = ()

    @property
    def schema(self) -> Schema:
        """The schema inferred from train and the plan."""
        return self.train.schema

    @property
    def features(self) -> tuple[Column, ...]:
        """The columns that audits compare: all but identifiers and split keys."""
        return self.schema.features

    @property
    def real(self) -> tuple[Table, ...]:
        """Train, and control where there are control rows."""
        return (self.train,) if self.control is None else (self.train, self.control)

    @cached_property
    def own_coins(self) -> Bools:
        """Rows of train with equals that had coins of their own all the same, shape (n_train,)."""
        n = self.train.n_rows
        if self.random_split is None or not self.random_split.apart:
            return np.zeros(n, dtype=bool)
        return chance_equals(joined(self.real))[:n]


class Status(StrEnum):
    """The three ends an audit can have."""

    MEASURED = "measured"
    NOT_APPLICABLE = "not applicable"
    ERROR = "error"


@dataclass(frozen=True)
class AuditOutcome:
    """What became of one configured audit, with all that a reader needs to understand it.

    Attributes:
        audit: plug-in name; family: the room it lives in (privacy, fidelity, utility).
        info: what the audit says of itself; None only when it could not even be imported.
        config: its full configuration, defaults included.
        reason: why it was not applicable, or the kind and place of its error (never its text).
        responses: what the known-answer check found out about each of its measurements; privacy only.
    """

    audit: str
    family: str
    status: Status
    info: AuditInfo | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    measurements: tuple[Measurement, ...] = ()
    series: tuple[Series, ...] = ()
    notes: tuple[str, ...] = ()
    reason: str = ""
    responses: tuple[SensitivityCurve, ...] = ()

    @property
    def cut_short(self) -> bool:
        """True when it might end otherwise another time: it, or its known-answer check, ran out of time or
        lost its process."""
        if self.status is Status.MEASURED:
            return any(response.reason == CHECK_CUT_SHORT for response in self.responses)
        return self.reason in (OUT_OF_TIME, PROCESS_LOST)

    def with_findings(self, findings: Findings) -> "AuditOutcome":
        """The outcome of a completed run; measurements and series are stamped with the audit's name."""
        return replace(
            self,
            status=Status.MEASURED,
            measurements=tuple(replace(m, id=m.id.stamped(self.audit)) for m in findings.measurements),
            series=tuple(s.stamped(self.audit) for s in findings.series),
            notes=findings.notes,
        )
