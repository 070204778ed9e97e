"""Disjoint generative models: what parts and joins cost, and who is found through them.

On tables of the paper: parts of `cart` (leaves of 5 people, without smoothing, as synthpop has them), of a
Bayesian network and of DPGAN with ε = 1 (without margins, as published), by the paper's partition (on other
tables than hepatitis that of the strongest relations), and of `cart` by random ones of 2 to 6 parts. The
parts of a fit are joined twice, at random and validated. Each fit is a few lines of a file and is not made
again, so the command can be stopped and given again at any time. The attack by who knows the parts takes
longer than all else together, and is made in the first `--attacked` repeats alone.

    .venv/bin/python benchmarks/disjoint_paper.py FOLDER --golden FILE --out FILE --page docs/disjoint.md
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from fidelity_against_peer import squared  # beside this script
from scipy.spatial.distance import cdist
from scipy.stats import entropy, spearmanr

from synth_audit.core import registry
from synth_audit.core.accounting import Accountant, Budget, Unit
from synth_audit.core.column_spec import ColumnSpec
from synth_audit.core.context import RunContext
from synth_audit.core.generator import FitContext, Model, column_groups
from synth_audit.core.identity import MeasurementId
from synth_audit.core.plugin_config import build_generator
from synth_audit.core.public_domain import PublicDomain
from synth_audit.core.schema_inference import infer_schema
from synth_audit.core.seeds import child_rng
from synth_audit.core.series import Series
from synth_audit.core.subject import Subject
from synth_audit.core.table import Table, read_table
from synth_audit.examination.audit_runner import run_audits
from synth_audit.generators.disjoint.model import DisjointModel
from synth_audit.report.series_plot import series_svg

TABLES = {"hepatitis": "b_class", "heart": "target", "breast_cancer": "Status"}
"""Targets, by table."""

CART = {"cart": {"minimum_leaf": 5, "smooth": False}}
MODELS: dict[str, Any] = {
    "sp": CART,
    "ds": "bayesian_network",
    "dp": {"dpgan": {"margins": 0, "steps": 200}},
}
"""Of the paper's short names: synthpop's CART, DataSynthesizer's network, DPGAN."""

JOINS = ("concatenate", "validated")
PARTS = range(2, 7)
CORRELATION, PUBLISHED = "correlation difference", "published ε risk"
MEASURES = {
    "closest_record.epsilon_identifiability": "ε risk",
    PUBLISHED: "ε risk as published",
    "prediction.auroc_loss": "AUROC lost",
    CORRELATION: CORRELATION,
    "associations.frobenius": "the same over pairs that may be told of",
    "known": "given away, parts known",
    "blind": "given away, parts unknown",
}
AUDITS: dict[str, dict[str, Any]] = {
    "closest_record": {"n_bootstrap": 100},
    "prediction": {"models": ["logistic"], "repeats": 1, "n_bootstrap": 100},
    "associations": {},
}
ATTACK: dict[str, Any] = {"max_people": 600}
MOST_LABELS = 10
"""Distinct values of a number that the paper's tool takes for labels."""

GOLDEN = {"eps_risk": "ε risk, in the paper", "corr_mat_diff": "correlation difference, in the paper"}
PICTURES = (
    ("closest_record.epsilon_identifiability", "ε risk", "epsilon-risk"),
    (CORRELATION, CORRELATION, "correlation-difference"),
)
MARK = "\n## Measured\n"
ABOUT = (
    "`cart` with leaves of 5 people and without smoothing, ds `bayesian_network` without a budget, dp",
    "`dpgan` of 200 steps with ε = 1 and without margins; a pair is the paper's partition, the others are",
    "random parts of sp. Means over the repeats, with their range. Both joins are of the same parts. The",
    "ε risk is ours, and beside it that of the paper's tool on this table: its constant column `RNA Base`",
    "has a weight of 1e16, by whose sum labels are divided, so that numbers alone count. The correlation",
    "difference is the paper's: the norm over all pairs, of Pearson's r, V² and η². On this table it is a",
    "matter of three pairs: RNA 12, EOT and EF are related by .98 to .99, all others by less than .09.",
    "`associations` leaves these three out, as its number would tell of a few people, and has .76 for",
    "`independent`. AUROC lost is of logistic regression; models of real rows reach about .5 here. *Given",
    "away* is `partial_knowledge.excess_people`: the share of people of whom a few known values tell",
    "another one beyond what they tell of strangers; in the first repeats only.",
    "",
)


