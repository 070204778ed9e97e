"""Does the suite that ships pass every honest release, and never one that gives 5 % of its people away?

Five public tables and one of a copula are dealt anew per seed: 2,000 training and 500 control rows where
there are as many. Honest releases are fresh real rows, the same with a column of notes, and the generators,
in several sizes; dishonest ones are the kinds of the leak zoo. Each goes before all audits that a blocking
gate of the suite needs; four seeds of six tables are 24 of a kind. Every verdict is a line of a file, and
what is on file is not asked again, so the command can be stopped and given again; --minutes stops it by
itself.

    .venv/bin/python benchmarks/honest_releases.py FOLDER --out FILE
    .venv/bin/python benchmarks/honest_releases.py FOLDER --out FILE --show
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
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from synth_audit.core.cache import Cache
from synth_audit.core.context import RunContext
from synth_audit.core.generator import FitContext
from synth_audit.core.plan import Plan
from synth_audit.core.registry import build
from synth_audit.core.salt import Salt
from synth_audit.core.seeds import child_rng
from synth_audit.core.subject import RandomSplit, Subject
from synth_audit.judging.judge import load_suite
from synth_audit.pipeline.stages import MADE_ELSEWHERE, anchored_subject, examine
from synth_audit.store.evidence import Evidence

sys.path.insert(0, str(Path(__file__).parent / "leak_zoo"))
import leaks
import tables

ROWS = (2_000, 500)
"""Of train and control; a smaller table is divided in the same proportion, a third of it fresh people."""

HONEST = [
    *(("fresh", ratio) for ratio in (0.1, 0.5, 1.0, 2.0, 3.0, 10.0)),
    ("notes", 1.0),
    *((name, ratio) for name in ("independent", "vine") for ratio in (0.5, 1.0, 3.0)),
]
TOO_FEW = "too few rows"
LEAKS = tuple(leaks.KINDS)
WORDS = (
    *("walks", "slowly", "sleeps", "well", "no", "pain", "since", "spring", "some"),
    *("cough", "at", "night", "eats", "little", "seen", "by", "nurse", "home"),
)


class Case(NamedTuple):
    """One release: its size is relative to train, the share is that of train's people given away."""

    table: str
    kind: str
    ratio: float
    share: float
    seed: int


