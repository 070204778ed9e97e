"""Disjoint generative models on hepatitis: what parts and joins cost, and who is found through them.

Parts of `cart` (leaves of 5 people, without smoothing, as synthpop has them) and of a Bayesian network, by
the paper's partition and by random ones of 2 to 6 parts, joined at random and validated; with `--models sp
ds dp` also of DPGAN with ε = 1, which takes long. Each release is a line of a file and is not measured
again, so the command can be stopped and given again at any time.

    .venv/bin/python benchmarks/disjoint_paper.py FOLDER --golden FILE --out FILE --page docs/disjoint.md
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any

import pyarrow.parquet as pq
from scipy.stats import spearmanr

from synth_audit.core import registry
from synth_audit.core.accounting import Accountant, Budget, Unit
from synth_audit.core.column_spec import ColumnSpec
from synth_audit.core.context import RunContext
from synth_audit.core.generator import FitContext, column_groups
from synth_audit.core.plugin_config import build_generator
from synth_audit.core.schema_inference import infer_schema
from synth_audit.core.seeds import child_rng
from synth_audit.core.subject import Subject
from synth_audit.core.table import Table, read_table
from synth_audit.examination.audit_runner import run_audits

TARGET = "b_class"
CART = {"cart": {"minimum_leaf": 5, "smooth": False}}
MODELS: dict[str, Any] = {"sp": CART, "ds": "bayesian_network", "dp": "dpgan"}
"""Of the paper's short names: synthpop's CART, DataSynthesizer's network, DPGAN."""

JOINS = ("concatenate", "validated")
PARTS = range(2, 7)
MEASURES = {
    "closest_record.epsilon_identifiability": "ε risk",
    "prediction.auroc_loss": "AUROC lost",
    "associations.frobenius": "correlation difference",
    "partial_knowledge.excess_people": "given away, parts known",
    "blind": "given away, parts unknown",
}
AUDITS: dict[str, dict[str, Any]] = {
    "closest_record": {"n_bootstrap": 100},
    "prediction": {"models": ["logistic"], "repeats": 1, "n_bootstrap": 100},
    "associations": {},
    "partial_knowledge": {"max_people": 600},
}
MARK = "\n## Measured\n"
ABOUT = (
    "`cart` with leaves of 5 people and without smoothing, ds `bayesian_network`, dp `dpgan` with ε = 1; a",
    "pair is the paper's partition, the others are random parts of sp. Means over the repeats, with their",
    "range. *Given away* is `partial_knowledge.excess_people`: the share of people of whom a few known",
    "values tell another one beyond what they tell of strangers.",
    "",
)
ARTEFACT = (
    "The paper's ε risk is no reference for ours: its tool gives the column `RNA Base`, which is constant",
    "in train, a weight of 1e16, beside which no label counts and a row that misses the constant is far",
    "from everybody. Here a constant column counts for nothing.",
)


