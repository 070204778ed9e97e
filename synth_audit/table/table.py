"""An immutable table read through a schema, and its rows with their schema in a folder."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from synth_audit.arrays import Bools, Floats, Labels, Positions
from synth_audit.errors import DataError
from synth_audit.table import arrow
from synth_audit.table.arrow import Place, PlacedRows, SortedRuns
from synth_audit.table.content_hash import DIGEST, Bytes, content_hash, content_order, row_digests
from synth_audit.table.schema import Column, Schema, nominal, quantitative, schema_from_plain, schema_to_plain
from synth_audit.table.storage_types import plain, refuse_inexact, refuse_inexact_labels

if TYPE_CHECKING:
    import pandas as pd


BATCH = 2**16
"""Rows of a batch."""

_CODED = 500_000
"""Rows up to which codes of columns are kept: 2 MiB for each column."""


@dataclass(frozen=True, eq=False)
class Table:
    """A handle on rows and their schema: Arrow data in memory, or in a file that is mapped into it.

    Arrow data are immutable, so no audit can change what another sees.

    Attributes:
        data: all of it, for what reads, keeps and writes whole tables (core, store and sources); others ask
            for columns, batches and samples, of which only what is asked for is brought into memory.
        place: where the data lie in a file that other processes of this machine can map; None if in none.
        left_out: columns that the data had when they were read and that are pandas' index.
    """

    schema: Schema = field(repr=False)
    data: pa.Table = field(repr=False)  # Arrow's own form prints cell values
    place: Place | None = field(default=None, repr=False)
    left_out: tuple[str, ...] = field(default=(), repr=False)

    @classmethod
    def at(cls, place: Place, schema: Schema, known: str | None) -> Table:
        """The table in a file.

        Args:
            known: its fingerprint, where that was taken before.

        Raises:
            OSError: the file is gone.
        """
        table = cls(schema, place.mapped(), place)
        if known:
            table._hashed(known)
        return table

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.data.num_rows)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns that are present."""
        return tuple(self.data.column_names)

    @cached_property
    def fingerprint(self) -> str:
        """Content hash, the same for any row or column order; see :func:`.content_hash.fingerprint`."""
        return self._hashed_by(row_digests(self.data))[0]

    @cached_property
    def ordered_hash(self) -> str:
        """SHA-256 of the rows in their order, on which positions and some draws rest."""
        return self._hashed_by(row_digests(self.data))[1]

    def column(self, name: str) -> pa.ChunkedArray:
        """A column as it is stored."""
        return self.data.column(name)

    def coded(self, name: str) -> pa.ChunkedArray:
        """A column as it is stored, but text as places in a dictionary: of few rows that is kept, since most
        of the time that it takes to tell labels apart goes into looking their texts up."""
        known: dict[str, pa.ChunkedArray] = self.__dict__.setdefault("_coded", {})
        if name in known:
            return known[name]
        values = self.column(name)
        if self.n_rows <= _CODED and (
            pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
        ):
            known[name] = values = values.dictionary_encode()
        return values

    def __getstate__(self) -> dict[str, object]:
        """What is kept of a column stays here."""
        return {name: value for name, value in self.__dict__.items() if name != "_coded"}

    def batches(self, names: Sequence[str] | None = None, size: int = BATCH) -> Iterator[pa.RecordBatch]:
        """The rows of some columns (all if None) in their order, at most ``size`` at a time."""
        chosen = self.data if names is None else self.data.select(list(names))
        for start in range(0, self.n_rows, size):
            yield from chosen.slice(start, size).combine_chunks().to_batches()

    def parts(self, size: int) -> Iterator[Table]:
        """The rows in their order as tables of at most ``size``."""
        for start in range(0, self.n_rows, size):
            yield Table(self.schema, self.data.slice(start, size))

    def plain(self, name: str) -> Floats | Labels:
        """A column as its kind computes with it, shape (n,): :meth:`numbers` or :meth:`labels`."""
        return self.schema[name].kind.plain(self.column(name))

    def numbers(self, name: str) -> Floats:
        """A numeric column as float64, shape (n,); missing is NaN, datetimes are microseconds."""
        values = self.schema[name].kind.numbers(self.column(name)).to_numpy()
        return np.asarray(values, dtype=np.float64)

    def labels(self, name: str) -> Labels:
        """A column as text labels, shape (n,), dtype object; missing is None."""
        return np.asarray(self.texts(name).to_numpy(), dtype=object)

    def texts(self, name: str) -> pa.ChunkedArray:
        """The labels of a column as Arrow has them, which takes no Python object for each."""
        return self.schema[name].kind.labels(self.column(name))

    def missing(self, name: str) -> Bools:
        """True where the column has no value, shape (n,)."""
        return np.asarray(pc.is_null(self.column(name)).to_numpy(), dtype=bool)

    def n_missing(self, name: str) -> int:
        """How many rows have no value of the column."""
        return int(self.column(name).null_count)

    def take(self, rows: Positions | Bools) -> Table:
        """The rows at these positions, or where the mask is true."""
        positions = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        return Table(self.schema, self.data.take(pa.array(positions)))

    def in_content_order(self, folder: Path | None = None) -> Table:
        """The same rows in an order that follows from their values alone, whatever order they came in.

        Args:
            folder: where many rows are laid out; see :func:`synth_audit.table.arrow.kept`.
        """
        digests = row_digests(self.data)
        runs = SortedRuns.of(self.data, content_order(digests))
        self._hashed(content_hash(self.data.schema, self.n_rows, digests))
        rows = arrow.kept(runs.batches(self.names, BATCH), folder)
        table = Table(self.schema, rows.data, rows.place)
        table._hashed(self.fingerprint)
        return table

    def divided(self, aside: Bools) -> tuple[Table, Table]:
        """The other rows, and those set aside; the rows are hashed once for all three tables.

        Many rows are laid out, where there is a folder for what is temporary.
        """
        rows = [arrow.kept(self._where(mask), None).data for mask in (~aside, aside)]
        train, control = (Table(self.schema, data) for data in rows)
        digests, schema = np.empty((self.n_rows, DIGEST), np.uint8), self.data.schema
        for part, own in ((train, digests[: train.n_rows]), (control, digests[train.n_rows :])):
            part._hashed_by(row_digests(part.data, own))
        self._hashed(content_hash(schema, self.n_rows, digests))
        return train, control

    def _where(self, rows: Bools) -> Iterator[pa.RecordBatch]:
        for start in range(0, self.n_rows, BATCH):
            part = self.data.slice(start, BATCH).filter(pa.array(rows[start : start + BATCH]))
            yield from arrow.batches_of(part)

    def laid_out(self, folder: Path) -> Table:
        """The same table, mapped from a file of a private folder; few rows stay where they are.

        Raises:
            DataError: the file cannot be written.
        """
        rows = arrow.kept(self.batches(), folder)
        return Table.at(rows.place, self.schema, self.known_fingerprint) if rows.place else self

    @property
    def known_fingerprint(self) -> str | None:
        """The fingerprint if it was taken; None if not."""
        return self.__dict__.get("fingerprint")

    def _hashed_by(self, digests: Bytes) -> tuple[str, str]:
        """Fingerprint and ordered hash, both kept, by the digests of the rows; these are sorted in place."""
        ordered = self.__dict__["ordered_hash"] = hashlib.sha256(digests.data).hexdigest()
        self._hashed(known := content_hash(self.data.schema, self.n_rows, digests))
        return known, ordered

    def _hashed(self, known: str) -> None:
        self.__dict__["fingerprint"] = known

    def sample(self, most: int, rng: np.random.Generator) -> Table:
        """A random part of at most ``most`` rows, in their order; the table itself where it has no more."""
        if self.n_rows <= most:
            return self
        return self.take(np.sort(rng.choice(self.n_rows, most, replace=False)))

    def released_only(self) -> Table:
        """Without identifiers and split keys: what a generator may see."""
        return self.under(self.schema.released_only())

    def under(self, schema: Schema) -> Table:
        """The columns of another schema, read as that one says; the values are the same."""
        names = [c.name for c in schema]
        return Table(schema, self.data.select(names), self.place and self.place.select(names))

    def declared_as(self, schema: Schema) -> Table:
        """The same rows under a schema of the same columns and kinds."""
        table = Table(schema, self.data, self.place)
        if known := self.known_fingerprint:
            table._hashed(known)
        return table

    def to_pandas(self) -> pd.DataFrame:
        """A pandas frame with Arrow-backed columns, so that every type and missing value survives."""
        import pandas as pd

        frame: pd.DataFrame = self.data.to_pandas(types_mapper=pd.ArrowDtype)
        return frame