def noted(rows: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """The rows with a sentence about each: words drawn anew for everybody, and a number of their own."""
    said = [" ".join(rng.choice(WORDS, 12)) for _ in range(len(rows))]
    first = rows.iloc[:, 0].astype(str)
    return rows.assign(
        note=[f"{x}, {words}, {rng.integers(10_000)}" for x, words in zip(first, said, strict=True)]
    )


def dealt_for(folder: Path, case: Case) -> tables.Dealt | None:
    """Train, control and fresh rows; None where there are too few for a release of that size."""
    whole = tables.whole_table(folder, case.table)
    n, k = ROWS if len(whole) > 1.5 * sum(ROWS) else [round(x / sum(ROWS) * 0.63 * len(whole)) for x in ROWS]
    whole = whole.iloc[child_rng(case.seed, "honest", case.table).permutation(len(whole))]
    m = round(n * (case.ratio if case.kind in ("fresh", "notes") else 1.0))
    fresh = whole.iloc[n + k : n + k + m]
    if len(fresh) < 0.7 * m:
        return None
    return tables.Dealt(*(t.reset_index(drop=True) for t in (whole.iloc[:n], whole.iloc[n : n + k], fresh)))


def release_of(case: Case, dealt: tables.Dealt, plan: Plan) -> tuple[tables.Dealt, pd.DataFrame | pa.Table]:
    """The three tables of a case."""
    if case.kind == "fresh":
        return dealt, dealt.fresh
    if case.kind == "notes":
        rng = child_rng(case.seed, "notes", case.table)
        dealt = tables.Dealt(*(noted(t, rng) for t in dealt))
        return dealt, dealt.fresh
    if case.share:
        return leaks.release_of(dealt, case.kind, case.share, case.seed)
    train = subject_of(dealt, dealt.fresh, plan).train
    model = build("generator", case.kind, {}).fit(
        train, FitContext(rng=child_rng(case.seed, "fit", case.kind))
    )
    return dealt, model.sample(
        round(case.ratio * train.n_rows), child_rng(case.seed, "sample", case.kind)
    ).data


def as_arrow(rows: pd.DataFrame | pa.Table) -> pa.Table:
    """Without pandas' own index."""
    return rows if isinstance(rows, pa.Table) else pa.Table.from_pandas(rows, preserve_index=False)


def subject_of(dealt: tables.Dealt, made: pd.DataFrame | pa.Table, plan: Plan) -> Subject:
    """What the audits look at; who is in train was drawn here, as the split of a plan would."""
    subject = anchored_subject(as_arrow(dealt.train), as_arrow(dealt.control), as_arrow(made), plan)
    return replace(subject, random_split=RandomSplit(ours=True))


def examined(case: Case, folder: Path, cache: Cache) -> Evidence | None:
    """The evidence of a case, from the audits that a blocking gate needs; None where it cannot be made."""
    columns = {"note": {"kind": "text", "release_text": True}} if case.kind == "notes" else {}
    plan = Plan.model_validate({"name": case.table, "seed": case.seed, "columns": columns})
    dealt = dealt_for(folder, case)
    if dealt is None:
        return None
    dealt, made = release_of(case, dealt, plan)
    subject = subject_of(dealt, made, plan)
    suite = load_suite(plan.gates, plan.base)
    wanted = sorted({g.limit.audit for g in suite.measured if g.blocking and g.limit})
    salt = Salt(sha256(f"{case.table} {case.seed}".encode()).digest())
    context = replace(RunContext(), cache=cache)
    audits = {name: build("audit", name, {}) for name in wanted}
    return examine(plan, subject, MADE_ELSEWHERE, context, salt, draws=salt, audits=audits).evidence


def asked(case: Case, folder: Path, cache: Cache) -> dict[str, Any]:
    """A line of the file: the verdict, which gates did not pass, and the upper ends."""
    start = time.process_time()
    evidence = examined(case, folder, cache)
    if evidence is None:
        return {**case._asdict(), "verdict": TOO_FEW}
    gates = [g for g in evidence.gates.results if g.blocking]
    return {
        **case._asdict(),
        "verdict": str(evidence.verdict),
        "holding": {g.gate: str(g.result) for g in gates if g.result != "pass"},
        "upper": {g.gate: round(g.high, 4) for g in gates if g.high is not None},
        "why": [g.explanation for g in gates if g.result != "pass"][:2],
        "cpu": round(time.process_time() - start, 1),
    }


def cases(chosen: argparse.Namespace) -> Iterator[Case]:
    """All of one seed and table before the next, since they share what planted leaks were measured at."""
    for seed in range(chosen.first, chosen.seeds):
        for table in chosen.tables:
            for kind, ratio in HONEST:
                if kind in chosen.kinds and ratio in chosen.ratios:
                    yield Case(table, kind, ratio, 0.0, seed)
            for kind in LEAKS if seed < chosen.leak_seeds else ():
                for share in chosen.shares if kind in chosen.kinds else ():
                    if share <= leaks.KINDS[kind].largest:
                        yield Case(table, kind, 1.0, share, seed)


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
    every = [*dict.fromkeys(kind for kind, _ in HONEST), *LEAKS]
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, default=Path("honest.jsonl"))
    parser.add_argument("--seeds", type=int, default=4, help="the seeds below this one")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--leak-seeds", type=int, default=5, help="so many of them for leaks too")
    parser.add_argument("--tables", nargs="*", default=list(tables.TABLES), choices=list(tables.TABLES))
    parser.add_argument("--kinds", nargs="*", default=every, choices=every)
    parser.add_argument("--ratios", type=float, nargs="*", default=[0.5, 1.0, 2.0, 3.0])
    parser.add_argument("--shares", type=float, nargs="*", default=[0.05], help="of people given away")
    parser.add_argument("--minutes", type=float, default=60, help="begin no other release after so long")
    parser.add_argument("--show", action="store_true", help="print what is on file, ask nothing")
    chosen = parser.parse_args()
    rows = [json.loads(line) for line in chosen.out.read_text().splitlines()] if chosen.out.exists() else []
    known = {Case(**{name: row[name] for name in Case._fields}) for row in rows}
    end = time.monotonic() + 60 * chosen.minutes
    with tempfile.TemporaryDirectory() as kept, chosen.out.open("a") as out:
        for case in () if chosen.show else cases(chosen):
            if case in known:
                continue
            if time.monotonic() > end:
                print("out of time: give the command again to go on", file=sys.stderr)
                break
            rows.append(asked(case, chosen.folder, Cache(Path(kept))))
            out.write(json.dumps(rows[-1]) + "\n")
            out.flush()
            print(*case, rows[-1]["verdict"], rows[-1].get("holding", ""), file=sys.stderr, flush=True)
    show(rows)


if __name__ == "__main__":
    main()