def cases(partition: dict[str, list[str]], models: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Every release by name: whole models, the paper's partition, and random ones of cart."""
    columns = [partition["part1"], partition["part2"]]
    yield from ((name, MODELS[name]) for name in models)
    for a in models:
        for b in models:
            for join in JOINS:
                settings: dict[str, Any] = {
                    "partition": "explicit",
                    "columns": columns,
                    "join": join,
                    "shares": shares(a, b),
                }
                yield f"{a},{b} {join}", {"disjoint": {"generators": [MODELS[a], MODELS[b]], **settings}}
    for parts in PARTS:
        for join in JOINS:
            settings = {"partition": "random", "parts": parts, "join": join}
            yield f"{parts} parts {join}", {"disjoint": {"generators": [CART], **settings}}


def shares(*names: str) -> list[float]:
    """Of the budget: next to nothing for parts that buy nothing."""
    weights = [1.0 if name == "dp" else 1e-9 for name in names]
    return [weight / sum(weights) for weight in weights]


def measured(name: str, generator: Any, train: Table, control: Table, seed: int) -> dict[str, float]:
    """The numbers of one release; the domain is read off train, so that its ε is the noise's and no claim."""
    budget = Budget(1.0, 1e-5) if "dp" in name else None
    accountant = Accountant(budget, unit=Unit.ROW)
    context = FitContext(rng=child_rng(seed, "fit"), accountant=accountant)
    model = build_generator(generator).fit(train, context)
    made = model.sample(train.n_rows, child_rng(seed, "sample"))
    subject = Subject(train, control, made, column_groups=column_groups(model))
    audits = {name: registry.build("audit", name, settings) for name, settings in AUDITS.items()}
    outcomes, _ = run_audits(audits, subject, RunContext(seed=seed))
    found = {str(m.id): m.value for o in outcomes for m in o.measurements if str(m.id) in MEASURES}
    blind = {"partial_knowledge": audits["partial_knowledge"]}
    [outcome], _ = run_audits(blind, replace(subject, column_groups=()), RunContext(seed=seed))
    found["blind"] = next(m.value for m in outcome.measurements if m.id.quantity == "excess_people")
    return found


def collect(chosen: argparse.Namespace) -> None:
    """Measure what is not on file yet, all cases once before any is repeated."""
    golden = json.loads(chosen.golden.read_text())
    files = [pq.read_table(chosen.folder / f"hepatitis_{side}.parquet") for side in ("train", "test")]
    schema = infer_schema(files[0], {TARGET: ColumnSpec.model_validate({"role": "target"})})
    train, control = (
        read_table(f, schema, where=side) for f, side in zip(files, ("train", "control"), strict=True)
    )
    known = {(row["case"], row["repeat"]) for row in on_file(chosen.out)}
    until = time.monotonic() + 60 * chosen.minutes
    for repeat in range(chosen.repeats):
        for name, generator in cases(golden["partition"], chosen.models):
            if (name, repeat) in known or time.monotonic() > until:
                continue
            start = time.process_time()
            row = {"case": name, "repeat": repeat, **measured(name, generator, train, control, repeat)}
            row["seconds"] = time.process_time() - start
            with chosen.out.open("a") as out:
                out.write(json.dumps(row) + "\n")
            print(row, file=sys.stderr, flush=True)


def on_file(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def told(rows: Sequence[dict[str, Any]], name: str, measure: str) -> str:
    """Mean and range of a measure over the repeats of a case."""
    values = [row[measure] for row in rows if row["case"] == name and measure in row]
    if not values:
        return ""
    ends = f" ({min(values):.3f} to {max(values):.3f})" if len(values) > 1 else ""
    return f"{mean(values):.3f}{ends}"


def table(rows: Sequence[dict[str, Any]]) -> list[str]:
    """One line for each release that was measured."""
    names = dict.fromkeys(row["case"] for row in rows)
    head = ["release", "repeats", *MEASURES.values()]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for name in names:
        cells = [told(rows, name, measure) for measure in MEASURES]
        repeats = sum(row["case"] == name for row in rows)
        lines.append(f"| {name} | {repeats} | " + " | ".join(cells) + " |")
    return lines


def trends(rows: Sequence[dict[str, Any]]) -> list[str]:
    """How each measure goes with the number of random parts: Spearman's ρ of the means."""
    lines = []
    for join in JOINS:
        known = [k for k in PARTS if any(r["case"] == f"{k} parts {join}" for r in rows)]
        for measure, label in MEASURES.items():
            if len(known) > 2:
                means = [mean(r[measure] for r in rows if r["case"] == f"{k} parts {join}") for k in known]
                rho = spearmanr(known, means).statistic
                lines.append(f"* {join}, {label}: ρ = {rho:+.2f} over {known[0]} to {known[-1]} parts")
    return lines


def page(rows: Sequence[dict[str, Any]]) -> str:
    """What stands behind the mark in the page."""
    seconds = sum(row["seconds"] for row in rows)
    return "\n".join(
        [
            MARK,
            f"`benchmarks/disjoint_paper.py` on hepatitis (1,105 rows), {seconds:.0f} CPU seconds. sp is",
            *ABOUT,
            *table(rows),
            "",
            "By number of random parts:",
            "",
            *trends(rows),
            "",
            *ARTEFACT,
            "",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, nargs="?", help="holds hepatitis_train and hepatitis_test")
    parser.add_argument("--golden", type=Path, help="the paper's figures with its partition (JSON)")
    parser.add_argument("--out", type=Path, default=Path("disjoint_paper.jsonl"))
    parser.add_argument("--page", type=Path, help="write the tables behind its heading `Measured`")
    parser.add_argument("--models", nargs="*", default=["sp", "ds"], choices=list(MODELS))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after these")
    chosen = parser.parse_args()
    if chosen.folder is not None:
        collect(chosen)
    rows = on_file(chosen.out)
    print("\n".join([*table(rows), "", *trends(rows)]))
    if chosen.page and rows:
        before = chosen.page.read_text().split(MARK)[0].rstrip("\n")
        chosen.page.write_text(f"{before}\n{page(rows)}")


if __name__ == "__main__":
    main()
