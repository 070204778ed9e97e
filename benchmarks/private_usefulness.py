"""How useful releases of all private generators are at one ε, on Adult and on 27 columns of SUPPORT2.

Total variation of single columns and of pairs, numbers in 25 bins of equal width, and the AUROC of a random
forest that learns on the release and is asked about the real rows that no generator saw, three in ten. These
stand beside the generators as *fresh real rows*. Bounds and labels are declared; all seeds learn from the
same rows. Every release is a line of a file and is not made again, so the command can be stopped and given
again; it prints the table of docs/research/generators-measured.md, means over the seeds there are.

    .venv/bin/python benchmarks/private_usefulness.py FOLDER --out FILE
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from _tvinesynth_cases import CLINICAL, clipped  # beside this script
from table_diffusion_tables import adult, runs_in

from synth_audit import registry
from synth_audit.arrays import Codes, Floats
from synth_audit.dp.accountant import Accountant
from synth_audit.dp.guarantee import Budget, Unit
from synth_audit.plugins.generator import FitContext
from synth_audit.table.schema import PublicDomain, quantitative
from synth_audit.table.schema_inference import ColumnSpec, infer_schema
from synth_audit.table.table import Table, read_table

DELTA, BINS, CONTROL, TREES = 1e-5, 25, 0.3, 100
GENERATORS = (
    *("aim", "mst", "priv_bayes", "priv_pgd", "table_diffusion", "table_diffusion_denoiser"),
    *("dp_wgan", "dp_ctgan", "dpgan", "dp_auto_gan", "pate_gan"),
)
FRESH = "fresh real rows"


def support2(folder: Path) -> Table:
    """The columns that TVineSynth has, cut off at its clinical ranges; whoever died is ``Y``."""
    data = pq.read_table(folder / "support2_raw.parquet")
    data = clipped(data.select([*CLINICAL, "death"]).rename_columns([*CLINICAL, "Y"]), CLINICAL)
    declared: dict[str, dict[str, Any]] = {name: {"bounds": CLINICAL[name]} for name in CLINICAL}
    declared["Y"] = {"kind": "categorical", "categories": ["0", "1"], "nullable": False}
    specs = {name: ColumnSpec.model_validate(own) for name, own in declared.items()}
    return read_table(data, infer_schema(data, specs), where="support2")


TABLES: dict[str, tuple[Callable[[Path], Table], str]] = {
    "Adult": (adult, "income"),
    "SUPPORT2": (support2, "Y"),
}


def released(
    train: Table, name: str, epsilon: float, seed: int, margins: float | None
) -> tuple[Table, dict[str, float]]:
    """As many rows as train has, and what the fit took.

    Args:
        margins: share of ε for the counts of every column; None for the generator's own.
    """
    delta = 0.0 if name == "priv_bayes" else DELTA
    accountant = Accountant(Budget(epsilon, delta), unit=Unit.ROW)
    accountant.draws(train.n_rows)
    handed = FitContext(
        rng=np.random.default_rng(seed), accountant=accountant, public_domain=PublicDomain.of(train.schema)
    )
    start = time.process_time()
    settings = {} if margins is None else {"margins": margins}
    fitted = registry.build("generator", name, settings).fit(train, handed)
    taken = time.process_time() - start
    guarantee = accountant.guarantee()
    if guarantee is None or guarantee.epsilon > epsilon:
        raise SystemExit(f"{name} has no guarantee within its budget: {accountant.why_none}")
    made = fitted.sample(train.n_rows, np.random.default_rng(seed + 1))
    return made, {"spent": guarantee.epsilon, "fit_cpu_s": taken}


def cells(table: Table) -> tuple[Codes, list[int]]:
    """Bins and labels, shape (n, d), what is missing being the last; and how many there are of each."""
    codes, sizes = [], []
    numbers = {c.name for c in quantitative(table.schema)}
    for column in table.schema:
        if column.name in numbers and column.bounds is not None:
            low, high = column.bounds
            share = (table.numbers(column.name) - low) / (high - low)
            own = np.where(np.isnan(share), BINS, np.clip(share * BINS, 0, BINS - 1)).astype(np.int64)
            sizes.append(BINS + 1)
        else:
            places = {label: i for i, label in enumerate([*column.categories, None])}
            own = np.array([places[label] for label in table.labels(column.name)])
            sizes.append(len(places))
        codes.append(own)
    return np.stack(codes, axis=1), sizes


def variation(one: Codes, other: Codes, sizes: Sequence[int], together: int) -> float:
    """Mean total variation over all sets of so many columns."""

    def shares(codes: Codes, chosen: Sequence[int]) -> Floats:
        widths = tuple(sizes[j] for j in chosen)
        place = np.ravel_multi_index(tuple(codes[:, j] for j in chosen), widths)
        counts: Floats = np.bincount(place, minlength=int(np.prod(widths))) / len(codes)
        return counts

    sets = combinations(range(len(sizes)), together)
    return float(np.mean([np.abs(shares(one, s) - shares(other, s)).sum() / 2 for s in sets]))


def forest_area(made: Table, control: Table, target: str) -> float:
    """AUROC on control of a random forest that learns on the release."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.metrics import roc_auc_score

    place = made.names.index(target)
    (rows, sizes), (asked, _) = cells(made), cells(control)
    numbers = {c.name for c in quantitative(made.schema)}

    def features(table: Table, codes: Codes) -> Floats:
        own = [
            np.nan_to_num(table.numbers(n), nan=-1e9)[:, None]
            if n in numbers
            else np.eye(sizes[j])[codes[:, j]]
            for j, n in enumerate(table.names)
            if j != place
        ]
        return np.hstack(own)

    if len(set(rows[:, place])) < 2:
        return 0.5
    forest = RandomForestClassifier(TREES, min_samples_leaf=5, random_state=0)
    forest.fit(features(made, rows), rows[:, place] == 1)
    chances = forest.predict_proba(features(control, asked))[:, 1]
    return float(roc_auc_score(asked[:, place] == 1, chances))


