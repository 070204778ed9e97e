"""Disjoint generative models: what parts and joins cost, and who is found through them.

On tables of the paper: parts of `cart` (leaves of 5 people, without smoothing, as synthpop has them), of a
Bayesian network and of DPGAN with ε = 1 (without margins, as published), by the paper's partition (on other
tables than hepatitis that of the strongest relations), and of `cart`, the network and CTGAN by random ones
of 2 to 6 parts. The parts of a fit are joined twice, at random and validated. Each fit is a few lines of a
file and is not made again, so the command can be stopped and given again at any time. The attack by who
knows the parts takes longer than all else together, and is made in the first `--attacked` repeats alone.

    .venv/bin/python benchmarks/disjoint_paper.py FOLDER --golden FILE --out FILE \
        --page docs/research/disjoint.md
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from _disjoint_paper_page import (
    CORRELATION,
    DIVIDED,
    MARK,
    MEASURES,
    PARTS,
    PUBLISHED,
    of_table,
    page,
    table,
    trends,
)
from fidelity_against_peer import squared
from scipy.spatial.distance import cdist
from scipy.stats import entropy

from synth_audit import registry
from synth_audit.dp.accountant import Accountant
from synth_audit.dp.guarantee import Budget, Unit
from synth_audit.examination.audit_runner import run_audits
from synth_audit.execution.context import RunContext
from synth_audit.execution.seeds import child_rng
from synth_audit.generators.disjoint import DisjointModel, Part
from synth_audit.generators.disjoint.join import Joiner, Validation
from synth_audit.generators.disjoint.partition import partitioned
from synth_audit.plugins.audit import Subject
from synth_audit.plugins.generator import FitContext, Model, column_groups
from synth_audit.plugins.plugin_config import build_generator
from synth_audit.table.schema import PublicDomain
from synth_audit.table.schema_inference import ColumnSpec, infer_schema
from synth_audit.table.table import Table, read_table

TABLES = {"hepatitis": "b_class", "heart": "target", "breast_cancer": "Status"}
"""Targets, by table."""

CART = {"cart": {"minimum_leaf": 5, "smooth": False}}
MODELS: dict[str, Any] = {
    "sp": CART,
    "ds": "bayesian_network",
    "dp": {"dpgan": {"margins": 0, "steps": 200}},
}
"""Of the paper's short names: synthpop's CART, DataSynthesizer's network, DPGAN."""
DIVISIBLE = MODELS | {"ct": {"ctgan": {"epochs": 100, "averaging": 0.99}}}
"""Models that random parts are made of; the paper's figure 2 has a CTGAN among them."""

AUDITS: dict[str, dict[str, Any]] = {
    "closest_record": {"n_bootstrap": 100},
    "prediction": {"models": ["logistic"], "repeats": 1, "n_bootstrap": 100},
    "associations": {},
}
ATTACK: dict[str, Any] = {"max_people": 600}
MOST_LABELS = 10
"""Distinct values of a number that the paper's tool takes for labels."""


def cases(partition: Mapping[str, list[str]] | None) -> Iterator[tuple[str, Any]]:
    """Every fit by name: whole models, the paper's partition, and random ones of cart."""
    divided: dict[str, Any] = {"partition": "correlated"}
    if partition is not None:
        divided = {"partition": "explicit", "columns": [partition["part1"], partition["part2"]]}
    yield from DIVISIBLE.items()
    for a in MODELS:
        for b in MODELS:
            settings = {**divided, "parts": 2, "shares": shares(a, b)}
            yield f"{a},{b}", joined([MODELS[a], MODELS[b]], settings)
    for prefix, model in DIVIDED.items():
        for parts in PARTS:
            divided = {"partition": "random", "parts": parts}
            yield f"{prefix}{parts} parts", joined([DIVISIBLE[model]], divided)


