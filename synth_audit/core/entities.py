"""Sets control rows aside by entity: deterministic in the seed, stable when rows are appended."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from synth_audit.core.errors import DataError
from synth_audit.core.schema import Column, Role, Schema
from synth_audit.core.table import Table

_SCALE = 2**64


def split(table: Table, control: float, seed: int) -> tuple[Table, Table]:
    """Divide a table into train and control.

    Each entity goes to control when ``SHA-256(seed, key) / 2**64 < control``, so where it goes
    depends on nothing but its key: all rows of an entity stay together, rows appended later move none.

    Args:
        control: expected share of entities set aside, in (0, 1); the actual share varies with the hash.

    Returns:
        (train, control), each in the table's row order.

    Raises:
        DataError: one of the two would be empty.
    """
    aside = in_control(_entity_keys(table), control, seed)
    if aside.all() or not aside.any():
        raise DataError(
            f"the split leaves no {'train' if aside.all() else 'control'} rows",
            where=f"split of {table.n_rows} rows",
            expected="rows on both sides",
            fix="use a table with more entities, or another `split.control` share or `seed`",
        )
    return table.take(~aside), table.take(aside)


def in_control(keys: Sequence[str], control: float, seed: int) -> npt.NDArray[np.bool_]:
    """True where a key's entity is set aside, shape (n,)."""
    limit = int(control * _SCALE)
    side = {key: _position(key, seed) < limit for key in set(keys)}
    return np.fromiter((side[key] for key in keys), dtype=bool, count=len(keys))


def key_columns(schema: Schema) -> tuple[Column, ...]:
    """What identifies an entity: the split keys, else the only identifier, else (empty) the whole row."""
    if keys := schema.with_role(Role.SPLIT_KEY):
        return keys
    identifiers = schema.with_role(Role.IDENTIFIER)
    return identifiers if len(identifiers) == 1 else ()


def _entity_keys(table: Table) -> list[str]:
    """One text per row. Rows without a key stand for themselves, and so do rows of a keyless table:
    equal rows then share a side, so that a duplicate cannot sit in train and control at once."""
    keys = key_columns(table.schema)
    whole = _joined(table, table.schema.features)
    if not keys:
        return whole
    by_key = _joined(table, keys)
    missing = np.all([table.missing(c.name) for c in keys], axis=0)
    return [row if gone else key for key, row, gone in zip(by_key, whole, missing, strict=True)]


def _joined(table: Table, columns: Sequence[Column]) -> list[str]:
    parts = [table.labels(c.name) for c in columns]
    return ["\x1f".join("\x00" if x is None else x for x in row) for row in zip(*parts, strict=True)]


def _position(key: str, seed: int) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed}\x1f{key}".encode()).digest()[:8], "big")
