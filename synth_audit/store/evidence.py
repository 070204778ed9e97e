"""The evidence file: everything a decision rests on, re-checkable years later without the data; and the
records of split and generator that it is made from."""

from __future__ import annotations

import hashlib
import json
import math
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cache
from html import escape
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Protocol, Self

import pydantic

from synth_audit.build import build_version
from synth_audit.dp.accountant import PrivacyAccount
from synth_audit.dp.guarantee import MechanismRecord
from synth_audit.errors import DataError, MeasurementNameError, PluginError
from synth_audit.execution.seeds import Salt
from synth_audit.files import load_json, read_plain
from synth_audit.findings import sensitivity
from synth_audit.findings.measurement import Measurement, MeasurementId, Series, read, read_scoped
from synth_audit.findings.verdict import Fitness, GateReport, GateResults, Result, TableCheck
from synth_audit.plugins.audit import AuditOutcome, Status
from synth_audit.store.files import write_text
from synth_audit.store.journal import Head
from synth_audit.store.records import Count, Digest, StrictForm, parse_strict, to_json
from synth_audit.table.schema import Schema
from synth_audit.table.table import Table

if TYPE_CHECKING:
    import pandas as pd


EVIDENCE_FORMAT = "1.0"
"""Format of the evidence file, frozen with version 0.1.0 of the package."""

_OUTSIDE = ("digest", "created", "timings", "attempt", "ledger", "earlier")
"""What the digest does not cover: it describes the run and not what was found."""

_NUMBER_WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
"""The numbers that JSON lacks, as they are written."""

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
"""Whose versions the evidence names: numbers follow from them, too."""

_TableName = Literal["source", "train", "control", "synthetic"]


class Pictures(tuple[str, ...]):
    """SVG pictures, which a notebook shows one below the other.

    Attributes:
        why_none: why there is no picture, empty where there are some.
    """

    why_none = ""

    @classmethod
    def none(cls, why: str) -> Pictures:
        """No picture, and the reason in words."""
        pictures = cls()
        pictures.why_none = why
        return pictures

    def _repr_html_(self) -> str:
        if self.why_none:
            return f"<p>{escape(self.why_none)}</p>"
        return "\n".join(f'<div style="background:#fff">{picture}</div>' for picture in self)

    def __repr__(self) -> str:
        return f"<{len(self)} picture{'s' * (len(self) != 1)}{self.why_none and f': {self.why_none}'}>"


class Measurements(tuple[Measurement, ...]):
    """Measurements, which a notebook shows as a table."""

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each; ``low``, ``high`` and ``level`` are missing where no interval is known."""
        from synth_audit.findings.text_frame import TextFrame, measurement_row  # lazy import: takes pandas

        return TextFrame(map(measurement_row, self))

    def _repr_html_(self) -> str:
        from synth_audit.findings.text_frame import as_html, measurement_row

        return as_html(map(measurement_row, self))


class NotebookPage(Protocol):
    """Draws evidence for notebooks: the report, which this room does not know."""

    def html(self, evidence: Evidence) -> str:
        """Verdict, criteria and gates as a piece of a page."""
        ...

    def pictures(self, evidence: Evidence, audit: str) -> Pictures:
        """The pictures of one audit."""
        ...


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
        return (
            f"this candidate was audited with another plan or other gates on {self.at[:10]}: {ended}{known}"
        )


@dataclass(frozen=True)
class TableRecord:
    """Identity of one table: its rows and its order-independent content hash.

    A plain hash would confirm a guess: who knows all cells but one could try every value of the last. So it
    stands here of a candidate that passed alone, whose cells everybody may see.

    Attributes:
        hmac: of the content hash, under the salt, by which records of one table agree; see
            :meth:`synth_audit.execution.seeds.Salt.digest`.
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


@cache
def installed_versions() -> Mapping[str, str]:
    """Versions of everything that computes, for the evidence."""
    found = {"python": platform.python_version(), "synth-audit": build_version()}
    for name in _RECORDED_PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


_BETWEEN_STAGES = pydantic.ConfigDict(extra="forbid", ser_json_inf_nan="strings")
"""Holds for the records within a record too. Not strict, since NaN and infinity are written as text."""


