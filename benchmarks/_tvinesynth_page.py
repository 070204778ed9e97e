"""The page and the pictures of benchmarks/tvinesynth_comparison.py, from its lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from synth_audit.report import svg, words

Run = dict[str, Any]
WIDTH, HEIGHT, LEFT, TOP = 560.0, 330.0, 56.0, 26.0
COLOURS = {"vine": "#1b6a44", "Priv": "#855700", "TVAE": "#5b3f8c", "CTGA": "#5b3f8c"}
"""By the first four letters: vines, private generators, networks."""

INTRODUCTION = """# TVineSynth's comparison

The vine at its truncation levels next to the paper's competitors, on its two tables (figures 1, 2, 16, 17
and 26 there), each generator in this tool's own implementation. Pictures and tables come from

    {command}

which goes on where it was stopped. What differs from the paper:

* **Games are small.** Membership: 2 iterations, 1 pair of shadow models, 30 sets of each model, one
  outlying and one random target; published are 10, 10, 10 and 8. Attribute: 10 iterations, 3 for
  PrivPGD, TVAE and CTGAN. Utility: 5 to 20 sets instead of 50. The median of so few gains moves by
  some hundredths, and the least of them by much more: PrivBayes at ε = 0.1 cannot fall below 0.95, and
  what its `worst` is below that is chance (the models with and without the person differ by their noise,
  and there is one pair of them). Even train's rows lose only a fifth in the median.
* **Networks learn for a quarter of the epochs** that the authors' search chose (CTGAN 1,000 and 400,
  TVAE 1,500 and 800), with their batches and latent dimensions. They are less useful, and remember less,
  than published.
* **Private generators** are given the domain: on SUPPORT2 the paper's clinical ranges (its coma score to
  100), values clipped to them; on the simulation [−20, 40] for every column. PrivPGD buys all pairs of
  columns.
* The vine has one-parameter pair copulas by inverted τ and smooth margins, chosen by AIC; the paper's are
  parametric ones by maximum likelihood. A fit takes a second. Kendall's τ orders the columns of SUPPORT2.