def joined(tables: Sequence[Table]) -> Table:
    """Tables of one schema, one below the other."""
    return Table(tables[0].schema, pa.concat_tables([t.data for t in tables]).combine_chunks())


def read_table(
    data: pa.Table | PlacedRows | Table, schema: Schema, *, where: str, partial: bool = False
) -> Table:
    """Check data against a schema and return it in the schema's column order, NaN read as missing.

    Args:
        data: as Arrow has them, or read under another schema before. The table knows the file of theirs if it
            has the values in it unchanged.
        where: the table's name for messages: train, control, synthetic.
        partial: allow identifiers and split keys to be absent, as they are from a release.

    Raises:
        DataError: no rows; columns missing, unknown or twice there; another kind; values
            that cannot be stored, see :mod:`synth_audit.table.storage_types`.
    """
    given, whole = data, data if isinstance(data, pa.Table) else data.data
    data = whole if isinstance(given, Table) else plain(whole, where=where)
    optional = {c.name for c in schema if not c.released} if partial else set()
    known = set(schema.names)
    left_out = arrow.index_columns(data.column_names, known)
    held = dict.fromkeys(n for n in data.column_names if n not in left_out)
    lacking = [n for n in schema.names if n not in held and n not in optional]
    extra = [n for n in held if n not in known]
    if lacking or extra:
        parts = [f"lacks {', '.join(lacking)}"] * bool(lacking)
        parts += [_unknown(extra, named=where != "synthetic" or not lacking)] * bool(extra)
        raise DataError(
            f"the columns of {where} differ from train: it {' and '.join(parts)}",
            where=where,
            expected=f"columns {', '.join(schema.names)}",
            fix="rename, add or drop columns so that all tables agree; what only real tables may hold is "
            "declared in the plan as `role: identifier`",
        )
    if data.num_rows == 0:
        raise DataError(
            f"{where} has no rows",
            where=where,
            expected="at least one row",
            fix="check the file or query it comes from",
        )
    present = [c for c in schema if c.name in held]
    before = {c.name: data.column(c.name) for c in present}
    columns = {c.name: _checked(c, before[c.name], where) for c in present}
    released = [c for c in present if c.released]
    for c in quantitative(released):
        refuse_inexact(c.name, columns[c.name], where=where)
    for c in nominal(released):
        refuse_inexact_labels(c.name, columns[c.name], where=where)
    place = None if isinstance(given, pa.Table) else given.place
    unchanged = data is whole and all(columns[name] is before[name] for name in before)
    table = Table(
        schema, pa.table(columns), place.select([*columns]) if place and unchanged else None, left_out
    )
    if isinstance(given, Table) and (taken := given.known_fingerprint):
        table._hashed(taken)  # no order of columns and no schema is in it, nor what becomes of NaN
    return table


