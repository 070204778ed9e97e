"""Sets control rows aside by entity: a coin for each, tossed by a key, that appended rows do not move."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from synth_audit.core.arrays import Bools, Integers, Labels
from synth_audit.core.equal_rows import alike_by_chance
from synth_audit.core.errors import DataError
from synth_audit.core.framing import count, frame
from synth_audit.core.keyed_hash import KeyedHash
from synth_audit.core.schema import Column, Role, Schema
from synth_audit.core.table import BATCH, Table

_SCALE = 2**64

_BY_KEY, _BY_ROW, _AGAIN = frame("entity"), frame("row"), frame("again")


def split(table: Table, control: float, key: bytes) -> tuple[Table, Table]:
    """Divide a table into train and control.

    Each entity goes to control when ``HMAC-SHA256(key, entity) / 2**64 < control`` (first 8 bytes): an
    independent coin with bias ``control`` that depends on nothing but the key and the entity. All rows of an
    entity stay together, rows appended later move none, and their order does not matter.

    Args:
        control: expected share of entities set aside, in (0, 1); the actual share varies with the coins.
        key: decides the coins; who lacks it cannot tell train from control.

    Returns:
        (train, control), each in the table's row order.

    Raises:
        DataError: one of the two would be empty.
    """
    aside = set_aside(table, control, key)
    return table.take(~aside), table.take(aside)


def set_aside(table: Table, control: float, key: bytes, *, apart: bool = False) -> Bools:
    """Which rows :func:`split` gives to control, shape (n,).

    Args:
        apart: of equal rows in a table without keys, all but the first of those that chance explains get
            coins of their own (:func:`chance_equals`). The table decides which, so that one row more may
            move others: not for what is proved of one person more or less.

    Raises:
        DataError: all of them, or none.
    """
    aside = np.concatenate([in_control(entities_of(part), control, key) for part in table.parts(BATCH)])
    again = chance_equals(table) if apart else np.zeros(table.n_rows, dtype=bool)
    if again.any():
        aside[again] = in_control(_repeated(table.take(again)), control, key)
    if aside.all() or not aside.any():
        raise DataError(
            f"the split leaves no {'train' if aside.all() else 'control'} rows",
            where=f"split of {table.n_rows} rows",
            expected="rows on both sides",
            fix="use a table with more entities, or another `split.control` share",
        )
    return aside


def in_control(entities: Sequence[bytes], control: float, key: bytes) -> Bools:
    """True where an entity is set aside, shape (n,)."""
    limit, keyed = int(control * _SCALE), KeyedHash(key)
    side = {entity: int.from_bytes(keyed(entity)[:8], "big") < limit for entity in set(entities)}
    return np.fromiter((side[e] for e in entities), dtype=bool, count=len(entities))


def key_columns(schema: Schema) -> tuple[Column, ...]:
    """What identifies an entity: the split keys, else the only identifier, else (empty) the whole row."""
    if keys := schema.with_role(Role.SPLIT_KEY):
        return keys
    identifiers = schema.with_role(Role.IDENTIFIER)
    return identifiers if len(identifiers) == 1 else ()


def has_key(entity: bytes) -> bool:
    """Whether an entity of :func:`entities_of` is told by a key, and not by what its row holds."""
    return entity.startswith(_BY_KEY)


def entities_of(table: Table) -> list[bytes]:
    """The entity of each row as bytes that no other entity has.

    Rows without a key stand for themselves, and so do rows of a keyless table: equal rows are one entity,
    unless :func:`set_aside` tells them apart. The order of columns does not matter, nor the
    type that a key is stored in: 7, 7.0 and "7" are one key, so that a table keeps its split when it moves
    between a file and a warehouse.
    """
    keys = key_columns(table.schema)
    if not keys:
        return list(_labelled(_BY_ROW, table, table.schema.features))
    missing = np.all([table.missing(c.name) for c in keys], axis=0)
    found = list(_labelled(_BY_KEY, table, keys))
    keyless = np.flatnonzero(missing)
    for place, row in zip(
        keyless, _labelled(_BY_ROW, table.take(keyless), table.schema.features), strict=True
    ):
        found[place] = row
    return found


def chance_equals(table: Table) -> Bools:
    """Rows of a keyless table with equals that chance explains: each is a person of its own, shape (n,)."""
    return np.zeros(table.n_rows, dtype=bool) if key_columns(table.schema) else alike_by_chance(table)


def _repeated(table: Table) -> list[bytes]:
    """The entity of each row, of the second and later ones of its equals with their number."""
    before, found = Counter[bytes](), list[bytes]()
    for part in table.parts(BATCH):
        for entity in entities_of(part):
            found.append(_AGAIN + count(before[entity]) + entity if before[entity] else entity)
            before[entity] += 1
    return found


def persons(table: Table) -> Integers:
    """The number of the entity of each row, from 0 in order of first appearance, shape (n,).

    In a keyless table every row is an entity of its own, also where rows are equal.
    """
    if not key_columns(table.schema):
        return np.arange(table.n_rows)
    known: dict[bytes, int] = {}
    numbers = (
        known.setdefault(entity, len(known)) for part in table.parts(BATCH) for entity in entities_of(part)
    )
    return np.fromiter(numbers, np.int64, count=table.n_rows)


def _labelled(kind: bytes, table: Table, columns: Sequence[Column]) -> Iterator[bytes]:
    """For each row its labels in frames, the columns by name; no row shares its bytes with another kind."""
    start = kind + count(len(columns))
    parts = [_frames(table.labels(name)) for name in sorted(c.name for c in columns)]
    if not parts:
        return iter([start] * table.n_rows)
    return (start + b"".join(row) for row in zip(*parts, strict=True))


def _frames(labels: Labels) -> list[bytes]:
    """Each label in its frame; equal ones are framed once."""
    known: dict[str | None, bytes] = {}
    return [known.get(label) or known.setdefault(label, frame(label)) for label in labels.tolist()]
