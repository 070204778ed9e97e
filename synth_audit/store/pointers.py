"""The folder of one audit, and the two small files that point to the newest and to the released one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import ConfigDict, Field, with_config

from synth_audit.errors import DataError
from synth_audit.files import load_json
from synth_audit.store.files import json_form, read_plain

SCHEMA_VERSION = "1.0"

_LARGEST = 1 << 16

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0)]
Record = TypeVar("Record")
_STRICT = ConfigDict(extra="forbid", strict=True)


@with_config(_STRICT)
@dataclass(frozen=True)
class Newest:
    """Which audit of a workspace is the newest."""

    digest: Digest
    schema_version: str = SCHEMA_VERSION


@with_config(_STRICT)
@dataclass(frozen=True)
class Released:
    """What is out there.

    Attributes:
        digest: of the evidence it rests on. target: where it went. time: when, in UTC.
        rows, sha256: of the released table, see :func:`synth_audit.table.content_hash.fingerprint`.
    """

    digest: Digest
    target: str
    time: str
    rows: Count
    sha256: Digest
    schema_version: str = SCHEMA_VERSION


def parse_strict(kind: type[Record], content: bytes) -> Record:
    """A record from its JSON.

    Raises:
        ValueError: it is none, of another version, or has a key that is unknown or occurs twice.
    """
    text = content.decode()
    load_json(text)
    found: Record = json_form(kind).validate_json(text)
    if getattr(found, "schema_version", SCHEMA_VERSION) != SCHEMA_VERSION:
        raise ValueError("another version")
    return found


def to_json(record: object) -> str:
    """A record as JSON text."""
    return json_form(type(record)).dump_json(record, indent=2).decode() + "\n"


def read_pointer(kind: type[Record], path: Path) -> Record | None:
    """What a pointer says; None when there is none.

    Raises:
        DataError: it is a link, damaged, or holds a key that is unknown or occurs twice.
    """
    try:
        return parse_strict(kind, read_plain(path, largest=_LARGEST))
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        raise DataError(
            "a pointer to an audit is damaged, or it was altered",
            where=str(path),
            expected=f"a file that this program wrote, schema version {SCHEMA_VERSION}",
            fix="run the audit again, which writes it anew",
        ) from None


_DIGEST = re.compile(r"[0-9a-f]{64}")


def is_digest(name: str) -> bool:
    """True for what may name an audit."""
    return _DIGEST.fullmatch(name) is not None


@dataclass(frozen=True)
class AuditFolder:
    """What is left of one audit, under the digest of its evidence; nothing in it is ever replaced but the
    certificate, which shows approvals too."""

    path: Path

    @classmethod
    def of(cls, audits: Path, digest: str) -> AuditFolder:
        """The folder of that digest among others.

        Raises:
            DataError: it is no digest.
        """
        if not is_digest(digest):
            raise DataError(
                "an audit is named by something that is no digest",
                where=str(audits),
                expected="64 hexadecimal digits",
                fix="run the audit again; `synth-audit verify` shows what else does not agree",
            )
        return cls(audits / digest)

    @property
    def digest(self) -> str:
        """The digest that its evidence must have."""
        return self.path.name

    @property
    def evidence(self) -> Path:
        """The evidence file."""
        return self.path / "evidence.json"

    @property
    def measurements(self) -> Path:
        """Every measurement, one row each."""
        return self.path / "measurements.parquet"

    @property
    def table(self) -> Path:
        """The audited rows and values alone, of a table made elsewhere that passed."""
        return self.path / "synthetic.parquet"

    @property
    def report(self) -> Path:
        """The report."""
        return self.path / "report.html"

    @property
    def certificate(self) -> Path:
        """The certificate."""
        return self.path / "certificate.html"
