"""Fidelity and utility of a large table: seconds, memory, and each headline beside its reference and floors.

The candidates are the CTGAN table, the control rows (the best there is) and train with its columns shuffled
one by one (right margins, nothing else).
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from synth_audit import registry
from synth_audit.examination.audit_runner import run_audits
from synth_audit.execution.context import RunContext
from synth_audit.findings.measurement import Measurement
from synth_audit.pipeline.stages import anchored_subject
from synth_audit.plan.plan import parse_plan
from synth_audit.plugins.audit import AuditOutcome

PLAN = {
    "columns": {"income": {"role": "target"}},
    "rules": ["education -> education_num", "education_num -> education"],
}
FAMILIES = ("fidelity", "utility")


def shuffled(table: pa.Table) -> pa.Table:
    """The rows' columns, each in an order of its own."""
    rng = np.random.default_rng(0)
    return pa.table(
        {n: table.column(n).take(pa.array(rng.permutation(len(table)))) for n in table.column_names}
    )


def audited(train: pa.Table, control: pa.Table, candidate: pa.Table) -> Iterator[tuple[AuditOutcome, float]]:
    """Each audit of usefulness that runs by default, one after the other, with its CPU seconds."""
    subject = anchored_subject(train, control, candidate, parse_plan(PLAN))
    for name, ref in registry.catalogue("audit").items():
        if ref.family not in FAMILIES or name not in registry.default_audits():
            continue
        start = time.process_time()
        [outcome], _ = run_audits({name: registry.build("audit", name, {})}, subject, RunContext(seed=0))
        yield outcome, time.process_time() - start


def line(m: Measurement) -> str:
    """One headline as text."""
    text = f"{m.id.name} {m.value:.4f}"
    if m.interval:
        text += f" [{m.interval.low:.4f}, {m.interval.high:.4f}]"
    return text + (f", reference {m.reference.value:.4f}" if m.reference else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    train, control, ctgan = (
        pq.read_table(folder / f"adult_{part}.parquet") for part in ("train", "control", "ctgan_synthetic")
    )
    for name, candidate in (("CTGAN", ctgan), ("control", control), ("shuffled columns", shuffled(train))):
        start, cpu = time.perf_counter(), 0.0
        print(f"\n{name}: {len(candidate):,} rows", flush=True)
        for outcome, seconds in audited(train, control, candidate):
            cpu += seconds
            print(f"  {outcome.audit}: {outcome.status} {outcome.reason}, {seconds:.1f} s", flush=True)
            for m in outcome.measurements:
                if m.id == m.id.whole:
                    print(f"    {line(m)}")
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(
            f"  {time.perf_counter() - start:.0f} s, CPU {cpu:.0f} s, peak so far {peak:.2f} GiB", flush=True
        )


if __name__ == "__main__":
    main()
