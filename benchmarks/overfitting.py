"""What overfitting does to privacy, by `tvae`: an experiment of the privacy paper (contrastive metrics).

A network without regularisers is trained far beyond the least loss on rows that it does not learn from; at
that least loss and at chosen ratios of it, up to twice, a release is drawn, attacked and measured. The
training is one file and each release measured a line of another, so the command can be stopped and given
again at any time.

    .venv/bin/python benchmarks/overfitting.py FOLDER --out FOLDER --page docs/overfitting.md
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from synth_audit.audits.privacy.inference import Inference
from synth_audit.audits.privacy.linkability import Linkability
from synth_audit.core.arrays import Floats, Floats32
from synth_audit.core.context import RunContext
from synth_audit.core.schema_inference import infer_schema
from synth_audit.core.seeds import child_rng
from synth_audit.core.subject import Subject
from synth_audit.core.table import Table, read_table
from synth_audit.encoding.column_transforms import ModeTransform
from synth_audit.encoding.transformer import Transformer, on_train
from synth_audit.kernels.deep import tvae
from synth_audit.kernels.deep.training import Loop, Weights, as_arrays
from synth_audit.kernels.embedding_settings import EmbeddingSettings

Found = tuple[float, float, float]
"""A value and the ends of its interval."""

TABLES = {
    "adult": ("adult_train", "adult_control"),
    "support2": ("support2_small_train", "support2_small_test"),
}
RATIOS = tuple(round(1 + k / 10, 1) for k in range(11))
ROWS, ATTACKS, EMBEDDING_STEPS = 1_000, 500, 400
BATCH, HIDDEN, LATENT, RATE = 100, 128, 64, 2e-3
EVERY = 20
"""Steps between two looks at the loss on validation rows."""
LEAST_DEVIATION = 0.01
"""Below this the network lets no number's deviation fall: there its loss is least."""
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


@dataclass(frozen=True)
class Sides:
    """Rows that are learnt, rows by which the loss is told, and rows of people in neither."""

    train: Table
    validation: Table
    control: Table


