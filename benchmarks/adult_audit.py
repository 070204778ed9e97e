"""Audits of Adult from the command line: a CTGAN table, a copy of train, and a shuffled copy."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import psutil
import pyarrow.parquet as pq
from pydantic import TypeAdapter

from synth_audit.findings.measurement import MeasurementId
from synth_audit.store.workspace import Workspace

HEADLINES = ("exact_match.share", "closest_record.privacy_score", "closest_record.share")


def run(arguments: list[str]) -> tuple[int, float, float]:
    """Exit code, seconds and peak resident GiB of a command."""
    start, peak = time.perf_counter(), 0
    process = psutil.Popen(arguments, stdout=subprocess.DEVNULL)
    while process.poll() is None:
        try:
            peak = max(peak, process.memory_info().rss)
        except psutil.NoSuchProcess:
            break
        time.sleep(0.05)
    return process.wait(), time.perf_counter() - start, peak / 2**30


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="holds adult_{train,control,ctgan_synthetic}.parquet")
    folder = parser.parse_args().folder
    train = pq.read_table(folder / "adult_train.parquet")
    with tempfile.TemporaryDirectory() as temporary:
        shuffled = Path(temporary) / "shuffled.parquet"
        pq.write_table(train.take(np.random.default_rng(0).permutation(len(train))), shuffled)
        candidates = {
            "CTGAN": folder / "adult_ctgan_synthetic.parquet",
            "train": folder / "adult_train.parquet",
            "train, shuffled": shuffled,
        }
        for name, candidate in candidates.items():
            out = Path(temporary) / "out"
            tables = [folder / "adult_train.parquet", folder / "adult_control.parquet", candidate]
            command = [Path(sys.executable).with_name("synth-audit"), "audit", *tables, "--out", out]
            code, seconds, peak = run([str(part) for part in command])
            print(f"{name}: exit {code}, {seconds:.0f} s, {peak:.2f} GiB")
            evidence = json.loads(Workspace(out).newest.evidence.read_text())
            for outcome in evidence["outcomes"]:
                for m in outcome["measurements"]:
                    found = TypeAdapter(MeasurementId).validate_python(m["id"])
                    if found.name in HEADLINES:
                        reference = m["reference"]["value"] if m["reference"] else None
                        print(f"  {found} = {m['value']:.5f} (reference {reference})")


if __name__ == "__main__":
    main()
