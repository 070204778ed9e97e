"""The page and the pictures of benchmarks/overfitting.py, from what it measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from synth_audit.arrays import Floats
from synth_audit.report import svg, words

GOAL = 0.8
MEASURES = {
    "singling out": "SO",
    "singling out, embedding": "SO + CL",
    "linkability": "linkability",
    "inference, all secrets": "inference",
    "inference, worst secret": "inference (worst)",
    "DCR privacy score": "DCR",
    "DCR privacy score, embedding": "DCR + CL",
}
"""What is drawn against the ratio, and its short name."""

WIDTH, HEIGHT, ACROSS, LEFT, TOP = 250.0, 200.0, 4, 46.0, 30.0
MEAN, ONE = "#1b6a44", "#b9c9c0"


@dataclass(frozen=True)
class Seed:
    """One training of one table.

    Attributes:
        rows: what was measured, in the order of the ratio. training: its losses, and the steps of each ratio.
    """

    table: str
    rows: Sequence[Mapping[str, Any]]
    training: Mapping[str, Any]


@dataclass(frozen=True)
class Study:
    """The seeds of one table that have come farthest, at the ratios that all of these have.

    Attributes:
        found: values of shape (seeds, ratios), by measure.
    """

    table: str
    seeds: Sequence[Seed]
    ratios: Sequence[float]
    found: Mapping[str, Floats]

    @classmethod
    def of(cls, table: str, seeds: Sequence[Seed]) -> Study:
        reached = [len({row["ratio"] for row in seed.rows}) for seed in seeds]
        seeds = [seed for seed, n in zip(seeds, reached, strict=True) if n == max(reached)]
        ratios = sorted(set.intersection(*({row["ratio"] for row in seed.rows} for seed in seeds)))
        rows = [{row["ratio"]: row["ours"] for row in seed.rows} for seed in seeds]
        found = {
            title: np.array([[of[ratio][name][0] for ratio in ratios] for of in rows])
            for title, name in MEASURES.items()
            if all(name in row["ours"] for seed in seeds for row in seed.rows)
        }
        return cls(table, seeds, ratios, found)

    def rises(self, title: str) -> float:
        """Rank correlation of the ratio and the mean over the seeds."""
        return rank_correlation(self.ratios, self.found[title].mean(axis=0))


def rank_correlation(ratios: Sequence[float], values: Floats) -> float:
    from scipy.stats import spearmanr

    return float(spearmanr(ratios, values).statistic)


def write(seeds: Sequence[Seed], page: Path, wanted: Sequence[float], design: Mapping[str, float]) -> None:
    """The page, and in a folder of its name a picture for each table."""
    folder = page.parent / page.stem
    folder.mkdir(parents=True, exist_ok=True)
    tables = dict.fromkeys(seed.table for seed in seeds)
    studies = [Study.of(table, [seed for seed in seeds if seed.table == table]) for table in tables]
    plain = not any(title.endswith("embedding") for study in studies for title in study.found)
    lines = [introduction(design, " --plain" * plain)]
    for study in studies:
        lines += section(study, folder, wanted, "##")
    page.write_text("\n".join([*lines, CLOSING]), encoding="utf-8")


def section(study: Study, folder: Path, wanted: Sequence[float], mark: str) -> list[str]:
    """What was found of a table, behind a heading of this mark; its picture goes into the folder."""
    (folder / f"{study.table}.svg").write_text(picture(study), encoding="utf-8")
    alt = f"{study.table}: losses, attacks and scores by ratio"
    shown = f"![{alt}]({folder.name}/{study.table}.svg)"
    lines = [f"{mark} {study.table}", "", *told(study, wanted), shown, ""]
    return [*lines, *table_of(study), "", *verdict(study), ""]


def introduction(design: Mapping[str, float], option: str) -> str:
    return f"""# Overfitting and privacy

The privacy paper trains a generator until the loss on validation rows is `f` times its own minimum, `f` from
1 to 2, and shows that attack risks and distance scores rise with `f`. Here `tvae` is the generator. Tables
and pictures come from

    benchmarks/overfitting.py FOLDER --out FOLDER{option} --page docs/research/overfitting.md