@dataclass(frozen=True)
class _StageRecord:
    """A record that is kept as JSON between stages."""

    stage: ClassVar[str]

    def write(self, path: Path) -> None:
        """Write the record atomically, for its owner alone."""
        write_text(path, to_json(self), private=True)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read the record.

        Raises:
            DataError: the stage has left none that can be used, or it has an unknown key or one twice.
        """
        try:
            return parse_strict(cls, path.read_bytes())
        except (OSError, ValueError):
            raise DataError(
                f"the {cls.stage} stage has left no usable record",
                where=str(path),
                expected=f"what the {cls.stage} stage writes",
                fix=f"run the {cls.stage} stage first",
            ) from None


@pydantic.with_config(_BETWEEN_STAGES)
@dataclass(frozen=True)
class SplitRecord(_StageRecord):
    """What the split stage did, and under which salt.

    Attributes:
        left_out: columns of the source that are pandas' index and no data.
        clipped: columns, and how many of their values in the source were set to a declared bound.
        order: keyed hash of the rows in their order, where they are read from the source again.
    """

    plan_sha256: str
    salt_commitment: str
    source: TableRecord
    train: TableRecord
    control: TableRecord
    columns: tuple[ColumnRecord, ...]
    warnings: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    clipped: tuple[tuple[str, int], ...] = ()
    order: str = ""

    stage: ClassVar[str] = "split"


@pydantic.with_config(_BETWEEN_STAGES)
@dataclass(frozen=True)
class SyntheticRecord(_StageRecord):
    """What the generator stage did, and on which train rows."""

    plan_sha256: str
    train: TableRecord
    table: TableRecord
    generator: GeneratorRecord
    columns: tuple[ColumnRecord, ...]
    seconds: float

    stage: ClassVar[str] = "synthetic"

    @classmethod
    def tells_of_spending(cls, path: Path) -> bool:
        """Whether a usable record lies there of a fit that spent privacy budget."""
        try:
            return bool(cls.read(path).generator.privacy.mechanisms)
        except DataError:
            return False


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
    planting: sensitivity.PlantedLeaks = field(default_factory=sensitivity.PlantedLeaks)
    records: sensitivity.RecordView = field(default_factory=sensitivity.RecordView)
    warnings: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    schema_version: str = EVIDENCE_FORMAT
    digest: str = ""
    created: str = ""
    timings: Mapping[str, float] = field(default_factory=dict)
    attempt: int = 0
    ledger: Head | None = None
    earlier: tuple[EarlierAudit, ...] = ()

    @property
    def measurements(self) -> Measurements:
        """Every measurement of every audit."""
        return Measurements(m for outcome in self.outcomes for m in outcome.measurements)

    @property
    def passed(self) -> bool:
        """Whether the table may be released."""
        return self.verdict is Result.PASS

    @property
    def failures(self) -> GateResults:
        """The blocking gates that did not pass; a notebook shows them as a table."""
        return self.gates.held

    @property
    def notices(self) -> tuple[str, ...]:
        """What a reader must see first: earlier audits under other settings, then the warnings."""
        return (*(audit.sentence for audit in self.earlier), *self.warnings)

    def __repr__(self) -> str:
        results = [g.result for g in self.gates.results]
        gates = ", ".join(f"{results.count(r)} {r}" for r in Result if r in results)
        return (
            f"<Evidence of {self.table!r}: {self.verdict} (gates: {gates or 'none'}), "
            f"fit for purpose: {self.fitness}, "
            f"{len(self.measurements)} measurements, digest {self.digest[:12] or 'not sealed'}>"
        )

    def _repr_html_(self) -> str | None:
        return None if self.page is None else self.page.html(self)

    def to_frame(self) -> pd.DataFrame:
        """Every measurement as a row: its name, value and interval, and what it rests on."""
        return self.measurements.to_frame()

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

    @property
    def left_out(self) -> tuple[str, ...]:
        """The audits that gates ask for and that were not part of the run, in alphabetical order."""
        ran = {o.audit for o in self.outcomes}
        return tuple(sorted({g.measurement.audit for g in self.gates.results if g.measurement} - ran))

    def measurement(self, name: str | MeasurementId, scope: str = "") -> Measurement:
        """Look up one measurement.

        Args:
            name: its identity, or the text of it; with a scope, ``audit.quantity`` alone.

        Raises:
            KeyError: it is missing; the text tells what is near.
        """
        known = {m.id: m for m in self.measurements}
        try:
            wanted = (
                name if isinstance(name, MeasurementId) else read_scoped(name, scope) if scope else read(name)
            )
        except MeasurementNameError as error:
            raise KeyError(f"{error.what}; expected {error.expected}") from None
        if wanted in known:
            return known[wanted]
        near = get_close_matches(str(wanted), map(str, known), n=3)
        raise KeyError(str(wanted) + (f"; did you mean {' or '.join(near)}?" if near else ""))

    def to_json(self) -> str:
        """The text of its file; non-finite numbers as the strings NaN, Infinity, -Infinity.

        Raises:
            ValueError: it holds what no file may hold.
        """
        text = _form().dump_json(self, indent=2, by_alias=True, warnings="error").decode() + "\n"
        _validated(text)
        return text

    def sealed(self) -> Evidence:
        """The evidence with its digest: SHA-256 of its JSON without digest and what describes the run."""
        return replace(self, digest=self._digest)

    @property
    def intact(self) -> bool:
        """True when the digest matches the content."""
        return self.digest == self._digest

    @property
    def _digest(self) -> str:
        plain = json.loads(self.to_json())
        return sha256_of({key: value for key, value in plain.items() if key not in _OUTSIDE})


def _number(value: Any) -> Any:
    """A number from one of the words that JSON lacks; any other text is refused."""
    return _NUMBER_WORDS.get(value, value) if isinstance(value, str) else value


def _name(text: str) -> MeasurementId:
    try:
        return read(text)
    except MeasurementNameError as error:
        raise ValueError(error.what) from None


_Number = Annotated[
    float,
    pydantic.BeforeValidator(_number),
    pydantic.WithJsonSchema({"anyOf": [{"type": "number"}, {"enum": list(_NUMBER_WORDS)}]}),
]
_Name = Annotated[str, pydantic.AfterValidator(_name), pydantic.PlainSerializer(str, return_type=str)]

# Whole numbers that are 0 at least; of the second some may be withheld, and are null then.
_WHOLE_NUMBERS = {
    Evidence: ("suppression", "attempt"),
    Head: ("lines",),
    TableRecord: ("rows",),
    sensitivity.PlantedLeaks: ("train_rows", "control_rows", "release_rows"),
    sensitivity.ExposedGroup: ("train_tried", "control_tried"),
    sensitivity.Subgroup: ("train_rows",),
    sensitivity.RecordView: ("train_rows", "control_rows"),
    MechanismRecord: ("count", "rows"),
}
_WITHHELD_NUMBERS = {
    ColumnRecord: ("categories",),
    sensitivity.ExposedGroup: ("train_hit", "control_hit"),
    sensitivity.RecordView: ("exposed", "control_exposed"),
}

FORM = StrictForm(
    spelt={float: _Number, MeasurementId: _Name},
    narrowed={
        **{(kind, name): Count for kind, names in _WHOLE_NUMBERS.items() for name in names},
        **{(kind, name): Count | None for kind, names in _WITHHELD_NUMBERS.items() for name in names},
        (Evidence, "schema_version"): Literal["1.0"],
        (Evidence, "plan_sha256"): Digest,
        (Evidence, "tables"): dict[_TableName, TableRecord],
        (Head, "digest"): Digest,
        (EarlierAudit, "plan"): Digest,
        (EarlierAudit, "verdict"): Literal["pass", "fail", "insufficient evidence", ""],
        (TableRecord, "sha256"): Digest | None,
        (GateReport, "suite_sha256"): Digest,
        (Series, "kind"): Annotated[str, pydantic.Field(pattern=r"^[a-z][a-z_]*$")],
    },
    renamed={(sensitivity.SensitivityCurve, "sensitivity"): "sight"},
)
"""What the dataclasses leave open and the file does not."""


@cache
def _form() -> pydantic.TypeAdapter[Evidence]:
    """What reads and writes the file."""
    return FORM.adapter(Evidence)


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
    except ValueError as error:
        what, fix = "the file is not evidence, or it is damaged", "run the audit again"
        if isinstance(error, OtherFormat):
            what = f"the file is evidence of format {error}, which this version does not read"
            fix += ", or take the version of synth-audit that wrote the file"
        expected = f"evidence.json in format {EVIDENCE_FORMAT}"
        raise DataError(what, where=str(path), expected=expected, fix=fix) from None


def parse_evidence(text: str) -> Evidence:
    """Evidence from its JSON text.

    Raises:
        OtherFormat: it says that it is of another format.
        ValueError: it is none, or a key is unknown or occurs twice.
    """
    plain = load_json(text)
    version = plain.get("schema_version") if isinstance(plain, dict) else None
    if isinstance(version, str) and version != EVIDENCE_FORMAT:
        raise OtherFormat(version)
    return _validated(text)


def _validated(text: str) -> Evidence:
    try:
        return _form().validate_json(text)
    except PluginError as error:  # a spending that cannot have been
        raise ValueError(error.what) from None


def evidence_schema() -> dict[str, Any]:
    """JSON Schema of the evidence file."""
    found = _form().json_schema()
    for part in (found, *found["$defs"].values()):
        if "properties" in part:
            part["additionalProperties"] = False  # pydantic 2.10 leaves this out
    return found


def sha256_of(value: object) -> str:
    """SHA-256 of a JSON value in canonical form, the same as of a plan's own digest."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()
