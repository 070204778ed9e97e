"""Files of a fitted model: plain values as JSON, and arrays beside them; no code in either."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

_PLAIN, _ARRAYS = "model.json", "arrays.npz"


def write_model(folder: Path, plain: Mapping[str, Any], arrays: Mapping[str, Any] | None = None) -> None:
    """Write what :func:`read_model` reads.

    Args:
        plain: JSON values. arrays: of numbers or truth values, by name; None for none.
    """
    (folder / _PLAIN).write_text(json.dumps(plain, allow_nan=False), encoding="utf-8")
    if arrays is not None:
        np.savez(folder / _ARRAYS, allow_pickle=False, **arrays)


def read_model(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The plain values and the arrays that were written there."""
    plain = json.loads((folder / _PLAIN).read_text(encoding="utf-8"))
    if not (folder / _ARRAYS).exists():
        return plain, {}
    with np.load(folder / _ARRAYS, allow_pickle=False) as arrays:
        return plain, dict(arrays)
