"""Seconds and memory of a whole default run by the number of rows: pull, split, every default audit, report.

Each size is a run of its own from the command line, on rows of 20 mixed columns that are drawn here: a key,
eight numbers of one latent factor, four counts, five columns of 3 to 200 labels, a flag and a date. A fifth
of the rows is set aside as control; the candidate is as large as train and made of new rows. Memory is the
proportional set size of the whole process tree: pages that processes share are counted once. It is told
without pages of mapped files as well, which the system takes back at need.

Whatever was measured stays in ``runs.jsonl`` of ``--out`` and is not measured again, so that a long study may
be interrupted. ``--each`` runs every audit alone with its known-answer check, on files that stay there: the
sum of seconds is that of a run with one worker but for reading the tables, and its peak is the largest.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from synth_audit import registry
from synth_audit.store.workspace import Workspace

SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000, 2_000_000)
LABELS = (3, 8, 20, 50, 200)
BATCH = 100_000
ENDED = -signal.SIGXCPU
"""Exit code of a process that took more of a processor than it may."""
COLOURS = ("#176", "#b45309", "#1f5a93", "#8a3a7c", "#a3241f", "#4a5560")
PLAN = """\
name: scale
source: source.parquet
columns:
  id: {role: identifier}
split: {control: 0.2}
generator: {external: {source: candidate.parquet}}
audits: [AUDITS]
"""
PARTS = """\
name: scale
split: {made_elsewhere: random}
audits: [AUDITS]
"""
"""The plan of tables without a key that are audited as files."""


Memory: TypeAlias = npt.NDArray[np.float64]
"""What a process tree has in memory: in all, and without pages of mapped files; shape (2,)."""

AROUND = """
from pathlib import Path
from synth_audit.files import scratch_in
from synth_audit.inputs import as_plan
from synth_audit.pipeline import making, stages
from synth_audit.sources.parquet import Parquet
from synth_audit.store.workspace import Workspace
from synth_audit.table.content_hash import canonical, fingerprint
from synth_audit.verdict.suite import load_suite
from synth_audit.verdict.table_checks import check_table

plan, workspace = as_plan("plan.yaml"), Workspace(Path("split")).prepare()
record = stages.split_table(plan, workspace)
if RELEASE:
    folder = workspace.restricted / "scratch"
    folder.mkdir(exist_ok=True)
    with scratch_in(folder):
        candidate = making.real_tables(plan, workspace, folder)[0].released_only()
        check_table(load_suite(plan.gates, plan.base), candidate)
        fingerprint(candidate.data)
        leaving = canonical(candidate.data, {c.name: c.storage for c in record.columns}, b"key")
        fingerprint(leaving)
        Parquet(path="release.parquet").write(leaving, Path())
"""
"""Everything around the audits of a run, with train in the place of a candidate."""


class Run(NamedTuple):
    """What a run took: seconds in all, of processors and of the steps, peak GiB of the process tree.

    Attributes:
        audit: that was run alone; empty for a whole run.
        held: peak without pages of mapped files, which the system takes back at need.
    """

    rows: int
    audit: str
    code: int
    seconds: float
    cpu: float
    peak: float
    steps: dict[str, float]
    held: float = 0.0


def rows(n: int, first: int, rng: np.random.Generator) -> pa.Table:
    """``n`` rows of people numbered from ``first`` on."""
    factor = rng.normal(size=n)
    columns: dict[str, object] = {"id": np.arange(first, first + n)}
    for i in range(8):
        noise = rng.normal(size=n)
        number = 0.2 * i * factor + noise if i % 2 else np.exp(0.3 * factor + 0.5 * noise)
        columns[f"number{i}"] = pa.array(number, mask=rng.random(n) < 0.02 * (i in (2, 5)))
    for i in range(4):
        columns[f"count{i}"] = rng.poisson(np.exp(0.3 * i + 0.2 * factor))
    for i, k in enumerate(LABELS):
        place = np.minimum(rng.zipf(1.6, n) - 1 + (factor > 1), k - 1)
        words = pa.array([f"label {j:03}" for j in range(k)])
        columns[f"label{i}"] = words.take(pa.array(place, mask=rng.random(n) < 0.01 * (i == 3)))
    columns["flag"] = factor + rng.normal(size=n) > 0
    columns["day"] = pa.array(rng.integers(0, 20_000, n).astype(np.int32)).cast(pa.date32())
    return pa.table(columns)


def write(path: Path, n: int, seed: int, *, released: bool = False) -> None:
    """Write a Parquet file of ``n`` rows by batches; ``released`` leaves the key out."""
    rng, writer = np.random.default_rng(seed), None
    for first in range(0, n, BATCH):
        part = rows(min(BATCH, n - first), first, rng)
        part = part.drop_columns(["id"]) if released else part
        writer = writer or pq.ParquetWriter(path, part.schema)
        writer.write_table(part)
    assert writer is not None
    writer.close()


def resident(pid: int) -> Memory:
    """KiB of a process and all below it; pages that several of them map are shared out among them."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        below = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return np.zeros(2)  # ended in the meantime
    sizes = {name: int(size.split()[0]) for name, _, size in (x.partition(":") for x in lines[1:])}
    own = np.array([sizes.get("Pss", 0), sizes.get("Pss_Anon", 0)], dtype=np.float64)
    return own + sum((resident(int(child)) for child in below), np.zeros(2))


