"""What overfitting does to privacy, by `tvae`: an experiment of the privacy paper (contrastive metrics).

A network without regularisers is trained far beyond the least loss on rows that it does not learn from; at
that least loss and at chosen ratios of it, up to twice, a release is drawn, attacked and measured. For each
table and seed the training is one file and each release measured a line of another, so the command can be
stopped and given again at any time; several seeds are read together.

    .venv/bin/python benchmarks/overfitting.py FOLDER --out FOLDER --page docs/research/overfitting.md
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from _overfitting_page import Seed, write  # beside this script
from privacy_paper_table import Size, largest, measure

from synth_audit.arrays import Floats, Floats32, Positions
from synth_audit.audits.privacy.inference import Inference
from synth_audit.audits.privacy.linkability import Linkability
from synth_audit.encode.embedding import EmbeddingSettings
from synth_audit.execution.context import RunContext
from synth_audit.execution.seeds import child_rng
from synth_audit.generators._deep.network_model import NetworkModel, Transformer, on_train
from synth_audit.generators._deep.networks import VariationalAutoencoder
from synth_audit.generators._deep.training import Training
from synth_audit.generators._deep.transforms import ModeTransform, Weights
from synth_audit.generators.tvae import Tvae, mean_loss, weights_of
from synth_audit.plugins.audit import Subject
from synth_audit.table.schema_inference import infer_schema
from synth_audit.table.table import Table, read_table

Found = tuple[float, float, float]
"""A value and the ends of its interval."""

TABLES = {
    "adult": ("adult_train", "adult_control"),
    "support2": ("support2_small_train", "support2_small_test"),
}
RATIOS = tuple(round(1 + k / 10, 1) for k in range(11))
ROWS, ATTACKS, EMBEDDING_STEPS = 500, 500, 400
BATCH, HIDDEN, LATENT, RATE = 100, 256, 16, 1e-3
EVERY, LOOKS = 20, 5
"""Steps between two looks at the loss on validation rows, and how many looks are averaged."""
LEAST_DEVIATION = 0.01
"""Below this the network lets no number's deviation fall: there its loss is least."""


@dataclass(frozen=True)
class Sides:
    """Rows that are learnt, rows by which the loss is told, and rows of people in neither."""

    train: Table
    validation: Table
    control: Table


