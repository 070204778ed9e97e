"""Comma-separated text files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from synth_audit.core.errors import DataError
from synth_audit.core.pandas_index import WRITTEN_AS
from synth_audit.core.paths import problem_of
from synth_audit.core.schema import check_names
from synth_audit.core.source import SourceInfo
from synth_audit.sources import _files

MAX_BYTES = 2**31 - 1
"""The reader types a column from one block, and a block is no larger than this."""


@dataclass(frozen=True, kw_only=True)
class Csv:
    """One UTF-8 text file with a header line; column types come from all of its rows.

    Attributes:
        path: the file; a relative path starts at the plan's folder.
        delimiter: one character between cells.
        missing: cell texts that mean a missing value; the empty cell by default.
        text: columns to read as text whatever they look like, such as codes with leading zeros.

    Raises:
        ValueError: the path is empty or a URL, or the delimiter is not one character.
    """

    path: str
    delimiter: str = ","
    missing: tuple[str, ...] = ("",)
    text: tuple[str, ...] = ()
    info: ClassVar[SourceInfo] = SourceInfo(
        title="CSV file",
        summary="One text file with a header; types are guessed from all rows, so Parquet is safer.",
        suffixes=(".csv",),
    )

    def __post_init__(self) -> None:
        if problem := problem_of(self.path):
            raise ValueError(problem)
        if len(self.delimiter) != 1 or self.delimiter in '\r\n"' or not self.delimiter.isascii():
            raise ValueError("delimiter must be one ASCII character, other than a quote or a line break")

    def read(self, base: Path) -> pa.Table:
        """Read the file; relative paths start at ``base``.

        Raises:
            DataError: the file is missing, unreadable, empty, ragged, not UTF-8, larger than 2 GiB,
                has a column name twice, or lacks a column named in ``text``.
        """
        path = _files.existing(_files.locate(self.path, base), "CSV")
        try:
            table = self._parse(path)
        except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
            raise _files.unreadable(path, "CSV", error) from None
        check_names(table.column_names, where=str(path))
        if len(table.column_names) == 1 and (
            mark := next((m for m in ";\t|" if m in table.column_names[0]), "")
        ):
            raise DataError(
                f"the CSV file has a single column whose name contains {mark!r}",
                where=str(path),
                expected=f"columns separated by {self.delimiter!r}",
                fix=f"read it with `{{csv: {{path: ..., delimiter: {mark!r}}}}}`, or convert the file",
            )
        if unknown := [name for name in self.text if name not in table.column_names]:
            raise DataError(
                f"the CSV file has no column {unknown[0]!r}",
                where=str(path),
                expected=f"one of {', '.join(table.column_names)}",
                fix="correct `text` in the plan",
            )
        return table

    def place(self, base: Path) -> tuple[str, ...]:
        """The file, whatever the spelling of its path."""
        return (_files.place(_files.locate(self.path, base)),)

    def write(self, data: pa.Table, base: Path) -> str:
        """Replace the file with ``data``, wholly or not at all; return where it went.

        Raises:
            DataError: the folder or file cannot be written, or a column has no text form.
        """
        import pyarrow.csv as pc

        path = _files.locate(self.path, base)
        options = pc.WriteOptions(delimiter=self.delimiter)
        try:
            with _files.replacing_target(path) as temporary:
                pc.write_csv(_plain(data), temporary, options)
        except (OSError, pa.ArrowException) as error:
            raise _files.unwritable(path, "CSV", error) from None
        return str(path)

    def _parse(self, path: Path) -> pa.Table:
        import pyarrow.csv as pc

        size = path.stat().st_size
        if size >= MAX_BYTES:
            raise DataError(
                "the CSV file is larger than 2 GiB",
                where=str(path),
                expected="a smaller file",
                fix="convert it to Parquet",
            )
        convert = pc.ConvertOptions(
            null_values=list(self.missing),
            strings_can_be_null=True,
            column_types={name: pa.string() for name in self.text},
        )
        # One block: otherwise the first megabyte alone would decide the types.
        reading = pc.ReadOptions(block_size=size + 1, use_threads=False)
        parsing = pc.ParseOptions(delimiter=self.delimiter, newlines_in_values=True)
        table = pc.read_csv(path, read_options=reading, parse_options=parsing, convert_options=convert)
        first, *others = table.column_names or [None]
        return table.rename_columns([WRITTEN_AS, *others]) if first == "" and others else table


def _plain(data: pa.Table) -> pa.Table:
    """The table with dictionary and decimal columns as values the writer knows."""
    columns: dict[str, Any] = {}
    for name, values in zip(data.column_names, data.columns, strict=True):
        if pa.types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
        if pa.types.is_decimal(values.type):
            values = values.cast(pa.string())
        columns[name] = values
    return pa.table(columns)
