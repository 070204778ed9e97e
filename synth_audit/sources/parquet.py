"""Parquet files."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from synth_audit.errors import DataError
from synth_audit.plugins.source import SourceInfo, at_least_one
from synth_audit.sources._files import OnDisk, Streamed, reading, replaced
from synth_audit.table.schema import check_names
from synth_audit.table.table import BATCH


@dataclass(frozen=True, kw_only=True)
class Parquet(OnDisk, Streamed):
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

    def batches(self, base: Path) -> Iterator[pa.RecordBatch]:
        """Read the file by batches of at most 65,536 rows; relative paths start at ``base``.

        Raises:
            DataError: the file is missing, unreadable, truncated, has a column name twice, or other rows than
                it declares.
        """
        # Not pq.read_table: that would add columns named by folders such as `year=2024`.
        with reading(self.path, base, "Parquet") as path, pq.ParquetFile(path) as file:
            check_names(file.schema_arrow.names, where=str(path))
            n_rows = 0
            for batch in at_least_one(file.iter_batches(BATCH), file.schema_arrow):
                n_rows += batch.num_rows
                yield batch
            declared = file.metadata.num_rows
            if n_rows != declared:
                raise DataError(
                    f"the Parquet file declares {declared:,} rows and holds {n_rows:,}",
                    where=str(path),
                    expected="a file whose footer tells the truth",
                    fix="write it again where it comes from",
                )

    def schema(self, base: Path) -> pa.Schema:
        """Columns with the metadata of each, and all metadata of the file; see :meth:`read`."""
        with reading(self.path, base, "Parquet") as path, pq.ParquetFile(path) as file:
            schema = file.schema_arrow
            return schema.with_metadata({**(file.metadata.metadata or {}), **(schema.metadata or {})})

    def write(self, data: pa.Table, base: Path) -> str:
        """Replace the file with ``data``, wholly or not at all; return where it went.

        Schema metadata are left out: they describe the table the types came from.

        Raises:
            DataError: the folder or file cannot be written.
        """
        with replaced(self.path, base, "Parquet") as (path, temporary):
            pq.write_table(data.replace_schema_metadata(None), temporary)
        return str(path)
