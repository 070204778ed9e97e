"""What somebody looks at who must tell from a release whether a certain row was behind it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TypeVar

import numpy as np

from synth_audit.core.arrays import Bools, Floats, Labels

Item = TypeVar("Item")

NEAR = 0.02
"""A number counts as near the canary's within this share of the column's range."""

_MOST_PAIRS = 45


def number_scores(values: Floats, canary: float, low: float, high: float) -> tuple[Floats, Bools]:
    """Range, moments and what is near the canary, of one column of numbers.

    Args:
        values: shape (n,), NaN where missing. canary: NaN for a missing value.
        low, high: of the column, public; what an empty column is told as.

    Returns:
        Scores in the order of :func:`number_names`; and which rows agree with the canary, shape (n,).
    """
    missing = np.isnan(values)
    there = values[~missing]
    width = max(high - low, np.finfo(float).tiny)
    near = missing if np.isnan(canary) else np.abs(values - canary) <= NEAR * width
    equal = missing if np.isnan(canary) else values == canary
    if len(there):
        told = [there.min(), there.max(), there.mean(), there.std(), float(len(np.unique(there)))]
    else:
        told = [low - width, low - width, low - width, 0.0, 0.0]
    return np.array([*told, missing.sum(), equal.sum(), near.sum()], dtype=float), near


def number_names(column: str) -> tuple[str, ...]:
    """The names of :func:`number_scores`."""
    told = ("least", "largest", "mean", "standard deviation", "distinct values", "missing values")
    return (*(f"{what} of {column}" for what in told), f"{column} equal", f"{column} near")


def label_scores(values: Labels, canary: str | None) -> tuple[Floats, Bools]:
    """Labels and missing values, and which rows agree with the canary, of one column of labels."""
    missing = np.array([v is None for v in values], dtype=bool)
    agreeing = missing if canary is None else np.array([v == canary for v in values], dtype=bool)
    distinct = len({v for v in values if v is not None})
    return np.array([distinct, missing.sum(), agreeing.sum()], dtype=float), agreeing


def label_names(column: str) -> tuple[str, ...]:
    """The names of :func:`label_scores`."""
    return f"distinct labels of {column}", f"missing values of {column}", f"{column} equal"


def row_scores(agreeing: Sequence[Bools], n_rows: int) -> Floats:
    """Rows in all; how the nearest one agrees; how many agree in all columns, and in each pair of them.

    Args:
        agreeing: for each column the rows that agree with the canary, shapes (n,).
    """
    if not agreeing or not n_rows:
        best = everywhere = 0.0
    else:
        agreed = np.sum(agreeing, axis=0)
        best, everywhere = float(agreed.max()), float((agreed == len(agreeing)).sum())
    pairs = [float((a & b).sum()) for a, b in _pairs(agreeing)]
    return np.array([n_rows, best, everywhere, *pairs])


def row_names(columns: Sequence[str]) -> tuple[str, ...]:
    """The names of :func:`row_scores`."""
    pairs = (f"rows like the canary in {a} and {b}" for a, b in _pairs(columns))
    return "rows", "most columns in which a row is like the canary", "rows like the canary", *pairs


def _pairs(items: Sequence[Item]) -> list[tuple[Item, Item]]:
    return list(combinations(items, 2))[:_MOST_PAIRS]
