"""The page and the pictures of benchmarks/disjoint_figures.py, from what it measured."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from synth_audit.findings.measurement import MeasurementId, Series
from synth_audit.report import words
from synth_audit.report.charts import series_svg

Row = Mapping[str, Any]
RISK, AUROC, CORRELATION = (
    "closest_record.epsilon_identifiability",
    "prediction.auroc_loss",
    "correlation difference",
)
LABELS = {RISK: "ε risk", AUROC: "AUROC lost", CORRELATION: CORRELATION, "Hellinger": "Hellinger's distance"}
PUBLISHED = "published ε risk"
MARK = "\n## Measured\n"


@dataclass(frozen=True)
class Page:
    """Rows on file, and the folder of the pictures.

    Attributes:
        rows: by study.
    """

    rows: Mapping[str, Sequence[Row]]
    folder: Path

    def picture(
        self,
        name: str,
        title: str,
        x: Sequence[Any],
        lines: Mapping[str, Sequence[float]],
        x_label: str,
        y_label: str,
    ) -> str:
        """Draw one and say where it lies: bars over names, lines over numbers."""
        kind = "bar" if isinstance(x[0], str) else "line"
        drawn = {label: tuple(map(float, values)) for label, values in lines.items()}
        series = Series(MeasurementId("disjoint", name), title, kind, x_label, y_label, tuple(x), drawn)
        self.folder.mkdir(exist_ok=True)
        (self.folder / f"{name}.svg").write_text(series_svg(series, anchor=name) + "\n")
        return f"![{title}]({self.folder.name}/{name}.svg)"


def write(rows: Iterable[Row], path: Path) -> None:
    """What stands behind the mark in the page: a section for each study that has rows."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row["study"], []).append(row)
    page = Page(found, path.with_suffix(""))
    spent = sum(row["seconds"] for each in found.values() for row in each)
    lines = [MARK, f"`benchmarks/disjoint_figures.py`, {spent:.0f} CPU seconds. Means over the repeats.", ""]
    for study, section in SECTIONS.items():
        if study in found:
            lines += [f"### {study[0].upper()}{study[1:]}", "", *section(page, found[study]), ""]
    before = path.read_text().split(MARK)[0].rstrip("\n") if path.exists() else "# Disjoint models: figures"
    path.write_text("\n".join([before, *lines]))


def average(rows: Iterable[Row], measure: str, **given: Any) -> float:
    """The mean of a measure over the rows that agree with what is given; NaN where there are none."""
    values = [
        row[measure] for row in rows if measure in row and all(row.get(k) == v for k, v in given.items())
    ]
    return mean(values) if values else math.nan


def distinct(rows: Iterable[Row], key: str) -> list[Any]:
    return list(dict.fromkeys(row[key] for row in rows))


def table(head: Sequence[str], lines: Iterable[Sequence[Any]]) -> Iterator[str]:
    yield "| " + " | ".join(head) + " |"
    yield "|---" * len(head) + "|"
    for cells in lines:
        yield "| " + " | ".join(told(c) for c in cells) + " |"


def told(cell: Any) -> str:
    if not isinstance(cell, float):
        return str(cell)
    return "" if math.isnan(cell) else f"{cell:.3f}"


def repeats(rows: Sequence[Row]) -> str:
    counts = {t: len({r["repeat"] for r in rows if r["table"] == t}) for t in distinct(rows, "table")}
    return "; ".join(f"{t}: {words.counted(n, 'repeat')}" for t, n in counts.items()) + "."


def validators(page: Page, rows: Sequence[Row]) -> Iterator[str]:
    """Figure 7."""
    yield f"The paper's figure 7: CART with DPGAN, the same parts joined by each validator. {repeats(rows)}"
    yield ""
    names, tables = distinct(rows, "case"), distinct(rows, "table")
    measures = (RISK, AUROC, CORRELATION)
    head = ["validator", *(f"{t}: {LABELS[m]}" for t in tables for m in measures)]
    found = [[n, *(average(rows, m, case=n, table=t) for t in tables for m in measures)] for n in names]
    yield from table(head, found)
    yield ""
    for measure, file in ((RISK, "validators-risk"), (CORRELATION, "validators-correlation")):
        lines = {t: [average(rows, measure, case=n, table=t) for n in names] for t in tables}
        shown = [n.replace("_", " ") for n in names]
        yield page.picture(file, f"{LABELS[measure]} by validator", shown, lines, "", LABELS[measure])


