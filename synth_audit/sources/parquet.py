"""Parquet files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from synth_audit.errors import DataError
from synth_audit.files import place, problem_of
from synth_audit.plugins.source import SourceInfo, empty_batch
from synth_audit.sources import _files
from synth_audit.table.schema import check_names
from synth_audit.table.table import BATCH


@dataclass(frozen=True, kw_only=True)
class Parquet:
    """One Parquet file, read by batches and replaced whole.

    Attributes:
        path: the file; a relative path starts at the plan's folder.

    Raises:
        ValueError: the path is empty or a URL.
    """

    path: str
    info: ClassVar[SourceInfo] = SourceInfo(
        title="Parquet file",
        summary="One Parquet file; keeps every column type.",
        suffixes=(".parquet", ".pq"),
    )

    def __post_init__(self) -> None:
        if problem := problem_of(self.path):
            raise ValueError(problem)

    def read(self, base: Path) -> pa.Table:
        """Read the file; relative paths start at ``base``.

        Raises:
            DataError: the file is missing, unreadable, truncated, has a column name twice, or other rows than
                it declares.
        """
        import pyarrow.parquet as pq

        path = _files.existing(_files.locate(self.path, base), "Parquet")
        try:
            # Not pq.read_table: that would add columns named by folders such as `year=2024`.
            with pq.ParquetFile(path) as file:
                check_names(file.schema_arrow.names, where=str(path))
                table = file.read()
                declared = file.metadata.num_rows
        except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
            raise _files.unreadable(path, "Parquet", error) from None
        _refuse_other_rows(table.num_rows, declared, path)
        return table

    def batches(self, base: Path) -> Iterator[pa.RecordBatch]:
        """The rows by batches of at most 65,536; see :meth:`read`."""
        import pyarrow.parquet as pq

        path = _files.existing(_files.locate(self.path, base), "Parquet")
        try:
            with pq.ParquetFile(path) as file:
                check_names(file.schema_arrow.names, where=str(path))
                n_rows = 0
                for batch in file.iter_batches(BATCH):
                    n_rows += batch.num_rows
                    yield batch
                if not n_rows:
                    yield empty_batch(file.schema_arrow)
                declared = file.metadata.num_rows
        except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
            raise _files.unreadable(path, "Parquet", error) from None
        _refuse_other_rows(n_rows, declared, path)

    def schema(self, base: Path) -> pa.Schema:
        """Columns with the metadata of each, and all metadata of the file; see :meth:`read`."""
        import pyarrow.parquet as pq

        path = _files.existing(_files.locate(self.path, base), "Parquet")
        try:
            with pq.ParquetFile(path) as file:
                schema = file.schema_arrow
                return schema.with_metadata({**(file.metadata.metadata or {}), **(schema.metadata or {})})
        except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
            raise _files.unreadable(path, "Parquet", error) from None

    def place(self, base: Path) -> tuple[str, ...]:
        """The file, whatever the spelling of its path."""
        return (place(_files.locate(self.path, base)),)

    def write(self, data: pa.Table, base: Path) -> str:
        """Replace the file with ``data``, wholly or not at all; return where it went.

        Schema metadata are left out: they describe the table the types came from.

        Raises:
            DataError: the folder or file cannot be written.
        """
        import pyarrow.parquet as pq

        path = _files.locate(self.path, base)
        try:
            with _files.replacing_target(path) as temporary:
                pq.write_table(data.replace_schema_metadata(None), temporary)
        except (OSError, pa.ArrowException) as error:
            raise _files.unwritable(path, "Parquet", error) from None
        return str(path)


def _refuse_other_rows(n_rows: int, declared: int, path: Path) -> None:
    if n_rows == declared:
        return
    raise DataError(
        f"the Parquet file declares {declared:,} rows and holds {n_rows:,}",
        where=str(path),
        expected="a file whose footer tells the truth",
        fix="write it again where it comes from",
    )
