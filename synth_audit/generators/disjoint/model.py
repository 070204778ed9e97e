"""Fitted parts, and rows that are joined from theirs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from synth_audit.core.errors import PluginError
from synth_audit.core.generator import Model, column_groups
from synth_audit.core.schema import Schema
from synth_audit.core.schema_json import schema_to_plain
from synth_audit.core.table import Table
from synth_audit.core.table_file import save_table
from synth_audit.generators.disjoint.join import Joiner
from synth_audit.generators.disjoint.partition import WHERE, Groups

FILE, TRAIN = "disjoint.json", "train"


@dataclass(frozen=True, eq=False)
class DisjointModel:
    """Models of the parts.

    Attributes:
        schema: of the features of train. groups: names of the columns of each part. models: of each part.
        joiner: what admits rows of the parts together; None for a join at random.
    """

    schema: Schema = field(repr=False)
    groups: Groups
    models: tuple[Model, ...] = field(repr=False)
    joiner: Joiner | None = field(default=None, repr=False)

    @property
    def column_groups(self) -> Groups:
        """The columns that are drawn together; those of a part that is divided itself are its groups."""
        pairs = zip(self.groups, self.models, strict=True)
        return tuple(group for whole, model in pairs for group in column_groups(model) or (whole,))

    def sample(self, n: int, rng: np.random.Generator) -> Table:
        """Draw rows of every part and put them beside one another, each used once at most.

        Raises:
            DataError: the validator admitted fewer than ``n``.
        """
        if self.joiner is None:
            return side_by_side(self.schema, shuffled(self.drawn(n, rng), rng))
        drawn = self.drawn(self.joiner.pool(n), rng)
        return side_by_side(self.schema, self.joiner.joined(drawn, n, rng))

    def batches(self, n: int, rng: np.random.Generator, size: int) -> Iterator[Table]:
        """The rows by batches; those of a validated join are joined all at once, and then handed out."""
        if self.joiner is not None:
            yield from self.sample(n, rng).parts(size)
            return
        for start in range(0, n, size):
            yield self.sample(min(size, n - start), rng)

    def drawn(self, n: int, rng: np.random.Generator) -> list[Table]:
        """``n`` rows of every part, each by a stream of its own.

        Raises:
            PluginError: a part drew another number of rows, or other columns.
        """
        tables = []
        for i, (group, model, own) in enumerate(
            zip(self.groups, self.models, rng.spawn(len(self.models)), strict=True)
        ):
            table = model.sample(n, own)
            if table.n_rows != n or set(table.names) != set(group):
                raise PluginError(
                    f"part {i + 1} drew other columns, or another number of rows, than it was asked for",
                    where=f"{WHERE}.generators[{i}]",
                    expected="as many rows as are asked for, of the columns of its part",
                )
            tables.append(table)
        return tables

    def save(self, folder: Path) -> None:
        """Write what is divided how as ``disjoint.json``, and each part into a folder of its own.

        A validator is learnt again from the real rows, which are written too: as data it has no other form.
        """
        seed = None if self.joiner is None else self.joiner.seed
        plain = {"schema": schema_to_plain(self.schema), "groups": self.groups, "seed": seed}
        if self.joiner is not None:
            save_table(self.joiner.train, folder, TRAIN)
        (folder / FILE).write_text(json.dumps(plain, allow_nan=False), encoding="utf-8")
        for i, model in enumerate(self.models):
            own = part_folder(folder, i)
            own.mkdir()
            model.save(own)


def part_folder(folder: Path, i: int) -> Path:
    """Where the model of a part is saved."""
    return folder / f"part{i + 1}"


def shuffled(tables: Sequence[Table], rng: np.random.Generator) -> list[Table]:
    """The rows of each table in a random order of their own.

    A generator may draw in an order that says something, such as that of train: two of them would then join
    what is one person's.
    """
    return [table.take(rng.permutation(table.n_rows)) for table in tables]


def side_by_side(schema: Schema, tables: Sequence[Table]) -> Table:
    """Rows of the parts beside one another, in the order of the schema's columns."""
    columns = {name: table.column(name) for table in tables for name in table.names}
    return Table(schema, pa.table({c.name: columns[c.name] for c in schema}))
