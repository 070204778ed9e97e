"""Are leaks at the detection limits that `recognition` states found as often as it says?

On fresh rows of a table the limits are measured. Then people are planted anew at each limit, with draws that
measured nothing, and the whole test is repeated: 19 of 20 plantings must be found. Each planting is a line of
a file. What is on file is not asked again, so the command can be stopped and given again.

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
import tables
from _releases_to_judge import Case

from synth_audit.audits.recognition import FAMILY
from synth_audit.audits.recognition.detection import detection_limits, view_rng
from synth_audit.audits.recognition.engine import p_value
from synth_audit.audits.recognition.leak_classes import CLASSES, planted
from synth_audit.audits.recognition.people import pooled
from synth_audit.audits.recognition.scoring import scored
from synth_audit.core.context import RunContext
from synth_audit.core.plan import Plan
from synth_audit.core.seeds import child_rng

PEOPLE = 2000
"""People of either side at most, as the audit's default."""

DRAWS = 3
"""Draws of the views, as the audit's default."""


def asked(table: str, seed: int, folder: Path) -> Iterator[dict[str, Any]]:
    """A line for each class of leak: the limit, and whether a planting at it was found."""
    case = Case(table, "fresh", 1.0, 0.0, seed)
    plan = Plan.model_validate({"name": table, "seed": seed})
    dealt = releases.dealt_for(folder, case)
    if dealt is None:
        return
    subject = releases.subject_of(dealt, dealt.fresh, plan)
    pool, sides = pooled(subject, PEOPLE, child_rng(seed, "people", table))
    [clean] = scored(pool, 1, lambda name, draw: view_rng(seed, name, draw))
    start = time.process_time()
    limits = detection_limits(pool, sides.member, clean.views, seed, RunContext())
    spent = time.process_time() - start
    for limit in limits:
        line = {"table": table, "seed": seed, "leak": limit.leak.name, "limit": limit.share, "cpu": spent}
        if limit.share is not None:
            rng = child_rng(seed, "confirm", table, limit.leak.name)
            made, _ = planted(pool, sides.member, limit.leak, limit.share, rng)
            draws = [s.views for s in scored(made, DRAWS, lambda name, draw: view_rng(seed + 1, name, draw))]
            line["found"] = p_value(draws, sides.member, rng) <= FAMILY
        yield line


def show(rows: list[dict[str, Any]]) -> None:
    """Limits and plantings found, by table and class."""
    of: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        of[row["table"], row["leak"]].append(row)
    print(f"{'table':15}{'leak':14}{'found':>9}  limits")
    for (table, leak), mine in sorted(of.items()):
        known = [row for row in mine if row["limit"] is not None]
        limits = ", ".join(f"{row['limit']:.1%}" if row["limit"] else "none" for row in mine)
        print(f"{table:15}{leak:14}{sum(r['found'] for r in known):4} of {len(known):2}  {limits}")
    known = [row for row in rows if row["limit"] is not None]
    for known_class in CLASSES:
        mine = [row for row in known if row["leak"] == known_class.name]
        print(f"{known_class.name:14}{sum(r['found'] for r in mine)} of {len(mine)}")
    print(f"all: {sum(r['found'] for r in known)} of {len(known)}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, default=Path("limits.jsonl"))
    parser.add_argument("--tables", nargs="*", default=list(tables.TABLES), choices=list(tables.TABLES))
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=int, default=1, help="the seeds below this one")
    parser.add_argument("--show", action="store_true", help="print what is on file, ask nothing")
    chosen = parser.parse_args()
    rows = [json.loads(line) for line in chosen.out.read_text().splitlines()] if chosen.out.exists() else []
    known = {(row["table"], row["seed"]) for row in rows}
    with chosen.out.open("a") as out:
        for seed in () if chosen.show else range(chosen.first, chosen.seeds):
            for table in chosen.tables:
                for row in () if (table, seed) in known else list(asked(table, seed, chosen.folder)):
                    rows.append(row)
                    out.write(json.dumps(row) + "\n")
                    out.flush()
                    print(row, file=sys.stderr, flush=True)
    show(rows)


if __name__ == "__main__":
    main()
