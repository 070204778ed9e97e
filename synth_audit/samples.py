"""Sample files for a first audit: made-up patients, and two synthetic versions of them."""

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

from synth_audit.errors import DataError
from synth_audit.store.files import write_bytes

ROWS = 1500
"""Rows of each file: enough people for the default suite to decide, few enough for an audit of minutes."""

_SEED = 1
"""Start of all draws, so that the files are the same everywhere."""


def sample(folder: str | Path) -> dict[str, Path]:
    """Write sample files for a first audit: no real person stands behind a row.

    ``train.csv`` and ``control.csv`` hold patients of one made-up population. ``good.csv`` holds new patients
    of it, as an ideal generator would draw them: it passes. ``bad.csv`` repeats patients of ``train.csv``, as
    a generator does that memorised them: it is refused.

    Args:
        folder: made if it is not there. Files there that hold something else are kept.

    Returns:
        Path of each file under ``train``, ``control``, ``good`` and ``bad``.

    Raises:
        DataError: a file of that name holds something else.
    """
    found = {name: Path(folder) / f"{name}.csv" for name in ("train", "control", "good", "bad")}
    content = {}
    train, control, good = (_patients(_SEED + i) for i in range(3))
    again = np.random.default_rng(_SEED + 3).integers(0, ROWS, ROWS)
    tables = {"train": train, "control": control, "good": good, "bad": train.take(again)}
    for name, table in tables.items():
        csv.write_csv(table, buffer := io.BytesIO())
        content[name] = buffer.getvalue()
    for name, path in found.items():
        if path.exists() and path.read_bytes() != content[name]:
            raise DataError(
                "another file is in the place of a sample",
                where=str(path),
                expected="a folder without files of these names",
                fix="name another folder",
            )
    for name, path in found.items():
        write_bytes(path, content[name])
    return found


def _patients(seed: int) -> pa.Table:
    """Draw patients whose risk of a stroke grows with age, hypertension, glucose and smoking."""
    rng = np.random.default_rng(seed)

    def happens(score: np.ndarray) -> np.ndarray:
        return np.where(rng.random(ROWS) < 1 / (1 + np.exp(-score)), "yes", "no")

    age = np.clip(rng.normal(58, 16, ROWS), 18, 95).round().astype(int)
    sex = rng.choice(["female", "male"], ROWS, p=[0.55, 0.45])
    smoking = rng.choice(["never", "former", "current"], ROWS, p=[0.5, 0.3, 0.2])
    bmi = np.clip(rng.normal(27 + 0.02 * (age - 58), 4.5), 15, 60).round(1)
    hypertension = happens(-0.9 + 0.04 * (age - 58) + 0.05 * (bmi - 27))
    glucose = np.clip(rng.lognormal(4.55 + 0.003 * (age - 58) + 0.012 * (bmi - 27), 0.25), 50, 300).round(1)
    cholesterol = np.clip(rng.normal(5.2 + 0.01 * (age - 58) + 0.02 * (bmi - 27), 0.9), 2, 10).round(2)
    risk = -3.8 + 0.075 * (age - 58) + 0.01 * (glucose - 100)
    stroke = happens(risk + 0.8 * (hypertension == "yes") + 0.5 * (smoking == "current"))
    return pa.table(
        {
            "age": age,
            "sex": sex,
            "smoking": smoking,
            "bmi": bmi,
            "hypertension": hypertension,
            "glucose": glucose,
            "cholesterol": cholesterol,
            "stroke": stroke,
        }
    )
