"""A generator with a known leak, for the known-answer check of audits that run the generator again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa

from synth_audit.core.audit import Leak
from synth_audit.core.generator import FitContext, GeneratorInfo
from synth_audit.core.schema import quantitative
from synth_audit.core.table import Table, joined
from synth_audit.core.table_file import load_table, save_table
from synth_audit.encoding.plain_numbers import plain_numbers
from synth_audit.examination.telling_columns import most_telling

_MOST_TOGETHER = 5
"""Columns that are copied together at most."""

_SURPLUS = 12.0
"""Bits beyond those that find one row among all, by which a few numbers tell enough."""

_ON_PURPOSE = "it copies a part of its training rows on purpose"


@dataclass(frozen=True, eq=False)
class PlantedModel:
    """Rows to copy and clean rows; immutable."""

    share: float
    copied: Table = field(repr=False)
    clean: Table = field(repr=False)
    leak: Leak

    def sample(self, n: int, rng: np.random.Generator) -> Table:
        """``n`` rows of which ``share`` are copies (at least one if above 0), each row once per round."""
        leaked = max(round(self.share * n), 1 if self.share > 0 else 0)
        copies = _rounds(self.copied, leaked, rng)
        others = _rounds(self.clean, n - leaked, rng)
        if self.leak is Leak.ASSOCIATIONS:
            others = _shuffled(others, rng)
        if self.leak is Leak.SHIFTED:
            copies = with_shifted(_rounds(self.clean, leaked, rng), copies, self.copied)
        if self.leak is Leak.SUBSETS:
            copies = with_subset(_rounds(self.clean, leaked, rng), copies, telling_columns(self.copied))
        return joined([copies, others])

    def save(self, folder: Path) -> None:
        """Write both kinds of rows."""
        save_table(self.copied, folder, "copied")
        save_table(self.clean, folder, "clean")


@dataclass(frozen=True, eq=False)
class PlantedGenerator:
    """Copies a share of its training rows; the other rows hold nothing of what the audit looks for.

    Attributes:
        share: f, in [0, 1].
        leak: what is copied: whole records, or a few columns of them beside the others of new people, as they
            are or moved.
        clean: rows of new people. Where associations are the leak, their columns are shuffled against each
            other in every release, for new people have the associations of everybody.
    """

    share: float
    clean: Table = field(repr=False)
    leak: Leak = Leak.COPIES
    info: ClassVar[GeneratorInfo] = GeneratorInfo(
        title="Planted leak", summary="Copies a known share of its training rows.", cost="instant"
    )

    @property
    def minimum_people(self) -> int:
        """Rows are copied with all that is in them."""
        return 1

    def fit(self, train: Table, context: FitContext) -> PlantedModel:
        """Keep the rows of ``train``; nothing is learnt."""
        context.accountant.void(_ON_PURPOSE)
        return PlantedModel(
            self.share,
            train.released_only(),
            self.clean.released_only(),
            self.leak,
        )

    def load(self, folder: Path) -> PlantedModel:
        """The model that was saved there."""
        copied, clean = (load_table(folder, name) for name in ("copied", "clean"))
        return PlantedModel(self.share, copied, clean, self.leak)


def telling_columns(table: Table) -> tuple[str, ...]:
    """Names of the columns that are copied together: half of those that vary, but three to five.

    Those that tell people apart best together: a few columns that hardly do give nobody away, copied or not.
    """
    there = [c for c in table.schema.features if c.name in table.names]
    varying = sum(len(table.column(c.name).unique()) > 1 for c in there)
    return tuple(most_telling(table, there, min(_MOST_TOGETHER, max(3, varying // 2))))


def with_subset(rows: Table, copies: Table, names: Sequence[str]) -> Table:
    """As many rows as there are copies, with these columns of the copies and all others of their own."""
    columns = {n: (copies if n in names else rows).column(n) for n in rows.names}
    return Table(rows.schema, pa.table(columns))


def with_shifted(rows: Table, copies: Table, reference: Table) -> Table:
    """As many rows as there are copies, with the most telling numbers of these, each moved by a constant.

    Five at most, by an eighth of their central range in the reference, in whole steps. Where these tell too
    little to find anybody by, all of the copies stays and these are moved.
    """
    released = [c for c in quantitative(reference.schema.features) if c.name in reference.names]
    column_of = {c.name: c for c in released}
    numbers = plain_numbers([copies], released, [reference])
    told = most_telling(reference, [column_of[x.name] for x in numbers], _MOST_TOGETHER)
    some = [x for x in numbers if x.name in told]
    enough = np.log2(max(2, copies.n_rows)) + _SURPLUS
    few = len(some) > 1 and sum(told.values()) > enough
    columns = {n: (rows if few else copies).column(n) for n in rows.names}
    for x in some:
        column = column_of[x.name]
        step = column.resolution.grid.step if column.resolution else 0.0
        by = max(step, np.rint(x.spread / 8 / step) * step) if step else x.spread / 8
        columns[x.name] = column.kind.stored(x.read() + by, copies.column(x.name).type)
    return Table(rows.schema, pa.table(columns))


def _rounds(table: Table, n: int, rng: np.random.Generator) -> Table:
    """``n`` rows in random order, none a second time before all were there once."""
    return table.take(np.resize(rng.permutation(table.n_rows), n).astype(np.intp))


def _shuffled(table: Table, rng: np.random.Generator) -> Table:
    columns = {n: table.column(n).take(pa.array(rng.permutation(table.n_rows))) for n in table.names}
    return Table(table.schema, pa.table(columns))
