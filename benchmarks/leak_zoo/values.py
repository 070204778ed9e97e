"""What the kinds of leaks do with columns: which are numbers, how wide they are, how they are rounded."""

from __future__ import annotations

import numpy as np
import pandas as pd

Rows = pd.DataFrame
Rng = np.random.Generator


def number_columns(rows: Rows) -> list[str]:
    """Columns of numbers with more than a dozen values: fewer are labels that happen to be digits."""
    return [str(c) for c in rows if pd.api.types.is_numeric_dtype(rows[c]) and rows[c].nunique() > 12]


def spread_of(column: pd.Series) -> float:
    """A column's 5 % to 95 % range; its whole range where that is empty."""
    low, high = column.quantile([0.05, 0.95])
    return float(high - low) or float(column.max() - column.min()) or 1.0


def rounded_like(made: np.ndarray, column: pd.Series) -> np.ndarray:
    """Numbers rounded as the column's are."""
    if pd.api.types.is_integer_dtype(column):
        return np.asarray(np.rint(made), dtype=column.dtype)
    text = column.head(200).map(lambda x: f"{x:.6f}".rstrip("0").partition(".")[2])
    return np.round(made, int(text.str.len().max()))


def as_points(rows: Rows, anchor: Rows) -> np.ndarray:
    """Rows as points: numbers by the anchor's spread, labels as ones and zeros."""
    numbers = number_columns(anchor)
    scaled = np.column_stack([rows[c] / spread_of(anchor[c]) for c in numbers]) if numbers else None
    labels = pd.get_dummies(rows.drop(columns=numbers).astype(str)).to_numpy(float) / np.sqrt(2)
    return labels if scaled is None else np.hstack([scaled, labels])


def between(one: Rows, other: Rows, weight: np.ndarray, like: Rows) -> Rows:
    """Rows on the way from one row to another: ``one + weight (other − one)``, each label that of the nearer.

    Args:
        weight: shape (rows,), from 0 to 1.
        like: says which columns are numbers, and how they are rounded.
    """
    made = one.copy()
    for c in like:
        if c in number_columns(like):
            made[c] = rounded_like((one[c] + weight * (other[c] - one[c])).to_numpy(), like[c])
        else:
            made[c] = one[c].where(weight < 0.5, other[c])
    return made
