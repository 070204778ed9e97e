"""Are leaks at the detection limits that `recognition` states found as often as it says?

On fresh rows of a table the limits are measured. Then people are planted anew at each limit, with draws that
measured nothing and in a division into train and control of their own, and the whole test is repeated: 19 of
20 plantings must be found. With `--nulls N` people are also dealt to the two sides N times anew, so that the
release has no leak: one test in a hundred may find one. Each class of leak, table and seed is a line of a
file. What is on file is not asked again, so the command can be stopped and given again.

    .venv/bin/python benchmarks/detection_limits.py FOLDER --out FILE --tables copula hepatitis --seeds 2
    .venv/bin/python benchmarks/detection_limits.py FOLDER --out FILE --show
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import _releases_to_judge as releases
import numpy as np
import tables
from _releases_to_judge import Case

from synth_audit.arrays import Bools
from synth_audit.audits.recognition.detection_limit import detection_limits
from synth_audit.audits.recognition.engine import FAMILY, p_value
from synth_audit.audits.recognition.leak_classes import LeakClass, planted
from synth_audit.audits.recognition.people import PooledPeople, pooled
from synth_audit.audits.recognition.view import scored
from synth_audit.execution.context import RunContext
from synth_audit.execution.seeds import child_rng
from synth_audit.plan.plan import Plan

PEOPLE = 2000
"""People of either side at most, as the audit's default."""

DRAWS = 3
"""Draws of the views, as the audit's default."""


def asked(table: str, seed: int, folder: Path, plantings: int, nulls: int) -> Iterator[dict[str, Any]]:
    """A line for each class of leak: the limit, and how many plantings at it were found; one for no leak."""
    case = Case(table, "fresh", 1.0, 0.0, seed)
    plan = Plan.model_validate({"name": table, "seed": seed})
    dealt = releases.dealt_for(folder, case)
    if dealt is None:
        return
    subject = releases.subject_of(dealt, dealt.fresh, plan)
    pool, sides = pooled(subject, PEOPLE, child_rng(seed, "people", table))
    if nulls:
        found, times = false_findings(pool, sides.member, nulls, child_rng(seed, table, "nulls"))
        yield {"table": table, "seed": seed, "leak": "none", "limit": None, "found": found, "planted": times}
    if nulls and not plantings:
        return
    [clean] = scored(pool, 1, seed)
    start = time.process_time()
    limits = detection_limits(pool, sides.member, clean.views, DRAWS, seed, RunContext())
    spent = time.process_time() - start
    for limit in limits:
        line = {"table": table, "seed": seed, "leak": limit.leak.name, "limit": limit.share, "cpu": spent}
        hits = [
            planting_found(pool, sides.member, limit.leak, share, child_rng(seed, table, str(k)))
            for k, share in enumerate([] if limit.share is None else [limit.share] * plantings)
        ]
        line |= {"found": sum(hits), "planted": len(hits)}
        yield line


def false_findings(
    pool: PooledPeople, member: Bools, times: int, rng: np.random.Generator
) -> tuple[int, int]:
    """Leaks found where there is none, and tests: the release is of others, and sides are dealt anew."""
    seed = int(rng.integers(2**63))
    draws = [s.views for s in scored(pool, DRAWS, seed)]
    return sum(p_value(draws, rng.permutation(member), rng) <= FAMILY for _ in range(times)), times


def planting_found(
    pool: PooledPeople, member: Bools, leak: LeakClass, share: float, rng: np.random.Generator
) -> bool:
    """Plant a leak anew in another division of the people, and repeat the whole test."""
    member = rng.permutation(member)
    made, *_ = planted(pool, member, leak, share, rng)
    seed = int(rng.integers(2**63))
    draws = [s.views for s in scored(made, DRAWS, seed)]
    return p_value(draws, member, rng) <= FAMILY


def show(rows: list[dict[str, Any]]) -> None:
    """Limits and plantings found, by table and class, then by class and by table."""
    of: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        of[row["table"], row["leak"]].append(row)
    print(f"{'table':15}{'leak':14}{'found':>9}  limits")
    for (table, leak), mine in sorted(of.items()):
        limits = ", ".join(f"{row['limit']:.1%}" if row["limit"] else "none" for row in mine)
        print(f"{table:15}{leak:14}{counted(mine)}  {limits}")
    for key in ("leak", "table"):
        for name in sorted({row[key] for row in rows}):
            mine = [row for row in rows if row[key] == name and (key == "leak" or row["leak"] != "none")]
            print(f"{name:15}{counted(mine)}")
    print(f"all leaks: {counted([row for row in rows if row['leak'] != 'none'])}")


def counted(rows: list[dict[str, Any]]) -> str:
    """How many plantings were found, and how many there were."""
    found, planted_ = (sum(row.get(key, 0) for row in rows) for key in ("found", "planted"))
    return f"{found:4} of {planted_:3}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, default=Path("limits.jsonl"))
    parser.add_argument(
        "--tables", nargs="*", default=list(tables.TABLES), help="or any Parquet file of the folder"
    )
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=int, default=1, help="the seeds below this one")
    parser.add_argument("--plantings", type=int, default=1, help="of each class at its limit")
    parser.add_argument("--nulls", type=int, default=0, help="of each table, sides dealt anew")
    parser.add_argument("--show", action="store_true", help="print what is on file, ask nothing")
    chosen = parser.parse_args()
    rows = [json.loads(line) for line in chosen.out.read_text().splitlines()] if chosen.out.exists() else []
    known = {(row["table"], row["seed"]) for row in rows}
    with chosen.out.open("a") as out:
        for seed in () if chosen.show else range(chosen.first, chosen.seeds):
            for table in chosen.tables:
                for row in (
                    ()
                    if (table, seed) in known
                    else list(asked(table, seed, chosen.folder, chosen.plantings, chosen.nulls))
                ):
                    rows.append(row)
                    out.write(json.dumps(row) + "\n")
                    out.flush()
                    print(row, file=sys.stderr, flush=True)
    show(rows)


if __name__ == "__main__":
    main()
