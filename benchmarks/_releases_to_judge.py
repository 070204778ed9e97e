"""Releases to judge: tables of public data dealt anew per seed, and what is released of them."""

from __future__ import annotations

import sys
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from synth_audit.dp.accountant import Accountant
from synth_audit.dp.guarantee import Budget, Unit
from synth_audit.execution.seeds import child_rng
from synth_audit.pipeline.stages import anchored_subject
from synth_audit.plan.plan import Plan
from synth_audit.plugins.audit import RandomSplit, Subject
from synth_audit.plugins.generator import FitContext
from synth_audit.registry import build
from synth_audit.table.schema import PublicColumn, PublicDomain

sys.path.insert(0, str(Path(__file__).parent / "leak_zoo"))
import leaks
import overfitted
import still_passing
import tables
from tables import TABLES as TABLES
from tables import Dealt as Dealt

ROWS = (2_000, 500)
"""Of train and control."""

SMALL = (0.47, 0.2)
"""Shares of train and control of a smaller table, which must spare more for control; the rest are fresh
people."""

HONEST = [
    *(("fresh", ratio) for ratio in (0.1, 0.5, 1.0, 2.0, 3.0, 10.0)),
    ("notes", 1.0),
    *((name, ratio) for name in ("independent", "vine") for ratio in (0.5, 1.0, 3.0)),
    *((name, 1.0) for name in ("cart", "aim")),
]
OVERFITTED = overfitted.KINDS
HONEST_FAMILY = "honest"
LEAKS = leaks.KINDS | still_passing.KINDS
BUDGETS = {"aim": Budget(1.0, 1e-5)}
"""Of generators that buy privacy: without noise such a one repeats what few people have."""

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
    people: int = 0
    """Of train at most; 0 for as many as there usually are."""

    @classmethod
    def on_file(cls, row: dict[str, Any]) -> Case:
        """The case of a line; lines of before there was a field have its default."""
        return cls(**{name: row[name] for name in cls._fields if name in row})


def noted(rows: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """The rows with a sentence about each: words drawn anew for everybody, and a number of their own."""
    said = [" ".join(rng.choice(WORDS, 12)) for _ in range(len(rows))]
    first = rows.iloc[:, 0].astype(str)
    return rows.assign(
        note=[f"{x}, {words}, {rng.integers(10_000)}" for x, words in zip(first, said, strict=True)]
    )


def dealt_for(folder: Path, case: Case) -> Dealt | None:
    """Train, control and fresh rows; None where there are too few for a release of that size."""
    whole = tables.whole_table(folder, case.table)
    n, k = ROWS if len(whole) > 1.5 * sum(ROWS) else [round(share * len(whole)) for share in SMALL]
    if case.people and case.people < n:
        n, k = case.people, round(case.people * SMALL[1] / SMALL[0])
    whole = whole.iloc[child_rng(case.seed, "honest", case.table).permutation(len(whole))]
    m = round(n * (case.ratio if case.kind in ("fresh", "notes") else 1.0))
    fresh = whole.iloc[n + k : n + k + m]
    if len(fresh) < 0.7 * m:
        return None
    return Dealt(*(t.reset_index(drop=True) for t in (whole.iloc[:n], whole.iloc[n : n + k], fresh)))


def plan_of(case: Case) -> Plan:
    """The plan of a case, which names nothing but the notes."""
    columns = {"note": {"kind": "text", "release_text": True}} if case.kind == "notes" else {}
    return Plan.model_validate({"name": case.table, "seed": case.seed, "columns": columns})


def release_of(
    case: Case, dealt: Dealt, plan: Plan, made_before: Path | None = None
) -> tuple[Dealt, pd.DataFrame | pa.Table]:
    """The three tables of a case.

    Args:
        made_before: a folder in which releases of generators are kept, and from which they are taken.
    """
    if case.kind == "fresh":
        return dealt, dealt.fresh
    if case.kind == "notes":
        rng = child_rng(case.seed, "notes", case.table)
        dealt = Dealt(*(noted(t, rng) for t in dealt))
        return dealt, dealt.fresh
    if case.share:
        return LEAKS[case.kind].release_of(dealt, case.share, case.seed)
    file = made_before / f"{'_'.join(map(str, case))}.parquet" if made_before else None
    if file and file.exists():
        return dealt, pq.read_table(file)
    made = as_arrow(generated(case, dealt, plan))
    if file:
        file.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(made, file)
    return dealt, made


def generated(case: Case, dealt: Dealt, plan: Plan) -> pd.DataFrame | pa.Table:
    """What a generator draws, one that overfits or one of the package at its defaults."""
    rows = round(case.ratio * len(dealt.train))
    if case.kind in overfitted.DRAWS:
        return overfitted.release_of(dealt, case.kind, rows, child_rng(case.seed, "draw", case.kind))
    name, settings = overfitted.GENERATORS.get(case.kind, (case.kind, {}))
    train = subject_of(dealt, dealt.fresh, plan).train
    context = FitContext(rng=child_rng(case.seed, "fit", case.kind))
    if case.kind in BUDGETS:
        accountant = Accountant(BUDGETS[case.kind], unit=Unit.ROW)
        accountant.draws(train.n_rows)
        known = {
            c.name: PublicColumn(c.kind, c.bounds, c.categories or None, nullable=False)
            for c in train.schema.features
        }
        context = replace(context, accountant=accountant, public_domain=PublicDomain(known))
    model = build("generator", name, settings).fit(train, context)
    return model.sample(rows, child_rng(case.seed, "sample", case.kind)).data


def as_arrow(rows: pd.DataFrame | pa.Table) -> pa.Table:
    """Without pandas' own index."""
    return rows if isinstance(rows, pa.Table) else pa.Table.from_pandas(rows, preserve_index=False)


def subject_of(dealt: Dealt, made: pd.DataFrame | pa.Table, plan: Plan) -> Subject:
    """What the audits look at; who is in train was drawn here, as the split of a plan would."""
    subject = anchored_subject(as_arrow(dealt.train), as_arrow(dealt.control), as_arrow(made), plan)
    return replace(subject, random_split=RandomSplit(ours=True))


def digest_of(made: pd.DataFrame | pa.Table) -> str:
    """By which two versions know that they judged the same rows."""
    return sha256(as_arrow(made).to_pandas().to_csv(index=False).encode()).hexdigest()[:16]


def family(row: dict[str, Any]) -> str:
    """Of kinds that are compared with each other's like."""
    if row["kind"] in leaks.KINDS:
        return f"planted leaks of {row['share']:.1%}"
    if row["kind"] in still_passing.KINDS:
        return f"what still passes, {row['share']:.1%}"
    return "overfitted" if row["kind"] in OVERFITTED else HONEST_FAMILY
