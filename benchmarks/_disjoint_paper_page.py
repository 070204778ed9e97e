"""The tables and the pictures of benchmarks/disjoint_paper.py, from what it measured."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from scipy.stats import spearmanr

from synth_audit.findings.measurement import MeasurementId, Series
from synth_audit.report.charts import series_svg

JOINS = ("concatenate", "validated")
PARTS = range(2, 7)
DIVIDED = {"": "sp", "ds ": "ds", "ct ": "ct"}
"""Models that are divided at random, by what stands before the number of parts."""

RISK = "closest_record.epsilon_identifiability"
CORRELATION, PUBLISHED = "correlation difference", "published ε risk"
MEASURES = {
    "closest_record.epsilon_identifiability": "ε risk",
    PUBLISHED: "ε risk as published",
    "prediction.auroc_loss": "AUROC lost",
    CORRELATION: CORRELATION,
    "associations.frobenius": "the same over pairs above the suppression limit",
    "known": "inferred, parts known",
    "blind": "inferred, parts unknown",
}
GOLDEN = {"eps_risk": "ε risk, in the paper", "corr_mat_diff": "correlation difference, in the paper"}
BESIDE = {RISK: "eps_risk", PUBLISHED: "eps_risk", CORRELATION: "corr_mat_diff"}
"""The paper's figure for a measure."""

PICTURES = (
    ("closest_record.epsilon_identifiability", "ε risk", "epsilon-risk"),
    (CORRELATION, CORRELATION, "correlation-difference"),
)
LOSS = ("prediction.auroc_loss", "AUROC lost", "auroc-lost")
MIXED = ("sp", "dp", "sp,dp validated")
TABLES = ("hepatitis", "heart", "breast_cancer")
MARK = "\n## Measured\n"
ABOUT = (
    "`cart` with leaves of 5 people and without smoothing, ds `bayesian_network` without a budget, dp",
    "`dpgan` of 200 steps with ε = 1 and without margins, ct `ctgan` of 100 epochs (`averaging: 0.99`); a",
    "pair is the paper's partition, the others are random parts of sp, or of ds or ct. Means over the",
    "repeats, with their range. Both joins are of the same parts. The ε risk is ours, and next to it that of",
    "the paper's tool on this table: its constant column `RNA Base` has a weight of 1e16, by whose sum",
    "labels are divided, so that numbers alone count. The correlation difference is the paper's: the norm",
    "over all pairs, of Pearson's r, V² and η². On this table it is a matter of three pairs: RNA 12, EOT",
    "and EF are related by .98 to .99, all others by less than .09. `associations` leaves these three out,",
    "as its number would tell of a few people, and has .76 for `independent`. AUROC lost is of logistic",
    "regression; models of real rows reach about .5 here. *Inferred* is",
    "`partial_knowledge.excess_people`: the share of people of whom a few known values tell another one",
    "beyond what they tell of strangers; in the first repeats only.",
    "",
)


