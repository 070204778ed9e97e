"""How long a run will take, from two small ones."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from synth_audit.errors import DataError
from synth_audit.execution.context import RunContext
from synth_audit.execution.seeds import Salt, child_rng
from synth_audit.pipeline.making import fit_plan, pull_source, split_source
from synth_audit.pipeline.stages import examine, preflight, subject_of
from synth_audit.plan.plan import Plan
from synth_audit.table.table import Table

SIZES = (1_000, 4_000)
"""Rows of the two small runs, where the table has many more."""

FEWEST = 200
"""A table of fewer rows is run in less time than it takes to estimate."""

STEEPEST = 2.0
"""Exponent beyond which no stage of ours grows: what looks steeper is noise of short runs."""

_AUDITS = "audits"

_SAMPLED = 10_000
"""Rows from which on audits look at samples, of which the largest is of so many rows."""

_SAMPLED_GROWTH = (0.33, 0.45)
"""Least and largest exponent of audits beyond: the default audits without detection limits took 37 seconds of
4,000 rows of 20 columns and 157 of 100,000, in one process. Short runs are too noisy to tell it alone."""

_WHOLE = 100_000
"""Rows from which on what reads all rows outgrows the samples."""

_PER_MILLION = 7.3
"""Times the seconds of 4,000 rows that each further million rows adds: the same audits took 431 seconds of
1,000,000 rows and 2,809 of 10,000,000."""


@dataclass(frozen=True)
class StageEstimate:
    """One stage: its seconds in the small runs, and what they let expect of the whole table.

    Attributes:
        exponent: b of ``seconds = a · rows^b``, in [0, 2]; of audits up to 100,000 rows, from which on their
            seconds grow by a constant for each row.
    """

    name: str
    measured: tuple[float, float]
    exponent: float
    expected: float


@dataclass(frozen=True)
class RunEstimate:
    """What a run of a plan should take on this machine, with the workers that the estimate was made with."""

    rows: int
    sizes: tuple[int, int]
    stages: tuple[StageEstimate, ...]

    @property
    def expected(self) -> float:
        """Seconds of all stages."""
        return sum(stage.expected for stage in self.stages)


def estimate(plan: Plan, context: RunContext, folder: Path) -> RunEstimate:
    """Run a plan on two random parts of its table and extrapolate each stage by ``seconds = a · rows^b``.

    Beyond 100,000 rows audits add 7.3 times the seconds of 4,000 rows for each million.

    A still smaller part is run before them, since the first run also loads what all take. Of a table that was
    made elsewhere the same share of rows is audited. Nothing is kept, debited or released: the small fits
    spend from an account that ends with them, and what is told of them is how long they took.

    Args:
        folder: a private one, for rows that are laid out.

    Raises:
        DataError: the table has fewer than 200 rows, or what a run of the plan would raise.
    """
    preflight(plan)
    source = pull_source(plan)
    if source.n_rows < FEWEST:
        raise DataError(
            f"the table has {source.n_rows:,} rows",
            where="source",
            expected=f"{FEWEST} or more",
            fix="run it: it takes less time than an estimate",
        )
    small = plan.model_copy(update={"rows": None})
    sizes = min(SIZES[0], source.n_rows // 4), min(SIZES[1], source.n_rows // 2)
    draws = child_rng(context.seed, "run estimate")
    parts = ((source.sample(n, draws), n / source.n_rows) for n in (FEWEST, *sizes))
    _, *runs = (_seconds(small, part, share, context, folder) for part, share in parts)
    stages = tuple(_stage(name, [run[name] for run in runs], sizes, source.n_rows) for name in runs[0])
    return RunEstimate(source.n_rows, sizes, stages)


def _seconds(plan: Plan, part: Table, share: float, context: RunContext, folder: Path) -> Mapping[str, float]:
    """Seconds of a run on part of the table, by stage.

    Args:
        share: of the rows that are in it.
    """
    salt = Salt.fresh()
    train, control = split_source(plan, part, salt)
    start = time.perf_counter()
    made = fit_plan(plan, train, salt, context)
    synthetic = made.table(folder)
    if synthetic.n_rows > made.rows:  # it was not drawn for this part
        synthetic = synthetic.sample(max(1, round(share * synthetic.n_rows)), salt.rng("made elsewhere"))
    fitted = time.perf_counter()
    examine(plan, subject_of(plan, train, control, synthetic), made.record, context, salt, draws=salt)
    return {"fit and draw": fitted - start, _AUDITS: time.perf_counter() - fitted}


def _stage(name: str, seconds: Sequence[float], sizes: tuple[int, int], rows: int) -> StageEstimate:
    first, second = seconds
    exponent = math.log(second / first) / math.log(sizes[1] / sizes[0])
    low, high = _SAMPLED_GROWTH if (sampled := name == _AUDITS and rows >= _SAMPLED) else (0.0, STEEPEST)
    exponent = min(max(exponent, low), high)
    ends = min(rows, _WHOLE) if sampled else rows
    expected = (ends / sizes[1]) ** exponent + _PER_MILLION * (rows - ends) / 1e6
    return StageEstimate(name, (first, second), exponent, second * expected)