def joined(generators: Sequence[Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    return {"disjoint": {"generators": generators, "join": "validated", **settings}}


def shares(*names: str) -> list[float]:
    """Of the budget: next to nothing for parts that buy nothing."""
    weights = [1.0 if name == "dp" else 1e-9 for name in names]
    return [weight / sum(weights) for weight in weights]


def releases(name: str, generator: Any, train: Table, seed: int) -> Iterator[tuple[str, Model]]:
    """One fit, and both joins of its parts; the domain is read off train: its ε is the noise's alone."""
    names = name.split(",")
    if {*names} == {"ds", "dp"}:
        model: Model = apart(names, generator["disjoint"], train, seed)
    else:
        model = build_generator(generator).fit(
            train, context_of("dp" in names, train, child_rng(seed, "fit"))
        )
    if not isinstance(model, DisjointModel):
        yield name, model
        return
    yield f"{name} concatenate", replace(model, joiner=None)
    yield f"{name} validated", model


def context_of(private: bool, train: Table, rng: np.random.Generator) -> FitContext:
    accountant = Accountant(Budget(1.0, 1e-5) if private else None, unit=Unit.ROW)
    return FitContext(rng=rng, accountant=accountant, public_domain=PublicDomain.of(train.schema))


def apart(names: Sequence[str], settings: Mapping[str, Any], train: Table, seed: int) -> DisjointModel:
    """Parts fitted on their own, as the paper's tool does: under one budget the network would be private."""
    how, columns = settings["partition"], settings.get("columns", ())
    groups = partitioned(train, how, len(names), columns, child_rng(seed, "partition"))
    models = []
    for i, (name, group) in enumerate(zip(names, groups, strict=True)):
        rows = Part(i, MODELS[name], group).rows(train)
        context = context_of(name == "dp", rows, child_rng(seed, "fit", str(i)))
        models.append(build_generator(MODELS[name]).fit(rows, context))
    joiner = Joiner.of(Validation(), train, groups, seed)
    return DisjointModel(train.schema, groups, tuple(models), joiner)


def measured(model: Model, train: Table, control: Table, seed: int, *, attacked: bool) -> dict[str, float]:
    """The numbers of one release."""
    made = model.sample(train.n_rows, child_rng(seed, "sample"))
    subject = Subject(train, control, made, column_groups=column_groups(model))
    found = numbers_of(subject, seed)
    if attacked:
        found["blind"] = found["known"] = given_away(replace(subject, column_groups=()), seed)
        if subject.column_groups:
            found["known"] = given_away(subject, seed)
    return found


def numbers_of(subject: Subject, seed: int, *without: str) -> dict[str, float]:
    """What is measured of every release, less some audits."""
    audits = {
        name: registry.build("audit", name, settings)
        for name, settings in AUDITS.items()
        if name not in without
    }
    outcomes, _ = run_audits(audits, subject, RunContext(seed=seed))
    found = {str(m.id): m.value for o in outcomes for m in o.measurements if str(m.id) in MEASURES}
    real, other, labels = frames(subject.train, subject.synthetic)
    found[CORRELATION] = float(np.linalg.norm(squared(real, labels) - squared(other, labels)))
    if any(len(set(real[c])) == 1 for c in labels):
        found[PUBLISHED] = published_risk(real, other, labels)
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


def sides(folder: Path, name: str) -> tuple[Table, Table]:
    """Train and control of a table."""
    files = [pq.read_table(folder / f"{name}_{side}.parquet") for side in ("train", "test")]
    target = ColumnSpec.model_validate({"role": "target", "kind": "categorical"})
    schema = infer_schema(files[0], {TABLES[name]: target})
    train, control = (
        read_table(f, schema, where=side) for f, side in zip(files, ("train", "control"), strict=True)
    )
    return train, control


def collect(chosen: argparse.Namespace) -> None:
    """Measure what is not on file yet, all cases once before any is repeated."""
    golden = json.loads(chosen.golden.read_text())
    name = chosen.table
    train, control = sides(chosen.folder, name)
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
    fits = [fit for fit, _ in cases(None)]
    for name in TABLES:
        if found := of_table(rows, name):
            print(
                "\n".join(
                    [name, *table(found, results if name == "hepatitis" else {}, fits), "", *trends(found)]
                )
            )
    if chosen.page and rows:
        before = chosen.page.read_text().split(MARK)[0].rstrip("\n")
        chosen.page.write_text(f"{before}\n{page(rows, results, fits, chosen.page.with_suffix(''))}")


if __name__ == "__main__":
    main()
