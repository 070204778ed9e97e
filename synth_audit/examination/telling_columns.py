"""Which columns tell people apart best together: those that planted leaks copy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from synth_audit.core.arrays import Codes
from synth_audit.core.schema import Column, quantitative
from synth_audit.core.table import Table
from synth_audit.encoding.codes import codes
from synth_audit.kernels.entropy import entropy
from synth_audit.kernels.weak_blocks import few_labels

_CELLS = 16
"""Cells of a column in which it is asked what others tell of it."""

_ENOUGH = 300
"""Pairs of people that agree in all columns chosen, with fewer of which nothing is asked of them."""


def most_telling(table: Table, columns: Sequence[Column], most: int) -> dict[str, float]:
    """At most so many columns that vary, and what each tells beyond those before it, in bits.

    Next comes the column of the largest ``H(j) min_C log P(j | C) / log P(j)``, P(j | C) being the share of
    pairs of people who agree in j among those who agree in all of C: each column chosen before, and all of
    them, as far as enough pairs agree in these. A column that follows from others, such as what is true of a
    whole district, tells people apart no better. Agreement is in 16 cells; ties go by name.
    """
    bits = {c.name: round(entropy(codes([table], c)[0]), 9) for c in columns}  # rounded against noise
    left = {c.name: _cells(table, c) for c in columns if bits[c.name] > 0}
    new = dict.fromkeys(left, 1.0)
    found: dict[str, float] = {}
    before = np.zeros(table.n_rows, dtype=np.int64)
    while left and len(found) < most:
        name = min(left, key=lambda n: (-round(bits[n] * new[n], 9), n))
        found[name] = bits[name] * new[name]
        chosen = left.pop(name)
        both = _together(before, chosen)
        before = both if _pairs(both) >= _ENOUGH else before
        for other, cells in left.items():
            new[other] = min(new[other], _untold(cells, chosen), _untold(cells, before))
    return found


def _cells(table: Table, column: Column) -> Codes:
    """Numbers in cells of much the same share, labels but the commonest together; missing apart."""
    if not quantitative([column]):
        return few_labels(codes([table], column)[0], _CELLS)
    values = table.numbers(column.name)
    known = np.isfinite(values)
    ends = np.quantile(values[known], np.linspace(0, 1, _CELLS + 1)[1:-1]) if known.any() else np.empty(0)
    return np.where(known, np.searchsorted(np.unique(ends), values, "right"), _CELLS)


def _untold(cells: Codes, known: Codes) -> float:
    """Share of what agreement in a column tells that is not told by agreement in what is known."""
    alone, given = (
        -np.log2((_pairs(_together(c, cells)) + 0.5) / (_pairs(c) + 0.5))
        for c in (np.zeros_like(cells), known)
    )
    return float(np.clip(given / alone, 0.0, 1.0)) if alone > 0 else 1.0


def _together(known: Codes, cells: Codes) -> Codes:
    """Codes of both, from 0 on."""
    both: Codes = np.unique(known * (_CELLS + 1) + cells, return_inverse=True)[1]
    return both


def _pairs(cells: Codes) -> float:
    """Pairs of rows that agree."""
    counts = np.bincount(cells).astype(np.float64)
    return float((counts * (counts - 1)).sum() / 2)
