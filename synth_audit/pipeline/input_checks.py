"""Faults of inputs that every audit would misread: tables, changed columns, files with more than rows."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping

import numpy as np
import pyarrow as pa

from synth_audit.encode.encoded import Encoded
from synth_audit.errors import DataError
from synth_audit.findings.verdict import TableCheck
from synth_audit.pipeline.warnings import shown_count
from synth_audit.plan.plan import Plan
from synth_audit.plugins.audit import Subject
from synth_audit.store.stage_records import SplitRecord
from synth_audit.store.workspace import Workspace
from synth_audit.table.arrow import n_distinct
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

_TYPES = {b"ARROW:schema", b"PARQUET:field_id"}
"""Keys under which Parquet files say what the columns are."""

_BY_PANDAS = {"index_columns", "column_indexes", "columns", "creator", "pandas_version"}
"""What pandas says of every table; its `attributes` are the user's own."""

_ATTRIBUTES = b"PANDAS_ATTRS"

_USUAL, _OF_COLUMN = 1000, 400
"""Bytes in which pandas describes a table and a column; it takes about 300 and 150, and a name twice."""


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
    train, control = Encoded([subject.train, subject.control], subject.features).groups()
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


def about_metadata(schema: pa.Schema) -> tuple[str, ...]:
    """Metadata of a file and of its columns, apart from those that say what the columns are.

    Keys may say something too, so that only known ones are named.
    """
    own, *noted = (
        {k: v for k, v in (x.metadata or {}).items() if k not in _TYPES} for x in (schema, *schema)
    )
    usual, attributes = _of_pandas(own.pop(b"pandas", b"{}"), own.pop(_ATTRIBUTES, b""), schema.names)
    noted = [found for found in noted if found]
    sizes = {
        "pandas attributes": attributes,
        "more than pandas says of such a table": usual,
        f"{len(own)} other key{'s' * (len(own) != 1)}": _length(own),
        f"metadata of {len(noted)} column{'s' * (len(noted) != 1)}": sum(map(_length, noted)),
    }
    kinds = [
        f"{what}, {size:,} B" if size < 1000 else f"{what}, {size / 1000:,.1f} kB"
        for what, size in sizes.items()
        if size
    ]
    if not kinds:
        return ()
    return (
        f"the synthetic file holds metadata other than the table itself ({'; '.join(kinds)}), which no audit "
        "sees",
    )


def about_unused_labels(synthetic: Table, suppression: int) -> tuple[str, ...]:
    """Dictionaries of a candidate's columns that hold more values than its rows."""
    found = []
    for name in synthetic.names:
        values = synthetic.column(name)
        if pa.types.is_dictionary(values.type):
            listed = pa.chunked_array([chunk.dictionary for chunk in values.chunks], values.type.value_type)
            unused = n_distinct(listed) - n_distinct(values)
            found += [f"column {name!r} {shown_count(unused, suppression)}"] * (unused > 0)
    if not found:
        return ()
    return (f"dictionaries of the synthetic table hold values that no row uses: {', '.join(found)}",)


def _of_pandas(content: bytes, written: bytes, names: list[str]) -> tuple[int, int]:
    """Bytes beyond what pandas says of a table, and of attributes of the user's: in it, and written again."""
    try:
        said = json.loads(content)
        attributes = said.pop("attributes", {})
        usual = set(said) <= _BY_PANDAS
    except (ValueError, AttributeError, TypeError):
        attributes, usual = {}, False
    size = len(written) + (len(json.dumps(attributes)) if attributes else 0)
    if attributes:
        content = json.dumps(said).encode()
    most = _USUAL + sum(_OF_COLUMN + 2 * len(json.dumps(name)) for name in names)
    return (0 if usual and len(content) <= most else len(content)), size


def _length(metadata: Mapping[bytes, bytes]) -> int:
    return sum(len(key) + len(value) for key, value in metadata.items())
