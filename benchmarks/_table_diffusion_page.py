"""The page and the picture of benchmarks/table_diffusion_tables.py, from its lines."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np
import pandas as pd

from synth_audit.report import svg, words

COLUMNS = ("pMSE", "MD", "αP", "βR", "AUPRC")
OURS = ("KS", "TV", "IPα", "IRβ")
PUBLISHED = {
    "DP-WGAN": (1689, 0.355, 0.513, 0.009, 0.005),
    "DP-auto-GAN": (1991, 0.291, 0.742, 0.001, 0.001),
    "PATE-GAN": (2031, 0.692, 0.007, 0.001, 0.000),
    "TableDiffusion": (590, 0.122, 0.667, 0.170, 0.115),
    "TableDiffusion, denoiser": (1088, 0.089, 0.833, 0.161, 0.134),
}
"""The thesis' means at (1, 1e-5) on Adult, in the order of :data:`COLUMNS`."""

LESS_IS_BETTER = ("pMSE", "MD", "KS", "TV")
FRESH, INDEPENDENT = "fresh real rows", "columns by chance"
OWN, FEWEST, LINE = "TableDiffusion", 5, 105

INTRODUCTION = """# Private generators, compared as TableDiffusion's thesis did

Adult without `education` and `fnlwgt` (48,842 rows × 13), δ = 1e-5 (PrivBayes: 0); means ± standard
deviations over seeds. The page and its picture come from

    {command}

which goes on where it was stopped. The first five columns are computed as published: pMSE ratio, marginal
distance with χ² on proportions (near 0 for labels, whatever they are), and areas under the curves of
α-precision and β-recall, whose product is AUPRC. Fresh real rows have an α-precision of one half: more is
not more precise, but nearer to the mean than real rows are. The other columns ask as this tool does: mean
Kolmogorov–Smirnov distance of numbers, total variation of labels, and `1 − 2 ∫ |P(α) − α|` of either
curve, where 1 is best. In brackets the thesis' figures at (1, 1e-5).

**pMSE and MD look at single columns**: columns by chance have 0. The networks buy their margins alike here
(`margins: 0.2`), so these two hardly set them apart, and their order by them is mostly chance. How columns
hang together shows in βR and, with αP near one half, in AUPRC.
"""

UNDER_THE_PICTURE = """Dashed: fresh real rows; dotted: columns by chance. Means over the seeds of the tables
above: a point of one seed is as uncertain as the deviations at ε = 1 say. `pate_gan` asks its teachers as
often as ε pays for: 100 times at ε = 1 and 20,000 times, with ever less noise, from some ε = 50 on."""

