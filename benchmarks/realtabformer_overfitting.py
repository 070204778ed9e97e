"""What overfitting does to privacy, by REaLTabFormer: the privacy paper's own figure.

The network of the recipe is trained without decay of weights, without dropout and at a high rate far beyond
the least loss on rows that it does not learn from; at that loss and at ratios of it, up to twice, a release
is drawn, attacked and measured as `overfitting.py` does for `tvae`. It can be stopped and given again, and
takes the recipe: `synth-audit recipes install realtabformer`.

    .venv/bin/python benchmarks/realtabformer_overfitting.py FOLDER --out FOLDER \
        --page docs/research/realtabformer.md
"""

from __future__ import annotations

import argparse
import json
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from _overfitting_page import Seed, Study, section  # beside this script
from overfitting import RATIOS, TABLES, Sides, collect, on_file

from synth_audit.execution.context import for_other_programs
from synth_audit.generators.external.recipe import RecipeEnvironment, recipes

NETWORK: dict[str, Any] = {
    **{"layers": 2, "width": 64, "heads": 4, "dropout": 0.0},
    **{"rate": 2e-3, "batch": 32, "every": 20, "looks": 3},
}
"""The recipe's own: 6 layers of width 768, a tenth dropped, at 5e-5. Its loss is looked at each 20 steps."""

PROGRAM = Path(__file__).with_name("_realtabformer_beyond.py")
MARK, NEXT = "\n## Overfitted\n", "\n## Measured\n"


def train_beyond(sides: Sides, out: Path, seed: int, *, steps: int) -> None:
    """Train until the loss is twice its minimum, and write a release for each ratio."""
    for name in ("train", "validation"):
        side = getattr(sides, name)
        columns = {n: side.column(n) for n in side.names}
        pq.write_table(pa.table(columns), out / f"{name}.parquet")
    settings = {**NETWORK, "ratios": RATIOS, "steps": steps, "seed": seed + 1}
    python = RecipeEnvironment.of(recipes()["realtabformer"]).checked().interpreter
    words = [str(python), "-I", "-W", "ignore", str(PROGRAM), str(out), json.dumps(settings)]
    subprocess.run(words, check=True, capture_output=True, env=for_other_programs())


def sections(studies: Sequence[Seed], folder: Path) -> Iterator[str]:
    """What was found of each table, with its picture in a folder."""
    folder.mkdir(exist_ok=True)
    for table in dict.fromkeys(seed.table for seed in studies):
        study = Study.of(table, [seed for seed in studies if seed.table == table])
        yield from section(study, folder, RATIOS, "###")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "folder", type=Path, nargs="?", help="holds the tables; without it nothing is measured"
    )
    parser.add_argument("--out", type=Path, required=True, help="folder of what was measured")
    parser.add_argument("--page", type=Path, help="write what stands behind its heading `Overfitted`")
    parser.add_argument("--tables", nargs="+", default=["adult"], choices=list(TABLES))
    parser.add_argument("--rows", type=int, default=300, help="of train")
    parser.add_argument("--steps", type=int, default=3_000, help="of a training at most")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no measuring after these")
    chosen = parser.parse_args()
    chosen.plain = True
    if chosen.folder is not None:
        collect(chosen, train_beyond)
    if chosen.page:
        places = [(n, chosen.out / f"{n}_{seed}") for n in chosen.tables for seed in range(chosen.seeds)]
        studies = [
            Seed(name, on_file(out), json.loads((out / "training.json").read_text()))
            for name, out in places
            if on_file(out)
        ]
        before, _, after = chosen.page.read_text().partition(NEXT)
        before = before.split(MARK)[0].rstrip("\n")
        found = "\n".join(sections(studies, chosen.page.with_suffix("")))
        chosen.page.write_text("\n".join([before, MARK, found + NEXT + after]))


if __name__ == "__main__":
    main()
