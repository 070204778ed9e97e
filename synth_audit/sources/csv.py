"""Comma-separated text files."""

import csv
import os
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.csv as pc

from synth_audit.errors import DataError
from synth_audit.plugins.source import SourceInfo
from synth_audit.sources._files import OnDisk, reading, replaced
from synth_audit.table.arrow import WRITTEN_AS, decoded
from synth_audit.table.schema import check_names

MAX_BYTES = 2**31 - 1
"""The reader types a column from one block, and a block is no larger than this."""

_LINES_SHOWN = 5
"""Lines that a message names: enough to find the mistake."""

_COMMENT = "#"
_LAST = 2**16
"""Bytes at the end of a file in which its last line begins."""


@dataclass(frozen=True, kw_only=True)
class Csv(OnDisk):
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
        super().__post_init__()
        if len(self.delimiter) != 1 or self.delimiter in '\r\n"' or not self.delimiter.isascii():
            raise ValueError("delimiter must be one ASCII character, other than a quote or a line break")

    def read(self, base: Path) -> pa.Table:
        """Read the file; relative paths start at ``base``.

        Raises:
            DataError: the file is missing, unreadable, empty, ragged, not UTF-8, larger than 2 GiB,
                ends in a comment, has a column name twice, or lacks a column named in ``text``.
        """
        with reading(self.path, base, "CSV") as path:
            table = self._parse(path)
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

    def write(self, data: pa.Table, base: Path) -> str:
        """Replace the file with ``data``, wholly or not at all; return where it went.

        Raises:
            DataError: the folder or file cannot be written, or a column has no text form.
        """
        with replaced(self.path, base, "CSV") as (path, temporary):
            # The writer knows neither dictionaries nor decimals.
            plain = (decoded(values) for values in data.columns)
            columns = [x.cast(pa.string()) if pa.types.is_decimal(x.type) else x for x in plain]
            data = pa.table(columns, names=data.column_names)
            pc.write_csv(data, temporary, pc.WriteOptions(delimiter=self.delimiter))
        return str(path)

    def _parse(self, path: Path) -> pa.Table:
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
        ragged: list[int | None] = []

        def note(row: pc.InvalidRow) -> str:
            ragged.append(row.number)
            return "skip"

        parsing = pc.ParseOptions(delimiter=self.delimiter, newlines_in_values=True, invalid_row_handler=note)
        table = pc.read_csv(path, read_options=reading, parse_options=parsing, convert_options=convert)
        if ragged:
            raise self._no_rows(path, "with another number of fields than the header", ragged=True)
        if table.num_columns and (comments := _comments(table.column(0), path)):
            raise self._no_rows(path, f"at the end that begin with {_COMMENT!r}", last=comments)
        first, *others = table.column_names or [None]
        return table.rename_columns([WRITTEN_AS, *others]) if first == "" and others else table

    def _no_rows(self, path: Path, what: str, *, last: int = 0, ragged: bool = False) -> DataError:
        """The error for lines that may be no rows: ragged ones, or so many at the end."""
        found: list[int] = []
        with suppress(csv.Error), path.open(encoding="utf-8", errors="replace", newline="") as file:
            records = _records(csv.reader(file, delimiter=self.delimiter))
            _, fields = next(records)
            odd = (r for r in records if r[1] != fields) if ragged else deque(records, maxlen=last)
            found = [line for line, _ in odd]
        shown = ", ".join(f"{line:,}" for line in found[:_LINES_SHOWN])
        more = f" and {len(found) - _LINES_SHOWN:,} more" * (len(found) > _LINES_SHOWN)
        which = f": line{'s' * (len(found) > 1)} {shown}{more}" * bool(found)
        return DataError(
            f"the CSV file has lines {what}{which}",
            where=str(path),
            expected="a header, and below it rows with a field for each column",
            fix="delete comments and totals; quote cells that hold a delimiter or line break, and labels "
            f"that begin with {_COMMENT!r}",
        )


def _records(rows: Any) -> Iterator[tuple[int, int]]:
    """Line in which each record of a reader begins, and how many fields it has; empty lines are none."""
    line = 1
    for row in rows:
        if row:
            yield line, len(row)
        line = rows.line_num + 1


def _comments(first: pa.ChunkedArray, path: Path) -> int:
    """How many rows at the end look like comments with as many delimiters as a row; 0 where labels begin so.

    Args:
        first: the first column.
    """
    import pyarrow.compute as pc

    if not pa.types.is_string(first.type):
        return 0
    marked = pc.fill_null(pc.starts_with(first, _COMMENT), False).to_numpy()
    count = int(marked.sum())
    if not 0 < count < len(marked) or not marked[-count:].all():
        return 0
    with path.open("rb") as file:
        file.seek(-min(_LAST, path.stat().st_size), os.SEEK_END)
        last = file.read().rstrip().splitlines()[-1]
    return count if last.startswith(_COMMENT.encode()) else 0
