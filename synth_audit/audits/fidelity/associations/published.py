"""The correlation difference that the paper prints, for comparison with its tables."""

from __future__ import annotations

import numpy as np

from synth_audit.core.arrays import Floats
from synth_audit.core.table import Table
from synth_audit.encoding.column_cells import ColumnCells
from synth_audit.kernels import association as kernel

_LABELS = 10
"""A number column with at most this many values in train is a label, as in the paper's tool (SynthEval)."""

_DECIMALS = 2
"""The paper prints two. No small count follows from the difference of a few pairs rounded so."""


def published_difference(train: Table, other: Table, scale: ColumnCells) -> float:
    """Return ``‖R − S‖_F`` over all pairs of columns, in [0, number of columns].

    Entries are Pearson's r of two numbers, V² of two labels and η² of a label and a number, none of them
    corrected for chance. Pairs that rest on few rows count too, so that the sum is rounded to two decimals.

    Source: Disjoint Generative Models, appendix A; SynthEval 1.7, ``corr_diff``.
    """
    columns = [c.name for c in scale.columns]
    number = np.array(
        [
            numeric and len(np.unique(train.numbers(name))) > _LABELS
            for name, numeric in zip(columns, scale.numeric, strict=True)
        ]
    )
    difference = _matrix(train, scale, number) - _matrix(other, scale, number)
    return round(float(np.linalg.norm(difference)), _DECIMALS)


def _matrix(table: Table, scale: ColumnCells, number: np.ndarray) -> Floats:
    """r, V² and η² of every pair of columns, 1 on the diagonal, shape (d, d)."""
    cells, sizes, numbers = [], [], [np.empty((table.n_rows, 0))]
    for column, own, numeric, quantity in zip(scale.columns, scale.cells, scale.numeric, number, strict=True):
        codes = own.of(table)
        if numeric and not quantity:
            codes = np.unique(table.numbers(column.name), return_inverse=True)[1]
        if quantity:
            numbers.append(table.numbers(column.name))
        cells.append(codes)
        sizes.append(int(codes.max(initial=0)) + 1)
    rows = kernel.JackknifeRows.of(np.column_stack(cells), np.array(sizes), np.column_stack(numbers))
    found: Floats = kernel.cramers_v(kernel.contingency(rows), corrected=False)[0] ** 2
    shares = kernel.variance_shares(rows, np.flatnonzero(~number))
    ratios = kernel.correlation_ratio(shares, corrected=False)[0] ** 2
    found[np.ix_(number, number)] = kernel.pearson(rows)[0]
    found[np.ix_(~number, number)], found[np.ix_(number, ~number)] = ratios, ratios.T
    np.fill_diagonal(found, 1.0)
    return found
