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


TABLES = {
    "adult": ("adult_train", "adult_control"),
    "support2": ("support2_raw",),
    "breast_cancer": ("breast_cancer_train", "breast_cancer_test"),
    "hepatitis": ("hepatitis_train", "hepatitis_test"),
    "simulated": ("simulated_d20_train", "simulated_d20_test"),
}


def deal(folder: Path, name: str, seed: int) -> Dealt:
    """A table dealt anew by the seed.

    Rows with missing values are left out, as not every auditor takes them.
    """
    whole = pd.concat([pd.read_parquet(folder / f"{file}.parquet") for file in TABLES[name]])
    whole = whole[SUPPORT2] if name == "support2" else whole
    whole = whole.dropna()
    order = np.random.default_rng(seed).permutation(len(whole))[:ROWS]
    ends = np.cumsum([round(share * len(order)) for share in SHARES])
    parts = np.split(order, ends)
    return Dealt(*(whole.iloc[part].reset_index(drop=True) for part in parts))
