"""Delta Lake tables, through their own library."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar
from uuid import uuid4

import pyarrow as pa

from synth_audit.errors import DataError, Unavailable
from synth_audit.plugins.source import SourceInfo, at_least_one, refuse_unkept
from synth_audit.sources import _files
from synth_audit.sources._files import OnDisk, Streamed
from synth_audit.table.schema import check_names

_SUB_MICROSECOND = "ns"
"""Finer than any Delta table: the library would cut what is below a microsecond off, and say nothing."""

_RECENT = 20
"""Commits among which one's own is looked for."""


@dataclass(frozen=True, kw_only=True)
class Delta(OnDisk, Streamed):
    """A Delta Lake table in a folder, read by batches; a release is one commit that replaces its rows.

    A commit is there wholly or not at all, and Delta keeps the versions before it until somebody vacuums
    the table: whoever may read the folder may read earlier releases too. Takes ``deltalake`` (the extra
    ``delta``).

    Attributes:
        path: the table's folder; a relative path starts at the plan's folder.

    Raises:
        ValueError: the path is empty or a URL.
    """

    path: str
    info: ClassVar[SourceInfo] = SourceInfo(
        title="Delta Lake table", summary="A Delta Lake table in a folder; a release is one commit."
    )

    def batches(self, base: Path) -> Iterator[pa.RecordBatch]:
        """Read the newest version by batches.

        Raises:
            DataError: it is missing or unreadable, or of a kind that the library does not read.
            PlanError: the library is not installed.
        """
        path = _files.locate(self.path, base)
        library = _library()
        try:
            found = library.DeltaTable(str(path)).to_pyarrow_dataset()
            check_names(found.schema.names, where=str(path))
            yield from at_least_one(found.to_batches(), found.schema)
        except DataError:
            raise
        except Exception as error:  # the library raises plain ones, whose text may quote the table
            raise _files.unreadable(path, "Delta", error) from None

    def refuse_types(self, schema: pa.Schema) -> None:
        """Raise ``DataError`` for a column that would not come back as it went."""
        kept = "signed numbers, decimals, text, booleans, dates, times to the microsecond"
        refuse_unkept(schema, _kept, "Delta table", where=self.path, expected=kept)

    def write(self, data: pa.Table, base: Path) -> str:
        """Commit ``data`` as the table's next version, wholly or not at all; return where it went.

        Raises:
            DataError: a column's type is refused, or the commit failed.
            Unavailable: another commit came first.
            PlanError: the library is not installed.
        """
        self.refuse_types(data.schema)
        path, token = _files.locate(self.path, base), uuid4().hex
        library = _library()
        try:
            path.mkdir(parents=True, exist_ok=True)
            library.write_deltalake(
                str(path),
                data.replace_schema_metadata(None),
                mode="overwrite",
                schema_mode="overwrite",
                commit_properties=library.CommitProperties(custom_metadata={"synth_audit": token}),
            )
        except Exception as error:  # as above
            if _committed(path, token):
                return str(path)
            if not isinstance(error, library.exceptions.CommitFailedError):
                raise _files.unwritable(path, "Delta", error) from None
            raise Unavailable(
                "the Delta table took no commit",
                where=str(path),
                expected="a table that nobody else writes to meanwhile, and that may be overwritten",
                fix="try again; what was there before is untouched",
            ) from None
        return str(path)


def _committed(path: Path, token: str) -> bool:
    """Whether a commit is in the table's log: what the library does after it, such as a checkpoint, may fail
    too, and then the rows are out there all the same."""
    newest = sorted(path.glob("_delta_log/*.json"))[-_RECENT:]
    return any(token in file.read_text(errors="replace") for file in newest)


def _library() -> Any:
    return _files.library(
        "deltalake",
        "the library for Delta Lake",
        extra="delta",
        where="delta",
        expected="the package deltalake",
    )


def _kept(kind: pa.DataType) -> bool:
    if pa.types.is_timestamp(kind):
        return bool(kind.unit != _SUB_MICROSECOND)
    tests = (
        pa.types.is_boolean,
        pa.types.is_signed_integer,
        pa.types.is_float32,
        pa.types.is_float64,
        pa.types.is_string,
        pa.types.is_large_string,
        pa.types.is_date32,
        pa.types.is_decimal128,
    )
    return any(test(kind) for test in tests)