TRIED = """## What was tried for αP and AUPRC

One seed, 10,000 rows, ε = 4 (about as much as ε = 1 is to all rows); TV of pairs over ten bins of numbers.

| `table_diffusion` | pMSE | αP | βR | AUPRC | TV of pairs | CPU s |
|---|---|---|---|---|---|---|
| T = 10, 300 steps at a rate of 0.03, rate 0.005, C = 1 | 44 | 0.508 | 0.166 | 0.084 | 0.058 | 29 |
| T = 3 | 43 | 0.492 | 0.137 | 0.067 | 0.064 | 12 |
| T = 20 | 50 | 0.494 | 0.183 | 0.091 | 0.060 | 45 |
| learning rate 0.01 | 41 | 0.508 | 0.140 | 0.071 | 0.066 | 29 |
| learning rate 0.0025 | 37 | 0.499 | 0.168 | 0.084 | 0.058 | 22 |
| 100 steps at a rate of 0.1 | 41 | 0.502 | 0.172 | 0.086 | 0.054 | 22 |
| 900 steps at a rate of 0.03 | 45 | 0.511 | 0.168 | 0.086 | 0.060 | 64 |
| width 64 | 38 | 0.499 | 0.175 | 0.087 | 0.056 | 13 |
| C = 0.1, the default since | 47 | 0.510 | 0.192 | 0.098 | 0.052 | 23 |
| C = 0.02 | 43 | 0.505 | 0.185 | 0.093 | 0.054 | 31 |

Most is gained by clipping at a smaller norm: the loss here is the *mean* square over the coordinates, some
hundred, whose gradients are as many times shorter than those of the sum as printed, while noise was drawn for
C = 1.

On all rows at ε = 1, C = 0.1, one seed; *EMA* is a running mean of the weights with that decay, *sloping* a
learning rate that falls to 0 in the second half. Means of weights and all that is done while rows are drawn
follow from what was bought, and cost no ε.

| `table_diffusion` | αP | βR | AUPRC | KS | TV | CPU s |
|---|---|---|---|---|---|---|
| defaults: 300 steps at a rate of 0.03, rate 0.005, width 128 | 0.518 | 0.202 | 0.105 | 0.011 | 0.007 | 73 |
| with the EMA of 0.95 | 0.515 | 0.201 | 0.103 | 0.010 | 0.007 | |
| with the EMA of 0.98 | 0.514 | 0.205 | 0.105 | 0.010 | 0.007 | |
| drawn in three steps for each level | 0.522 | 0.186 | 0.097 | 0.011 | 0.007 | |
| drawn with new noise at each level | 0.506 | 0.195 | 0.099 | 0.010 | 0.009 | |
| drawn, labels rounded, noised to 0.7 and drawn again | 0.515 | 0.201 | 0.104 | 0.011 | 0.009 | |
| drawn from noise on columns by chance (real ones), EMA of 0.98 | 0.503 | 0.212 | 0.107 | 0.010 | 0.009 | |
| 100 steps at a rate of 0.1, rate 0.01 sloping from the start | 0.489 | 0.201 | 0.098 | 0.009 | 0.010 | 81 |
| rate 0.01 sloping from the start | 0.510 | 0.193 | 0.098 | 0.007 | 0.008 | 72 |
| 600 steps, width 96, sloping | 0.506 | 0.211 | 0.107 | 0.009 | 0.008 | 110 |
| 1,000 steps, width 64, sloping | 0.514 | 0.204 | 0.105 | 0.008 | 0.008 | 144 |
| the same with the EMA of 0.98 | 0.513 | 0.209 | 0.107 | 0.009 | 0.009 | |
| noise up to 2.5 instead of 1, each level counting alike | 0.506 | 0.185 | 0.094 | 0.010 | 0.009 | 69 |
| the denoiser, C = 0.1, sloping | 0.506 | 0.173 | 0.087 | 0.008 | 0.008 | 78 |

None reaches 0.115, and seeds alone differ by some 0.004, so that the defaults stay: AUPRC follows βR.
That is not held back by what the noise costs alone, as the tables by ε say, and `aim`, which counts
pairs, has more at ε = 1. Neither is it the network that does not know how much noise it looks at: handed
the level as an input it has 0.202 and 0.102 (84 CPU s), and 0.205 and 0.103 drawn from noise on columns
by chance.

**What moves αP is drawing from less noise than was learnt** (`temperature` τ), which costs no ε. One fit
of the defaults:

| τ | pMSE | MD | αP | βR | AUPRC | KS | TV |
|---|---|---|---|---|---|---|---|
| 1 | 160 | 0.003 | 0.504 | 0.202 | 0.102 | 0.006 | 0.008 |
| 0.9 | 310 | 0.014 | 0.547 | 0.194 | 0.106 | 0.023 | 0.021 |
| 0.8 | 745 | 0.026 | 0.587 | 0.193 | 0.113 | 0.043 | 0.040 |
| 0.7 | 1,515 | 0.041 | 0.630 | 0.180 | 0.113 | 0.065 | 0.063 |
| 0.6 | 2,580 | 0.057 | 0.675 | 0.152 | 0.102 | 0.089 | 0.090 |

Rows are then nearer to the mean than real ones, rare labels rarer, and every other score is worse, so that
this is no default. **With it AUPRC comes to the thesis' 0.115**, and pMSE, MD and βR stay reached: `{steps:
600, hidden: 96, falling: true, averaging: 0.98, temperature: 0.85}`, *cooler* above: 0.1146 ± 0.0028 over
five seeds. One seed of it at other temperatures:

| τ | pMSE | MD | αP | βR | AUPRC | of four times 5,000 rows | KS | TV |
|---|---|---|---|---|---|---|---|---|
| 1 | 157 | 0.004 | 0.495 | 0.205 | 0.102 | 0.105 | 0.009 | 0.008 |
| 0.85 | 474 | 0.019 | 0.555 | 0.213 | 0.118 | 0.116 | 0.034 | 0.029 |
| 0.75 | 1,149 | 0.032 | 0.595 | 0.197 | 0.117 | 0.116 | 0.056 | 0.051 |
| 0.65 | 2,187 | 0.048 | 0.634 | 0.172 | 0.109 | 0.110 | 0.079 | 0.076 |

## What is reproduced, and by which method

**By our method** (`margins: 0.2` and the defaults, command above): pMSE, MD and βR of the thesis. AUPRC only
with the settings called *cooler*. αP is not reached by rows that look like real ones, which have .507.

**By the published method: none.** With `margins: 0` our generator has
pMSE 10,152, αP .874 and βR .007; the thesis has 590, .667 and .170. We then wrote the method as published
(`benchmarks/thesis_diffusion.py FOLDER`, ε = 1, one seed):

| reading of the thesis, one change each | pMSE | pMSE, indicators counted | MD | αP | βR | AUPRC |
|---|---|---|---|---|---|---|
| as in the repository | 14,214 | 1,987 | .166 | .894 | .001 | .001 |
| schedule as printed | 14,571 | 2,037 | .181 | .914 | .001 | .001 |
| what the network predicts, whole | 14,646 | 2,047 | .185 | .898 | .000 | .000 |
| schedule as printed, whole | 14,651 | 2,048 | .184 | .913 | .000 | .000 |
| Adam's usual decay | 12,020 | 1,680 | .135 | .880 | .009 | .008 |
| sum of squares, Adam's usual decay | 12,322 | 1,722 | .167 | .930 | .005 | .005 |
| numbers between bounds | 14,400 | 2,013 | .286 | .868 | .001 | .001 |
| numbers between bounds, as printed | 14,531 | 2,031 | .252 | .913 | .000 | .000 |
| the thesis | | 590 | .122 | .667 | .170 | .115 |

Rows gather at the mean in every reading, at ε = 1,000 as well (pMSE 14,133, βR .001). So noise is not the
cause. These differences stay:

| | thesis or its repository | `table_diffusion` |
|---|---|---|
| numbers | quantiles of all rows, not paid for | `margins: 0`: between declared bounds |
| loss | printed as a sum of squares; a mean in the code | mean |
| largest norm C | 1 | 0.1 |
| schedule | printed: as ours; in the code: 0.1 more, from t = 0 | (1 − cos(πt/T)) / 2, t = 1 … T |
| drawing | x − √β M(x), though M learnt scaled noise | x − M(x), then the next level's noise |
| T, batch, rate | 5, 1,024, .005 in the code; not printed | 10, about 1,465, .005 |
| length | 5 epochs, or until ε is spent | 300 steps, about 9 epochs |
| Adam's first decay | .5 in the code | .9 |
| pMSE | expectation counts indicators (code) | expectation counts the 13 columns |

The last line matters for every comparison of pMSE on this page. The ratio is at most 2N / k for N rows each.
The thesis' worst figures lie at that limit if k counts indicators: 2,078 on Adult (k = 94), 17,493 on its
other table (k = 16). On our scale its 590 is thus about 4,200, and *reached* above is easier than it looks.

αP of .667 and a small pMSE do not exclude each other, as an earlier version of this page said. Cells
permuted within the columns of Adult have an αP of .675 at a pMSE of 0.00 (first line of the same command).
"""

