"""SynthEval 1.7.3: its privacy preset with the control as holdout; its documentation sets no limit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from serving import Answer, Tables, labels, serve
from syntheval import SynthEval

SMALLER_IS_WORSE = ("avg_dcr", "median_DCR", "nndr_avg", "nndr")


def judge(tables: Tables) -> Answer:
    train = tables["train"]
    nominal = labels(train)
    evaluator = SynthEval(train, holdout_dataframe=tables["control"], cat_cols=nominal, verbose=False)
    target = next(c for c in reversed(list(train)) if c in nominal)
    found = evaluator.evaluate(tables["synthetic"], analysis_target=target, presets_file="privacy")
    kept = found[found["dim"] == "p"]
    return {row["metric"]: _worse(row) for _, row in kept.iterrows()}, None


def _worse(row: Mapping[str, Any]) -> float:
    """The value, turned round where less of it is more private for the reader."""
    return -float(row["val"]) if row["metric"] in SMALLER_IS_WORSE else float(row["val"])


serve(judge, "syntheval")