def calibration(page: Page, rows: Sequence[Row]) -> Iterator[str]:
    """Figure 8."""
    yield "The paper's figure 8: random forests on hepatitis, its partition. Of control, which no validator"
    yield f"has seen, compared with control whose parts were joined at random four times. {repeats(rows)}"
    yield ""
    cases = distinct(rows, "case")
    centres = [round(0.05 + k / 10, 2) for k in range(10)]
    lines = {case: [share(rows, case, k) for k in range(10)] for case in cases} | {"calibrated": centres}
    said = "probability that the parts belong together"
    yield from table(
        ["forest", "AUROC on control", "mean distance from the diagonal"],
        ([case, average(rows, "auc", case=case), apart(rows, case)] for case in cases),
    )
    yield ""
    title = "Calibration of validators on control"
    yield page.picture("calibration", title, centres, lines, said, "share of real rows")
    lines = {case: [mass(rows, case, k) for k in range(10)] for case in cases}
    title = "What validators say of joined rows"
    yield page.picture("calibration-rows", title, centres, lines, said, "share of joined rows")


def counts(rows: Sequence[Row], case: str, k: int) -> tuple[int, float]:
    """Real rows in a tenth of the probabilities, and joined ones as if there were as many of either."""
    own = [r for r in rows if r["case"] == case]
    return sum(r["real"][k] for r in own), sum(r["joined"][k] for r in own) / 4


def share(rows: Sequence[Row], case: str, k: int) -> float:
    """Of rows in a tenth of the probabilities, how many are real; NaN for fewer than twenty."""
    real, joined = counts(rows, case, k)
    return real / (real + joined) if real + joined >= 20 else math.nan


def mass(rows: Sequence[Row], case: str, k: int) -> float:
    return counts(rows, case, k)[1] / sum(counts(rows, case, j)[1] for j in range(10))


def apart(rows: Sequence[Row], case: str) -> float:
    """Mean distance of what is real from what was said, weighed by rows."""
    found = [(sum(counts(rows, case, k)), share(rows, case, k), 0.05 + k / 10) for k in range(10)]
    known = [(n, abs(s - c)) for n, s, c in found if not math.isnan(s)]
    return sum(n * d for n, d in known) / sum(n for n, _ in known)


def thresholds(page: Page, rows: Sequence[Row]) -> Iterator[str]:
    """Figure 9."""
    yield "The paper's figure 9: CART with DPGAN on hepatitis, 400 rows of a pool of 3,200 joined at fixed"
    yield f"thresholds; empty where they did not come together. {repeats(rows)}"
    yield ""
    cases, levels = distinct(rows, "case"), sorted(distinct(rows, "x"))
    measures = (RISK, CORRELATION, AUROC)
    head = ["forest", "threshold", "joins that came together", *(LABELS[m] for m in measures)]
    every = len({r["repeat"] for r in rows})
    yield from table(
        head,
        (
            [c, f"{x:g}", f"{complete(rows, c, x)} of {every}"]
            + [average(rows, m, case=c, x=x) for m in measures]
            for c in cases
            for x in levels
        ),
    )
    yield ""
    for measure, file in ((RISK, "thresholds-risk"), (CORRELATION, "thresholds-correlation")):
        lines = {c: [average(rows, measure, case=c, x=x) for x in levels] for c in cases}
        yield page.picture(
            file, f"{LABELS[measure]} by threshold", levels, lines, "threshold", LABELS[measure]
        )


def complete(rows: Sequence[Row], case: str, x: float) -> int:
    return sum(r["case"] == case and r["x"] == x and RISK in r for r in rows)


