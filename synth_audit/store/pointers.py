"""The two small files that say which audit is the newest and which one stands behind what is out there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import ConfigDict, Field, with_config

from synth_audit.core.errors import DataError
from synth_audit.core.strict_yaml import load_json
from synth_audit.store.json_form import json_form
from synth_audit.store.untrusted_file import read_plain

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
        rows, sha256: of the released table, see :func:`synth_audit.core.fingerprint.fingerprint`.
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