def _unknown(extra: Sequence[str], *, named: bool) -> str:
    """Columns that train lacks. A program that forgets the header leaves a record in its place, so they are
    counted and not named where columns of train are gone."""
    if named:
        return f"has the unknown {', '.join(extra)}"
    return f"has {len(extra)} unknown column{'s' * (len(extra) > 1)}"


def assemble(schema: Schema, columns: Mapping[str, Floats | Labels]) -> Table:
    """Make a table in the schema's storage types from a generator's plain arrays.

    Args:
        columns: for every column of ``schema`` float64 with NaN (numeric kinds; datetimes in
            microseconds) or labels with None (categorical, boolean). Numbers are rounded to the column's
            resolution, that of train or of the plan: finer digits would be nobody's measurement.
    """
    stored = {}
    for c in schema:
        values = columns[c.name]
        if c.resolution is not None:
            values = c.resolution.nearest(np.asarray(values, dtype=np.float64), c.declared_bounds)
        stored[c.name] = c.kind.stored(values, c.storage)
    return Table(schema, pa.table(stored))


def _checked(column: Column, values: pa.ChunkedArray, where: str) -> pa.ChunkedArray:
    # An instant is spelt otherwise than its text, so that a copy would look like a new value.
    text = arrow.is_text(arrow.value_type(column.storage))
    other = text and pa.types.is_temporal(values.type) and not pa.types.is_date32(values.type)
    if other or not column.kind.allows(values.type):
        raise DataError(
            f"column {column.name!r} is {column.kind} but {where} holds {values.type}",
            where=where,
            expected=f"{column.kind} values, as in train",
            fix=f"convert {column.name!r} in {where}, or declare its kind in the plan",
        )
    return arrow.regular_floats(values) if pa.types.is_floating(values.type) else values


def save_table(table: Table, folder: Path, name: str) -> None:
    """Write ``name.arrow`` and ``name.json``."""
    with pa.ipc.new_file(folder / f"{name}.arrow", table.data.schema) as file:
        file.write_table(table.data)
    (folder / f"{name}.json").write_text(json.dumps(schema_to_plain(table.schema)), encoding="utf-8")


def load_table(folder: Path, name: str) -> Table:
    """The table that :func:`save_table` wrote."""
    schema = schema_from_plain(json.loads((folder / f"{name}.json").read_text(encoding="utf-8")))
    with pa.OSFile(str(folder / f"{name}.arrow")) as file:
        return Table(schema, pa.ipc.open_file(file).read_all())