def cases(partition: Mapping[str, list[str]] | None) -> Iterator[tuple[str, Any]]:
    """Every fit by name: whole models, the paper's partition, and random ones of cart."""
    divided: dict[str, Any] = {"partition": "correlated"}
    if partition is not None:
        divided = {"partition": "explicit", "columns": [partition["part1"], partition["part2"]]}
    yield from MODELS.items()
    for a in MODELS:
        for b in MODELS:
            settings = {**divided, "parts": 2, "shares": shares(a, b)}
            yield f"{a},{b}", joined([MODELS[a], MODELS[b]], settings)
    for parts in PARTS:
        yield f"{parts} parts", joined([CART], {"partition": "random", "parts": parts})


def joined(generators: Sequence[Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    return {"disjoint": {"generators": generators, "join": "validated", **settings}}


def shares(*names: str) -> list[float]:
    """Of the budget: next to nothing for parts that buy nothing."""
    weights = [1.0 if name == "dp" else 1e-9 for name in names]
    return [weight / sum(weights) for weight in weights]


def releases(name: str, generator: Any, train: Table, seed: int) -> Iterator[tuple[str, Model]]:
    """One fit, and both joins of its parts; the domain is read off train: its ε is the noise's alone."""
    accountant = Accountant(Budget(1.0, 1e-5) if "dp" in name else None, unit=Unit.ROW)
    domain = PublicDomain.of(train.schema)
    context = FitContext(rng=child_rng(seed, "fit"), accountant=accountant, public_domain=domain)
    model = build_generator(generator).fit(train, context)
    if not isinstance(model, DisjointModel):
        yield name, model
        return
    yield f"{name} concatenate", replace(model, joiner=None)
    yield f"{name} validated", model


def measured(model: Model, train: Table, control: Table, seed: int, *, attacked: bool) -> dict[str, float]:
    """The numbers of one release."""
    made = model.sample(train.n_rows, child_rng(seed, "sample"))
    subject = Subject(train, control, made, column_groups=column_groups(model))
    audits = {name: registry.build("audit", name, settings) for name, settings in AUDITS.items()}
    outcomes, _ = run_audits(audits, subject, RunContext(seed=seed))
    found = {str(m.id): m.value for o in outcomes for m in o.measurements if str(m.id) in MEASURES}
    real, other, labels = frames(train, made)
    found[CORRELATION] = float(np.linalg.norm(squared(real, labels) - squared(other, labels)))
    if any(len(set(real[c])) == 1 for c in labels):
        found[PUBLISHED] = published_risk(real, other, labels)
    if attacked:
        found["blind"] = found["known"] = given_away(replace(subject, column_groups=()), seed)
        if subject.column_groups:
            found["known"] = given_away(subject, seed)
    return found


def given_away(subject: Subject, seed: int) -> float:
    attack = {"partial_knowledge": registry.build("audit", "partial_knowledge", ATTACK)}
    [outcome], _ = run_audits(attack, subject, RunContext(seed=seed))
    return next(m.value for m in outcome.measurements if m.id.quantity == "excess_people")


def frames(train: Table, made: Table) -> tuple[pd.DataFrame, pd.DataFrame, list[str]]:
    """Both tables, and the columns that the paper's tool takes for labels.

    It takes the norm of the difference over all pairs, of Pearson's r, and of V² and η² without correction.
    """
    real, other = (pd.DataFrame(t.data.to_pydict())[list(train.names)] for t in (train, made))
    labels = [str(c) for c in real if real[c].dtype.kind not in "if" or real[c].nunique() <= MOST_LABELS]
    return real, other.astype(real.dtypes), labels


def published_risk(real: pd.DataFrame, made: pd.DataFrame, labels: Sequence[str]) -> float:
    """ε-identifiability as the paper's tool has it on a table with a constant column.

    Its labels are divided by the sum of their weights, of which the constant column's is 1e16: numbers alone
    are left. These weigh one over the entropy of being in the upper half of their range.
    """
    numbers = [c for c in real if c not in labels]
    low, span = real[numbers].min(), np.ptp(real[numbers].to_numpy(dtype=float), axis=0)
    x, y = (((f[numbers] - low) / span).to_numpy(dtype=float) for f in (real, made))
    weights = [1 / (entropy(np.unique(np.round(c), return_counts=True)[1]) + 1e-16) for c in x.T]
    scale = np.array(weights) / np.maximum(np.ptp(np.vstack([x, y]), axis=0), 1.0)
    within, to_made = (cdist(x * scale, other * scale, "cityblock") for other in (x, y))
    np.fill_diagonal(within, np.inf)
    return float(np.mean(to_made.min(axis=1) < within.min(axis=1)))


def collect(chosen: argparse.Namespace) -> None:
    """Measure what is not on file yet, all cases once before any is repeated."""
    golden = json.loads(chosen.golden.read_text())
    name = chosen.table
    files = [pq.read_table(chosen.folder / f"{name}_{side}.parquet") for side in ("train", "test")]
    target = ColumnSpec.model_validate({"role": "target", "kind": "categorical"})
    schema = infer_schema(files[0], {TABLES[name]: target})
    train, control = (
        read_table(f, schema, where=side) for f, side in zip(files, ("train", "control"), strict=True)
    )
    partition = golden["partition"] if name == "hepatitis" else None
    known = {(row["fit"], row["repeat"]) for row in of_table(on_file(chosen.out), name)}
    until = time.monotonic() + 60 * chosen.minutes
    for repeat in range(chosen.repeats):
        for fit, generator in cases(partition):
            unasked = chosen.fits and fit not in chosen.fits
            if unasked or (fit, repeat) in known or time.monotonic() > until:
                continue
            rows = []
            start = time.process_time()
            for case, model in releases(fit, generator, train, repeat):
                found = measured(model, train, control, repeat, attacked=repeat < chosen.attacked)
                seconds, start = time.process_time() - start, time.process_time()
                head = {"table": name, "fit": fit, "case": case, "repeat": repeat}
                rows.append({**head, **found, "seconds": seconds})
            with chosen.out.open("a") as out:
                out.writelines(json.dumps(row) + "\n" for row in rows)
            print(name, fit, repeat, file=sys.stderr, flush=True)


def on_file(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def of_table(rows: Sequence[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [row for row in rows if row.get("table", "hepatitis") == name]


def told(rows: Sequence[dict[str, Any]], name: str, measure: str) -> str:
    """Mean and range of a measure over the repeats of a case."""
    values = [row[measure] for row in rows if row["case"] == name and measure in row]
    if not values:
        return ""
    ends = f" ({min(values):.3f} to {max(values):.3f})" if len(values) > 1 else ""
    return f"{mean(values):.3f}{ends}"


def table(rows: Sequence[dict[str, Any]], results: Mapping[str, Any]) -> list[str]:
    """One line for each release that was measured; the paper's pairs are validated joins."""
    measured_ones = {row["case"]: None for row in rows}
    names = [n for fit, _ in cases(None) for n in (fit, *(f"{fit} {j}" for j in JOINS))]
    measures = {m: label for m, label in MEASURES.items() if any(m in row for row in rows)}
    head = ["release", "repeats", *measures.values(), *(GOLDEN.values() if results else ())]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for name in filter(measured_ones.__contains__, names):
        cells = [told(rows, name, measure) for measure in measures]
        known = results.get(name.removesuffix(" validated"), {})
        cells += [f"{known[figure]:.3f}" if known else "" for figure in GOLDEN if results]
        repeats = sum(row["case"] == name for row in rows)
        lines.append(f"| {name} | {repeats} | " + " | ".join(cells) + " |")
    return lines


def trends(rows: Sequence[dict[str, Any]]) -> list[str]:
    """How each measure goes with the number of random parts: Spearman's ρ of the means."""
    lines = []
    for join in JOINS:
        known = [k for k in PARTS if any(r["case"] == f"{k} parts {join}" for r in rows)]
        for measure, label in MEASURES.items():
            values = [
                [r[measure] for r in rows if r["case"] == f"{k} parts {join}" and measure in r] for k in known
            ]
            if len(known) > 2 and all(values):
                means = [mean(each) for each in values]
                rho = spearmanr(known, means).statistic
                lines.append(f"* {join}, {label}: ρ = {rho:+.2f} over {known[0]} to {known[-1]} parts")
    return lines


def pictures(rows: Sequence[dict[str, Any]], folder: Path, of: str) -> list[str]:
    """How the measures go with the number of random parts, as pictures; the lines that show them."""
    lines = []
    for measure, label, kind in PICTURES:
        name = f"{of}-{kind}"
        found = {
            join: tuple(
                mean([r[measure] for r in rows if r["case"] == f"{k} parts {join}"] or [math.nan])
                for k in PARTS
            )
            for join in JOINS
        }
        drawn = Series(
            id=MeasurementId("disjoint", kind),
            title=f"{label} by number of random parts",
            kind="line",
            x_label="parts",
            y_label=label,
            x=tuple(map(float, PARTS)),
            lines=found,
        )
        folder.mkdir(exist_ok=True)
        (folder / f"{name}.svg").write_text(series_svg(drawn, anchor=name) + "\n")
        lines.append(f"![{label} by number of random parts]({folder.name}/{name}.svg)")
    return lines


def page(rows: Sequence[dict[str, Any]], results: Mapping[str, Any], folder: Path) -> str:
    """What stands behind the mark in the page."""
    seconds = sum(row["seconds"] for row in rows)
    lines = [MARK, f"`benchmarks/disjoint_paper.py`, {seconds:.0f} CPU seconds. sp is", *ABOUT]
    for name in TABLES:
        if found := of_table(rows, name):
            lines += [f"### {name}", "", *table(found, results if name == "hepatitis" else {}), ""]
            lines += ["By number of random parts, ρ being Spearman's of the means:", "", *trends(found), ""]
            lines += [*pictures(found, folder, name), ""]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, nargs="?", help="holds the tables' train and test")
    parser.add_argument("--table", default="hepatitis", choices=[*TABLES])
    parser.add_argument(
        "--golden", type=Path, required=True, help="the paper's figures with its partition (JSON)"
    )
    parser.add_argument("--out", type=Path, default=Path("disjoint_paper.jsonl"))
    parser.add_argument("--page", type=Path, help="write the tables behind its heading `Measured`")
    parser.add_argument(
        "--fits", nargs="*", help="of these alone, such as `sp,dp` and `2 parts`; all if left out"
    )
    parser.add_argument("--repeats", type=int, default=3, help="10 in the paper")
    parser.add_argument("--attacked", type=int, default=2, help="repeats in which the parts are attacked")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after these")
    chosen = parser.parse_args()
    if chosen.folder is not None:
        collect(chosen)
    rows, results = on_file(chosen.out), json.loads(chosen.golden.read_text())["results"]
    for name in TABLES:
        if found := of_table(rows, name):
            print(
                "\n".join([name, *table(found, results if name == "hepatitis" else {}), "", *trends(found)])
            )
    if chosen.page and rows:
        before = chosen.page.read_text().split(MARK)[0].rstrip("\n")
        chosen.page.write_text(f"{before}\n{page(rows, results, chosen.page.with_suffix(''))}")


if __name__ == "__main__":
    main()
