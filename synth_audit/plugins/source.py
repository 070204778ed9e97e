"""The contract of a source and of a release target, and how a plan names a connection."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Protocol, runtime_checkable

import pyarrow as pa
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema

from synth_audit import registry
from synth_audit.errors import DataError, PlanError
from synth_audit.table.arrow import PlacedRows, kept, value_type
from synth_audit.table.table import Table

CONNECTION = "connection"
"""Field of a source that holds the name of one of the plan's connections."""

_VARIABLE = r"^[A-Z_][A-Z0-9_]*$"

_SECRET = re.compile(
    r"passw(or)?d|passphrase|\bpwd\b|secret|token|credential|pkcs8|(api|account|access)[-_.]?key$"
    r"|connection[-_.]?string",
    re.IGNORECASE,
)

_LOGIN = re.compile(
    r"//[^/@]*:[^/@]*@|(passw(or)?d|\bpwd|secret|token|api_?key|accountkey|\bsig)\s*=", re.IGNORECASE
)


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
        yield from at_least_one(table.to_batches(), table.schema)
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
    """All rows of a source; see :func:`synth_audit.table.arrow.kept` for ``folder``.

    Raises:
        DataError: as :func:`batches`; the rows cannot be laid out.
    """

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


def at_least_one(found: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Pass batches on; where there is none, one without rows."""
    some = False
    for batch in found:
        some = True
        yield batch
    if not some:
        yield pa.RecordBatch.from_pylist([], schema)


def _no_table(what: str) -> DataError:
    return DataError(
        f"the source handed out {what}",
        where="source",
        expected="at least one batch, all with the same columns, types and order",
        fix="have the source give one schema to all its batches, and an empty batch where there are no rows",
    )


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
        kept: whether it keeps values of a type, which is no dictionary's.
        target: such as "Delta table". expected: what it keeps.
    """

    for field in schema:
        if not kept(value_type(field.type)):
            raise DataError(
                f"column {field.name!r} has type {field.type}, which no {target} keeps as it is",
                where=f"release, {where}",
                expected=expected,
                fix="cast it in the source, or release elsewhere",
            )


def hand_over(table: Table, target: Target, base: Path) -> str:
    """Have a target take a table's rows; return where they went."""
    return target.write(table.data, base)


def _without_secrets(options: dict[str, str]) -> dict[str, str]:
    for name, value in options.items():
        if _SECRET.search(name) or _LOGIN.search(value):
            raise ValueError(
                f"option {name!r} holds a secret, and a plan is read by many: write `secrets: "
                f"{{{name}: NAME}}` with the name of an environment variable"
            )
    return options


class ConnectionSpec(BaseModel):
    """How to reach a server: one of the plan's ``connections``, which sources and targets name."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)
    options: Annotated[dict[str, str], AfterValidator(_without_secrets)] = Field(
        default_factory=dict,
        description="named as the driver names them, such as `host` and `user`; all but transport, such as "
        "`sslmode`, stand in the evidence",
    )
    secrets: dict[str, Annotated[str, Field(pattern=_VARIABLE, max_length=200)]] = Field(
        default_factory=dict,
        description="options that are secret: for each the environment variable that holds its value",
    )

    def settings(self) -> dict[str, str]:
        """All options with their values, secrets among them: for the driver, and for nobody else.

        Raises:
            PlanError: an environment variable is not set, or empty.
        """
        found = dict(self.options)
        for option, variable in self.secrets.items():
            value = os.environ.get(variable, "")
            if not value:
                raise PlanError(
                    f"the environment variable {variable} is not set",
                    where=f"connections, secrets.{option}",
                    expected=f"the value of {option!r} in {variable}",
                    fix=f"set {variable} where this runs; it stands in no file of ours",
                )
            found[option] = value
        return found


Connection = Annotated[
    ConnectionSpec,
    WithJsonSchema({"type": "string", "description": "one of the plan's `connections`"}),
]
"""Type of a source's field ``connection``: a name in the plan, what it stands for in the source."""


def without_transport(plain: Mapping[str, Any]) -> dict[str, Any]:
    """A plan's plain form without the options that its source and target declare as transport.

    An option of a connection is left out where all that use the connection declare it so.
    """
    choices = {key: plain[key] for key in ("source", "release") if plain.get(key)}
    transport = {key: _transport(choice["name"]) for key, choice in choices.items()}
    found = dict(plain) | {key: _without(choices[key], "config", transport[key]) for key in choices}
    for name, connection in plain.get("connections", {}).items():
        users = [transport[k] for k, c in choices.items() if c.get("config", {}).get(CONNECTION) == name]
        if users:
            kept = _without(connection, "options", frozenset.intersection(*users))
            found["connections"] = found["connections"] | {name: kept}
    return found


def _transport(name: str) -> frozenset[str]:
    known = registry.catalogue("source")
    return frozenset(known[name].info.transport if name in known else ())


def _without(stated: Mapping[str, Any], part: str, names: frozenset[str]) -> dict[str, Any]:
    kept = {key: value for key, value in stated.get(part, {}).items() if key not in names}
    rest = {key: value for key, value in stated.items() if key != part}
    return rest | {part: kept} if kept else rest
