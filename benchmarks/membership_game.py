"""The membership game with the paper's parameters, per truncation level of a vine: privacy gain, CPU seconds.

One folder keeps the fits, which all levels share. Run as
``python benchmarks/membership_game.py FOLDER --dataset support2_small --levels 1 5 10 15 20 26``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow.parquet as pq

from synth_audit import registry
from synth_audit.execution.context import Cache, RunContext
from synth_audit.findings.measurement import Findings
from synth_audit.plan.plan import parse_plan
from synth_audit.plugins.audit import Subject
from synth_audit.table.schema_inference import infer_schema
from synth_audit.table.table import Table, read_table

SENSITIVE = {"simulated_d20": ("X1", "X6", "X11"), "support2_small": ("totcst", "crea")}


def main() -> None:
    options = _options()
    train = _table(options.folder, options.dataset)
    paper = {"iterations": options.iterations, "outlying": 4, "random": 4, "vulnerable": 0, "achilles": 0}
    settings = {**paper, **dict(options.set)}
    game = registry.build("audit", "membership_game", settings)
    start = time.process_time()
    with TemporaryDirectory() as folder:
        for name, config in _generators(options):
            begun = time.process_time()
            generator = registry.build("generator", name, config)
            subject = Subject(train, None, train, generator)
            context = RunContext(seed=options.seed, cache=Cache(Path(folder)))
            findings = game.run(subject, context.child("audit", "membership_game"))
            print(f"== {name} {config} ({time.process_time() - begun:.0f} s of CPU)")
            _show(findings)
    print(f"whole process: {time.process_time() - start:.0f} s of CPU")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--dataset", choices=sorted(SENSITIVE), default="support2_small")
    parser.add_argument("--levels", type=int, nargs="*", default=[1, 5, 10, 15, 20, 26])
    parser.add_argument("--root", default="simplified", help="of the vine; the paper's is simplified")
    parser.add_argument("--iterations", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--others", nargs="*", default=[], help="generators besides the vine")
    parser.add_argument(
        "--set", type=_setting, nargs="*", default=[], help="settings of the audit: name=value"
    )
    return parser.parse_args()


def _setting(text: str) -> tuple[str, int | str]:
    name, _, value = text.partition("=")
    return name, int(value) if value.isdigit() else value


def _table(folder: Path, dataset: str) -> Table:
    columns = {name: {"role": "sensitive"} for name in SENSITIVE[dataset]} | {"Y": {"role": "target"}}
    plan = parse_plan({"columns": columns, "audits": ["membership_game"]})
    data = pq.read_table(folder / f"{dataset}_train.parquet")
    return read_table(data, infer_schema(data, plan.columns), where="train")


def _generators(options: argparse.Namespace) -> Iterator[tuple[str, dict[str, int | str]]]:
    yield from (("vine", {"truncation": level, "root": options.root}) for level in options.levels)
    yield from ((name, {}) for name in options.others)


def _show(findings: Findings) -> None:
    for m in findings.measurements:
        assert m.interval is not None
        ends = f"{m.interval.low:6.3f} to {m.interval.high:6.3f}"
        print(f"  {m.id.quantity:18} {m.id.setting:28} {m.value:6.3f} ({ends})")
    for series in findings.series:
        medians = np.round(series.lines["median"], 3).tolist()
        print("  medians:", ", ".join(f"{x} {m}" for x, m in zip(series.x, medians, strict=True)))
    for note in findings.notes:
        print("  note:", note)


if __name__ == "__main__":
    main()