`AUROC` is the median over sets of a random forest learnt from one and asked about the test rows; from
scores, and from hard labels (the paper's figure, which is the balanced accuracy). `MAB` is the median
over iterations. `gain` is the median privacy gain over targets, iterations and feature sets, and `worst`
the least over kinds of target and feature sets; cells are empty where nothing was measured yet.
*Train's rows* and *columns alone* are yardsticks: all utility and no privacy, and the reverse.
"""


@dataclass(frozen=True)
class Point:
    """One candidate in a picture."""

    label: str
    x: float
    y: float


def write(runs: Sequence[Run], page: Path, command: str) -> None:
    """The page, and beside it a picture for each table and measure of privacy."""
    folder = page.parent / page.stem
    folder.mkdir(parents=True, exist_ok=True)
    lines = [INTRODUCTION.format(command=command)]
    for table in dict.fromkeys(run["table"] for run in runs):
        own = by_candidate([run for run in runs if run["table"] == table])
        lines += [f"## {table}", "", *table_of(own), ""]
        for name, text, points, lower in (found for found in pictures(own) if found[2]):
            path = folder / f"{table}_{name}.svg"
            title = f"{table}: {text} against AUROC"
            path.write_text(picture(points, text, title, lower_is_safer=lower), encoding="utf-8")
            lines += [f"![{title}]({page.stem}/{path.name})", ""]
    page.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


def by_candidate(runs: Sequence[Run]) -> dict[str, dict[str, Any]]:
    """What was found of each candidate, by part; a later line counts instead of an earlier one."""
    found: dict[str, dict[str, Any]] = {}
    for run in runs:
        found.setdefault(run["candidate"], {})[run["part"]] = run["found"]
    return found


def useful(parts: Mapping[str, Any], kind: str = "scores") -> float | None:
    """Median AUROC over the sets."""
    return median(parts["utility"][kind]) if "utility" in parts else None


def gain(parts: Mapping[str, Any]) -> float | None:
    """Median privacy gain."""
    return median(parts["membership"]["gains"].values()) if "membership" in parts else None


def secrets_of(found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The sensitive columns, in the order of the first attribute game."""
    return next((list(p["attribute"]["mab"]) for p in found.values() if "attribute" in p), [])


def table_of(found: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """A line for each candidate."""
    secrets = secrets_of(found)
    real = next((p["utility"] for p in found.values() if "utility" in p), None)
    head = ["generator", "AUROC", "hard labels", *(f"MAB {s}" for s in secrets), "gain", "worst"]
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    if real:
        games = [p["attribute"]["real_mab"] for p in found.values() if "attribute" in p]
        own = [games[0][s] for s in secrets]
        cells = [real["real_scores"], real["real_labels"], *own, None, None]
        yield "| real rows | " + " | ".join(map(shown, cells)) + " |"
    for name, parts in found.items():
        of = parts["attribute"]["mab"] if "attribute" in parts else {}
        mabs = [of[s]["median"] if s in of else None for s in secrets]
        worst = parts["membership"]["all"].get("privacy_gain||") if "membership" in parts else None
        cells = [useful(parts), useful(parts, "labels"), *mabs, gain(parts), worst]
        yield f"| {name} | " + " | ".join(map(shown, cells)) + " |"


def shown(value: float | None) -> str:
    """Three digits; nothing where nothing was measured yet."""
    return "" if value is None else f"{value:.3f}"


def pictures(found: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str, list[Point], bool]]:
    """Name, title of the axis, points, and whether less is safer, for each measure of privacy."""
    for secret in secrets_of(found):
        mabs = {n: p["attribute"]["mab"][secret]["median"] for n, p in found.items() if "attribute" in p}
        yield f"mab_{secret}", f"MAB of {secret}", points_of(found, mabs), True
    gains = {name: value for name, parts in found.items() if (value := gain(parts)) is not None}
    yield "gain", "median privacy gain", points_of(found, gains), False


def points_of(found: Mapping[str, Mapping[str, Any]], privacy: Mapping[str, float]) -> list[Point]:
    """Those candidates that have both numbers."""
    both = ((name, privacy.get(name), useful(parts)) for name, parts in found.items())
    return [Point(name, x, y) for name, x, y in both if x is not None and y is not None]


def picture(points: Sequence[Point], x_title: str, title: str, *, lower_is_safer: bool) -> str:
    """A point for each candidate; safer is to the right, more useful is up."""
    (x_low, x_high), (y_low, y_high) = (reach([getattr(p, axis) for p in points]) for axis in "xy")
    ends = (WIDTH - 4, LEFT) if lower_is_safer else (LEFT, WIDTH - 4)
    bottom = TOP + HEIGHT
    across, up = svg.Linear(x_low, x_high, *ends), svg.Linear(y_low, y_high, bottom, TOP)
    body = svg.text(0, 12, "AUROC on test rows ↑", muted=True)
    body += svg.text(WIDTH - 4, bottom + 36, f"{x_title}, safer →", anchor="end", muted=True)
    for marks, step, scale, level in (
        (*svg.ticks(x_low, x_high, 6), across, False),
        (*svg.ticks(y_low, y_high, 6), up, True),
    ):
        for mark in marks:
            at, name = scale(mark), words.tick(mark, step)
            start, end = ((LEFT, at), (WIDTH - 4, at)) if level else ((at, TOP), (at, bottom))
            body += svg.line(*start, *end, rule=True)
            place = (LEFT - 6, at + 4, "end") if level else (at, bottom + 16, "middle")
            body += svg.text(place[0], place[1], name, size=11, anchor=place[2], muted=True)
    body += svg.line(LEFT, TOP, LEFT, bottom) + svg.line(LEFT, bottom, WIDTH - 4, bottom)
    taken: list[tuple[float, float, float, float]] = []
    for p in points:
        x, y = across(p.x), up(p.y)
        colour = COLOURS.get(p.label[:4], svg.COLOURS["ink"])
        body += svg.element("circle", cx=x, cy=y, r=4.5, fill=colour)
        taken.append((x - 5, y - 5, x + 5, y + 5))
    for p in points:
        body += label(p.label, across(p.x), up(p.y), taken)
    about = "; ".join(f"{p.label}: {x_title} {p.x:.3f}, AUROC {p.y:.3f}" for p in points)
    return svg.document(WIDTH, bottom + 42, body, anchor="frontier", title=title, description=about)


def reach(values: Sequence[float]) -> tuple[float, float]:
    """The axis: all values and some room."""
    room = max(0.06 * (max(values) - min(values)), 0.005)
    return min(values) - room, max(values) + room


def label(text: str, x: float, y: float, taken: list[tuple[float, float, float, float]]) -> str:
    """A name beside its point, where it covers least of what is there."""
    wide = svg.text_width(text, 11)
    spots = [
        (left, top, left + wide, top + 12)
        for dy in (0, -12, 12, -24, 24, -36, 36)
        for left, top in ((x + 8, y - 6 + dy), (x - 8 - wide, y - 6 + dy))
    ]

    def cost(spot: tuple[float, float, float, float]) -> float:
        covered = sum(
            max(min(spot[2], t[2]) - max(spot[0], t[0]), 0) * max(min(spot[3], t[3]) - max(spot[1], t[1]), 0)
            for t in taken
        )
        outside = max(LEFT - spot[0], 0) + max(spot[2] - WIDTH, 0) + max(spot[3] - TOP - HEIGHT, 0)
        return covered + 40 * outside + 0.5 * abs(spot[1] - y + 6)

    best = min(spots, key=cost)
    taken.append(best)
    line = (
        "" if abs(best[1] - y + 6) < 13 else svg.line(x, y, (best[0] + best[2]) / 2, best[1] + 6, width=0.5)
    )
    return line + svg.text(best[0], best[3] - 2, text, size=11)
