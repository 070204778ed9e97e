"""Faults of inputs that every audit would misread: seen control rows, changed columns, emptied cells."""

from __future__ import annotations

import re
from collections.abc import Collection

import numpy as np

from synth_audit.encode.cells import row_groups
from synth_audit.errors import DataError
from synth_audit.findings.verdict import TableCheck
from synth_audit.plan.plan import Plan
from synth_audit.plugins.audit import Subject
from synth_audit.store.stage_records import SplitRecord
from synth_audit.store.workspace import Workspace
from synth_audit.table.schema import Schema, quantitative
from synth_audit.table.table import Table
from synth_audit.verdict.table_checks import FULLNESS_TYPE, contract_key

_CHANCE = 1e-6
"""Probability at most that honest tables are refused by one of these checks."""

_RARE = 20
"""Rows below which a label may be withheld; the generators' own default (`minimum_people`)."""

_SHARED = 0.05
"""Share of the control rows that must occur in train before chance is asked."""

COLUMN_MARGIN = 0.05
"""Share of a column's cells that may be missing beyond train: generators reproduce shares this closely."""

TABLE_MARGIN = 0.02
"""The same of all cells together, where single columns' deviations average out."""

_DIGITS = re.compile(r"decimal\d+\(.*?\)")
"""How many digits decimals have follows from their values where a warehouse does not say."""


def refuse_seen_control(subject: Subject) -> None:
    """Stop where control rows occur in train more often than a division at random explains.

    Take the rows that occur exactly twice in train and control together. Division at random puts the two into
    different tables with probability 2 n m / ((n + m)(n + m − 1)), for n and m rows. So the number of pairs
    divided is about binomial. A control drawn from train divides them all. Tables of few bits, whose rows
    occur many times, have few pairs and are not refused.

    Raises:
        DataError: with a probability of at most 1e-6 where rows were divided at random.
    """
    from scipy.stats import binom  # lazy import: keeps CLI start fast

    if subject.control is None:
        return
    train, control = row_groups([subject.train, subject.control], subject.features)
    shared = float(np.isin(control, train).mean())
    n, m = len(train), len(control)
    size = max(train.max(initial=-1), control.max(initial=-1)) + 1
    here, there = np.bincount(train, minlength=size), np.bincount(control, minlength=size)
    pairs = here + there == 2
    divided = 2 * n * m / ((n + m) * (n + m - 1))
    apart = int((pairs & (here == 1)).sum())
    if shared > _SHARED and binom.sf(apart - 1, int(pairs.sum()), divided) < _CHANCE:
        raise DataError(
            f"{shared:.0%} of the control rows occur in train, more than chance explains",
            where="control",
            expected="rows of the same population that the generator never saw",
            fix="give rows that were held back before the fit",
        )


def fullness(train: Table, candidate: Table, declared: Collection[str]) -> TableCheck:
    """Check that no column, nor the cells overall, are emptier in the candidate than in train.

    A column may have 5 percentage points more missing cells than in train, all cells together 2 points, and
    what chance adds in so many rows (1e-6). Labels that fewer than 20 training rows share may be missing too:
    generators withhold them.

    Args:
        declared: columns whose values the plan says may be withheld (``nullable: true`` or ``coarsen``).
    """
    from scipy.stats import binom  # lazy import: keeps CLI start fast

    names = [c.name for c in train.schema.features if c.name in candidate.names and c.name not in declared]
    before = {name: (train.n_missing(name) + _rare(train, name)) / train.n_rows for name in names}
    now = {name: candidate.n_missing(name) for name in names}
    rows = candidate.n_rows

    def most(share: float, margin: float, cells: int) -> int:
        return int(binom.isf(_CHANCE, cells, min(1.0, share + margin)))

    empty = sorted(name for name in names if now[name] > most(before[name], COLUMN_MARGIN, rows))
    overall = sum(before.values()) / max(1, len(names))
    too_many = sum(now.values()) / max(1, len(names)) > most(overall, TABLE_MARGIN, rows)
    margins = {"column_margin": COLUMN_MARGIN, "table_margin": TABLE_MARGIN, "declared": sorted(declared)}
    key = contract_key({"type": FULLNESS_TYPE, "kwargs": margins})
    if empty:
        return TableCheck(key, False, f"Emptier than in train, by more than 5 points: {', '.join(empty)}.")
    if too_many:
        return TableCheck(key, False, "The table's cells are emptier than in train, by more than 2 points.")
    return TableCheck(key, True, "No column, nor the table as a whole, is emptier than in train.")


def _rare(train: Table, name: str) -> int:
    """Training rows whose label fewer than 20 rows share; none of a column of numbers."""
    import pyarrow.compute as pc

    if quantitative([train.schema[name]]):
        return 0
    counts = pc.value_counts(train.column(name).drop_null().combine_chunks()).field("counts")
    return int(pc.sum(pc.filter(counts, pc.less(counts, _RARE))).as_py() or 0)


def refuse_drift(plan: Plan, workspace: Workspace, schema: Schema) -> None:
    """Raise where columns were added, dropped or retyped since the same plan was split here last.

    What the plan says of the columns was decided on another table: a new one may be sensitive, and one that
    changed its type is measured in another way. Another plan is a new decision.

    Raises:
        DataError: naming each column and what became of it; nothing has been fitted.
    """
    if not workspace.split_record.is_file():
        return
    try:
        before = SplitRecord.read(workspace.split_record)
    except DataError:  # of another version, or damaged: it is about to be replaced
        return
    if before.plan_sha256 != plan.digest:
        return
    then = {c.name: _DIGITS.sub("decimal", c.storage) for c in before.columns}
    now = {c.name: _DIGITS.sub("decimal", str(c.storage)) for c in schema.columns}
    found = [
        *(f"{name!r} was added" for name in now if name not in then),
        *(f"{name!r} was dropped" for name in then if name not in now),
        *(f"{n!r} was {then[n]} and is {now[n]}" for n in then if n in now and then[n] != now[n]),
    ]
    if found:
        raise DataError(
            f"the source has changed since this plan was run: {'; '.join(found)}",
            where="source",
            expected="the columns and types of the last run of this plan",
            fix="declare the column under `columns:`, or leave it out by `query:`, and run the changed plan",
        )