which goes on where it was stopped. `tvae` without decay of weights (two layers of {design["hidden"]}, codes
of {design["latent"]}, batches of {design["batch"]}, Adam at {design["rate"]:g}) is trained far beyond the
least loss on validation rows, averaged over {design["averaged"]} steps. A release of as many rows as train
is drawn at the least loss (ratio 1), and where the loss has first risen to each ratio after that. Control
are other people than the validation rows. The loss is the network's own, shifted so that a row rebuilt
exactly from a code of the prior costs 0. Everything is repeated with other rows and another training for
each seed; the rank correlation with the ratio (Spearman) is that of the mean over seeds, and beside it the
least and the most of single seeds. Risks are those of a release less what is true of control people;
the inference attack asks for each column in turn.
"""


CLOSING = """## What rises, and what does not

* **In the embedding**, over the first five of these seeds alone (without `--plain`): the DCR privacy score
  reached 0.80 on Adult and 0.73 on SUPPORT2, singling out 0.19 and 0.04.
* **More seeds bring out what is there, and no more.** With five seeds singling out had 0.60 on Adult and
  inference 0.52 on SUPPORT2; with six and eleven they have 0.87 and 0.80. Linkability on SUPPORT2 rises from
  .02 to some .10 up to ratio 1.6 and not beyond: 0.70 with five seeds, 0.65 with eleven. The worst secret
  rises early, to ratio 1.3 or 1.5, and falls again.
* **Single trainings are too noisy to tell.** A release of 500 rows has a privacy score in steps of .002 and a
  standard error of .006; an attack on 500 people has one of .02. Within one seed few measures reach 0.8, and
  some fall. What the seeds have in common shows in their mean.
