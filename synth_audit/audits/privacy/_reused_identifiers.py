"""Which rows of a release hold an identifier of somebody real, in whatever column, beyond chance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from synth_audit.core.arrays import Bools, Floats
from synth_audit.core.schema import Column, quantitative
from synth_audit.core.subject import Subject
from synth_audit.core.table import Table
from synth_audit.core.text_form import column_forms

_AROUND, _STEPS = 0.25, 8
"""Share of a column's range, and steps of its grid at least, by which a number may be off by chance."""

_RARELY = 1e-3
"""So many keys or more are found by chance with a probability below this: they were copied."""


def reused_identifiers(subject: Subject) -> Bools:
    """Rows of the release that hold an identifier or split key of a real row, shape (n,).

    Any column may hold it. A column in which train itself has such values, a small number that happens to be
    somebody's key, says nothing and is passed over; so is one of numbers whose neighbours are keys so often
    (row numbers are) that chance explains as many.
    """
    real = [table for table in (subject.train, subject.control) if table is not None]
    withheld = [column.name for column in subject.schema if not column.released]
    keys = _distinct([_forms(table, name) for name in withheld for table in real])
    numbers = _numbers(keys)
    reused = np.zeros(subject.synthetic.n_rows, dtype=bool)
    for name in subject.synthetic.names if len(keys) else ():
        column, found = subject.schema[name], _holds(subject.synthetic, name, keys)
        if not column.released or not (
            _holds(subject.train, name, keys).any() or _by_chance(found, column, subject.train, numbers)
        ):
            reused |= found
    return reused


def _by_chance(found: Bools, column: Column, train: Table, keys: Floats) -> bool:
    """Whether numbers like those of train would be keys as often.

    Train's numbers, each moved to any place of the column's grid around it, are keys with a probability p; of
    n rows Poisson(n p) are.
    """
    hits = int(found.sum())
    if not hits or column.resolution is None or not quantitative([column]):
        return False
    from scipy.special import pdtrc  # here, since a code location must not load it

    step = float(column.resolution.grid.step)
    values = train.numbers(column.name)
    values = values[np.isfinite(values)]
    around = max(_STEPS * step, _AROUND * float(np.ptp(values))) if len(values) else 0.0
    within = np.searchsorted(keys, values + around, "right") - np.searchsorted(keys, values - around, "left")
    expected = len(found) * float(within.sum()) / max(1, len(values)) / (2 * around / step + 1)
    return bool(pdtrc(hits - 1, expected) >= _RARELY) if expected else False


def _forms(table: Table, name: str) -> pa.ChunkedArray:
    return column_forms(table.texts(name))


def _distinct(forms: Sequence[pa.ChunkedArray]) -> pa.Array:
    """Every form once, without null."""
    every = [chunk for column in forms for chunk in column.chunks]
    return pa.chunked_array(every, pa.large_string()).unique().drop_null()


def _numbers(keys: pa.Array) -> Floats:
    """Those of the keys that are whole numbers, ascending."""
    whole = keys.filter(pc.match_substring_regex(keys, r"^-?\d{1,15}$"))
    return np.sort(whole.cast(pa.float64()).to_numpy())


def _holds(table: Table, name: str, keys: pa.Array) -> Bools:
    """Where a column's label has the form of one of the keys, shape (n,)."""
    found = pc.is_in(_forms(table, name), value_set=keys)
    return np.asarray(found.to_numpy(), dtype=bool)
