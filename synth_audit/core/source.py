"""The contract of a source and of a release target, and what either may implement beyond it.

A source is one file in its room holding one frozen dataclass with a class variable ``info``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

from synth_audit.core.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

    from synth_audit.core.arrow_files import PlacedRows
    from synth_audit.core.table import Table


@dataclass(frozen=True, kw_only=True)
class SourceInfo:
    """What the catalogue says of a source.

    Attributes:
        suffixes: file suffixes this source reads, so that a bare path finds it; a source that lists
            any must have a field ``path``.
        transport: its fields, and options of its connection, that say how the table is reached, such as how
            long a lock is waited for; the plan's digest leaves them out. None may change which rows are read,
            who reads them or where a release goes: hosts, users and databases are not transport.
    """

    title: str
    summary: str
    suffixes: tuple[str, ...] = ()
    transport: tuple[str, ...] = ()


@runtime_checkable
class Source(Protocol):
    """Reads one table. One that reads what some target could replace must be :class:`Locatable` too."""

    info: ClassVar[SourceInfo]

    def read(self, base: Path) -> pa.Table:
        """Read the table; relative paths start at ``base``."""
        ...


@runtime_checkable
class Batched(Protocol):
    """A source that hands out its rows by batches; one without ``batches`` is read whole."""

    def batches(self, base: Path) -> Iterator[pa.RecordBatch]:
        """The rows of :meth:`Source.read` in their order; at least one batch, which may be empty."""
        ...


def batches(source: Source, base: Path) -> Iterator[pa.RecordBatch]:
    """The rows of a source by batches; a source that cannot hand them out so is read whole.

    Raises:
        DataError: it cannot be read, there is no batch, or they differ in names, order or types of their
            columns.
    """
    if not isinstance(source, Batched):
        table = read(source, base)
        yield from table.to_batches() or [empty_batch(table.schema)]
        return
    with _own_failures(source):
        yield from _alike(source.batches(base))


def read(source: Source, base: Path) -> pa.Table:
    """The whole table of a source.

    Raises:
        DataError: it cannot be read.
    """
    with _own_failures(source):
        return source.read(base)


@contextmanager
def _own_failures(source: Source) -> Iterator[None]:
    """Tell what the system says to a source as the source's own, and not as one of whoever takes the rows."""
    try:
        yield
    except OSError as error:  # its text may hold a value, or a password
        raise DataError(
            f"the source cannot be read ({type(error).__name__})",
            where=f"source, {source.info.title}",
            expected="a source that answers, and hands out all of its rows",
            fix="check that it can be reached from this machine, by this user, then try again",
        ) from None


def read_whole(source: Source, base: Path) -> pa.Table:
    """All rows of a source; many are laid out and mapped, where there is a folder for what is temporary.

    Raises:
        DataError: as :func:`batches`; the rows cannot be laid out.
    """
    return read_placed(source, base, None).data


def read_placed(source: Source, base: Path, folder: Path | None) -> PlacedRows:
    """All rows of a source; see :func:`synth_audit.core.arrow_files.kept` for ``folder``.

    Raises:
        DataError: as :func:`batches`; the rows cannot be laid out.
    """
    from synth_audit.core.arrow_files import kept  # here: the catalogue of sources needs no Arrow

    return kept(batches(source, base), folder)


def _alike(found: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Batches of one table: values of another column would stand under a wrong name, and nobody would see."""
    columns: list[tuple[str, pa.DataType]] | None = None
    for batch in found:
        own = [(field.name, field.type) for field in batch.schema]
        if columns is not None and own != columns:
            raise _no_table("batches whose columns differ")
        columns = own
        yield batch
    if columns is None:
        raise _no_table("no batch")


def _no_table(what: str) -> DataError:
    return DataError(
        f"the source handed out {what}",
        where="source",
        expected="at least one batch, and in each the same columns of the same types in the same order",
        fix="have the source give one schema to all its batches, and an empty batch where there are no rows",
    )


def empty_batch(schema: pa.Schema) -> pa.RecordBatch:
    """No rows of these columns."""
    from pyarrow import RecordBatch

    return RecordBatch.from_pylist([], schema)


@runtime_checkable
class Locatable(Protocol):
    """A source that can say where it is, so that no release takes the place of the sensitive table."""

    def place(self, base: Path) -> tuple[str, ...]:
        """Where the table is, from the whole to the part, such as file, schema, table.

        Two spellings of one place must give the same parts. Writing to a place replaces every place
        that begins with its parts: a file, for one, takes all tables in it along.
        """
        ...


@runtime_checkable
class Target(Locatable, Protocol):
    """A source that can also take a release."""

    info: ClassVar[SourceInfo]

    def write(self, data: pa.Table, base: Path) -> str:
        """Replace the table with ``data``, wholly or not at all; return where it went.

        Raises:
            DataError: it was not replaced; ``Unavailable`` where the same may succeed later.
            ReleaseUncertain: nobody knows here whether it was.
        """
        ...


@runtime_checkable
class Selective(Target, Protocol):
    """A target that cannot hold every type of column, and can say so before anything is made."""

    def refuse_types(self, schema: pa.Schema) -> None:
        """Raise ``DataError``, which names the column, where one has a type that cannot be written."""
        ...


def refuse_unkept(
    schema: pa.Schema, kept: Callable[[pa.DataType], bool], target: str, *, where: str, expected: str
) -> None:
    """Raise ``DataError`` for the first column of a type that such a table does not give back as it was.

    Args:
        target: such as "Delta table". expected: what it keeps.
    """
    for field in schema:
        if not kept(field.type):
            raise DataError(
                f"column {field.name!r} has type {field.type}, which no {target} keeps as it is",
                where=f"release, {where}",
                expected=expected,
                fix="cast it in the source, or release elsewhere",
            )


def hand_over(table: Table, target: Target, base: Path) -> str:
    """Have a target take a table's rows; return where they went."""
    return target.write(table.data, base)
