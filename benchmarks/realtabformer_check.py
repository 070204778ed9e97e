"""REaLTabFormer along its training, and what its own overfitting check stops: few rows, a small network.

The privacy paper overfits REaLTabFormer on purpose and shows that attack risks and distance scores rise. Here
the recipe learns some hundred rows of Adult for more and more epochs without its check, and once with it for
the most of them; each release is measured beside fresh rows of other people. What is measured stands in a
file and is not measured again: the command can be stopped and given again at any time. It takes the recipe:
`synth-audit recipes install realtabformer`.

    .venv/bin/python benchmarks/realtabformer_check.py FOLDER --out FILE --page docs/research/realtabformer.md
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

import pyarrow.parquet as pq
from disjoint_paper import on_file  # beside this script

from synth_audit import registry
from synth_audit.examination.audit_runner import run_audits
from synth_audit.execution.context import RunContext
from synth_audit.execution.seeds import child_rng
from synth_audit.findings.measurement import MeasurementId, Series
from synth_audit.plugins.audit import Subject
from synth_audit.plugins.generator import FitContext
from synth_audit.report.charts import series_svg
from synth_audit.table.schema_inference import infer_schema
from synth_audit.table.table import Table, read_table

NETWORK: dict[str, Any] = {"layers": 2, "width": 64, "heads": 4, "batch": 32, "bootstraps": 50}
"""The recipe's own: 6 layers of width 768 and 500 draws."""
RATE = 5e-5
"""Of learning, by default: the recipe's own."""

AUDITS: dict[str, dict[str, Any]] = {
    "closest_record": {"n_bootstrap": 100},
    "membership_data_only": {"n_trees": 20},
}
MEASURES = {
    "closest_record.privacy_score": "DCR privacy score",
    "closest_record.epsilon_identifiability": "ε risk",
    "membership_data_only.auc": "membership AUC",
}
FRESH, CHECKED = "fresh rows", "with its check"
MARK = "\n## Measured\n"


def sides(folder: Path, rows: int, seed: int) -> tuple[Table, Table, Table]:
    """Train, control and fresh rows, as many of each."""
    rng = child_rng(seed, "realtabformer")
    train, control = (pq.read_table(folder / f"adult_{side}.parquet") for side in ("train", "control"))
    train, control = (t.take(rng.permutation(len(t))) for t in (train, control))
    schema = infer_schema(train, {})
    cut = [train.slice(0, rows), control.slice(0, rows), control.slice(rows, rows)]
    named = zip(cut, ("train", "control", "synthetic"), strict=True)
    first, second, third = (read_table(t, schema, where=where) for t, where in named)
    return first, second, third


def release_of(train: Table, epochs: int, rate: float, checked: bool, seed: int) -> Table:
    """Rows of a model that has learnt for so many epochs, or until its check stopped it."""
    settings = {**NETWORK, "epochs": epochs, "learning_rate": rate, "overfitting_check": checked}
    recipe = {"recipe": "realtabformer", "settings": settings, "timeout": 3600}
    generator = registry.build("generator", "external", recipe)
    model = generator.fit(train.released_only(), FitContext(rng=child_rng(seed, "fit")))
    made: Table = model.sample(train.n_rows, child_rng(seed, "sample"))
    return made


def numbers(train: Table, control: Table, made: Table, seed: int) -> dict[str, float]:
    audits = {name: registry.build("audit", name, settings) for name, settings in AUDITS.items()}
    outcomes, _ = run_audits(audits, Subject(train, control, made), RunContext(seed=seed))
    return {str(m.id): m.value for o in outcomes for m in o.measurements if str(m.id) in MEASURES}


def spent() -> float:
    """CPU seconds of this process and of the recipe's."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def collect(chosen: argparse.Namespace) -> None:
    """Measure what is not on file yet."""
    done = on_file(chosen.out)
    known = {(row["case"], row["epochs"], row.get("rate", RATE), row["repeat"]) for row in done}
    most = max(chosen.epochs)
    cases = [(FRESH, 0), *((f"{e} epochs", e) for e in sorted(chosen.epochs)), (CHECKED, most)]
    until = time.monotonic() + 60 * chosen.minutes
    for repeat in range(chosen.repeats):
        train, control, fresh = sides(chosen.folder, chosen.rows, repeat)
        for case, epochs in cases:
            rate = RATE if case == FRESH else chosen.rate
            if (case, epochs, rate, repeat) in known or time.monotonic() > until:
                continue
            start = spent()
            made = fresh if case == FRESH else release_of(train, epochs, rate, case == CHECKED, repeat)
            row = {"case": case, "epochs": epochs, "rate": rate, "repeat": repeat, "rows": train.n_rows}
            row |= numbers(train, control, made, repeat) | {"seconds": spent() - start}
            with chosen.out.open("a") as out:
                out.write(json.dumps(row) + "\n")
            print(case, repeat, f"{row['seconds']:.0f} CPU s", file=sys.stderr, flush=True)


def table(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """One line for each release, means over the repeats."""
    yield "| release | rate | repeats | " + " | ".join(MEASURES.values()) + " | CPU s |"
    yield "|---" * (len(MEASURES) + 4) + "|"
    for told in dict.fromkeys(map(told_of, rows)):
        own = [row for row in rows if told_of(row) == told]
        cells = [*told, f"{len(own)}", *(f"{mean(row[m] for row in own):.3f}" for m in MEASURES)]
        yield "| " + " | ".join([*cells, f"{mean(row['seconds'] for row in own):.0f}"]) + " |"


def told_of(row: Mapping[str, Any]) -> tuple[str, str]:
    """What a release is, and the rate that it was learnt at."""
    if row["case"] == FRESH:
        return FRESH, ""
    checked = f", {CHECKED}" if row["case"] == CHECKED else ""
    return f"{row['epochs']} epochs{checked}", f"{row.get('rate', RATE):g}"


def picture(rows: Sequence[dict[str, Any]]) -> str:
    """Each measure by epochs."""
    rows = [row for row in rows if row["case"] not in (FRESH, CHECKED) and row.get("rate", RATE) == RATE]
    epochs = sorted({row["epochs"] for row in rows})
    lines = {
        label: tuple(mean(row[m] for row in rows if row["epochs"] == e) for e in epochs)
        for m, label in MEASURES.items()
    }
    where = MeasurementId("realtabformer", "epochs")
    title = "REaLTabFormer without its check"
    series = Series(where, title, "line", "epochs", "", tuple(map(float, epochs)), lines)
    return series_svg(series, anchor="realtabformer")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "folder",
        type=Path,
        nargs="?",
        help="holds adult_train and adult_control; without it nothing is measured",
    )
    parser.add_argument("--out", type=Path, required=True, help="what is measured, a line each")
    parser.add_argument("--page", type=Path, help="write the table behind its heading `Measured`")
    parser.add_argument("--rows", type=int, default=400, help="that are learnt")
    parser.add_argument("--epochs", type=int, nargs="*", default=[10, 40, 160])
    parser.add_argument("--rate", type=float, default=RATE, help="of learning")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="start no other after these")
    chosen = parser.parse_args()
    if chosen.folder is not None:
        collect(chosen)
    rows = on_file(chosen.out)
    print("\n".join(table(rows)))
    if chosen.page:
        drawn = chosen.page.with_suffix(".svg")
        drawn.write_text(picture(rows) + "\n")
        before = chosen.page.read_text().split(MARK)[0].rstrip("\n")
        shown = f"![REaLTabFormer by epochs]({drawn.name})"
        chosen.page.write_text("\n".join([before, MARK, *table(rows), "", shown, ""]))


if __name__ == "__main__":
    main()