def sides_of(folder: Path, name: str, seed: int) -> Sides:
    """Distinct rows for each side, as many for control as for train where there are."""
    rng = child_rng(seed, "overfitting", name)
    train, others = (pq.read_table(folder / f"{file}.parquet") for file in TABLES[name])
    train, others = (t.take(rng.permutation(len(t))) for t in (train, others))
    train = train.slice(0, ROWS)
    cut = min(ROWS, len(others) // 2)
    schema = infer_schema(train, {})
    parts = train, others.slice(0, cut), others.slice(cut, ROWS)
    named = zip(parts, ("train", "validation", "control"), strict=True)
    return Sides(*(read_table(part, schema, where=where).released_only() for part, where in named))


def train_beyond(sides: Sides, chosen: argparse.Namespace, seed: int) -> None:
    """Train until the loss is above twice its minimum, and write a release for each ratio.

    The loss is the network's own, plus twice ``−log 0.01`` for each number: with the least deviation that the
    network may have, a row that is rebuilt exactly from a code of the prior then costs nothing, so that the
    loss is positive and its ratio means something.
    """
    rng = child_rng(seed, "overfitting", "fit")
    transformer = on_train(sides.train, lambda n, values, ends: ModeTransform.of(n, values, ends, rng))
    settings = tvae.VaeSettings(LATENT, HIDDEN, RATE, regularised=False)
    rows, held = (transformer.encode(t, rng) for t in (sides.train, sides.validation))
    floor = -2 * np.log(LEAST_DEVIATION) * len(transformer.layout.numbers)
    until = time.monotonic() + 60 * chosen.minutes
    losses: list[tuple[int, float, float]] = []
    kept: list[Weights] = []

    def watch(step: int, network: tvae.VariationalAutoencoder) -> bool:
        if step % EVERY:
            return False
        seen, unseen = (loss_of(network, transformer, settings, part) + floor for part in (rows, held))
        losses.append((step, seen, unseen))
        kept.append(as_arrays(network.decoder))
        beyond = unseen > (RATIOS[-1] + 0.05) * min(loss for _, _, loss in losses)
        return bool(beyond) or time.monotonic() > until

    draw = rng.spawn(1)[0]
    loop = Loop(chosen.steps, lambda: draw.choice(len(rows), BATCH, replace=False), lambda step, loss: None)
    tvae.fitted(rows, transformer.layout, settings, loop, rng, "cpu", watch)
    unseen = np.array([loss for _, _, loss in losses])
    best = int(unseen.argmin())
    releases = {}
    for ratio in RATIOS:
        reached = best + np.flatnonzero(unseen[best:] >= ratio * unseen[best])
        if not len(reached):
            break
        at = int(reached[0])
        vectors = tvae.drawn(
            kept[at], transformer.layout, settings, sides.train.n_rows, child_rng(seed, "draw")
        )
        release = transformer.decode(vectors)
        pq.write_table(
            pa.table({n: release.column(n) for n in release.names}), release_file(chosen.out, ratio)
        )
        releases[f"{ratio:g}"] = losses[at][0]
    told = {"losses": losses, "releases": releases}
    (chosen.out / "training.json").write_text(json.dumps(told))


def loss_of(
    network: tvae.VariationalAutoencoder, transformer: Transformer, settings: tvae.VaeSettings, rows: Floats32
) -> float:
    """The mean loss of rows under draws that are the same each time."""
    import torch

    draws = torch.Generator().manual_seed(0)
    with torch.no_grad():
        return float(tvae.mean_loss(network, transformer.layout, settings, torch.as_tensor(rows), draws))


def release_file(folder: Path, ratio: float) -> Path:
    return folder / f"release_{ratio:.1f}.parquet"


def measured(subject: Subject, context: RunContext) -> dict[str, dict[str, Found]]:
    """Every measure as this tool reports it, and as the paper defines it where it differs."""
    from privacy_paper_table import Size, largest, measure  # beside this script

    size = Size(ROWS, ATTACKS, EmbeddingSettings(max_steps=EMBEDDING_STEPS))
    found = measure(subject, size, context)
    joined = Linkability(n_attacks=ROWS, source_pairs=0)
    guessed = Inference(n_attacks=ROWS, n_trees=0, known_sets=0, max_reconstructed=0)

    def run(audit: Linkability | Inference, name: str) -> Any:
        draws = child_rng(context.seed, "overfitting", name)
        return audit.run(subject, replace(context, draws=draws)).measurements

    secrets = run(guessed, "inference")
    found["ours"] |= {
        "linkability": largest(run(joined, "linkability"), "risk"),
        "inference": largest(secrets, "overall_risk"),
        "inference (worst)": largest(secrets, "worst_risk"),
    }
    return found


def collect(chosen: argparse.Namespace) -> None:
    """Train if that is not done, then measure what is not on file."""
    chosen.out.mkdir(parents=True, exist_ok=True)
    sides = sides_of(chosen.folder, chosen.table, chosen.seed)
    if not (chosen.out / "training.json").exists():
        train_beyond(sides, chosen, chosen.seed)
    until = time.monotonic() + 60 * chosen.minutes
    known = {row["ratio"] for row in on_file(chosen.out)}
    with RunContext(seed=chosen.seed).keeping() as context:
        for ratio in RATIOS:
            path = release_file(chosen.out, ratio)
            if ratio in known or not path.exists():
                continue
            if time.monotonic() > until:
                print("out of time: give the command again to go on", file=sys.stderr)
                return
            start = time.process_time()
            release = read_table(pq.read_table(path), sides.train.schema, where="synthetic")
            row: dict[str, Any] = {"ratio": ratio, "table": chosen.table, "rows": sides.train.n_rows}
            row |= measured(Subject(sides.train, sides.control, release), context)
            row["seconds"] = time.process_time() - start
            with (chosen.out / "found.jsonl").open("a") as out:
                out.write(json.dumps(row) + "\n")
            print(ratio, f"{row['seconds']:.0f} s", file=sys.stderr, flush=True)


def on_file(folder: Path) -> list[dict[str, Any]]:
    path = folder / "found.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return sorted(rows, key=lambda row: row["ratio"])


def rank_correlation(ratios: Sequence[float], values: Sequence[float]) -> float:
    from scipy.stats import spearmanr

    return float(spearmanr(ratios, values).statistic)


def drawn(rows: list[dict[str, Any]], training: dict[str, Any]) -> str:
    """Small pictures: the losses, then each measure with its interval against the ratio."""
    panels = [losses_panel(training)]
    ratios = np.array([row["ratio"] for row in rows])
    for title, name in MEASURES.items():
        panels.append(panel(title, ratios, np.array([row["ours"][name] for row in rows])))
    width, height, across = 250, 190, 4
    placed = "".join(
        f'<g transform="translate({width * (k % across)},{height * (k // across)})">{inside}</g>'
        for k, inside in enumerate(panels)
    )
    whole = f'width="{width * across}" height="{height * -(-len(panels) // across)}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {whole} font-family="sans-serif" font-size="11">'
        f'<rect width="100%" height="100%" fill="#fff"/>{placed}</svg>\n'
    )


def panel(title: str, x: Floats, found: Floats) -> str:
    """Values of shape (n, 3): value, low, high."""
    low, high = min(0.0, float(found.min())), float(found.max())
    xs = 45 + (x - 1) * 185
    ys = 150 - (found - low) / (high - low or 1) * 115
    bars = "".join(
        f'<line x1="{a:.1f}" x2="{a:.1f}" y1="{b:.1f}" y2="{c:.1f}" stroke="#9bb"/>'
        for a, (_, b, c) in zip(xs, ys, strict=True)
    )
    return axes(title, low, high, "1", "2 × least loss") + bars + line(xs, ys[:, 0], "#176")


