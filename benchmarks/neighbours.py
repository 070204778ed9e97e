"""Exact nearest neighbours with ties: blocks against scikit-learn's brute force and a dense matrix."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.neighbors import NearestNeighbors

from synth_audit.neighbours.coordinates import Coordinates
from synth_audit.neighbours.search import nearest


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[4_000, 16_000])
    rng, width = np.random.default_rng(0), 100
    few = Coordinates.of(rng.normal(size=(50, 3)))
    nearest(few, few)  # what is imported for the first search is no part of it
    for n in parser.parse_args().rows:
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
