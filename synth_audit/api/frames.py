"""Tables as users have them: pandas frames, Arrow tables or files."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from synth_audit.errors import DataError

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from synth_audit.plugins.source import Source
    from synth_audit.table.arrow import PlacedRows

    Frame: TypeAlias = pd.DataFrame | pa.Table | str | Path


def as_arrow(table: Frame, where: str) -> pa.Table:
    """Read a table given as pandas frame, Arrow table or file.

    Many rows of a file are laid out and mapped, where there is a folder for what is temporary, see
    :func:`synth_audit.files.scratch_in`; else they are held in memory.

    Raises:
        DataError: a column mixes types, or the file cannot be read.
    """
    import pandas as pd
    import pyarrow as pa

    from synth_audit.plugins.source import read_whole
    from synth_audit.table.storage_types import plain

    if isinstance(table, pa.Table):
        return plain(table, where=where)
    if isinstance(table, (str, Path)):
        return plain(read_whole(_source(table), Path.cwd()), where=where)
    if not isinstance(table, pd.DataFrame):
        raise DataError(
            f"{where} is a {type(table).__name__}",
            where=where,
            expected="a pandas DataFrame, a pyarrow Table or the path of a file",
            fix="convert it first",
        )
    return _from_pandas(table, where)


def placed_rows(table: Frame, where: str, folder: Path) -> pa.Table | PlacedRows:
    """A table as :func:`as_arrow` reads it; many rows of a file lie in a folder, where others map them too.

    Args:
        folder: of mode 0700, deleted by its owner when nobody needs the rows any more.

    Raises:
        DataError: as :func:`as_arrow`.
    """
    from synth_audit.plugins.source import read_placed

    if isinstance(table, (str, Path)):
        return read_placed(_source(table), Path.cwd(), folder)
    return as_arrow(table, where)


def refuse_same_file(tables: Mapping[str, Frame | None]) -> None:
    """Raise ``DataError`` where one file is given for two tables, however its path is spelt.

    It is a slip of the hand, and an audit of it has an answer for everything.
    """
    from synth_audit.plugins.source import Locatable

    seen: dict[tuple[str, ...], str] = {}
    for name, table in tables.items():
        if not isinstance(table, (str, Path)) or not isinstance(source := _source(table), Locatable):
            continue
        other = seen.setdefault(source.place(Path.cwd()), name)
        if other != name:
            raise DataError(
                f"{other} and {name} are the same file",
                where=str(table),
                expected="a file for each table",
                fix="correct the path; to see what a plain copy gets, copy the file first",
            )


def hash_of(table: Frame, where: str, declared: Collection[str] = ()) -> str:
    """Content hash of a table; of a file one batch is held at a time where it is read by batches.

    Args:
        declared: columns that are of the table even where they look like pandas' index.

    Raises:
        DataError: as :func:`as_arrow`; the table has no content hash.
    """
    import pyarrow as pa

    from synth_audit.plugins.source import batches
    from synth_audit.table.arrow import index_columns
    from synth_audit.table.content_hash import fingerprint, fingerprint_of
    from synth_audit.table.storage_types import plain

    def columns(data: pa.Table) -> pa.Table:
        return data.drop_columns(list(index_columns(data.column_names, declared)))

    if not isinstance(table, (str, Path)):
        return fingerprint(columns(as_arrow(table, where)))
    found = batches(_source(table), Path.cwd())
    return fingerprint_of(columns(plain(pa.Table.from_batches([b]), where=where)) for b in found)


def _source(file: str | Path) -> Source:
    from synth_audit.plan.plan import Plan

    return Plan.model_validate({"source": str(file)}).build_source()


def _from_pandas(frame: pd.DataFrame, where: str) -> pa.Table:
    import pandas as pd
    import pyarrow as pa

    from synth_audit.table.schema import check_names
    from synth_audit.table.storage_types import plain

    names = [str(name) for name in frame.columns]
    check_names(names, where=where)
    columns = {}
    for position, name in enumerate(names):
        values = frame.iloc[:, position]
        if isinstance(values.dtype, pd.SparseDtype):  # which Arrow does not read
            values = values.astype(values.dtype.subtype)
        try:
            columns[name] = pa.Array.from_pandas(values)
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            raise DataError(
                f"column {name!r} mixes types, for example numbers and text, or holds what Arrow cannot",
                where=where,
                expected="values of one type in each column, such as numbers, text or dates",
                fix=f"convert it first, for example with `frame[{name!r}].astype('string')`",
            ) from None
    return plain(pa.table(columns), where=where)
