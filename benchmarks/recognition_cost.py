"""What does the audit `recognition` cost for one more candidate, beside a naive comparison in the same run?

Adult is dealt as 2,000 training and 500 control people, and fresh rows are the release. The naive twin
weighs each row for each person by the agreement of all columns, holds the whole matrix and sorts it. The
audit, without detection limits, weighs rows in 28 ways and does all else besides.

    .venv/bin/python benchmarks/recognition_cost.py FOLDER
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import _releases_to_judge as releases
import numpy as np
from _releases_to_judge import Case

from synth_audit.audits.recognition import Recognition
from synth_audit.audits.recognition.coded_cells import CodedCells
from synth_audit.audits.recognition.people import PooledPeople, pooled
from synth_audit.execution.context import RunContext
from synth_audit.execution.seeds import child_rng


def naive(pool: PooledPeople) -> None:
    """One weighting: every row for every person, held whole, the best rows first."""
    cells = [CodedCells.of(column) for column in pool.columns]
    weights = np.zeros((pool.records, pool.rows))
    for column in cells:
        weights += column.agreement()[np.ix_(column.people, column.release)]
    np.argsort(-weights, axis=1)


def cpu(work: Callable[[], object]) -> float:
    """CPU seconds of some work, all threads together."""
    start = time.process_time()
    work()
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--table", default="adult", help="or any Parquet file of the folder")
    parser.add_argument("--times", type=int, default=3, help="both are measured in turn so often")
    chosen = parser.parse_args()
    case = Case(chosen.table, "fresh", 1.0, 0.0, 0)
    dealt = releases.dealt_for(chosen.folder, case)
    if dealt is None:
        raise SystemExit("the table has too few rows")
    subject = releases.subject_of(dealt, dealt.fresh, releases.plan_of(case))
    audit = Recognition(detection=False)
    pool, _ = pooled(subject, audit.max_people, child_rng(0, "people"))
    audit.run(subject, RunContext(draws=child_rng(0, "imports")))
    for k in range(chosen.times):
        context = RunContext(draws=child_rng(k, "recognition"))
        ours, twin = cpu(partial(audit.run, subject, context)), cpu(partial(naive, pool))
        print(f"recognition {ours:.1f} CPU s, naive twin {twin:.2f} CPU s, ratio {ours / twin:.1f}")


if __name__ == "__main__":
    main()
