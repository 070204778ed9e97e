"""How many training people does the audit `recognition` recognise, by kind of leak and in honest releases?

Tables are dealt as in `honest_releases.py`, leaks are those of the leak zoo. Each release is a line of a
file. What is on file is not asked again, so the command can be stopped and given again.

    .venv/bin/python benchmarks/recognition_power.py FOLDER --out FILE --tables adult --shares 0.05
    .venv/bin/python benchmarks/recognition_power.py FOLDER --out FILE --show
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import _releases_to_judge as releases
import leaks
import tables
from _releases_to_judge import Case

from synth_audit.audits.recognition import EXCESS, FOUND, Recognition
from synth_audit.execution.context import RunContext
from synth_audit.execution.seeds import child_rng
from synth_audit.plan.plan import Plan

HONEST = ("fresh", "independent", "vine", "cart")
"""Releases of nobody: fresh rows, and generators at their defaults."""


def asked(case: Case, folder: Path) -> dict[str, Any] | None:
    """A line of the file: what was found, and CPU seconds; None where there are too few rows."""
    plan = Plan.model_validate({"name": case.table, "seed": case.seed})
    dealt = releases.dealt_for(folder, case)
    if dealt is None:
        return None
    dealt, made = releases.release_of(case, dealt, plan)
    subject = releases.subject_of(dealt, made, plan)
    start = time.process_time()
    context = RunContext(seed=case.seed, draws=child_rng(case.seed, "recognition"))
    findings = Recognition(detection=False).run(subject, context)
    of = {m.id.quantity: m for m in findings.measurements}
    interval = of[FOUND.name].interval
    assert interval is not None
    return {
        **case._asdict(),
        "excess": round(of[EXCESS.name].value, 4),
        "found": interval.high > interval.low,
        "low": round(interval.low, 4),
        "high": round(interval.high, 4),
        "cpu": round(time.process_time() - start, 1),
        "notes": findings.notes,
    }


def cases(chosen: argparse.Namespace) -> Iterator[Case]:
    for seed in range(chosen.first, chosen.seeds):
        for table in chosen.tables:
            for kind in chosen.kinds:
                for share in (0.0,) if kind in HONEST else chosen.shares:
                    if kind in HONEST or share <= leaks.KINDS[kind].largest:
                        yield Case(table, kind, 1.0, share, seed)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    every = [*HONEST, *leaks.KINDS]
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, default=Path("recognition.jsonl"))
    parser.add_argument(
        "--tables", nargs="*", default=list(tables.TABLES), help="or any Parquet file of the folder"
    )
    parser.add_argument("--kinds", nargs="*", default=every, choices=every)
    parser.add_argument("--shares", type=float, nargs="*", default=[0.05], help="of people given away")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=int, default=1, help="the seeds below this one")
    parser.add_argument("--show", action="store_true", help="print what is on file, ask nothing")
    chosen = parser.parse_args()
    rows = [json.loads(line) for line in chosen.out.read_text().splitlines()] if chosen.out.exists() else []
    known = {Case.on_file(row) for row in rows}
    with chosen.out.open("a") as out:
        for case in () if chosen.show else cases(chosen):
            if case not in known and (row := asked(case, chosen.folder)) is not None:
                rows.append(row)
                out.write(json.dumps(row) + "\n")
                out.flush()
                print(*case, row["excess"], row["low"], row["high"], file=sys.stderr, flush=True)
    print(f"{'table':14}{'kind':21}{'share':>6}{'excess':>9}{'99 % bounds':>20}{'CPU s':>8}")
    for row in rows:
        bounds = f"{row['low']:.4f} to {row['high']:.4f}" if row["found"] else "nothing found"
        told = f"{row['share']:6.1%}{row['excess']:+9.4f}{bounds:>20}{row['cpu']:8.1f}"
        print(f"{row['table']:14}{row['kind']:21}{told}")


if __name__ == "__main__":
    main()
