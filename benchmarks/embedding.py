"""The embedding on Adult: what it costs and how well it tells noisy copies from strangers, by width."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.metrics import roc_auc_score

from synth_audit.audits.published.closest_record import privacy_score
from synth_audit.encode.embedding import EmbeddingSettings, embed
from synth_audit.encode.encoded import Encoded
from synth_audit.execution.context import SERIAL
from synth_audit.neighbours.coordinates import Coordinates
from synth_audit.neighbours.search import nearest
from synth_audit.table.schema import nominal, quantitative
from synth_audit.table.schema_inference import infer_schema
from synth_audit.table.table import Table, assemble

ROWS, COPIED = 10_000, 1_000


def noisy(table: Table, rng: np.random.Generator) -> pa.Table:
    made, n = {}, table.n_rows
    for column in quantitative(table.schema):
        x = table.numbers(column.name)
        made[column.name] = x + rng.normal(0, 0.05 * x.std(), n)
    for column in nominal(table.schema):
        labels = table.labels(column.name)
        made[column.name] = np.where(rng.random(n) < 0.05, rng.permutation(labels), labels)
    return assemble(table.schema, made).data


def judged(points: list[Coordinates]) -> tuple[float, float]:
    train, control, release = points
    close, usual = (nearest(table, train).first for table in (release, control))
    return roc_auc_score(np.arange(ROWS) < COPIED, -close), privacy_score(close, usual, alpha=0.02)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="holds adult_{train,control}.parquet")
    parser.add_argument("widths", type=int, nargs="*", default=[128, 256, 512, 1024])
    options = parser.parse_args()
    real, control = (pq.read_table(options.folder / f"adult_{name}.parquet") for name in ("train", "control"))
    schema, rng = infer_schema(real, {}), np.random.default_rng(0)
    mine, others = np.array_split(rng.permutation(len(real)), 2)
    train, copied = (Table(schema, real.take(rows)) for rows in (mine, mine[:COPIED]))
    release = pa.concat_tables([noisy(copied, rng), real.take(others[: ROWS - COPIED])])
    tables = [train, Table(schema, control), Table(schema, release)]
    start = time.perf_counter()
    auc, score = judged(Encoded(tables, schema.features, [train]).coordinates())
    search = time.perf_counter() - start
    print(f"a tenth copied; Euclidean: {search:.1f} s, AUC {auc:.3f}, privacy score {score:.4f}")
    for width in options.widths:
        start, settings = time.perf_counter(), EmbeddingSettings(width=width)
        points = embed(train, tables, schema.features, settings=settings, context=SERIAL)
        longer, its = (time.perf_counter() - start) / search, judged(points)
        print(f"width {width}: {longer:.1f} × as long, AUC {its[0] - auc:+.3f}, score × {its[1] / score:.1f}")


if __name__ == "__main__":
    main()