def losses_panel(training: dict[str, Any]) -> str:
    """Loss on rows that are learnt and on rows that are not, by steps."""
    steps, seen, unseen = np.array(training["losses"], dtype=np.float64).T
    top = float(unseen[unseen.argmin() :].max())
    xs = 45 + steps / steps.max() * 185
    ys = [150 - np.minimum(v, top) / top * 115 for v in (seen, unseen)]
    named = '<text x="225" y="142" text-anchor="end" fill="#c60">learnt rows</text>'
    title = "loss: validation rows (dark), learnt rows"
    return (
        axes(title, 0, top, "0", f"{steps.max():,.0f} steps")
        + named
        + "".join(line(xs, y, colour) for y, colour in zip(ys, ("#c60", "#176"), strict=True))
    )


def axes(title: str, low: float, high: float, first: str, last: str) -> str:
    return (
        f'<text x="12" y="20" font-weight="bold">{title}</text>'
        '<path d="M45 35V150H230" fill="none" stroke="#888"/>'
        f'<text x="42" y="39" text-anchor="end">{high:.3g}</text>'
        f'<text x="42" y="152" text-anchor="end">{low:.2g}</text>'
        f'<text x="45" y="166" text-anchor="middle">{first}</text>'
        f'<text x="230" y="166" text-anchor="end">{last}</text>'
    )


def line(x: Floats, y: Floats, colour: str) -> str:
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
    return f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{points}"/>'


def page(rows: list[dict[str, Any]], training: dict[str, Any], picture: str) -> str:
    """The whole page in Markdown."""
    ratios = [row["ratio"] for row in rows]
    missing = [f"{r:g}" for r in RATIOS if r not in ratios]
    table = [
        "| measure | " + " | ".join(f"{r:g}" for r in ratios) + " | Spearman |",
        "|---" * (len(ratios) + 2) + "|",
    ]
    for title, name in MEASURES.items():
        values = [row["ours"][name][0] for row in rows]
        cells = " | ".join(f"{v:.3f}" for v in values)
        table.append(f"| {title} | {cells} | {rank_correlation(ratios, values):.2f} |")
    steps = " | ".join(f"{training['releases'][f'{r:g}']:,}" for r in ratios)
    table.append(f"| steps of training | {steps} | |")
    reached = [
        title
        for title, name in MEASURES.items()
        if rank_correlation(ratios, [row["ours"][name][0] for row in rows]) >= GOAL
    ]
    return "\n".join(
        [
            "# Overfitting and privacy",
            "",
            "Written by `.venv/bin/python benchmarks/overfitting.py FOLDER --out OUT --page PAGE` from what",
            f"it measured on {rows[0]['table']}, {rows[0]['rows']:,} training rows, in "
            f"{sum(row['seconds'] for row in rows):.0f} CPU seconds beside the training.",
            *([f"\n**Unfinished.** Not reached or not measured: {', '.join(missing)}."] if missing else []),
            "",
            f"`tvae` without decay of weights (two layers of {HIDDEN}, codes of {LATENT}, batches of",
            f"{BATCH}) is trained far beyond the least loss on validation rows. A release of as many rows as",
            "train is drawn at the least loss (ratio 1), and where the loss has first risen to each ratio",
            "after that. Control are other people than the validation rows. The loss is the network's own,",
            "shifted so that a row rebuilt exactly from a code of the prior costs 0.",
            "",
            f"![Losses, attacks and scores by ratio]({picture})",
            "",
            *table,
            "",
            f"Rank correlation with the ratio of {GOAL} or more: {', '.join(reached) or 'none'}.",
            "Risks are those of a release less what is true of strangers (control); bars are 95 % intervals.",
            "",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "folder", type=Path, nargs="?", help="holds the tables; without it nothing is measured"
    )
    parser.add_argument("--out", type=Path, default=Path("overfitting"), help="folder of what was measured")
    parser.add_argument("--page", type=Path, help="write page and picture (same name, .svg)")
    parser.add_argument("--table", default="adult", choices=list(TABLES))
    parser.add_argument("--steps", type=int, default=6_000, help="of the training at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="of training, and of measuring")
    chosen = parser.parse_args()
    if chosen.folder is not None:
        collect(chosen)
    rows = on_file(chosen.out)
    for title, name in MEASURES.items():
        values = [row["ours"][name][0] for row in rows]
        if len(values) > 2:
            print(f"{title}: {rank_correlation([row['ratio'] for row in rows], values):.2f}", *values)
    if chosen.page and rows:
        training = json.loads((chosen.out / "training.json").read_text())
        picture = chosen.page.with_suffix(".svg")
        picture.write_text(drawn(rows, training))
        chosen.page.write_text(page(rows, training, picture.name))


if __name__ == "__main__":
    main()
