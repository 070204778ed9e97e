"""Does the suite that ships pass every honest release, and never one that gives 5 % of its people away?

Five public tables and one of a copula are dealt anew per seed: 2,000 training and 500 control rows where
there are as many. Honest releases are fresh real rows, the same with a column of notes, and the generators,
in several sizes; others are the kinds of the leak zoo, those that docs/research/leaks-seen.md lists as
passing, and generators that overfit.
Each goes before all audits that a blocking gate of the suite needs; four seeds of
six tables are 24 of a kind. Every verdict is a line of a file, and what is on file is not asked again, so the
command can be stopped and given again; --minutes stops it by itself.

To compare two versions give both the same cases and --releases, then --compare.

    .venv/bin/python benchmarks/honest_releases.py FOLDER --out FILE
    .venv/bin/python benchmarks/honest_releases.py FOLDER --out FILE --show
    .venv/bin/python benchmarks/honest_releases.py FOLDER --out NEW --compare OLD
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from _releases_to_judge import (
    HONEST,
    HONEST_FAMILY,
    LEAKS,
    OVERFITTED,
    TABLES,
    Case,
    Dealt,
    dealt_for,
    digest_of,
    family,
    plan_of,
    release_of,
    subject_of,
)
from _verdicts_compared import compared

from synth_audit.execution.context import Cache, RunContext
from synth_audit.execution.seeds import Salt
from synth_audit.pipeline.stages import MADE_ELSEWHERE, examine
from synth_audit.registry import build
from synth_audit.store.evidence import Evidence
from synth_audit.verdict.suite import load_suite

TOO_FEW = "too few rows"


def evidence_of(
    case: Case, dealt: Dealt, made: pd.DataFrame | pa.Table, cache: Cache, limits: bool
) -> Evidence:
    """The evidence of a case, from the audits that a blocking gate needs.

    Args:
        limits: whether detection limits are measured; what fails does so without them.
    """
    plan = plan_of(case)
    subject = subject_of(dealt, made, plan)
    suite = load_suite(plan.gates, plan.base)
    wanted = sorted({g.limit.audit for g in suite.measured if g.blocking and g.limit})
    salt = Salt(sha256(f"{case.table} {case.seed}".encode()).digest())
    context = replace(RunContext(), cache=cache)
    audits = {
        name: build("audit", name, {} if limits or name != "recognition" else {"detection": False})
        for name in wanted
    }
    return examine(plan, subject, MADE_ELSEWHERE, context, salt, draws=salt, audits=audits).evidence


def asked(
    case: Case, folder: Path, cache: Cache, made_before: Path | None = None, *, limits: bool = True
) -> dict[str, Any]:
    """A line of the file: the verdict, which gates did not pass, and the upper ends."""
    dealt = dealt_for(folder, case)
    if dealt is None:
        return {**case._asdict(), "verdict": TOO_FEW}
    dealt, made = release_of(case, dealt, plan_of(case), made_before)
    start = time.process_time()
    evidence = evidence_of(case, dealt, made, cache, limits)
    gates = [g for g in evidence.gates.results if g.blocking]
    return {
        **case._asdict(),
        "release": digest_of(made),
        "verdict": str(evidence.verdict),
        "holding": {g.gate: str(g.result) for g in gates if g.result != "pass"},
        "upper": {
            g.gate: round(x, 4) for g in gates if (x := g.value if g.high is None else g.high) is not None
        },
        "why": [g.explanation for g in gates if g.result != "pass"][:2],
        "cpu": round(time.process_time() - start, 1),
    }


def cases(chosen: argparse.Namespace) -> Iterator[Case]:
    """All of one seed and table before the next, since they share what planted leaks were measured at."""
    honest = [(kind, ratio, 0.0) for kind, ratio in HONEST if ratio in chosen.ratios]
    leaking = [(kind, 1.0, 0.0) for kind in OVERFITTED]
    leaking += [
        (k, 1.0, share) for k, leak in LEAKS.items() for share in chosen.shares if share <= leak.largest
    ]
    for seed in range(chosen.first, chosen.seeds):
        for table in chosen.tables:
            for kind, ratio, share in (*honest, *leaking) if seed < chosen.leak_seeds else honest:
                if kind in chosen.kinds:
                    yield Case(table, kind, ratio, share, seed, chosen.people)


def on_file(path: Path) -> dict[Case, dict[str, Any]]:
    """The lines of a file by case."""
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return {Case.on_file(row): row for row in rows}


def show(rows: list[dict[str, Any]]) -> None:
    """Verdicts, and the gates that held releases, of each kind and size over all tables, then by table."""
    for by in (("kind", "ratio", "share"), ("kind", "ratio", "share", "table")):
        of: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        for row in rows:
            if row["verdict"] != TOO_FEW:
                of.setdefault(tuple(row[name] for name in by), []).append(row)
        for key, mine in sorted(of.items(), key=lambda item: (item[0][2] > 0, *item[0])):
            verdicts = Counter(str(row["verdict"]) for row in mine)
            holding = Counter(f"{gate} {result}" for row in mine for gate, result in row["holding"].items())
            told = [f"{v} {verdicts[v]:2}" for v in ("pass", "insufficient evidence", "fail")]
            held = ", ".join(f"{gate}: {n}" for gate, n in holding.most_common(5))
            what = f"{key[0]:13}{key[1]:4g} x {key[2]:4.0%} {' '.join(key[3:]):14}"
            print(f"{what}{', '.join(told)}, of {len(mine):2}  {held}")
        print()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    every = [*dict.fromkeys(kind for kind, _ in HONEST), *OVERFITTED, *LEAKS]
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, default=Path("honest.jsonl"))
    parser.add_argument("--seeds", type=int, default=4, help="the seeds below this one")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--leak-seeds", type=int, default=5, help="so many of them for others too")
    parser.add_argument("--tables", nargs="*", default=list(TABLES), help="or any Parquet file of the folder")
    parser.add_argument("--kinds", nargs="*", default=every, choices=every)
    parser.add_argument("--ratios", type=float, nargs="*", default=[0.5, 1.0, 2.0, 3.0])
    parser.add_argument("--shares", type=float, nargs="*", default=[0.05], help="of people given away")
    parser.add_argument("--people", type=int, default=0, help="of train at most")
    parser.add_argument("--releases", type=Path, help="folder to keep what generators made, and take it from")
    parser.add_argument(
        "--without-limits",
        action="store_true",
        help="measure no detection limits: ten times as fast, nothing passes, and what fails still fails",
    )
    parser.add_argument("--minutes", type=float, default=60, help="begin no other release after so long")
    parser.add_argument("--compare", type=Path, metavar="OTHER", help="an older version's file: only compare")
    parser.add_argument("--show", action="store_true", help="print what is on file, ask nothing")
    chosen = parser.parse_args()
    known = on_file(chosen.out)
    if chosen.compare:
        print(compared(on_file(chosen.compare), known, family, HONEST_FAMILY))
        return
    end = time.monotonic() + 60 * chosen.minutes
    with tempfile.TemporaryDirectory() as kept, chosen.out.open("a") as out:
        for case in () if chosen.show else cases(chosen):
            if case in known:
                continue
            if time.monotonic() > end:
                print("out of time: give the command again to go on", file=sys.stderr)
                break
            known[case] = row = asked(
                case, chosen.folder, Cache(Path(kept)), chosen.releases, limits=not chosen.without_limits
            )
            out.write(json.dumps(row) + "\n")
            out.flush()
            print(*case, row["verdict"], row.get("holding", ""), file=sys.stderr, flush=True)
    show(list(known.values()))


if __name__ == "__main__":
    main()
