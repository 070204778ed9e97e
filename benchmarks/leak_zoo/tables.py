"""Real tables of the zoo, dealt into train, control and fresh rows that nobody trains on."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

ROWS = 4_000
"""No table is larger: the zoo compares auditors, and the slowest of them sets the pace."""

SHARES = (0.4, 0.3)
"""Of train and control; the rest are fresh people, of whom honest releases are made.

One peer asks for a control at least half as large as train.
"""

SUPPORT2 = [
    *("age", "sex", "hospdead", "slos", "d.time", "dzgroup", "num.co", "scoma", "charges", "avtisst"),
    *("race", "sps", "aps", "meanbp", "wblc", "hrt", "resp", "temp", "crea", "sod"),
]


class Dealt(NamedTuple):
    """Three tables of different people of one population, with an index from 0 each."""

    train: pd.DataFrame
    control: pd.DataFrame
    fresh: pd.DataFrame


COPULA = "copula"
"""Six numbers and three labels from a Gaussian copula, as in the frames of SDMetrics' issue 934."""

TABLES = {
    COPULA: (),
    "adult": ("adult_train", "adult_control"),
    "support2": ("support2_raw",),
    "breast_cancer": ("breast_cancer_train", "breast_cancer_test"),
    "hepatitis": ("hepatitis_train", "hepatitis_test"),
    "simulated": ("simulated_d20_train", "simulated_d20_test"),
}


def drawn(rows: int) -> pd.DataFrame:
    """People of the copula, always the same."""
    rng = np.random.default_rng(934)
    mixing = rng.normal(size=(9, 9))
    covariance = mixing @ mixing.T + np.eye(9)
    spread = np.sqrt(np.diag(covariance))
    z = rng.multivariate_normal(np.zeros(9), covariance / np.outer(spread, spread), size=rows)
    numbers = {f"x{j}": np.round(z[:, j] if j % 2 else np.exp(z[:, j]), 3) for j in range(6)}
    labels = {
        f"c{j}": pd.Series(list("abcdef")).to_numpy()[np.searchsorted([-1.2, -0.3, 0.4, 1, 1.6], z[:, j])]
        for j in range(6, 9)
    }
    return pd.DataFrame(numbers | labels)


def whole_table(folder: Path, name: str) -> pd.DataFrame:
    """All people of a table without a missing value, as not every auditor takes them.

    Args:
        name: one of :data:`TABLES`, or a Parquet file of the folder without its ending.
    """
    if name == COPULA:
        return drawn(ROWS)
    whole = pd.concat([pd.read_parquet(folder / f"{file}.parquet") for file in TABLES.get(name, (name,))])
    return (whole[SUPPORT2] if name == "support2" else whole).dropna()


def deal(folder: Path, name: str, seed: int, rows: int = ROWS) -> Dealt:
    """At most so many rows of a table, dealt anew by the seed."""
    whole = whole_table(folder, name)
    order = np.random.default_rng(seed).permutation(len(whole))[:rows]
    ends = np.cumsum([round(share * len(order)) for share in SHARES])
    parts = np.split(order, ends)
    return Dealt(*(whole.iloc[part].reset_index(drop=True) for part in parts))