def measured(command: Sequence[str], folder: Path) -> tuple[int, float, float, Memory]:
    """Exit code, seconds, processors' seconds and peaks in GiB of a command that runs in a folder."""
    start, spent, peak = time.perf_counter(), processors(), np.zeros(2)
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None:
        asked = time.perf_counter()
        peak = np.maximum(peak, resident(process.pid))
        time.sleep(max(0.1, 20 * (time.perf_counter() - asked)))  # many pages take long to count
    code = process.wait()
    return code, time.perf_counter() - start, processors() - spent, peak / 2**20


def processors() -> float:
    """Seconds that the processes started here have taken of all processors."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def plan(folder: Path, form: str = PLAN, *, limits: bool = True) -> Path:
    """A plan of all default audits; ``limits``: whether detection limits are measured."""
    recognition = f"recognition: {{detection: {str(limits).lower()}}}"
    audits = [recognition if name == "recognition" else name for name in registry.default_audits()]
    path = folder / "plan.yaml"
    path.write_text(form.replace("AUDITS", ", ".join(audits)))
    return path


def run(n: int, workers: int, folder: Path, audit: str = "", *, limits: bool = True) -> Run:
    """One run on ``n`` rows, control among them, of all default audits or of one."""
    command, out = [str(Path(sys.executable).with_name("synth-audit"))], folder / "out"
    settings = str(plan(folder, PARTS if audit else PLAN, limits=limits))
    if audit:
        tables = [write_part(folder, name, n) for name in ("train", "control", "synthetic")]
        command += ["audit", *map(str, tables), "--plan", settings, "--only", audit]
    else:
        write(folder / "source.parquet", n, seed=1)
        write(folder / "candidate.parquet", round(0.8 * n), seed=2, released=True)
        command += ["run", settings]
    command += ["--out", str(out), "--workers", str(workers)]
    code, seconds, cpu, (peak, held) = measured(command, folder)
    timings = json.loads(Workspace(out).newest.evidence.read_text())["timings"]
    shutil.rmtree(out)
    steps = {name: round(took, 1) for name, took in timings.items()}
    memory = round(float(peak), 2), round(float(held), 2)
    return Run(n, audit, code, round(seconds, 1), round(cpu, 1), memory[0], steps, memory[1])


def write_part(folder: Path, name: str, n: int) -> Path:
    """A file of one of the tables of a run on ``n`` rows, unless it is there."""
    path = folder / f"{name}-{n}.parquet"
    if not path.exists():
        size = n - round(0.8 * n) if name == "control" else round(0.8 * n)
        new = path.with_suffix(".new")
        write(new, size, seed={"train": 1, "control": 11, "synthetic": 2}[name], released=True)
        new.rename(path)
    return path


def kept_runs(path: Path) -> dict[tuple[int, str], Run]:
    """What was measured before, by rows and audit."""
    lines = path.read_text().splitlines() if path.exists() else []
    runs = [Run(**json.loads(line)) for line in lines]
    return {(r.rows, r.audit): r for r in runs}


def around(n: int, folder: Path, *, release: bool) -> str:
    """The line of pulling, hashing and splitting ``n`` rows, and of checking and releasing them."""
    write(folder / "source.parquet", n, seed=1)
    plan(folder)
    code = AROUND.replace("RELEASE", str(release))
    failed, seconds, cpu, (peak, held) = measured([sys.executable, "-c", code], folder)
    assert not failed
    shutil.rmtree(folder / "split")
    what = "split, contract and release" if release else "split"
    return f"| {n:,} | {what} | {seconds:.1f} | {cpu:.1f} | {peak:.3f} | {held:.3f} |"


def drawn(runs: Sequence[Run]) -> str:
    """Both against the number of rows, on logarithmic axes, a line for each tool or audit; dashed: slope one.

    A hollow mark is a run that was ended.
    """
    width, height, edge = 480, 340, 55
    names, parts = list(dict.fromkeys(r.audit for r in runs)), list[str]()
    x = np.log10([r.rows for r in runs])
    for k, title in enumerate(("CPU seconds", "peak GiB")):
        y = np.log10([max(r.peak if k else r.cpu, 0.01) for r in runs])
        span = max(np.ptp(x), np.ptp(y), 1)
        across = k * width + edge + (x - x.min()) / span * (width - 2 * edge)
        up = height - edge - (y - y.min()) / span * (height - 2 * edge)
        end = np.ptp(x) / span
        parts.append(
            f'<text x="{k * width + edge}" y="24" text-anchor="start">{title}, dashed: linear</text>'
            f'<polyline fill="none" stroke="#aaa" stroke-dasharray="4" points="'
            f"{across.min():.1f},{height - edge} "
            f'{across.max():.1f},{height - edge - end * (height - 2 * edge):.1f}"/>'
        )
        for n in sorted({r.rows for r in runs}):
            place = across[[r.rows for r in runs].index(n)]
            parts.append(f'<text x="{place:.1f}" y="{height - 20}">{n / 1000:g}k</text>')
        for name, colour in zip(names, COLOURS, strict=False):
            of = [i for i, r in enumerate(runs) if r.audit == name]
            points = " ".join(f"{across[i]:.1f},{up[i]:.1f}" for i in of)
            parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{points}"/>')
            for i in of:
                fill = "#fff" if runs[i].code == ENDED else colour
                parts.append(
                    f'<circle cx="{across[i]:.1f}" cy="{up[i]:.1f}" r="3.5" fill="{fill}" stroke="{colour}"/>'
                )
            value = runs[of[-1]].peak if k else runs[of[-1]].cpu
            parts.append(
                f'<text x="{across[of[-1]] + 8:.1f}" y="{up[of[-1]] + 4:.1f}" text-anchor="start" '
                f'fill="{colour}">{value:.3g}</text>'
            )
    for i, (name, colour) in enumerate(zip(names, COLOURS, strict=False)):
        if name:
            place = f'x="{edge + 150 * i}" y="{height + 5}" text-anchor="start"'
            parts.append(f'<text {place} fill="{colour}">{name}</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{2 * width}" height="{height + 15}" '
        f'font-family="sans-serif" font-size="11" text-anchor="middle">{"".join(parts)}</svg>\n'
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="rows, control among them")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--split", action="store_true", help="pull, hash and split alone")
    parser.add_argument("--release", action="store_true", help="with --split: the contract and a release too")
    parser.add_argument("--each", action="store_true", help="every audit in a run of its own")
    parser.add_argument("--audits", nargs="+", help="with --each: these instead of all default ones")
    parser.add_argument("--no-limits", action="store_true", help="recognition without its detection limits")
    parser.add_argument("--out", type=Path, help="folder for scale.svg, scale.md and what was measured")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.out or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        folder = folder.resolve()
        if options.split:
            print("| rows | steps | seconds | CPU s | peak GiB | held GiB |\n|---:|---|---:|---:|---:|---:|")
            for n in options.sizes:
                print(around(n, folder, release=options.release), flush=True)
            return
        audits = (options.audits or registry.default_audits()) if options.each else [""]
        limits = not options.no_limits
        runs = [
            one(n, audit, options.workers, folder, limits=limits) for n in options.sizes for audit in audits
        ]
        write_results(runs, folder)


def one(n: int, audit: str, workers: int, folder: Path, *, limits: bool) -> Run:
    """A run, measured now or before, and its line."""
    record = folder / "runs.jsonl"
    found = kept_runs(record).get((n, audit))
    if found is None:
        found = run(n, workers, folder, audit, limits=limits)
        with record.open("a") as lines:
            lines.write(json.dumps(found._asdict()) + "\n")
    print(line(found), flush=True)
    return found


def line(r: Run) -> str:
    longest = sorted(r.steps.items(), key=lambda item: -item[1])[:6]
    steps = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in longest)
    took = f"{r.seconds:.1f} | {r.cpu:.1f} | {r.peak:.2f} | {r.held:.2f}"
    return f"| {r.rows:,} | {r.audit or 'all'} | {took} | {steps} |"


def write_results(runs: Sequence[Run], folder: Path) -> None:
    """A table of all runs, and the curves of whole ones."""
    head = [
        "| rows | audits | seconds | CPU s | peak GiB | held GiB | longest steps |",
        "|---:|---|---:|---:|---:|---:|---|",
    ]
    lines = [*head, *map(line, runs), "", f"{os.cpu_count()} cores", ""]
    (folder / "scale.md").write_text("\n".join(lines))
    if whole := [r for r in runs if not r.audit]:
        (folder / "scale.svg").write_text(drawn(whole))


if __name__ == "__main__":
    main()