WIDTH, HEIGHT, ACROSS, LEFT, TOP = 310.0, 210.0, 3, 52.0, 30.0
PANELS = (*COLUMNS, "KS")
COLOURS = ("#1b6a44", "#5fae87", "#5b3f8c", "#b04a7a", "#855700", "#1f6fb2", "#444c55", "#c0392b")


def write(runs: Sequence[dict[str, Any]], page: Path, command: str, models: Sequence[str]) -> None:
    """The page, and a picture of the same name where several ε were measured.

    Args:
        models: in the order of the tables.
    """
    frame = pd.DataFrame([*runs])
    epsilons = sorted(frame["epsilon"].dropna().unique())
    lines = [INTRODUCTION.format(command=command), "## References", ""]
    lines += [*_table(frame[frame["epsilon"].isna()], models), ""]
    for epsilon in epsilons:
        there = frame[frame["epsilon"] == epsilon]
        lines += [f"## ε = {epsilon:g}", "", *_table(there, models), ""]
        if epsilon == 1:
            lines += [*_reached(there, frame), "", *_ranking(there), ""]
        lines += [*_tests(there, models), ""]
    if len(epsilons) > 1:
        picture = page.with_suffix(".svg")
        picture.write_text(_picture(frame, models), encoding="utf-8")
        lines += ["## Scores against ε", "", f"![Scores against ε]({picture.name})", ""]
        lines += [UNDER_THE_PICTURE, "", *_by_epsilon(frame)]
    lines += ["", TRIED]
    page.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


