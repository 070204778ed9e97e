"""The vine on SUPPORT2's 27 columns: seconds to fit and draw, and what a random forest learns from it."""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from synth_audit.execution.context import RunContext
from synth_audit.execution.seeds import child_rng
from synth_audit.plan.plan import parse_plan
from synth_audit.plugins.audit import Subject
from synth_audit.plugins.generator import FitContext
from synth_audit.table.schema_inference import infer_schema
from synth_audit.table.table import read_table

COLUMNS = {"Y": {"role": "target"}, "totcst": {"role": "sensitive"}, "crea": {"role": "sensitive"}}
FOREST = {"prediction": {"models": ["random_forest"]}}
SEEDS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="holds support2_small_{train,test}.parquet")
    folder = parser.parse_args().folder
    plan = parse_plan({"columns": COLUMNS, "audits": [FOREST]})
    data = [pq.read_table(folder / f"support2_small_{part}.parquet") for part in ("train", "test")]
    schema = infer_schema(data[0], plan.columns)
    train, control = (read_table(d, schema, where="table") for d in data)
    prediction = plan.build_audits()["prediction"]
    for level in (1, 5, 10, None):
        generator = parse_plan({"generator": {"vine": {"truncation": level}}}).build_generator()
        seconds, tstr, trtr = [], [], []
        for seed in range(SEEDS):
            start = time.perf_counter()
            model = generator.fit(train, FitContext(rng=child_rng(seed, "fit")))
            synthetic = model.sample(train.n_rows, child_rng(seed, "sample"))
            seconds.append(time.perf_counter() - start)
            findings = prediction.run(
                Subject(train, control, synthetic), RunContext(seed=seed).child("audit")
            )
            values = {m.id.quantity: m.value for m in findings.measurements}
            tstr.append(values["auroc_tstr"])
            trtr.append(values["auroc_trtr"])
        print(
            f"truncation {level}: fit and draw {statistics.median(seconds):.1f} s; AUROC from scores "
            f"{np.mean(tstr):.3f} ({min(tstr):.3f}–{max(tstr):.3f}), trained on real {np.mean(trtr):.3f}"
        )


if __name__ == "__main__":
    main()
