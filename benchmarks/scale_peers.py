"""Seconds and memory of other tools' audits by the number of rows, beside a default run of this one.

Rows are those of ``scale.py`` without the key: train, control and a release as large as train. Each peer runs
as its guide shows, in a process of its own with the Python of ENVIRONMENTS/<peer>/bin. One that is not
installed is skipped. A process is ended after ``--limit`` CPU seconds. Reading the tables is part of it.

``--ours`` is ``runs.jsonl`` of ``scale.py``, whose whole runs are drawn with the peers.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from scale import ENDED, Run, drawn, kept_runs, measured, write_part

SIZES = (10_000, 100_000, 1_000_000)
READ = """
import sys, warnings
import pandas as pd
warnings.simplefilter("ignore")
train, control, made = (pd.read_parquet(path) for path in sys.argv[1:])
for table in (train, control, made):
    table["day"] = (pd.to_datetime(table["day"]) - pd.Timestamp(0)).dt.days
labels = [c for c in train if c == "flag" or c.startswith("label")]
"""
SDMETRICS = """
metadata = {"columns": {c: {"sdtype": "categorical" if c in labels else "numerical"} for c in train}}
"""
CODE = {
    "SDMetrics, reports": ("sdmetrics", SDMETRICS + """
from sdmetrics.reports.single_table import DiagnosticReport, QualityReport
DiagnosticReport().generate(train, made, metadata, verbose=False)
QualityReport().generate(train, made, metadata, verbose=False)
"""),
    "SDMetrics, distances": ("sdmetrics", SDMETRICS + """
from sdmetrics.single_table import DCROverfittingProtection
DCROverfittingProtection.compute(train, made, control, {"tables": {"table": metadata}}, "table")
"""),
    "SynthEval, full": ("syntheval", """
from syntheval import SynthEval
train, control, made = (table.dropna() for table in (train, control, made))
SynthEval(train, holdout_dataframe=control, cat_cols=labels, verbose=False).evaluate(
    made, analysis_target="flag", presets_file="full_eval")
"""),
    "anonymeter": ("anonymeter", """
from anonymeter.evaluators import InferenceEvaluator, LinkabilityEvaluator, SinglingOutEvaluator
three, columns = {"ori": train, "syn": made, "control": control}, list(train)
for mode in ("univariate", "multivariate"):
    SinglingOutEvaluator(**three, n_attacks=2000).evaluate(mode=mode)
LinkabilityEvaluator(**three, n_attacks=2000, aux_cols=(columns[:10], columns[10:])).evaluate(n_jobs=-1)
for secret in columns:
    known = [c for c in columns if c != secret]
    InferenceEvaluator(**three, n_attacks=2000, aux_cols=known, secret=secret).evaluate(n_jobs=-1)
"""),
    "mostlyai-qa": ("mostlyai-qa", """
from mostlyai import qa
qa.report(syn_tgt_data=made, trn_tgt_data=train, hol_tgt_data=control, report_path="report.html")
"""),
}  # fmt: skip
"""By what is run: the peer's distribution, and what its guide shows."""


def version(python: Path, distribution: str) -> str:
    """The installed version of a peer; empty where it is not installed."""
    code = f"from importlib.metadata import version; print(version({distribution!r}))"
    if not python.exists():
        return ""
    return subprocess.run([python, "-c", code], capture_output=True, text=True).stdout.strip()


def peer(name: str, n: int, environments: Path, limit: int, folder: Path) -> Run:
    """What one peer took on ``n`` rows, control among them."""
    distribution, code = CODE[name]
    tables = [str(write_part(folder, part, n)) for part in ("train", "control", "synthetic")]
    python = str((environments / distribution / "bin" / "python").absolute())
    command = ["prlimit", f"--cpu={limit}:{limit + 10}", python, "-c", READ + code, *tables]
    with tempfile.TemporaryDirectory() as place:
        code_, seconds, cpu, (peak, _) = measured(command, Path(place))
    return Run(n, name, code_, round(seconds, 1), round(cpu, 1), round(float(peak), 2), {})


def all_runs(options: argparse.Namespace, folder: Path) -> Iterator[Run]:
    """Runs of all peers that are installed, measured now or before; none of a larger table than one ended."""
    record = folder / "peers.jsonl"
    for name, (distribution, _) in CODE.items():
        python = options.environments / distribution / "bin" / "python"
        if not (found := version(python, distribution)):
            print(f"{distribution} is not installed", flush=True)
            continue
        for n in options.sizes:
            run = kept_runs(record).get((n, name))
            if run is None and options.kept:
                break
            if run is None:
                run = peer(name, n, options.environments, options.limit, folder)
                with record.open("a") as lines:
                    lines.write(json.dumps(run._asdict()) + "\n")
            print(f"{distribution} {found}: {line(run)}", flush=True)
            yield run
            if run.code:
                break


def line(run: Run) -> str:
    """A row of the table."""
    end = {0: "", ENDED: "ended at the limit"}.get(run.code, f"failed with code {run.code}")
    return f"| {run.audit} | {run.rows:,} | {run.seconds:.0f} | {run.cpu:.0f} | {run.peak:.2f} | {end} |"


def page_table(runs: Sequence[Run]) -> str:
    """All runs as a table in Markdown."""
    head = ["| tool | rows | seconds | CPU s | peak GiB | |", "|---|---:|---:|---:|---:|---|"]
    return "\n".join([*head, *map(line, runs), ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("environments", type=Path, help="folder with a virtual environment for each peer")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="rows, control among them")
    parser.add_argument("--limit", type=int, default=300, help="CPU seconds of a process")
    parser.add_argument("--kept", action="store_true", help="draw what was measured before, measure nothing")
    parser.add_argument("--ours", type=Path, help="runs.jsonl of scale.py")
    parser.add_argument("--out", type=Path, required=True, help="folder for the tables and what was measured")
    parser.add_argument("--picture", type=Path, help="where to draw it")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    runs = list(all_runs(options, options.out.resolve()))
    if options.ours:
        found = kept_runs(options.ours)
        runs += [
            found[n, ""]._replace(audit="synth-audit", code=0) for n in options.sizes if (n, "") in found
        ]
    print(page_table(runs))
    if options.picture:
        options.picture.write_text(drawn(runs))


if __name__ == "__main__":
    main()