def _table(runs: pd.DataFrame, models: Sequence[str]) -> Iterator[str]:
    head = ("release", "seeds", *COLUMNS, *OURS, "fit, CPU s")
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for name in _there(runs, [*models, INDEPENDENT, FRESH]):
        own = runs[runs["model"] == name]
        published = PUBLISHED.get(name) if (own["epsilon"] == 1).all() else None
        cells = [name, str(len(own)), *(_spread(own[column], column) for column in COLUMNS)]
        if published:
            cells[2:] = [f"{cell} ({there:g})" for cell, there in zip(cells[2:], published, strict=True)]
        cells += [f"{own[column].mean():.3f}" for column in OURS]
        cells.append(f"{own['fit_cpu_s'].mean():.0f}" if own["epsilon"].notna().all() else "")
        yield "| " + " | ".join(cells) + " |"


def _spread(values: pd.Series[float], column: str) -> str:
    """The mean, and the standard deviation where there are two or more."""
    places = 0 if column == "pMSE" else 3
    shown = f"{values.mean():.{places}f}"
    return shown if len(values) < 2 else f"{shown} ± {values.std():.{places}f}"


def _reached(runs: pd.DataFrame, frame: pd.DataFrame) -> Iterator[str]:
    """The thesis' figures beside ours, and beside what fresh real rows have."""
    own, fresh = (f[f["model"] == name] for f, name in ((runs, OWN), (frame, FRESH)))
    if own.empty or fresh.empty:
        return
    yield f"`{OWN}` next to the thesis' figures:"
    yield ""
    for column, published in zip(COLUMNS, PUBLISHED[OWN], strict=True):
        got, real = own[column].mean(), fresh[column].mean()
        less = column in LESS_IS_BETTER
        reached = got <= published if less else got >= published
        bound = "at most" if less else "at least"
        text = f"* {column}: {bound} {published:g}, got {got:.3g}: {'reached' if reached else 'not reached'}"
        beyond = real > published if less else real < published
        yield text + (f"; fresh real rows do not either ({real:.3g})." if beyond else ".")
    recall = PUBLISHED[OWN][COLUMNS.index("βR")]
    yield ""
    yield from wrap(
        "AUPRC is the product of αP and βR: with the αP of fresh real rows the thesis' βR of "
        f"{recall:g} has an AUPRC of {recall * fresh['αP'].mean():.3f}. What it has above that is αP "
        "beyond real rows', which is had by drawing nearer to the mean.",
        LINE,
    )