* **At twice the least loss rows are not copied yet.** The loss on validation rows doubles because the network
  grows sure of what it learnt (its deviations of numbers shrink, its labels' chances go to 0 and 1), long
  before it draws training rows again: the privacy score rises by a row or two of a hundred.
* **Singling out** asks for combinations that one row of the release has alone. As long as whole rows are not
  repeated, such a combination singles a person out in train hardly more often than in control. The embedding
  is learnt anew from 500 rows in 400 steps, which is presumably too little to place a row next to its source.
* **The worst secret** is the largest of all columns' risks, another column from release to release, and is
  high at the least loss already: what is largest of many is chance before it is overfitting.

Other settings that were tried, on Adult with one seed: 1,000 rows, layers of 128, codes of 64, 2e-3. The loss
came to 1.7 times its minimum in 6,000 steps, and no measure rose by more than 0.76 (the worst secret; the
privacy score 0.64, linkability −0.10, singling out −0.62). Fewer rows, wider layers and shorter codes overfit
sooner and further.
"""


def told(study: Study, wanted: Sequence[float]) -> Iterator[str]:
    """How much was measured, and what is missing."""
    sizes = {row["rows"] for seed in study.seeds for row in seed.rows}
    cost = sum(row["seconds"] for seed in study.seeds for row in seed.rows)
    rows = " or ".join(f"{size:,}" for size in sorted(sizes))
    seeds = words.counted(len(study.seeds), "seed")
    yield f"{rows} training rows, {seeds}; {cost:.0f} CPU seconds of attacks."
    missing = [f"{ratio:g}" for ratio in wanted if ratio not in study.ratios]
    if missing:
        yield f"\n**Unfinished.** Not reached or not measured for every seed: {', '.join(missing)}."
    yield ""


def table_of(study: Study) -> Iterator[str]:
    """Means over the seeds by ratio, and how they rise."""
    yield "| measure | " + " | ".join(f"{r:g}" for r in study.ratios) + " | Spearman | single seeds |"
    yield "|---" * (len(study.ratios) + 3) + "|"
    for title, found in study.found.items():
        cells = " | ".join(f"{v:.3f}" for v in found.mean(axis=0))
        each = sorted(rank_correlation(study.ratios, one) for one in found)
        yield f"| {title} | {cells} | {study.rises(title):.2f} | {each[0]:.2f} to {each[-1]:.2f} |"
    steps = np.array([[s.training["releases"][f"{r:g}"] for r in study.ratios] for s in study.seeds])
    yield "| steps of training | " + " | ".join(f"{v:,.0f}" for v in steps.mean(axis=0)) + " | | |"


def verdict(study: Study) -> Iterator[str]:
    """Which measures reach the goal."""
    rising = [title for title in study.found if study.rises(title) >= GOAL]
    others = [title for title in study.found if title not in rising]
    yield f"Rank correlation of {GOAL} or more: {', '.join(rising) or 'none'}."
    yield f"Less: {', '.join(others) or 'none'}."


def picture(study: Study) -> str:
    """Small panels: the losses, then each measure against the ratio, single seeds pale."""
    panels = [losses_panel(study), *(measure_panel(study, title) for title in study.found)]
    body = "".join(
        svg.element("g", inside, transform=f"translate({WIDTH * (k % ACROSS)},{HEIGHT * (k // ACROSS)})")
        for k, inside in enumerate(panels)
    )
    title = f"Attacks and scores of {study.table} along the overfitting ratio"
    about = "; ".join(f"{name}: Spearman {study.rises(name):.2f}" for name in study.found)
    height = HEIGHT * -(-len(panels) // ACROSS)
    return svg.document(WIDTH * ACROSS, height, body, anchor="overfitting", title=title, description=about)


def measure_panel(study: Study, title: str) -> str:
    """A measure against the ratio: each seed, and their mean."""
    found = study.found[title]
    low, high = svg.domain([*found.ravel().tolist(), 0.0])
    across, up = scales(1.0, 2.0, low, high)
    body = frame(f"{title} ({study.rises(title):.2f})", (1.0, 1.5, 2.0), across, up, low, high)
    for one in found:
        body += path(study.ratios, one, across, up, ONE, 1)
    return body + path(study.ratios, found.mean(axis=0), across, up, MEAN, 2)


def losses_panel(study: Study) -> str:
    """The loss on validation rows and, paler, on learnt rows, by steps."""
    curves = [np.array(seed.training["losses"], dtype=np.float64).T for seed in study.seeds]
    last = max(float(steps[-1]) for steps, _, _ in curves)
    top = max(float(unseen[unseen.argmin() :].max()) for _, _, unseen in curves)
    across, up = scales(0.0, last, 0.0, top)
    marks, _ = svg.ticks(0.0, last, 4)
    body = frame("loss: validation, learnt (pale)", marks, across, up, 0.0, top)
    for steps, seen, unseen in curves:
        body += path(steps, seen, across, up, ONE, 1.2) + path(steps, unseen, across, up, MEAN, 1.2)
    return body


def scales(left: float, right: float, low: float, high: float) -> tuple[svg.Linear, svg.Linear]:
    return svg.Linear(left, right, LEFT, WIDTH - 14), svg.Linear(low, high, HEIGHT - 26, TOP)


def frame(
    title: str, marks: Sequence[float], across: svg.Linear, up: svg.Linear, low: float, high: float
) -> str:
    """Title, rules and names of both axes."""
    body = svg.text(10, 16, title, size=11, weight="bold")
    levels, step = svg.ticks(low, high, 5)
    for level in levels:
        body += svg.line(LEFT, up(level), WIDTH - 14, up(level), rule=True)
        name = words.tick(level, step)
        body += svg.text(LEFT - 5, up(level) + 4, name, size=10, anchor="end", muted=True)
    for mark in marks:
        body += svg.text(across(mark), HEIGHT - 10, f"{mark:,g}", size=10, anchor="middle", muted=True)
    return body


def path(
    x: Sequence[float] | Floats, y: Floats, across: svg.Linear, up: svg.Linear, colour: str, width: float
) -> str:
    points = " ".join(f"{across(float(a)):.1f},{up(float(b)):.1f}" for a, b in zip(x, y, strict=True))
    return svg.element("polyline", points=points, fill="none", stroke=colour, stroke_width=width)
