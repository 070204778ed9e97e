"""Fidelity figures of two releases of hepatitis beside those of SynthEval 1.7.3.

Rows with missing values are dropped, as there. Where its definition is another than ours, our kernels are
set to it: squared and uncorrected associations, every distinct value a cell of the mutual information.
Exits 1 where a figure is more than 1 % apart.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from synth_audit.audits.fidelity.marginals import Marginals
from synth_audit.audits.fidelity.projection import Projection
from synth_audit.execution.context import RunContext
from synth_audit.findings.measurement import Measurement
from synth_audit.plugins.audit import Subject
from synth_audit.stats.association import (
    JackknifeRows,
    contingency,
    correlation_ratio,
    cramers_v,
    normalised_information,
    pearson,
    variance_shares,
)
from synth_audit.table.schema_inference import ColumnSpec, infer_schema
from synth_audit.table.table import read_table

Matrix = npt.NDArray[np.float64]
ROOM = 0.01


def rows_of(frame: pd.DataFrame, labels: Sequence[str]) -> JackknifeRows:
    """Every distinct value a cell of its own."""
    cells = np.column_stack([pd.factorize(frame[name])[0] for name in frame])
    numbers = frame[[name for name in frame if name not in labels]].to_numpy(dtype=float)
    return JackknifeRows.of(cells, cells.max(axis=0) + 1, numbers)


def squared(frame: pd.DataFrame, labels: Sequence[str]) -> Matrix:
    """Pearson between numbers, V² between labels, η² between a label and a number."""
    rows = rows_of(frame, labels)
    number = np.array([name not in labels for name in frame])
    found: Matrix = cramers_v(contingency(rows), corrected=False)[0] ** 2
    ratios = correlation_ratio(variance_shares(rows, np.flatnonzero(~number)), corrected=False)[0] ** 2
    found[np.ix_(number, number)] = pearson(rows)[0]
    found[np.ix_(~number, number)], found[np.ix_(number, ~number)] = ratios, ratios.T
    np.fill_diagonal(found, 1.0)
    return found


def information(frame: pd.DataFrame, labels: Sequence[str]) -> Matrix:
    found: Matrix = normalised_information(contingency(rows_of(frame, labels)), corrected=False)[0]
    np.fill_diagonal(found, 1.0)
    return found


def subject_of(train: pd.DataFrame, made: pd.DataFrame, labels: Sequence[str]) -> Subject:
    tables = [pa.Table.from_pandas(f, preserve_index=False) for f in (train, made)]
    schema = infer_schema(
        tables[0], {label: ColumnSpec.model_validate({"kind": "categorical"}) for label in labels}
    )
    known, candidate = (read_table(t, schema, where="table") for t in tables)
    return Subject(known, None, candidate, suppression=1)  # the peer tells of every label


def mean(found: Sequence[Measurement], names: Sequence[str], labels: Sequence[str]) -> float:
    """Of the single columns' values: of labels by their first name, of numbers by their second."""
    chosen = [m.value for m in found if m.id.column and m.id.quantity == names[m.id.column not in labels]]
    return float(np.mean(chosen))


def compared(
    train: pd.DataFrame, made: pd.DataFrame, labels: Sequence[str]
) -> Iterator[tuple[str, str, float]]:
    """The peer's metric and figure, and ours."""
    subject = subject_of(train, made, labels)
    columns = Marginals().run(subject, RunContext(draws=np.random.default_rng(0))).measurements
    yield "ks_test", "avg ks", mean(columns, ("", "ks"), labels)
    yield "ks_test", "avg tvd", mean(columns, ("total_variation", ""), labels)
    yield "ks_test", "avg stat", mean(columns, ("total_variation", "ks"), labels)
    # Numbers are scaled to 0 … 1 there, where they fall into a single cell, at distance 0.
    yield "h_dist", "avg", mean(columns, ("hellinger", ""), labels) * len(labels) / len(train.columns)
    matrices = ((squared, "corr_diff", "corr_mat_diff"), (information, "mi_diff", "mutual_inf_diff"))
    for matrix, metric, figure in matrices:
        yield metric, figure, float(np.linalg.norm(matrix(train, labels) - matrix(made, labels)))
    components = Projection().run(subject, RunContext(draws=np.random.default_rng(0))).measurements
    own = {m.id.quantity: m.value for m in components if m.id.setting}
    yield "pca", "exp_var_diff", own["eigenvalue_difference"]
    yield "pca", "comp_angle_diff", own["angle"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="hepatitis_multiclass_*.parquet")
    parser.add_argument("--golden", type=Path, required=True, help="the peer's figures (JSON)")
    arguments = parser.parse_args()
    golden: Mapping[str, Any] = json.loads(arguments.golden.read_text())
    labels, apart = golden["cat_cols"], 0
    for release, theirs in golden["results"].items():
        train, made = (
            pd.read_parquet(arguments.folder / f"hepatitis_multiclass_{part}.parquet").dropna()
            for part in ("train", f"{release}_synthetic")
        )
        print(f"{release}\n  {'figure':<26} {'ours':>10} {'theirs':>10}  apart")
        for metric, figure, ours in compared(train, made[train.columns], labels):
            known = theirs[metric][figure]
            gap = abs(ours / known - 1)
            apart += gap > ROOM
            print(f"  {metric + ' ' + figure:<26} {ours:>10.6f} {known:>10.6f}  {gap:.3%}")
    return int(apart > 0)


if __name__ == "__main__":
    sys.exit(main())