def _by_epsilon(frame: pd.DataFrame) -> Iterator[str]:
    """Whether a larger ε bought better scores."""
    own = frame[(frame["model"] == OWN) & frame["epsilon"].notna()]
    means = own.groupby("epsilon")[[*COLUMNS]].mean()
    if len(means) < 3:
        return
    at = ", ".join(f"{epsilon:g}" for epsilon in means.index)
    yield f"`{OWN}` at ε = {at}:"
    yield ""
    for column in COLUMNS:
        values = means[column].to_numpy()
        steps = np.diff(values) * (-1 if column in LESS_IS_BETTER else 1)
        said = (
            "better at each" if (steps > 0).all() else f"better at {(steps > 0).sum()} of {len(steps)} steps"
        )
        shown = ", ".join(f"{value:.0f}" if column == "pMSE" else f"{value:.3f}" for value in values)
        yield f"* {column}: {shown}: {said}."


def _ranking(runs: pd.DataFrame) -> Iterator[str]:
    """The order of the thesis' models by each of its figures, there and here."""
    if set(PUBLISHED) - set(runs["model"]):
        return
    yield "| best first | in the thesis | here |"
    yield "|---|---|---|"
    for i, column in enumerate(COLUMNS):
        there = {model: figures[i] for model, figures in PUBLISHED.items()}
        here = {model: float(runs.loc[runs["model"] == model, column].mean()) for model in PUBLISHED}
        rest = [", ".join(_ordered(of, column)) for of in (there, here)]
        yield f"| {column} | " + " | ".join(rest) + " |"


def _ordered(figures: dict[str, float], column: str) -> list[str]:
    short = {model: model.replace(OWN + ", ", "").replace(OWN, "diffusion") for model in figures}
    best = sorted(figures, key=lambda m: figures[m], reverse=column not in LESS_IS_BETTER)
    return [short[model] for model in best]


def _tests(runs: pd.DataFrame, models: Sequence[str]) -> Iterator[str]:
    """Friedman's test over the models with the most seeds, and Wilcoxon's of each against TableDiffusion."""
    from scipy import stats

    seeds = runs.groupby("model")["seed"].nunique()
    names = [m for m in _there(runs, models) if seeds[m] == seeds.max()]
    wide = runs[runs["model"].isin(names)].pivot_table(
        index="seed", columns="model", values=list(COLUMNS + OURS)
    )
    if len(wide) < FEWEST or len(names) < 3:
        yield f"Friedman's and Wilcoxon's tests need {FEWEST} seeds; here: {seeds.max()}."
        return
    others = [name for name in names if name != OWN]
    least = 2 ** (1 - len(wide))
    yield from wrap(
        f"Friedman's test over {len(names)} models and {len(wide)} seeds; of each model Wilcoxon's "
        f"signed-rank test against {OWN}: p, and + where the model is better in the mean. {len(wide)} "
        f"seeds can give no p below {least:.2g}, which is the same side on every seed.",
        LINE,
    )
    yield ""
    head = ("", "Friedman", "p", *others)
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for column in COLUMNS + OURS:
        found = stats.friedmanchisquare(*(wide[column, m] for m in names))
        cells = [column, f"{found.statistic:.1f}", f"{found.pvalue:.1g}"]
        for name in others:
            gap = wide[column, name] - wide[column, OWN]
            better = (gap.mean() < 0) == (column in LESS_IS_BETTER)
            cells.append(f"{stats.wilcoxon(gap).pvalue:.2g} {'+' if better else '−'}")
        yield "| " + " | ".join(cells) + " |"


