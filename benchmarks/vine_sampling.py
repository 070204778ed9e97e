"""CPU seconds to draw from the C-vine of SUPPORT2's 27 columns: by our kernel and by the library."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from pyvinecopulib.core import CVineStructure
from scipy.stats import rankdata

from synth_audit.generators.vine.copulas import Choice, Criterion, fit_cvine, fit_library

CRITERIA: tuple[Criterion, ...] = ("aic", "bic", "mbicv")


def cpu(work: Callable[[], object], repeats: int) -> float:
    """CPU seconds of one call."""
    start = time.process_time()
    for _ in range(repeats):
        work()
    return (time.process_time() - start) / repeats


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where support2_small_train.parquet is")
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--repeats", type=int, default=20)
    args = parser.parse_args()
    frame = pq.read_table(args.folder / "support2_small_train.parquet").to_pandas().to_numpy(float)
    rng = np.random.default_rng(0)
    ranks = rankdata(frame + 1e-9 * rng.random(frame.shape), axis=0)
    levels, discrete = (ranks - 0.5) / len(ranks), np.zeros(frame.shape[1], dtype=bool)
    structure = CVineStructure(range(1, frame.shape[1] + 1))
    for criterion in CRITERIA:
        choice = Choice(criterion=criterion)
        library = fit_library(levels, levels, discrete, choice, structure)
        ours = fit_cvine(levels, levels, discrete, choice)
        linked = sum(edge is not None for tree in ours.trees for edge in tree)
        slow = cpu(lambda: library.sample(args.rows, seeds=[1], num_threads=1), args.repeats)  # noqa: B023  (called at once)
        fast = cpu(lambda: ours.draw(args.rows, rng), args.repeats)  # noqa: B023  (called at once)
        print(
            f"{criterion:6s} {linked} of {sum(map(len, ours.trees))} pairs related; {args.rows} rows: "
            f"library {1e3 * slow:.1f} ms, ours {1e3 * fast:.1f} ms, {slow / fast:.1f} times faster"
        )


if __name__ == "__main__":
    main()
