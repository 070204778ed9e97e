"""The evidence file: everything a decision rests on, re-checkable years later without the data."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from synth_audit.build import build_version
from synth_audit.dp.accountant import PrivacyAccount
from synth_audit.errors import DataError, MeasurementNameError
from synth_audit.findings.measurement import Measurement, MeasurementId, Series, read, read_scoped
from synth_audit.findings.sensitivity import PlantedLeaks, RecordView
from synth_audit.findings.verdict import Fitness, GateReport, Result, TableCheck
from synth_audit.plugins.audit import AuditOutcome, Status
from synth_audit.run.seeds import Salt
from synth_audit.store.files import read_plain
from synth_audit.store.journal import Head
from synth_audit.store.notebook import NotebookPage, Pictures, line_of, measurements_as_frame
from synth_audit.table.schema import Schema
from synth_audit.table.table import Table

if TYPE_CHECKING:
    import pandas as pd


_RECORDED_PACKAGES = (
    "numpy",
    "scipy",
    "pandas",
    "pyarrow",
    "duckdb",
    "scikit-learn",
    "pyvinecopulib",
    "great-expectations",
)


@dataclass(frozen=True)
class EarlierAudit:
    """An earlier audit of the same candidate under another plan or other gates.

    Attributes:
        plan, suite: their digests. verdict, evidence: what it ended in, empty where it never ended.
    """

    at: str
    plan: str
    suite: str
    verdict: str
    evidence: str

    @property
    def sentence(self) -> str:
        """What a reader is told of it."""
        ended = f"its verdict was {self.verdict}" if self.verdict else "it did not end"
        known = f" (evidence {self.evidence[:12]})" if self.evidence else ""
        return f"this candidate was audited under other settings on {self.at[:10]}: {ended}{known}"


@dataclass(frozen=True)
class TableRecord:
    """Identity of one table: its rows and its order-independent content hash.

    A plain hash would confirm a guess: who knows all cells but one could try every value of the last. So it
    stands here of a candidate that passed alone, whose cells everybody may see.

    Attributes:
        hmac: of the content hash, under the salt; see :meth:`synth_audit.run.seeds.Salt.digest`.
        sha256: the content hash itself, by which everybody can tell what passed; None for anything else.
    """

    rows: int
    hmac: str
    sha256: str | None = None

    @classmethod
    def of(cls, table: Table, salt: Salt, *, public: bool = False) -> TableRecord:
        """Record a table; ``public`` when it may leave."""
        return cls(
            table.n_rows,
            salt.digest(table.fingerprint.encode()),
            table.fingerprint if public else None,
        )

    @property
    def identity(self) -> str:
        """The hash that every record of this table under this salt has."""
        return self.hmac


@dataclass(frozen=True)
class ColumnRecord:
    """What was known of a column, without a single value of it."""

    name: str
    kind: str
    storage: str
    roles: tuple[str, ...]
    kind_declared: bool
    domain_declared: bool
    categories: int | None


@dataclass(frozen=True)
class GeneratorRecord:
    """Which generator made the synthetic table, how it was configured and what it may claim.

    Attributes:
        privacy: what its fit spent and what that guarantees, or why there is no guarantee.
        training: how its loss fell, or ε was spent, and pictures of its own; empty for one that shows none.
        column_groups: columns that it draws together, apart from the others; empty where it draws all.
    """

    name: str
    config: Mapping[str, Any]
    privacy: PrivacyAccount
    training: tuple[Series, ...] = ()
    column_groups: tuple[tuple[str, ...], ...] = ()


def column_records(schema: Schema) -> tuple[ColumnRecord, ...]:
    """The columns as they may stand in a reviewed file."""
    return tuple(
        ColumnRecord(
            name=c.name,
            kind=str(c.kind),
            storage=str(c.storage),
            roles=tuple(sorted(c.roles)),
            kind_declared=c.kind_declared,
            domain_declared=bool(c.declared_bounds or c.declared_categories),
            categories=c.n_categories if c.released else None,
        )
        for c in schema
    )


def installed_versions() -> dict[str, str]:
    """Versions of everything that computes, for the evidence."""
    return dict(_installed_versions())


@cache
def _installed_versions() -> Mapping[str, str]:
    found = {"python": platform.python_version(), "synth-audit": build_version()}
    for name in _RECORDED_PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


SCHEMA_VERSION = "1.0"
"""Format of the evidence file, frozen with version 0.1.0 of the package."""


class OtherFormat(ValueError):
    """The file says that it is evidence of another format, which the error names."""


@dataclass(frozen=True, repr=False)
class Evidence:
    """One audited candidate.

    ``verdict`` says whether it may leave, ``fitness`` whether it is fit for purpose.
    ``planting`` says how the known-answer check planted leaks; what it found stands with each outcome.
    ``records`` is what a reviewer may know of the most exposed training records. ``salt_commitment`` says
    under which salt split, fits and draws were made and tables hashed, and nothing of what it is. It is empty
    where no salt was kept.

    ``attempt`` counts the audits on the table, this one included, and ``ledger`` says how far its ledger had
    come when this one began; 0 and None for an audit outside any workspace. ``earlier`` lists the audits of
    the same candidate before this one that had another plan or other gates, the last of each.

    ``timings``, ``created``, ``attempt``, ``ledger`` and ``earlier`` describe the run and stand outside the
    digest: the same plan, data and salt give the same digest.

    ``page`` draws it in notebooks; without one they show the line of ``repr``.
    """

    page: ClassVar[NotebookPage | None] = None

    table: str
    plan: Mapping[str, Any]
    plan_sha256: str
    seed: int
    level: float
    suppression: int
    columns: tuple[ColumnRecord, ...]
    tables: Mapping[str, TableRecord]
    generator: GeneratorRecord
    outcomes: tuple[AuditOutcome, ...]
    table_checks: tuple[TableCheck, ...]
    gates: GateReport
    verdict: Result
    fitness: Fitness = Fitness.NOT_TESTED
    salt_commitment: str = ""
    planting: PlantedLeaks = field(default_factory=PlantedLeaks)
    records: RecordView = field(default_factory=RecordView)
    warnings: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    schema_version: str = SCHEMA_VERSION
    digest: str = ""
    created: str = ""
    timings: Mapping[str, float] = field(default_factory=dict)
    attempt: int = 0
    ledger: Head | None = None
    earlier: tuple[EarlierAudit, ...] = ()

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """Every measurement of every audit."""
        return tuple(m for outcome in self.outcomes for m in outcome.measurements)

    @property
    def notices(self) -> tuple[str, ...]:
        """What a reader must see first: earlier audits under other settings, then the warnings."""
        return (*(audit.sentence for audit in self.earlier), *self.warnings)

    def __repr__(self) -> str:
        return line_of(self)

    def _repr_html_(self) -> str | None:
        return None if self.page is None else self.page.html(self)

    def to_frame(self) -> pd.DataFrame:
        """Every measurement as a row: its name, value and interval, and what it rests on."""
        return measurements_as_frame(self.measurements)

    def plot(self, audit: str) -> Pictures:
        """The pictures of an audit as SVG, which a notebook shows; where there are none, the reason in words.

        Raises:
            KeyError: the evidence has no such audit.
        """
        if audit not in (known := sorted(o.audit for o in self.outcomes)):
            raise KeyError(f"{audit}; expected one of {', '.join(known)}")
        if self.page is None:
            return Pictures.none("pictures are drawn of evidence from synth_audit.load_evidence()")
        return self.page.pictures(self, audit)

    @property
    def errored(self) -> tuple[AuditOutcome, ...]:
        """The audits that ended in an error."""
        return tuple(o for o in self.outcomes if o.status is Status.ERROR)

    def measurement(self, name: str | MeasurementId, scope: str = "") -> Measurement:
        """Look up one measurement.

        Args:
            name: its identity, or the text of it; with a scope, ``audit.quantity`` alone.

        Raises:
            KeyError: it is missing; the text tells what is near.
        """
        known = {m.id: m for m in self.measurements}
        wanted = _identity(name, scope)
        if wanted in known:
            return known[wanted]
        near = get_close_matches(str(wanted), map(str, known), n=3)
        raise KeyError(str(wanted) + (f"; did you mean {' or '.join(near)}?" if near else ""))

    def to_json(self) -> str:
        """The evidence as the text of its file."""
        from synth_audit.store.evidence_format import text_of

        return text_of(self)

    def sealed(self) -> Evidence:
        """The evidence with its digest: SHA-256 of its JSON without digest and what describes the run."""
        return replace(self, digest=self._digest)

    @property
    def intact(self) -> bool:
        """True when the digest matches the content."""
        return self.digest == self._digest

    @property
    def _digest(self) -> str:
        from synth_audit.store.evidence_format import content_of

        return sha256_of(content_of(self))


def _identity(name: str | MeasurementId, scope: str) -> MeasurementId:
    if isinstance(name, MeasurementId):
        return name
    try:
        return read_scoped(name, scope) if scope else read(name)
    except MeasurementNameError as error:
        raise KeyError(f"{error.what}; expected {error.expected}") from None


def read_evidence(path: Path | str) -> Evidence:
    """Read an evidence file.

    Raises:
        DataError: it is missing, damaged or of another format.
    """
    path = Path(path)
    return evidence_of(evidence_bytes(path), path)


def evidence_bytes(path: Path) -> bytes:
    """Content of an evidence file.

    Raises:
        DataError: it cannot be read.
    """
    try:
        return read_plain(path)
    except OSError as error:
        raise DataError(
            f"the evidence cannot be read ({type(error).__name__})",
            where=str(path),
            expected="the evidence.json that an audit wrote",
            fix="run the audit first (`synth-audit run PLAN`), or name its folder with --out if it has one",
        ) from None


def evidence_of(content: bytes, path: Path) -> Evidence:
    """Evidence from the content of its file.

    Raises:
        DataError: it is damaged or of another format.
    """
    try:
        return parse_evidence(content.decode())
    except OtherFormat as error:
        raise DataError(
            f"the file is evidence of format {error}, which this version does not read",
            where=str(path),
            expected=f"evidence.json in format {SCHEMA_VERSION}",
            fix="run the audit again, or take the version of synth-audit that wrote the file",
        ) from None
    except ValueError:
        raise DataError(
            "the file is not evidence, or it is damaged",
            where=str(path),
            expected=f"evidence.json in format {SCHEMA_VERSION}",
            fix="run the audit again",
        ) from None


def parse_evidence(text: str) -> Evidence:
    """Evidence from its JSON text.

    Raises:
        OtherFormat: it says that it is of another format.
        ValueError: it is none, or a key is unknown or occurs twice.
    """
    from synth_audit.store.evidence_format import parse

    return parse(text)


def evidence_schema() -> dict[str, Any]:
    """JSON Schema of the evidence file."""
    from synth_audit.store.evidence_format import schema

    return schema()


def sha256_of(value: object) -> str:
    """SHA-256 of a JSON value in canonical form, the same as of a plan's own digest."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()