def of_table(rows: Sequence[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [row for row in rows if row.get("table", "hepatitis") == name]


def told(rows: Sequence[dict[str, Any]], name: str, measure: str) -> str:
    """Mean and range of a measure over the repeats of a case."""
    values = [row[measure] for row in rows if row["case"] == name and measure in row]
    if not values:
        return ""
    ends = f" ({min(values):.3f} to {max(values):.3f})" if len(values) > 1 else ""
    return f"{mean(values):.3f}{ends}"


def table(rows: Sequence[dict[str, Any]], results: Mapping[str, Any], fits: Sequence[str]) -> list[str]:
    """One line for each release that was measured; the paper's pairs are validated joins."""
    measured_ones = {row["case"] for row in rows}
    names = [n for fit in fits for n in (fit, *(f"{fit} {j}" for j in JOINS))]
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
    for prefix, model in DIVIDED.items():
        for join in JOINS:
            known = [k for k in PARTS if any(r["case"] == f"{prefix}{k} parts {join}" for r in rows)]
            for measure, label in MEASURES.items():
                found = [values(rows, f"{prefix}{k} parts {join}", measure) for k in known]
                if len(known) > 2 and all(found):
                    rho = spearmanr(known, [mean(each) for each in found]).statistic
                    ends = f"{known[0]} to {known[-1]} parts"
                    lines.append(f"* {model}, {join}, {label}: ρ = {rho:+.2f} over {ends}")
    return lines


def agreement(rows: Sequence[dict[str, Any]], results: Mapping[str, Any]) -> list[str]:
    """How our order of the paper's models goes with the paper's: Spearman's ρ."""
    lines = []
    for measure, figure in BESIDE.items():
        found = [
            (mean_of(rows, name, measure), mean_of(rows, f"{name} validated", measure)) for name in results
        ]
        ours = [whole if math.isnan(pair) else pair for whole, pair in found]
        if not any(map(math.isnan, ours)):
            rho = spearmanr(ours, [known[figure] for known in results.values()]).statistic
            lines.append(f"* {MEASURES[measure]}: ρ = {rho:+.2f} over the paper's {len(ours)} models")
    return [*lines, ""]


def values(rows: Sequence[dict[str, Any]], case: str, measure: str) -> list[float]:
    return [row[measure] for row in rows if row["case"] == case and measure in row]


def mean_of(rows: Sequence[dict[str, Any]], case: str, measure: str) -> float:
    """NaN where there is none."""
    return mean(values(rows, case, measure) or [math.nan])


def pictures(rows: Sequence[dict[str, Any]], folder: Path, of: str) -> list[str]:
    """How the measures go with the number of random parts, as pictures; the lines that show them."""
    lines = []
    for measure, label, kind in PICTURES:
        found = {
            f"{model}, {join}": tuple(mean_of(rows, f"{prefix}{k} parts {join}", measure) for k in PARTS)
            for prefix, model in DIVIDED.items()
            for join in JOINS
            if any(row["case"] == f"{prefix}{PARTS[0]} parts {join}" for row in rows)
        }
        if found:
            title = f"{label} by number of random parts"
            lines.append(
                drawn(folder, f"{of}-{kind}", title, tuple(map(float, PARTS)), found, "parts", label)
            )
    return lines


def mixed(rows: Sequence[dict[str, Any]], folder: Path) -> list[str]:
    """The paper's figure 6: CART, DPGAN and both on every table, as bars."""
    tables = [name for name in TABLES if any(row["case"] == MIXED[-1] for row in of_table(rows, name))]
    lines = []
    for measure, label, kind in (PICTURES[0], LOSS):
        found = {
            case: tuple(mean_of(of_table(rows, name), case, measure) for name in tables) for case in MIXED
        }
        title = f"{label} of sp, of dp and of both validated"
        lines.append(drawn(folder, f"mixed-{kind}", title, tuple(tables), found, "", label))
    return lines


def drawn(
    folder: Path,
    name: str,
    title: str,
    x: tuple[Any, ...],
    lines: Mapping[str, tuple[float, ...]],
    x_label: str,
    y_label: str,
) -> str:
    """Draw bars over names or lines over numbers; the line that shows the picture."""
    kind = "bar" if isinstance(x[0], str) else "line"
    series = Series(MeasurementId("disjoint", name), title, kind, x_label, y_label, x, lines)
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.svg").write_text(series_svg(series, anchor=name) + "\n")
    return f"![{title}]({folder.name}/{name}.svg)"


def page(
    rows: Sequence[dict[str, Any]], results: Mapping[str, Any], fits: Sequence[str], folder: Path
) -> str:
    """What stands behind the mark in the page."""
    seconds = sum(row["seconds"] for row in rows)
    lines = [MARK, f"`benchmarks/disjoint_paper.py`, {seconds:.0f} CPU seconds. sp is", *ABOUT]
    lines += [*mixed(rows, folder), ""]
    for name in TABLES:
        if found := of_table(rows, name):
            lines += [f"### {name}", "", *table(found, results if name == "hepatitis" else {}, fits), ""]
            if name == "hepatitis":
                lines += ["Our order next to the paper's, ρ being Spearman's of the means:", ""]
                lines += agreement(found, results)
            if known := trends(found):
                lines += ["By number of random parts, ρ being Spearman's of the means:", "", *known, ""]
            if shown := pictures(found, folder, name):
                lines += [*shown, ""]
    return "\n".join(lines)
