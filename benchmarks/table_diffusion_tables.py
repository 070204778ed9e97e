"""The thesis' comparison of private generators (Truda 2023, tables 7.2 and A.2) for those of this tool.

Adult without `education` and `fnlwgt`, train and control together as there; bounds and labels are declared by
hand. Figures as published beside this tool's way of asking the same, and both for fresh real rows, which no
release can be asked to be better than. Every release is a line of a file and is not made again, so that the
command can be stopped and given again. By default five seeds at ε = 1; --whole: ten, and ε from 0.5 to 1000.

    .venv/bin/python benchmarks/table_diffusion_tables.py FOLDER --out FILE \
        --page docs/research/private-generators.md
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import thesis_scores
from _table_diffusion_page import FRESH, INDEPENDENT, write  # beside this script

from synth_audit import registry
from synth_audit.arrays import Floats
from synth_audit.dp.accountant import Accountant
from synth_audit.dp.guarantee import Budget, Unit
from synth_audit.plugins.generator import FitContext
from synth_audit.table.schema import PublicDomain
from synth_audit.table.schema_inference import ColumnSpec, infer_schema
from synth_audit.table.table import Table, read_table

LEFT_OUT = ("education", "fnlwgt")
BOUNDS = {
    "age": (17, 90),
    "education_num": (1, 16),
    "capital_gain": (0, 99_999),
    "capital_loss": (0, 4_356),
    "hr_per_week": (1, 99),
}
"""Of the columns of numbers, from the documentation of the census."""

DELTA, ROWS = 1e-5, 5_000
EPSILONS = (0.5, 1.0, 2.0, 5.0, 10.0, 100.0, 1000.0)
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "TableDiffusion": ("table_diffusion", {}),
    "TableDiffusion, cooler": (
        "table_diffusion",
        {"steps": 600, "hidden": 96, "falling": True, "averaging": 0.98, "temperature": 0.85},
    ),
    "TableDiffusion, denoiser": ("table_diffusion_denoiser", {}),
    "DP-WGAN": ("dp_wgan", {}),
    "DP-auto-GAN": ("dp_auto_gan", {}),
    "PATE-GAN": ("pate_gan", {}),
    "DPGAN": ("dpgan", {}),
    "DP-CTGAN": ("dp_ctgan", {}),
    "TableDiffusion, no margins": ("table_diffusion", {"margins": 0}),
    "TableDiffusion, denoiser, no margins": ("table_diffusion_denoiser", {"margins": 0}),
    "DP-WGAN, no margins": ("dp_wgan", {"margins": 0}),
    "DP-auto-GAN, no margins": ("dp_auto_gan", {"margins": 0}),
    "PATE-GAN, no margins": ("pate_gan", {"margins": 0}),
    "PrivBayes": ("priv_bayes", {}),
    "MST": ("mst", {}),
    "AIM": ("aim", {}),
}


def adult(folder: Path) -> Table:
    """All rows, with bounds and labels as a plan would declare them."""
    parts = [pq.read_table(folder / f"adult_{part}.parquet") for part in ("train", "control")]
    data = pa.concat_tables(parts, promote_options="permissive").drop_columns(list(LEFT_OUT))
    specs = {}
    for name in data.column_names:
        gaps = data[name].null_count > 0
        if name in BOUNDS:
            declared = {"kind": "integer", "bounds": BOUNDS[name], "nullable": gaps}
        else:
            labels = sorted({str(x) for x in data[name].unique().to_pylist() if x is not None})
            declared = {"kind": "categorical", "categories": labels, "nullable": gaps}
        specs[name] = ColumnSpec.model_validate(declared)
    return read_table(data, infer_schema(data, specs), where="adult")


def released(table: Table, model: str, epsilon: float, seed: int) -> tuple[pd.DataFrame, float, float]:
    """As many rows as the table has, the ε that was spent, and the seconds of the fit."""
    name, settings = MODELS[model]
    generator = registry.build("generator", name, settings)
    accountant = Accountant(Budget(epsilon, 0.0 if name == "priv_bayes" else DELTA), unit=Unit.ROW)
    accountant.draws(table.n_rows)
    handed = FitContext(
        rng=np.random.default_rng(seed),
        accountant=accountant,
        public_domain=PublicDomain.of(table.schema),
    )
    start = time.process_time()
    fitted = generator.fit(table, handed)
    taken = time.process_time() - start
    guarantee = accountant.guarantee()
    if guarantee is None or guarantee.epsilon > epsilon:
        raise SystemExit(f"{model} has no guarantee within its budget: {accountant.why_none}")
    drawn = fitted.sample(table.n_rows, np.random.default_rng(seed + 1))
    return frame_of(drawn), guarantee.epsilon, taken


def frame_of(table: Table) -> pd.DataFrame:
    """Numbers as floats and labels as text, *?* where missing."""
    numbers = {c: table.numbers(c) for c in table.names if c in BOUNDS}
    labels = {c: [x or "?" for x in table.labels(c)] for c in table.names if c not in BOUNDS}
    return pd.DataFrame({**numbers, **labels})[list(table.names)]


def measured(real: pd.DataFrame, made: pd.DataFrame) -> dict[str, float]:
    """Everything that is asked of one release."""
    margins = {**marginal_distances(real, made)}
    both = pd.get_dummies(pd.concat([real, made], ignore_index=True)).astype(float)
    low, high = both[: len(real)].min(), both[: len(real)].max()
    vectors = ((both - low) / (high - low).replace(0, 1)).fillna(0).to_numpy()
    rng = np.random.default_rng(0)
    rows = min(ROWS, len(real), len(made))
    picked = [
        vectors[start + rng.choice(n, rows, replace=False)]
        for start, n in ((0, len(real)), (len(real), len(made)))
    ]
    ratio = thesis_scores.propensity_ratio(vectors, np.arange(len(vectors)) >= len(real), real.shape[1])
    return {**margins, "pMSE": ratio, **curves(*picked)}


def marginal_distances(real: pd.DataFrame, made: pd.DataFrame) -> dict[str, float]:
    """MD as published, with χ² on proportions; and Kolmogorov–Smirnov and total variation by themselves."""
    from scipy import stats

    published, ks, tv = [], [], []
    for name in real:
        if name in BOUNDS:
            ks.append(float(stats.ks_2samp(real[name].dropna(), made[name].dropna()).statistic))
            published.append(ks[-1])
            continue
        expected = real[name].value_counts(normalize=True)
        seen = made[name].value_counts(normalize=True)
        tv.append(0.5 * float(seen.sub(expected, fill_value=0).abs().sum()))
        there = seen.reindex(expected.index, fill_value=0)
        shares = (np.asarray(x, dtype=np.float64) for x in (expected, there))
        published.append(thesis_scores.proportion_chi_square(*shares))
    return {"MD": float(np.mean(published)), "KS": float(np.mean(ks)), "TV": float(np.mean(tv))}


def curves(real: Floats, made: Floats) -> dict[str, float]:
    """Areas under α-precision and β-recall on 30 steps, as published; and ``1 − 2 ∫ |P(α) − α|`` of either.

    The published area of fresh real rows is one half: above it rows are more alike than real ones.
    """
    precision, recall = thesis_scores.precision_curve(real, made), thesis_scores.recall_curve(real, made)
    levels = np.linspace(0, 1, thesis_scores.STEPS)
    areas = {"αP": float(precision.mean()), "βR": float(recall.mean())}
    return {
        **areas,
        "AUPRC": areas["αP"] * areas["βR"],
        "IPα": float(1 - 2 * np.mean(np.abs(precision - levels))),
        "IRβ": float(1 - 2 * np.mean(np.abs(recall - levels))),
    }


def references(real: pd.DataFrame, seed: int) -> Iterator[tuple[str, pd.DataFrame, pd.DataFrame]]:
    """Half of the rows beside the other half, and every column shuffled by itself."""
    rng = np.random.default_rng(seed)
    order, half = rng.permutation(len(real)), len(real) // 2
    one, other = (real.iloc[order[i * half : (i + 1) * half]] for i in (0, 1))
    yield FRESH, one.reset_index(drop=True), other.reset_index(drop=True)
    yield INDEPENDENT, real, real.apply(lambda column: column.to_numpy()[rng.permutation(len(real))])


def measure(folder: Path, out: Path, models: Sequence[str], epsilons: Sequence[float], seeds: int) -> None:
    """One line for each release that is not in the file yet."""
    done = {(run["model"], run["epsilon"], run["seed"]) for run in runs_in(out)}
    table = adult(folder)
    real = frame_of(table)
    for seed in range(seeds):
        for name, one, other in references(real, seed):
            if (name, None, seed) not in done:
                add(out, {"model": name, "epsilon": None, "seed": seed, **measured(one, other)})
        for epsilon in epsilons:
            for model in models:
                if (model, epsilon, seed) in done:
                    continue
                made, spent, taken = released(table, model, epsilon, seed)
                found = {"spent": spent, "fit_cpu_s": taken, **measured(real, made)}
                add(out, {"model": model, "epsilon": epsilon, "seed": seed, **found})


def add(out: Path, run: dict[str, Any]) -> None:
    """Append one line, and show it."""
    with out.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(run) + "\n")
    print(json.dumps(run, ensure_ascii=False), flush=True)


def runs_in(out: Path) -> list[dict[str, Any]]:
    """What was measured so far."""
    return [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what is missing, then write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="with adult_train.parquet and adult_control.parquet")
    parser.add_argument("--out", type=Path, required=True, help="a line for each release")
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--whole", action="store_true", help="ten seeds, and ε from 0.5 to 1000")
    parser.add_argument("--page", type=Path, help="Markdown to write")
    chosen = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    epsilons, seeds = (EPSILONS, 10) if chosen.whole else (chosen.epsilons, chosen.seeds)
    measure(chosen.folder, chosen.out, chosen.models, epsilons, seeds)
    if chosen.page:
        command = "benchmarks/table_diffusion_tables.py FOLDER --out FILE --page " + str(chosen.page)
        write(runs_in(chosen.out), chosen.page, command, list(MODELS))
    return 0


if __name__ == "__main__":
    sys.exit(main())
