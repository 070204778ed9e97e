"""Table I of the privacy paper (contrastive privacy metrics) for the generators of this tool.

Singling out (SO) and distance to the closest record (DCR), each on the columns and in the contrastive
embedding (+ CL), as published and as this tool reports them. Every release measured is a line of a file and
is not measured again, so the command can be stopped and given again at any time. Smaller by default;
--whole takes all rows, 2,000 attacks and the published network, which takes hours.

    .venv/bin/python benchmarks/privacy_paper_table.py FOLDER --out FILE \
        --page docs/research/privacy-paper-table.md
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from _privacy_paper_page import Found, page, table_of  # beside this script

from synth_audit import registry
from synth_audit.audits.privacy.singling_out import SinglingOut
from synth_audit.audits.published.closest_record import ClosestRecord, privacy_score
from synth_audit.encode.embedding import EmbeddingSettings, embed
from synth_audit.encode.encoded import Encoded
from synth_audit.errors import SynthAuditError
from synth_audit.execution.context import RunContext
from synth_audit.execution.seeds import child_rng
from synth_audit.findings.measurement import Measurement
from synth_audit.neighbours.coordinates import Coordinates
from synth_audit.neighbours.search import nearest
from synth_audit.plugins.audit import Subject
from synth_audit.plugins.generator import FitContext
from synth_audit.table.schema_inference import infer_schema
from synth_audit.table.table import Table, read_table

TABLES = {
    "adult": ("adult_train", "adult_control", "adult_ctgan_synthetic"),
    "support2": ("support2_small_train", "support2_small_test", None),
}
"""Files of train, control and a release of CTGAN made elsewhere. Texas and the census are not at hand."""

MADE_ELSEWHERE, FRESH = "CTGAN, made elsewhere", "fresh real rows"
NOT_ASKED = ("external",)
RECIPES: dict[str, dict[str, Any]] = {
    "realtabformer": {"epochs": 30, "layers": 2, "width": 128, "heads": 4, "overfitting_check": False}
}
"""Recipes of others that are asked too, with settings for the smaller size; with --whole their own."""
ALPHA, WIDTHS, DRAWS, LEVEL = 0.02, tuple(range(3, 13)), 1_000, 0.95
FEWEST = 100


@dataclass(frozen=True)
class Size:
    """Rows of train at most, attacks of each setting, and the embedding's network."""

    rows: int
    attacks: int
    network: EmbeddingSettings


SMALL = Size(3_000, 500, EmbeddingSettings(max_steps=400))
WHOLE = Size(sys.maxsize, 2_000, EmbeddingSettings(width=1024))


def sides_of(folder: Path, name: str, size: Size, seed: int) -> tuple[Table, Table, pa.Table]:
    """Train and control of a table, cut alike to the size, and fresh rows taken from control."""
    rng = child_rng(seed, "paper", name)
    train, control = (pq.read_table(folder / f"{file}.parquet") for file in TABLES[name][:2])
    part = min(1.0, size.rows / len(train))
    train, control = (t.take(rng.permutation(len(t))[: round(part * len(t))]) for t in (train, control))
    cut = len(control) // 2
    schema = infer_schema(train, {})
    kept = read_table(control.slice(0, cut), schema, where="control")
    return read_table(train, schema, where="train"), kept, control.slice(cut)


def release_of(
    folder: Path, name: str, kind: str, train: Table, fresh: pa.Table, size: Size, seed: int
) -> Table:
    """A release of as many rows as train, or as there are."""
    if kind == FRESH:
        made = fresh
    elif kind == MADE_ELSEWHERE:
        made = pq.read_table(folder / f"{TABLES[name][2]}.parquet")
        made = made.take(child_rng(seed, "paper", kind).permutation(len(made))[: train.n_rows])
    else:
        recipe = {"recipe": kind, "settings": {} if size is WHOLE else RECIPES.get(kind, {})}
        generator = registry.build("generator", *(("external", recipe) if kind in RECIPES else (kind, {})))
        model = generator.fit(train.released_only(), FitContext(rng=child_rng(seed, "fit", kind)))
        made = model.sample(train.n_rows, child_rng(seed, "sample", kind)).data
    return read_table(made, train.schema, where="synthetic", partial=True)


def dcr_as_published(tables: Sequence[Coordinates], seed: int) -> Found:
    """Equations 3 and 4: train's distances to control say what is close; bootstrap over both.

    Args:
        tables: train, control and release as points.
    """
    train, control, release = tables
    usual, close = nearest(train, control).first, nearest(release, train).first
    rng = child_rng(seed, "paper", "bootstrap")
    drawn = [
        privacy_score(rng.choice(close, len(close)), rng.choice(usual, len(usual)), alpha=ALPHA)
        for _ in range(DRAWS)
    ]
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(privacy_score(close, usual, alpha=ALPHA)), float(low), float(high)


def attacks(size: Size) -> dict[str, SinglingOut]:
    """The two singling-out attacks by column of the table."""
    guided = SinglingOut(
        univariate=False,
        multivariate=(),
        embedding_columns=WIDTHS,
        embedding_settings=size.network,
        published=True,
        n_attacks=size.attacks,
        n_minimum=FEWEST,
    )
    plain = SinglingOut(multivariate=WIDTHS, published=True, n_attacks=size.attacks, n_minimum=FEWEST)
    return {"SO": plain, "SO + CL": guided}


