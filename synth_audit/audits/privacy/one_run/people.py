"""Whom claims may be made of, on which side chance put them, and the rows they are looked up by."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from synth_audit.core.arrays import Bools, Positions
from synth_audit.core.entities import entities_of, has_key
from synth_audit.core.errors import NotApplicable
from synth_audit.core.keyed_hash import KeyedHash
from synth_audit.core.kind import Clues
from synth_audit.core.rules import ordering
from synth_audit.core.schema import Column, Schema
from synth_audit.core.schema_inference import kind_of
from synth_audit.core.subject import Subject
from synth_audit.core.table import BATCH, Table, joined

_PLACE = np.dtype(">u8")
"""What is drawn for an entity: its place among all."""


@dataclass(frozen=True, eq=False)
class ClaimablePeople:
    """Entities of train and control together, in random order, with their rows in one pooled table.

    The pooled table does not tell sides: its order is random, and what kind a column is of is read off all of
    its rows.

    Attributes:
        pooled: rows of these people, and of others.
        rows: positions in it of their rows, those of one person together.
        first: where in ``rows`` those of each person begin, ascending, shape (n,).
        members: who is in train, shape (n,). No score may look at it but on the known half.
        known: the half that rules are chosen on: every second one, shape (n,).
    """

    pooled: Table
    rows: Positions
    first: Positions
    members: Bools
    known: Bools

    def __len__(self) -> int:
        return len(self.first)


def gather(subject: Subject, most: int, beside: int, key: bytes, *, single: bool) -> ClaimablePeople:
    """Draw people of whom claims may be made.

    Rows without a key are told by what they hold, and equal ones may share a coin, so only those without an
    equal are taken; who has a key is one person with all of its rows. The draw depends on the entities and
    ``key`` alone, not on the order of their rows.

    Args:
        most: at most so many rows of theirs. beside: at most so many further rows in the pooled table.
        key: of the draws; must have nothing to do with that of the split.
        single: take only people of one row: a guarantee that is made to rows promises others nothing.

    Raises:
        NotApplicable: one entity is on both sides, so it was not entities that were divided.
    """
    assert subject.control is not None
    tables = (subject.train, subject.control)
    drawn, keyed = (np.concatenate(part) for part in zip(*(_draws(t, key) for t in tables), strict=True))
    member = np.arange(len(drawn)) < subject.train.n_rows
    _, start, number = np.unique(drawn, return_index=True, return_inverse=True)
    size, inside = np.bincount(number), np.bincount(number, member)
    with_key = keyed[start]
    if np.any((inside > 0) & (inside < size) & with_key):
        raise NotApplicable(
            "rows of one entity are in train and in control: it was not entities that were divided"
        )
    allowed = (size == 1) | (with_key & (not single))
    chosen = allowed & (np.cumsum(size * allowed) <= most)
    order = np.argsort(number, kind="stable")
    wanted = chosen[number[order]]
    wanted[np.flatnonzero(~wanted)[:beside]] = True
    kept = order[wanted]
    rows = np.flatnonzero(chosen[number[kept]])
    who = np.flatnonzero(chosen)
    return ClaimablePeople(
        pooled=_pooled(subject, kept),
        rows=rows,
        first=np.searchsorted(number[kept[rows]], who),
        members=inside[who] > 0,
        known=np.arange(len(who)) % 2 == 0,
    )


def _draws(table: Table, key: bytes) -> tuple[npt.NDArray[np.uint64], Bools]:
    """The place drawn for the entity of each row, and whether it has a key; shape (n,) each."""
    keyed_hash, found, keyed = KeyedHash(key), bytearray(), []
    for part in table.parts(BATCH):
        entities = entities_of(part)
        found += b"".join(keyed_hash(entity)[: _PLACE.itemsize] for entity in entities)
        keyed.append(np.fromiter(map(has_key, entities), dtype=bool, count=len(entities)))
    return np.frombuffer(bytes(found), dtype=_PLACE), np.concatenate(keyed)


def _pooled(subject: Subject, rows: Positions) -> Table:
    """Rows of train and control, counted through both, as one table in this order."""
    assert subject.control is not None
    n = subject.train.n_rows
    inside = rows < n
    parts = [subject.train.take(rows[inside]), subject.control.take(rows[~inside] - n)]
    return joined(parts).take(np.argsort(np.argsort(~inside, kind="stable")))


def pooled_schema(subject: Subject, pooled: Table) -> Schema:
    """The columns that are compared, of the kinds that train and control together show.

    A schema is inferred from train, and so might tell which rows those are. Domains stay as they are:
    distances do not look at them.
    """
    ranked = ordering(subject.schema.rules)
    return Schema(tuple(_of_kind(c, pooled.column(c.name), c.name in ranked) for c in subject.features))


def _of_kind(column: Column, values: pa.ChunkedArray, ranked: bool) -> Column:
    if column.kind_declared:
        return column
    clues = Clues(
        categories=column.declared_categories is not None,
        bounds=column.declared_bounds is not None,
        ranked=ranked,
    )
    found = kind_of(values, clues)
    return column if found is None else replace(column, kind=found)
