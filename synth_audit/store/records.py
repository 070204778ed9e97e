"""Records as strict JSON, and the two that point to the newest audit and to the released one."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import ConfigDict, Field, GetCoreSchemaHandler, GetPydanticSchema, TypeAdapter, with_config
from pydantic_core import core_schema

from synth_audit.errors import DataError
from synth_audit.files import LARGEST_RECORD, load_json, read_plain

SCHEMA_VERSION = "1.0"

CLOSED = ConfigDict(extra="forbid", strict=True)
"""Configuration of a record: no unknown key, and no value of another type."""

_LARGEST_POINTER = 1 << 16
"""Bytes of a pointer at most. A digest, a target and a time need far fewer."""

_DIGEST_TEXT = re.compile(r"[0-9a-f]{64}")

Digest = Annotated[str, Field(pattern=rf"^{_DIGEST_TEXT.pattern}$")]
Count = Annotated[int, Field(ge=0)]
Record = TypeVar("Record")

FieldOf = tuple[type, str]
"""A dataclass and the name of one of its fields."""

_STRICT_CORE = core_schema.CoreConfig(strict=True, extra_fields_behavior="forbid", ser_json_inf_nan="strings")


@with_config(CLOSED)
@dataclass(frozen=True)
class Newest:
    """Which audit of a workspace is the newest."""

    digest: Digest
    schema_version: str = SCHEMA_VERSION


@with_config(CLOSED)
@dataclass(frozen=True)
class Released:
    """One release of a table.

    Attributes:
        digest: of the evidence it rests on. target: where it was written. time: when, in UTC.
        rows, sha256: of the released table, see :func:`synth_audit.table.content_hash.fingerprint`.
    """

    digest: Digest
    target: str
    time: str
    rows: Count
    sha256: Digest
    schema_version: str = SCHEMA_VERSION


_form: Callable[[type], TypeAdapter[Any]] = cache(TypeAdapter)
"""Checks and writes records of a type; kept, because building an adapter is slower than using it."""


def is_digest(name: str) -> bool:
    """True for 64 hexadecimal digits, the name of an audit."""
    return _DIGEST_TEXT.fullmatch(name) is not None


def to_json(record: object) -> str:
    """A record as JSON text."""
    return _form(type(record)).dump_json(record, indent=2).decode() + "\n"


def parse_strict(kind: type[Record], content: bytes) -> Record:
    """A record from its JSON.

    Raises:
        ValueError: it is none, of another version, or has a key that is unknown or occurs twice.
    """
    text = content.decode()
    load_json(text)
    return _validated(kind, text)


def _validated(kind: type[Record], text: str) -> Record:
    found: Record = _form(kind).validate_json(text)
    if getattr(found, "schema_version", None) != getattr(kind, "schema_version", None):
        raise ValueError("another version")
    return found


_known: dict[Path, tuple[bytes, Any]] = {}
"""Files that this process read or wrote last, each with its record: a command reads them several times."""

_MOST_KNOWN = 5
"""A journal, the marks of two ledgers, and two pointers."""


def remember(path: Path, content: bytes, record: object) -> None:
    """Let the next :func:`read_record` take this record, if the file still has this content."""
    _known.pop(path, None)
    _known[path] = content, record
    for other in [*_known][:-_MOST_KNOWN]:
        _known.pop(other, None)


def read_record(
    kind: type[Record],
    path: Path,
    damaged: Exception,
    *,
    largest: int = LARGEST_RECORD,
    absent: tuple[type[OSError], ...] = (FileNotFoundError,),
) -> Record | None:
    """Read the record in a regular file; None if opening it raises one of ``absent``.

    Args:
        kind: one without free values, which may nest too deep.
        damaged: raised for any other error, such as a link or content of another form.
    """
    try:
        content = read_plain(path, largest=largest)
        known, record = _known.get(path, (b"", None))
        if content != known or not isinstance(record, kind):
            text = content.decode()
            record = _validated(kind, text)
            if to_json(record) != text:  # what is written so has no key twice
                load_json(text)
            remember(path, content, record)
    except absent:
        return None
    except (OSError, ValueError):
        raise damaged from None
    return record


def read_pointer(kind: type[Record], path: Path) -> Record | None:
    """What a pointer says; None when there is none.

    Raises:
        DataError: it is a link, damaged, or holds a key that is unknown or occurs twice.
    """
    damaged = DataError(
        "a pointer to an audit is damaged, or it was altered",
        where=str(path),
        expected=f"a file that this program wrote, schema version {SCHEMA_VERSION}",
        fix="run the audit again, which writes it anew",
    )
    return read_record(kind, path, damaged, largest=_LARGEST_POINTER)


@dataclass(frozen=True, eq=False)
class StrictForm:
    """Annotates a dataclass, so that ``pydantic.TypeAdapter`` reads and writes it strictly.

    Every field is required, also one with a default. Other keys and values of another type are refused. The
    same holds for all dataclasses inside.

    Attributes:
        spelt: maps a type of a field to the annotated type by which it is read and written everywhere.
        narrowed: maps a field to the type that it has in the file.
        renamed: maps a field to its key in the file.
    """

    spelt: Mapping[Any, Any]
    narrowed: Mapping[FieldOf, Any]
    renamed: Mapping[FieldOf, str]

    def adapter(self, kind: type[Record]) -> TypeAdapter[Record]:
        """Reads and writes a dataclass."""
        # In unions and free mappings numbers are written by the configuration of the adapter, not of their
        # dataclass; and an adapter takes none for a dataclass itself.
        inside = GetPydanticSchema(lambda _, handler: handler.generate_schema(self.of(kind)))
        return TypeAdapter(Annotated[Any, inside], config=ConfigDict(ser_json_inf_nan="strings"))

    def __get_pydantic_core_schema__(
        self, kind: type[Any], handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        hints = get_type_hints(kind)
        names = [field.name for field in fields(kind)]
        parts = [
            core_schema.dataclass_field(
                name,
                handler.generate_schema(self.of(self.narrowed.get((kind, name), hints[name]))),
                validation_alias=self.renamed.get((kind, name)),
                serialization_alias=self.renamed.get((kind, name)),
            )
            for name in names
        ]
        return core_schema.dataclass_schema(
            kind,
            core_schema.dataclass_args_schema(kind.__name__, parts),
            names,
            post_init=hasattr(kind, "__post_init__"),
            ref=kind.__name__,
            config=_STRICT_CORE,
        )

    def of(self, hint: Any) -> Any:
        """A type with this form in place of every dataclass in it."""
        if hint in self.spelt:
            return self.spelt[hint]
        if is_dataclass(hint):
            return Annotated[hint, self]
        origin = get_origin(hint)
        if origin in (None, Literal, Annotated):
            return hint
        parts = tuple(map(self.of, get_args(hint)))
        return Union[parts] if origin is UnionType else origin[parts]  # noqa: UP007  (of parts known here only)