def _there(runs: pd.DataFrame, names: Sequence[str]) -> list[str]:
    """Those of the names that were measured."""
    return [name for name in names if (runs["model"] == name).any()]


def _picture(frame: pd.DataFrame, models: Sequence[str]) -> str:
    """A panel for each score: a line for each model that was measured at several ε."""
    own = frame[frame["epsilon"].notna()]
    counts = own.groupby("model")["epsilon"].nunique()
    names = [m for m in _there(own, models) if counts[m] > 1][: len(COLOURS)]
    own = own[own["model"].isin(names)]
    colours = dict(zip(names, COLOURS, strict=False))
    low, high = (math.log10(end) for end in (own["epsilon"].min(), own["epsilon"].max()))
    body = ""
    for k, column in enumerate(PANELS):
        inside = _panel(own, frame, column, colours, (low, high))
        place = f"translate({WIDTH * (k % ACROSS)},{HEIGHT * (k // ACROSS)})"
        body += svg.element("g", inside, transform=place)
    bottom = HEIGHT * -(-len(PANELS) // ACROSS) + 16
    for k, name in enumerate(names):
        x, y = 20 + WIDTH * ACROSS / 4 * (k % 4), bottom + 18 * (k // 4)
        body += svg.element("line", x1=x, y1=y - 4, x2=x + 18, y2=y - 4, stroke=colours[name], stroke_width=2)
        body += svg.text(x + 24, y, name)
    about = f"{', '.join(PANELS)} of {', '.join(names)} at ε from {10**low:g} to {10**high:g}."
    height = bottom + 18 * -(-len(names) // 4)
    return svg.document(
        WIDTH * ACROSS, height, body, anchor="scores", title="Scores against ε", description=about
    )


def _panel(
    own: pd.DataFrame, frame: pd.DataFrame, column: str, colours: dict[str, str], ends: tuple[float, float]
) -> str:
    """One score; pMSE by its logarithm, and each reference as a level line."""
    scaled: Callable[[float], float] = math.log10 if column == "pMSE" else float
    means = own.groupby(["model", "epsilon"])[column].mean()
    levels = {name: frame[frame["model"] == name][column].mean() for name in (FRESH, INDEPENDENT)}
    levels = {name: scaled(level) for name, level in levels.items() if level > 1e-9 or column != "pMSE"}
    low, high = svg.domain([*map(scaled, means), *levels.values()])
    bottom, right = HEIGHT - 34, WIDTH - 14
    across, up = svg.Linear(*ends, LEFT, right), svg.Linear(low, high, bottom, TOP)
    better = "lower" if column in LESS_IS_BETTER else "higher"
    body = svg.text(LEFT, 16, f"{column} ({better} is better)", weight="bold")
    marks, step = svg.ticks(low, high, 5, whole=column == "pMSE" and high - low > 2)
    for mark in marks:
        body += svg.line(LEFT, up(mark), right, up(mark), rule=True)
        name = f"{10**mark:,.0f}" if column == "pMSE" else words.tick(mark, step)
        body += svg.text(LEFT - 5, up(mark) + 4, name, size=10, anchor="end", muted=True)
    for epsilon in sorted(own["epsilon"].unique()):
        at = across(math.log10(epsilon))
        body += svg.text(at, bottom + 14, f"{epsilon:g}", size=10, anchor="middle", muted=True)
    body += svg.text(right, bottom + 28, "ε", size=11, anchor="end", muted=True)
    for name, level in levels.items():
        dash = "6 3" if name == FRESH else "2 3"
        body += svg.line(LEFT, up(level), right, up(level), dash=dash)
    for name, colour in colours.items():
        points = [(across(math.log10(e)), up(scaled(v))) for e, v in means[name].items()]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        body += svg.element("polyline", points=path, fill="none", stroke=colour, stroke_width=1.8)
        body += "".join(svg.element("circle", cx=x, cy=y, r=2.5, fill=colour) for x, y in points)
    return body
