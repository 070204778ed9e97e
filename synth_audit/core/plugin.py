"""The plug-in contract: what a source, a generator and an audit must offer.

A plug-in is one file in its room holding one frozen dataclass with a class variable ``info``.
Its fields are its configuration, its name is the file's name. Nothing else needs an edit.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol, runtime_checkable

from synth_audit.core.measurement import Findings, Quantity

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from synth_audit.core.subject import Subject
    from synth_audit.core.table import Table


class Need(StrEnum):
    """What an audit cannot do without; lacking it, the audit is *not applicable*, never weaker."""

    CONTROL = "control rows"
    TARGET = "a target column"
    SENSITIVE = "a sensitive column"
    GENERATOR = "a generator that can be run again"


class Leak(StrEnum):
    """What must be planted for an audit to see it, and what a release must lack to be clean for it."""

    COPIES = "copied records"
    ASSOCIATIONS = "real associations between columns"


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
        spreads: it gives its work to the subject's ``spread``, so it runs alone instead of beside others.
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


@dataclass(frozen=True, kw_only=True)
class GeneratorInfo:
    """What the catalogue says of a generator."""

    title: str
    summary: str
    cost: Literal["instant", "seconds", "minutes", "hours"] = "seconds"
    source: str = ""


@dataclass(frozen=True, kw_only=True)
class SourceInfo:
    """What the catalogue says of a source.

    Attributes:
        suffixes: file suffixes this source reads, so that a bare path finds it; a source that lists
            any must have a field ``path``.
    """

    title: str
    summary: str
    suffixes: tuple[str, ...] = ()


@dataclass(frozen=True)
class PrivacyCertificate:
    """What a fitted generator may claim formally, and why.

    Attributes:
        claim: ``"none"`` or ``"differential privacy"``.
        epsilon, delta: the guarantee, for the whole release; None without one.
        reason: what the claim rests on, or why there is none.
    """

    claim: Literal["none", "differential privacy"]
    reason: str
    epsilon: float | None = None
    delta: float | None = None


@runtime_checkable
class Audit(Protocol):
    """Measures one kind of risk or usefulness; returns numbers, never HTML, a verdict or a real row."""

    info: ClassVar[AuditInfo]

    def run(self, subject: Subject, rng: np.random.Generator) -> Findings:
        """Measure ``subject``; all randomness comes from ``rng``."""
        ...


class Model(Protocol):
    """A fitted generator; immutable."""

    @property
    def certificate(self) -> PrivacyCertificate:
        """The formal claim of everything drawn from this model."""
        ...

    def sample(self, n: int, rng: np.random.Generator) -> Table:
        """Draw ``n`` synthetic rows with the columns and types of the features of train."""
        ...


@runtime_checkable
class Generator(Protocol):
    """Learns a table; the dataclass is configuration only, what is learnt lives in the model.

    One that cannot learn other rows than it did, such as a finished file, says so by a false ``refits``.
    """

    info: ClassVar[GeneratorInfo]

    def fit(self, train: Table, rng: np.random.Generator) -> Model:
        """Fit on ``train``, whose identifier columns have been removed."""
        ...


@runtime_checkable
class Source(Protocol):
    """Reads one table. One that reads what some target could replace must be :class:`Locatable` too."""

    info: ClassVar[SourceInfo]

    def read(self, base: Path) -> pa.Table:
        """Read the table; relative paths start at ``base``."""
        ...


@runtime_checkable
class Locatable(Protocol):
    """A source that can say where it is, so that no release takes the place of the sensitive table."""

    def place(self, base: Path) -> tuple[str, ...]:
        """Where the table is, from the whole to the part, such as file, schema, table.

        Two spellings of one place must give the same parts. Writing to a place replaces every place
        that begins with its parts: a file, for one, takes all tables in it along.
        """
        ...


@runtime_checkable
class Target(Locatable, Protocol):
    """A source that can also take a release."""

    info: ClassVar[SourceInfo]

    def write(self, data: pa.Table, base: Path) -> str:
        """Replace the table with ``data``, wholly or not at all; return where it went."""
        ...
