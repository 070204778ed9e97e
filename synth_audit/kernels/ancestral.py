"""Rows drawn column after column, each from its distribution given those drawn before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from synth_audit.core.arrays import Codes, Floats
from synth_audit.kernels.cell_counts import Attributes


@dataclass(frozen=True, eq=False)
class Conditional:
    """The joint distribution of some columns given others.

    Attributes:
        given: columns that are drawn before.
        new: columns that are drawn here, one or more.
        weights: of the cells, 0 or more, of any sum; shape ``(*sizes of given, *sizes of new)``. Where all
            weights of one choice of ``given`` are 0, those of all choices together hold.
    """

    given: Attributes
    new: Attributes
    weights: Floats


def drawn_rows(steps: Sequence[Conditional], n: int, rng: np.random.Generator) -> Codes:
    """Rows as cells, shape (n, d); every column is new in one step."""
    codes = np.zeros((n, sum(len(step.new) for step in steps)), dtype=np.int64)
    for step in steps:
        shape = step.weights.shape
        before, after = shape[: len(step.given)], shape[len(step.given) :]
        group = np.zeros(n, dtype=np.int64)
        if step.given:
            group = np.ravel_multi_index(tuple(codes[:, a] for a in step.given), before)
        weights = step.weights.reshape(-1, int(np.prod(after)))
        cell = _drawn_cells(weights, group, rng.random(n))
        for column, found in zip(step.new, np.unravel_index(cell, after), strict=True):
            codes[:, column] = found
    return codes


def _drawn_cells(weights: Floats, group: Codes, uniform: Floats) -> Codes:
    """The cell of each row by inversion, from the weights of its group, shape (groups, cells)."""
    mass = weights.sum(axis=1, keepdims=True)
    overall = weights.sum(axis=0)
    overall = overall / overall.sum() if overall.any() else np.full(weights.shape[1], 1 / weights.shape[1])
    shares = np.where(mass > 0, weights / np.where(mass > 0, mass, 1.0), overall)
    upto = np.cumsum(shares, axis=1)
    upto /= upto[:, -1:]
    # Group g owns the interval [g, g + 1): one search for all rows.
    ladder = (upto + np.arange(len(upto))[:, None]).ravel()
    found = np.searchsorted(ladder, group + uniform, side="right") - group * weights.shape[1]
    last = weights.shape[1] - 1 - np.argmax(shares[:, ::-1] > 0, axis=1)
    cells: Codes = np.minimum(found, last[group]).astype(np.int64)
    return cells