def measured(train: Table, control: Table, made: Table, target: str) -> dict[str, float]:
    """What is asked of one release."""
    (real, sizes), (codes, _) = cells(train), cells(made.under(train.schema))
    found = {f"tv{k}": variation(real, codes, sizes, k) for k in (1, 2)}
    return {**found, "auroc": forest_area(made.under(train.schema), control, target)}


def measure(args: argparse.Namespace) -> None:
    """One line for each release that is not in the file yet."""
    done = {key(run) for run in runs_in(args.out)}
    for name in args.tables:
        read, target = TABLES[name]
        table = read(args.folder)
        order = np.random.default_rng(0).permutation(table.n_rows)
        cut = round(CONTROL * table.n_rows)
        control, train = (table.take(np.sort(rows)) for rows in (order[:cut], order[cut:]))
        wanted = [{"table": name, "generator": FRESH, "epsilon": None}]
        own = {} if args.margins is None else {"margins": args.margins}
        for seed, generator in product(range(args.seeds), args.generators):
            wanted.append(
                {"table": name, "generator": generator, "epsilon": args.epsilon, "seed": seed, **own}
            )
        for run in (run for run in wanted if key(run) not in done):
            made: Table = train
            taken: dict[str, float] = {}
            if run["epsilon"]:
                made, taken = released(train, run["generator"], args.epsilon, run["seed"], args.margins)
            found = measured(train if run["epsilon"] else control, control, made, target)
            with args.out.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps({**run, **taken, **found}) + "\n")


def key(run: dict[str, Any]) -> tuple[Any, ...]:
    """By which a release is known; a line without a seed is of the first."""
    return run["table"], run["generator"], run["epsilon"], run.get("seed", 0), run.get("margins")


def show(runs: Sequence[dict[str, Any]], epsilon: float, margins: float | None) -> None:
    """A row for each generator, the tables beside one another; mean and standard deviation over seeds."""
    write: Callable[[str], object] = lambda line: sys.stdout.write(line + "\n")  # noqa: E731
    heads = ("TV of columns", "of pairs", "AUROC", "fit, CPU s")
    write(
        f"| ε = {epsilon:g} | "
        + " | ".join(f"{t}: {heads[0]} | " + " | ".join(heads[1:]) for t in TABLES)
        + " |"
    )
    write("|---" * (1 + len(heads) * len(TABLES)) + "|")
    for generator in (*GENERATORS, FRESH):
        line = [f"`{generator}`" if generator != FRESH else generator]
        for table in TABLES:
            own = [r for r in runs if (r["table"], r["generator"]) == (table, generator)]
            own = [r for r in own if (r["epsilon"], r.get("margins")) in ((epsilon, margins), (None, None))]
            line += [spread([r[k] for r in own]) for k in ("tv1", "tv2", "auroc")]
            taken = [r["fit_cpu_s"] for r in own if "fit_cpu_s" in r]
            line.append(f"{np.mean(taken):.0f}" if taken else "")
        write("| " + " | ".join(line) + " |")


def spread(values: Sequence[float]) -> str:
    """The mean, and where there are several the standard deviation."""
    found = (np.mean(values), np.std(values, ddof=1)) if len(values) > 1 else values
    told = [f"{value:.3f}".lstrip("0") for value in found]
    return " ± ".join(told)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what is missing, then print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="with adult_*.parquet and support2_raw.parquet")
    parser.add_argument("--out", type=Path, required=True, help="a line for each release")
    parser.add_argument("--tables", nargs="+", choices=list(TABLES), default=list(TABLES))
    parser.add_argument("--generators", nargs="*", choices=GENERATORS, default=list(GENERATORS))
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--margins", type=float, help="as the generators' setting; their own if left out")
    chosen = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    measure(chosen)
    show(runs_in(chosen.out), chosen.epsilon, chosen.margins)
    return 0


if __name__ == "__main__":
    sys.exit(main())
