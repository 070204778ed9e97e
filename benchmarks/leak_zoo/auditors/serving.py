"""What every auditor's script shares: a request per line in, an answer per line out, both JSON.

A request names three Parquet files. The answer holds scores, larger where more is given away, the alarm that
the tool raises by its own documentation (none where it documents no limit), its version, and CPU seconds.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
import warnings
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pandas as pd

FEW = 12
"""Numbers with no more values are labels that happen to be digits."""

Tables = dict[str, pd.DataFrame]
Answer = tuple[dict[str, float], bool | None]


def labels(train: pd.DataFrame) -> list[str]:
    """Columns that a tool is told to be categorical."""
    return [str(c) for c in train if not pd.api.types.is_numeric_dtype(train[c]) or train[c].nunique() <= FEW]


def serve(judge: Callable[[Tables], Answer], distribution: str) -> None:
    """Answer requests until there are none, as the installed version of a distribution."""
    warnings.simplefilter("ignore")
    release = _version(distribution)
    for line in sys.stdin:
        tables = {role: pd.read_parquet(Path(path)) for role, path in json.loads(line).items()}
        start = time.process_time()
        answer: dict[str, Any] = {}
        try:
            with contextlib.redirect_stdout(sys.stderr):
                answer["scores"], answer["alarm"] = judge(tables)
        except Exception as error:  # an auditor that cannot answer is part of the result
            answer = {"scores": {}, "alarm": None, "error": type(error).__name__}
        spent = round(time.process_time() - start, 1)
        print(json.dumps(answer | {"seconds": spent, "version": release}), flush=True)


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:  # used from its sources
        return "from source"
