"""SDMetrics 0.32: its privacy metrics for one table; its documentation sets no limit.

One metric of distance once more as its documentation makes it faster, by subsampling: its issue 934 is that
this hides memorised rows.
"""

from __future__ import annotations

from sdmetrics.single_table import (
    DCRBaselineProtection,
    DCROverfittingProtection,
    DisclosureProtection,
    NewRowSynthesis,
)
from serving import Answer, Tables, labels, serve

SUBSAMPLE = 500


def judge(tables: Tables) -> Answer:
    train, control, made = (tables[role] for role in ("train", "control", "synthetic"))
    nominal = labels(train)
    kinds = {c: {"sdtype": "categorical" if c in nominal else "numerical"} for c in train}
    metadata = {"tables": {"table": {"columns": kinds}}}
    single = {"columns": kinds}
    over = DCROverfittingProtection.compute(train, made, control, metadata, "table")
    base = DCRBaselineProtection.compute(train, made, metadata, "table")
    few = min(SUBSAMPLE, len(train), len(control), len(made))
    faster = DCRBaselineProtection.compute(train, made, metadata, "table", num_rows_subsample=few)
    new = NewRowSynthesis.compute(train, made, metadata=single)
    secret, known = [list(train)[-1]], list(train)[:-1]
    numeric = [c for c in (*known, *secret) if c not in nominal]
    hidden = DisclosureProtection.compute(
        train, made, known_column_names=known, sensitive_column_names=secret, continuous_column_names=numeric
    )
    scores = {
        "DCROverfittingProtection": 1 - over,
        "DCRBaselineProtection": 1 - base,
        f"DCRBaselineProtection of {few} rows": 1 - faster,
        "NewRowSynthesis": 1 - new,
        "DisclosureProtection": 1 - hidden,
    }
    return {name: float(score) for name, score in scores.items()}, None


serve(judge, "sdmetrics")