def sides_of(folder: Path, name: str, rows: int, seed: int) -> Sides:
    """Distinct rows for each side, as many for control as for train where there are."""
    rng = child_rng(seed, "overfitting", name)
    train, others = (pq.read_table(folder / f"{file}.parquet") for file in TABLES[name])
    train, others = (t.take(rng.permutation(len(t))) for t in (train, others))
    train = train.slice(0, rows)
    cut = min(rows, len(others) // 2)
    schema = infer_schema(train, {})
    parts = train, others.slice(0, cut), others.slice(cut, rows)
    named = zip(parts, ("train", "validation", "control"), strict=True)
    return Sides(*(read_table(part, schema, where=where).released_only() for part, where in named))


def train_beyond(sides: Sides, out: Path, seed: int, *, steps: int) -> None:
    """Train until the loss is above twice its minimum, and write a release for each ratio.

    The loss is averaged over a few looks, so that one bad step does not stand for a ratio.

    The loss is the network's own, plus twice ``−log 0.01`` for each number: with the least deviation that the
    network may have, a row that is rebuilt exactly from a code of the prior then costs nothing, so that the
    loss is positive and its ratio means something.
    """
    rng = child_rng(seed, "overfitting", "fit")
    transformer = on_train(sides.train, lambda n, values, ends: ModeTransform.of(n, values, ends, rng))
    settings = Tvae(latent=LATENT, hidden=HIDDEN, learning_rate=RATE, regularised=False)
    rows, held = (transformer.encode(t, rng) for t in (sides.train, sides.validation))
    floor = -2 * np.log(LEAST_DEVIATION) * len(transformer.layout.numbers)
    losses: list[tuple[int, float, float]] = []
    kept: list[Weights] = []

    def watch(step: int, network: VariationalAutoencoder) -> bool:
        if step % EVERY:
            return False
        seen, unseen = (loss_of(network, transformer, part) + floor for part in (rows, held))
        losses.append((step, seen, unseen))
        kept.append(weights_of(network))
        averaged = smooth([loss for _, _, loss in losses])
        return bool(averaged[-1] > (RATIOS[-1] + 0.05) * averaged.min())

    draw = rng.spawn(1)[0]

    def sample() -> Positions:
        return draw.choice(len(rows), BATCH, replace=False)

    training = Training(rows, transformer.layout, steps, sample, lambda step, loss: None, rng)
    training.run(lambda training: settings.learn(training, watch))
    unseen = smooth([loss for _, _, loss in losses])
    best = int(unseen.argmin())
    releases = {}
    for ratio in RATIOS:
        reached = best + np.flatnonzero(unseen[best:] >= ratio * unseen[best])
        if not len(reached):
            break
        at = int(reached[0])
        rows_drawn = sides.train.n_rows
        model = NetworkModel(transformer, kept[at], settings)
        release = model.sample(rows_drawn, child_rng(seed, "draw"))
        columns = pa.table({n: release.column(n) for n in release.names})
        pq.write_table(columns, release_file(out, ratio))
        releases[f"{ratio:g}"] = losses[at][0]
    told = {"losses": losses, "releases": releases}
    (out / "training.json").write_text(json.dumps(told))


def smooth(losses: Sequence[float]) -> Floats:
    """The mean of each loss and those just before it."""
    sums = np.cumsum([0.0, *losses])
    ends = np.arange(1, len(sums))
    starts = np.maximum(ends - LOOKS, 0)
    found: Floats = (sums[ends] - sums[starts]) / (ends - starts)
    return found


def loss_of(
    network: VariationalAutoencoder,
    transformer: Transformer,
    rows: Floats32,
) -> float:
    """The mean loss of rows under draws that are the same each time."""
    import torch

    draws = torch.Generator().manual_seed(0)
    with torch.no_grad():
        return float(mean_loss(network, transformer.layout, torch.as_tensor(rows), draws))


def release_file(folder: Path, ratio: float) -> Path:
    return folder / f"release_{ratio:.1f}.parquet"


def measured(subject: Subject, context: RunContext, *, embedded: bool) -> dict[str, dict[str, Found]]:
    """Every measure as this tool reports it, and as the paper defines it where it differs."""
    rows = subject.train.n_rows
    size = Size(rows, ATTACKS, EmbeddingSettings(max_steps=EMBEDDING_STEPS))
    found = measure(subject, size, context, embedded=embedded)
    joined = Linkability(n_attacks=rows, source_pairs=0)
    guessed = Inference(n_attacks=rows, n_trees=0, known_sets=0, max_reconstructed=0)

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


def collect(chosen: argparse.Namespace, train: Callable[..., None] = train_beyond) -> None:
    """For each seed and table: train if that is not done, then measure what is not on file.

    Args:
        train: leaves a release for each ratio in a folder, as :func:`train_beyond` does.
    """
    until = time.monotonic() + 60 * chosen.minutes
    for seed in range(chosen.seeds):
        for name in chosen.tables:
            out = chosen.out / f"{name}_{seed}"
            out.mkdir(parents=True, exist_ok=True)
            sides = sides_of(chosen.folder, name, chosen.rows, seed)
            if not (out / "training.json").exists():
                train(sides, out, seed, steps=chosen.steps)
            known = {row["ratio"] for row in on_file(out)}
            with RunContext(seed=seed).keeping() as context:
                for ratio in (r for r in RATIOS if r not in known and release_file(out, r).exists()):
                    if time.monotonic() > until:
                        print("out of time: give the command again to go on", file=sys.stderr)
                        return
                    add(out, ratio, sides, context, embedded=not chosen.plain)


def add(out: Path, ratio: float, sides: Sides, context: RunContext, *, embedded: bool) -> None:
    """Measure one release, and append its line."""
    start = time.process_time()
    release = read_table(pq.read_table(release_file(out, ratio)), sides.train.schema, where="synthetic")
    row: dict[str, Any] = {"ratio": ratio, "rows": sides.train.n_rows, "control": sides.control.n_rows}
    row |= measured(Subject(sides.train, sides.control, release), context, embedded=embedded)
    row["seconds"] = time.process_time() - start
    with (out / "found.jsonl").open("a") as lines:
        lines.write(json.dumps(row) + "\n")
    print(out.name, ratio, f"{row['seconds']:.0f} s", file=sys.stderr, flush=True)


def on_file(folder: Path) -> list[dict[str, Any]]:
    path = folder / "found.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return sorted(rows, key=lambda row: row["ratio"])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "folder", type=Path, nargs="?", help="holds the tables; without it nothing is measured"
    )
    parser.add_argument("--out", type=Path, default=Path("overfitting"), help="folder of what was measured")
    parser.add_argument("--page", type=Path, help="write the page, and pictures in a folder of its name")
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--rows", type=int, default=ROWS, help="of train at most")
    parser.add_argument("--steps", type=int, default=10_000, help="of a training at most")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--plain", action="store_true", help="nothing in the embedding, for more seeds")
    parser.add_argument(
        "--minutes", type=float, default=float("inf"), help="begin no measuring after so many"
    )
    chosen = parser.parse_args()
    if chosen.folder is not None:
        collect(chosen)
    if chosen.page:
        there = [
            (name, chosen.out / f"{name}_{seed}") for name in chosen.tables for seed in range(chosen.seeds)
        ]
        studies = [
            Seed(name, on_file(out), json.loads((out / "training.json").read_text()))
            for name, out in there
            if on_file(out)
        ]
        design = {"hidden": HIDDEN, "latent": LATENT, "batch": BATCH, "rate": RATE, "averaged": EVERY * LOOKS}
        write(studies, chosen.page, RATIOS, design)


if __name__ == "__main__":
    main()
