"""Exact nearest neighbours with ties: blocks against scikit-learn's brute force and a dense matrix.

``--by-range`` searches the rows of ``scale.py`` range by range, as workers would that hold a range each, and
all at once: ranges of neighbouring rows, and ranges of rows that lie close together.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from scale import rows
from scipy.spatial.distance import cdist
from sklearn.neighbors import NearestNeighbors

from synth_audit.encode.encoded import Encoded
from synth_audit.neighbours.coordinates import Coordinates
from synth_audit.neighbours.search import nearest
from synth_audit.table.schema_inference import infer_schema
from synth_audit.table.table import Table

QUERIES = 5_000


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def cpu(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def by_range(n: int, parts: int) -> None:
    """CPU of searching ``parts`` ranges of n rows for 5,000 queries, over that of one search."""
    data, made = (rows(k, 0, np.random.default_rng(k)) for k in (n, QUERIES))
    schema = infer_schema(data.drop_columns(["id"]))
    both = Encoded(
        [Table(schema, data.select(schema.names)), Table(schema, made.select(schema.names))], [*schema]
    )
    for form in (both.coordinates, both.mixed):
        reference, queries = form()
        whole = cpu(lambda: nearest(queries, reference))  # noqa: B023
        for name, order in (("neighbours", np.arange(n)), ("close together", reference.leaves.order)):
            ranges = [reference.take(np.sort(part)) for part in np.array_split(order, parts)]
            taken = cpu(lambda: [nearest(queries, part) for part in ranges])  # noqa: B023
            times = f"{taken / whole:.2f} times {whole:.1f} CPU s"
            print(f"{form.__name__}, {n} rows, {parts} ranges, {name}: {times}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[4_000, 16_000])
    parser.add_argument("--by-range", type=int, metavar="RANGES")
    chosen = parser.parse_args()
    if chosen.by_range:
        for n in chosen.rows:
            by_range(n, chosen.by_range)
        return
    rng, width = np.random.default_rng(0), 100
    few = Coordinates.of(rng.normal(size=(50, 3)))
    nearest(few, few)  # what is imported for the first search is no part of it
    for n in chosen.rows:
        a, b = rng.normal(size=(n, width)), rng.normal(size=(n, width))
        ours = seconds(lambda: nearest(Coordinates.of(a), Coordinates.of(b)))  # noqa: B023
        peer = seconds(lambda: NearestNeighbors(n_neighbors=2, algorithm="brute").fit(b).kneighbors(a))  # noqa: B023
        twin = seconds(lambda: np.sort(cdist(a, b), axis=1)[:, :2])  # noqa: B023
        print(
            f"{n} × {n} × {width}: {ours:.2f} s; scikit-learn takes {peer / ours:.2f} times as long (without "
            f"counting ties), a dense matrix {twin / ours:.1f} times"
        )


if __name__ == "__main__":
    main()