def scores(size: Size) -> dict[str, ClosestRecord]:
    """The two scores of distance by column of the table."""
    placed = ClosestRecord(distances=("embedding",), embedding_settings=size.network)
    return {"DCR": ClosestRecord(distances=("euclidean",)), "DCR + CL": placed}


def largest(measurements: Iterable[Measurement], quantity: str) -> Found:
    """The largest value of a quantity over its settings."""
    most = max((m for m in measurements if m.id.quantity == quantity), key=lambda m: m.value)
    assert most.interval is not None
    return most.value, most.interval.low, most.interval.high


def measure(
    subject: Subject, size: Size, context: RunContext, *, embedded: bool = True
) -> dict[str, dict[str, Found]]:
    """The table's columns as published and as this tool reports them.

    Args:
        embedded: those in the embedding (CL) too, which takes most of the time.
    """
    assert subject.control is not None
    three, columns = [subject.train, subject.control, subject.synthetic], subject.features
    plain = Encoded(three, columns, [subject.train]).coordinates()
    published = {"DCR": dcr_as_published(plain, context.seed)}
    if embedded:
        placed = embed(subject.train, three, columns, settings=size.network, context=context)
        published["DCR + CL"] = dcr_as_published(placed, context.seed)
    ours = {}
    for column, score in wanted(scores(size), embedded).items():
        found = score.run(subject, replace(context, draws=child_rng(context.seed, "paper", column)))
        ours[column] = largest(found.measurements, "privacy_score")
    for column, attack in wanted(attacks(size), embedded).items():
        found = attack.run(subject, replace(context, draws=child_rng(context.seed, "paper", column)))
        ours[column] = largest(found.measurements, "worst_risk")
        published[column] = largest(found.measurements, "published_risk")
    return {"published": published, "ours": ours}


def wanted(named: Mapping[str, Any], embedded: bool) -> dict[str, Any]:
    return {column: audit for column, audit in named.items() if embedded or not column.endswith("CL")}


def asked(chosen: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Tables and kinds of release."""
    generators = [*(g for g in registry.catalogue("generator") if g not in NOT_ASKED), *RECIPES]
    for name in chosen.tables:
        elsewhere = [MADE_ELSEWHERE] if TABLES[name][2] else []
        for kind in [FRESH, *elsewhere, *(chosen.generators or generators)]:
            yield name, kind


def collect(chosen: argparse.Namespace, size: Size) -> None:
    """Measure what is not on file."""
    until = time.monotonic() + 60 * chosen.minutes
    known = {(row["table"], row["kind"], row["whole"]) for row in on_file(chosen.out)}
    with RunContext(seed=chosen.seed).keeping() as context:
        for name, kind in asked(chosen):
            if (name, kind, chosen.whole) in known:
                continue
            if time.monotonic() > until:
                print("out of time: give the command again to go on", file=sys.stderr)
                return
            start = time.process_time()
            train, control, fresh = sides_of(chosen.folder, name, size, chosen.seed)
            row = {"table": name, "kind": kind, "whole": chosen.whole, "rows": train.n_rows}
            try:
                release = release_of(chosen.folder, name, kind, train, fresh, size, chosen.seed)
                row |= measure(Subject(train, control, release), size, context)
            except SynthAuditError as error:
                row["error"] = str(error)
            row |= {"seconds": time.process_time() - start, "date": f"{datetime.now(UTC):%Y-%m-%d}"}
            with chosen.out.open("a") as out:
                out.write(json.dumps(row) + "\n")
            print(name, kind, f"{row['seconds']:.0f} s", row.get("error", ""), file=sys.stderr, flush=True)


def on_file(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "folder", type=Path, nargs="?", help="holds the tables; without it nothing is measured"
    )
    parser.add_argument("--out", type=Path, default=Path("privacy_paper_table.jsonl"))
    parser.add_argument("--page", type=Path, help="write the table as a page of Markdown")
    parser.add_argument("--tables", nargs="*", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--generators", nargs="*", help="of these alone, beside fresh rows")
    parser.add_argument("--whole", action="store_true", help="all rows, the published sizes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after these")
    chosen = parser.parse_args()
    if chosen.folder is not None:
        collect(chosen, WHOLE if chosen.whole else SMALL)
    rows = [row for row in on_file(chosen.out) if row["whole"] == chosen.whole]
    print("\n".join([*table_of(rows, "published"), "", *table_of(rows, "ours")]))
    if chosen.page and rows:
        known = {(row["table"], row["kind"]) for row in rows}
        missing = [f"{kind} of {table}" for table, kind in asked(chosen) if (table, kind) not in known]
        given = {"tables": chosen.tables, "generators": chosen.generators or []}
        options = "".join(f" \\\n        --{name} {' '.join(of)}" for name, of in given.items() if of)
        chosen.page.write_text(page(rows, missing, options))


if __name__ == "__main__":
    main()