def relations(page: Page, rows: Sequence[Row]) -> Iterator[str]:
    """Figure 5."""
    yield "The paper's figure 5: CART on two parts of four made-up columns, 500 rows, whose relations lie"
    yield f"more and more across the parts (ratio of Frobenius norms, across to inside). {repeats(rows)}"
    yield ""
    weights, cases, measures = distinct(rows, "x"), distinct(rows, "case"), (CORRELATION, RISK, "Hellinger")
    ratios = [average(rows, "ratio", x=w) for w in weights]
    head = ["across to inside", *(f"{LABELS[m]}, {c}" for m in measures for c in cases)]
    yield from table(
        head,
        (
            [ratio, *(average(rows, m, case=c, x=w) for m in measures for c in cases)]
            for w, ratio in zip(weights, ratios, strict=True)
        ),
    )
    yield ""
    for measure, file in zip(measures, ("correlation", "risk", "hellinger"), strict=True):
        lines = {c: [average(rows, measure, case=c, x=w) for w in weights] for c in cases}
        title = f"{LABELS[measure]} by relations across parts"
        yield page.picture(
            f"relations-{file}", title, ratios, lines, "relations across to inside", LABELS[measure]
        )


def seconds(page: Page, rows: Sequence[Row]) -> Iterator[str]:
    """Figure 4 (a)."""
    yield "The paper's figure 4 (a): CPU seconds of a fit and its rows, one thread, parts in turn."
    yield f"sp is `cart`, ds `bayesian_network` without a budget. {repeats(rows)}"
    yield ""
    parts, keys = distinct(rows, "x"), list(dict.fromkeys((r["table"], r["case"]) for r in rows))
    lines = {f"{t}, {c}": [average(rows, "cpu", table=t, case=c, x=k) for k in parts] for t, c in keys}
    yield from table(
        ["", *(f"{k} parts" if k > 1 else "whole" for k in parts)],
        ([label, *values] for label, values in lines.items()),
    )
    yield ""
    yield page.picture("seconds", "CPU seconds by number of parts", parts, lines, "parts", "CPU seconds")


def wide(page: Page, rows: Sequence[Row]) -> Iterator[str]:
    """Figure 4 (b)."""
    yield "The paper's figure 4 (b): a Bayesian network of 98 made-up columns (93 of labels) and 225 rows,"
    yield f"CPU seconds of a fit and its rows, one thread, parts in turn. {repeats(rows)}"
    yield ""
    yield from times_as_fast(rows)
    yield ""
    parts = distinct(rows, "x")
    found = [average(rows, "cpu", x=k) for k in parts]
    yield page.picture(
        "wide-seconds", "98 columns by number of parts", parts, {"ds": found}, "parts", "CPU seconds"
    )


def times_as_fast(rows: Sequence[Row]) -> Iterator[str]:
    """CPU seconds of the network by parts, and the ratio to the whole one."""
    parts = distinct(rows, "x")
    found = [average(rows, "cpu", x=k) for k in parts]
    yield from table(
        ["parts", *(str(k) if k > 1 else "whole" for k in parts)],
        [["CPU s", *found], ["times as fast as whole", *(f"{found[0] / cpu:.1f}" for cpu in found)]],
    )


def ways(page: Page, rows: Sequence[Row]) -> Iterator[str]:
    """What brings the ε risk down."""
    yield "CART with DPGAN on hepatitis by the paper's partition (but for the two cases that name another),"
    yield f"each way by itself; all else as in the table of [disjoint models](disjoint.md). {repeats(rows)}"
    yield ""
    joins = ("concatenate", "validated")
    head = ["way", *(f"{LABELS[m]}, {j}" for j in joins for m in (RISK, AUROC, CORRELATION))]
    head += [f"ε risk as published, {j}" for j in joins]
    yield from table(
        head,
        (
            [case]
            + [average(rows, m, case=case, join=j) for j in joins for m in (RISK, AUROC, CORRELATION)]
            + [average(rows, PUBLISHED, case=case, join=j) for j in joins]
            for case in distinct(rows, "case")
        ),
    )


SECTIONS = {
    "ways": ways,
    "validators": validators,
    "calibration": calibration,
    "thresholds": thresholds,
    "relations": relations,
    "seconds": seconds,
    "98 columns": wide,
}
"""By study, in the order of the page."""
