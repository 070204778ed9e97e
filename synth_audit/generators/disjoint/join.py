"""Joins by a validator that has seen real rows, and what the report draws of a partition and a join."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from synth_audit.arrays import Bools, Codes, Floats, Positions
from synth_audit.errors import DataError
from synth_audit.findings.measurement import MeasurementId, Series
from synth_audit.generators.disjoint.fixed_design import FixedDesign
from synth_audit.generators.disjoint.partition import (
    MOST_ROWS,
    WHERE,
    Groups,
    TableAssociations,
    exterior_to_interior,
)
from synth_audit.generators.disjoint.validator import (
    JoinValidator,
    ValidatedJoin,
    Validation,
    learnt,
    shares_above,
    validated_join,
)
from synth_audit.plugins.generator import TrainingCourse
from synth_audit.stats.distributions import tellable_cells
from synth_audit.table.table import Table

_MOST_COLUMNS = 40
_BINS = 10
_STEPS = 21
_BARS = 12

_MOST_ROWS = 20_000
"""Real rows that a validator learns from."""

_AT_ONCE = 50_000
"""Joined rows that are scored at a time."""


def partition_pictures(
    train: Table, groups: Groups, least: int, rng: np.random.Generator
) -> tuple[Series, Series]:
    """Which column is in which part, and the real relations inside and across, the parts in turn."""
    rows = train.sample(MOST_ROWS, rng)
    ordered = [name for group in groups for name in group]
    part = np.array([i for i, group in enumerate(groups) for _ in group])
    found = TableAssociations.of(rows, [train.schema[name] for name in ordered], least)
    values = np.where(found.told, np.round(found.values, 2), np.nan)
    np.fill_diagonal(values, 1.0)
    ratio = exterior_to_interior(np.where(found.told, values, np.nan), part)
    names = [f"{name} ({i + 1})" for name, i in zip(ordered, part, strict=True)]
    shown = range(min(len(names), _MOST_COLUMNS))
    told = f"{ratio:.2f}" if math.isfinite(ratio) else "none inside"
    matrix = Series(
        id=MeasurementId("generator", "partition", "relations"),
        title=f"Parts of the columns (in brackets) and what relates them; across parts by inside: {told}",
        kind="matrix",
        x_label="column",
        y_label="column",
        x=tuple(names[i] for i in shown),
        lines={names[i]: tuple(float(values[i, j]) for j in shown) for i in shown},
    )
    return matrix, _strengths(values, part, len(groups))


def _strengths(values: Floats, part: Floats, n: int) -> Series:
    """The mean absolute relation inside each part, and to the columns of the others."""
    own = part[:, None] == part
    off = ~np.eye(len(part), dtype=bool)
    known = np.abs(values)
    return Series(
        id=MeasurementId("generator", "relations"),
        title="Mean strength of relations inside each part, and across to the others",
        kind="bar",
        x_label="part",
        y_label="mean of |relation|",
        x=tuple(f"part {i + 1}" for i in range(n)),
        lines={
            "inside": tuple(_mean(known[(part == i)[:, None] & own & off]) for i in range(n)),
            "across": tuple(_mean(known[(part == i)[:, None] & ~own]) for i in range(n)),
        },
    )


def calibration(validator: JoinValidator, least: int) -> Series:
    """Of held-out rows, how many are real among those with about the same probability."""
    edges = np.linspace(0, 1, _BINS + 1)
    real, joined = (np.histogram(p, edges)[0] for p in (validator.real, validator.joined))
    weight = len(validator.joined) / max(len(validator.real), 1)  # as if there were as many of either kind
    told = _tellable_bins(real, least) & _tellable_bins(joined, least)
    share = [
        _rounded(a / (a + b / weight)) if may and a + b else math.nan
        for a, b, may in zip(real.tolist(), joined.tolist(), told.tolist(), strict=True)
    ]
    centres = tuple(((edges[1:] + edges[:-1]) / 2).round(3).tolist())
    return Series(
        id=MeasurementId("generator", "calibration"),
        title=f"Calibration of the validator on held-out rows (AUROC {validator.auc:.2f})",
        kind="line",
        x_label="probability that the parts belong together",
        y_label="share of real rows",
        x=centres,
        lines={
            "held-out rows": tuple(share),
            "calibrated": centres,
            "of all real rows": _shares(real, least),
            "of all rows joined at random": _shares(joined, least),
        },
    )


def acceptance(join: ValidatedJoin, least: int) -> Series:
    """Rows that each round admitted; rounds that admitted few are told together."""
    labels, counts = list[str](), list[int]()
    begun, count = 1, 0
    wide = -(-len(join.rounds) // _BARS)
    for i, one in enumerate(join.rounds, 1):
        count += one.admitted
        last = i == len(join.rounds)
        if last or (count >= least and i - begun + 1 >= wide):
            if last and 0 < count < least and counts:
                begun, count = int(labels.pop().split("–")[0]), count + counts.pop()
            labels.append(str(i) if begun == i else f"{begun}–{i}")
            counts.append(count)
            begun, count = i + 1, 0
    ends = f"threshold {join.rounds[0].threshold:.2f} to {join.rounds[-1].threshold:.2f}"
    return Series(
        id=MeasurementId("generator", "admitted"),
        title=f"Synthetic rows admitted by the rounds of the join ({ends})",
        kind="bar",
        x_label="round",
        y_label="rows",
        x=tuple(labels),
        lines={"admitted": tuple(float(c) if _tellable(c, least) else math.nan for c in counts)},
    )


def sweep(join: ValidatedJoin, validator: JoinValidator, least: int) -> Series:
    """What share of rows every threshold would let through.

    Numbers of rows are rounded to multiples of what may be told of: nothing tells of fewer that lie between
    two thresholds.
    """
    thresholds = np.linspace(0, 1, _STEPS)
    groups = {
        "parts joined at random": join.first,
        "real, held out": validator.real,
        "real, joined at random": validator.joined,
    }
    lines = {}
    for (label, scores), above in zip(
        groups.items(), shares_above([*groups.values()], thresholds), strict=True
    ):
        n = len(scores)
        steps = np.minimum(np.rint(above * n / least) * least / max(n, 1), 1.0)
        lines[label] = tuple(_rounded(x) if n >= least else math.nan for x in steps.tolist())
    return Series(
        id=MeasurementId("generator", "thresholds"),
        title="Share of joined rows that a threshold lets through",
        kind="line",
        x_label="threshold",
        y_label="share of rows",
        x=tuple(thresholds.round(3).tolist()),
        lines=lines,
    )


def _tellable(count: int, least: int) -> bool:
    return count == 0 or count >= least


def _tellable_bins(counts: Codes, least: int) -> Bools:
    """Bins that hold nothing, or enough rows; of those that may not be told all together hold enough too."""
    told: Bools = counts == 0
    told[tellable_cells([np.append(counts, 0)], least, ordered=True)] = True
    return told


def _shares(counts: Codes, least: int) -> tuple[float, ...]:
    shares = np.where(_tellable_bins(counts, least), counts / max(counts.sum(), 1), np.nan)
    return tuple(map(_rounded, shares.tolist()))


def _mean(values: Floats) -> float:
    known = values[~np.isnan(values)]
    return _rounded(float(known.mean())) if len(known) else math.nan


def _rounded(x: float) -> float:
    return round(x, 2)


@dataclass(frozen=True, eq=False)
class Joiner:
    """A validator and the coordinates of each part in which it sees rows.

    Attributes:
        train: real rows that it learnt from. seed: of its draws.
        course: where what came of a join is told; None for nowhere.
    """

    settings: Validation
    train: Table = field(repr=False)
    seed: int
    designs: tuple[FixedDesign, ...]
    validator: JoinValidator = field(repr=False)
    course: TrainingCourse | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls,
        settings: Validation,
        train: Table,
        groups: Groups,
        seed: int,
        course: TrainingCourse | None = None,
    ) -> Self:
        """Learn a validator from real rows."""
        rng = np.random.default_rng(seed)
        designs = tuple(FixedDesign.of(train, group) for group in groups)
        rows = train.sample(_MOST_ROWS, rng)
        parts = [design.rows(rows) for design in designs]
        validator = learnt(parts, settings.validator, rng, tuned=settings.tuned)
        if course is not None:
            course.show(calibration(validator, course.suppression))
        return cls(settings, train, seed, designs, validator, course)

    def pool(self, n: int) -> int:
        """Rows that each part draws for ``n``."""
        return int(np.ceil(n * self.settings.oversampling))

    def joined(self, tables: Sequence[Table], n: int, rng: np.random.Generator) -> list[Table]:
        """Rows of the parts that were admitted together, ``n`` of each.

        Raises:
            DataError: fewer were.
        """
        parts = [design.rows(table) for design, table in zip(self.designs, tables, strict=True)]

        def score(rows: Positions) -> Floats:
            found = [
                self.validator.probability(np.hstack([x[i] for x, i in zip(parts, some.T, strict=True)]))
                for some in np.array_split(rows, max(1, -(-len(rows) // _AT_ONCE)))
            ]
            return np.concatenate(found)

        join = validated_join(n, tables[0].n_rows, len(tables), score, self.settings, rng)
        if self.course is not None and join.rounds:
            self.course.show(acceptance(join, self.course.suppression))
            self.course.show(sweep(join, self.validator, self.course.suppression))
        if len(join.rows) < n:
            raise _short(join, n, tables[0].n_rows, self.settings)
        return [table.take(join.rows[:, i]) for i, table in enumerate(tables)]


def _short(join: ValidatedJoin, n: int, pool: int, settings: Validation) -> DataError:
    admitted, rounds = len(join.rows), len(join.rounds)
    what = (
        f"the validator admitted none of {pool:,} joined rows"
        if not admitted
        else f"the validated join gave {admitted:,} rows instead of {n:,}"
    )
    why = "its rounds" if rounds >= settings.rounds else "its patience"
    return DataError(
        what,
        where=f"{WHERE}.validation",
        expected=f"{n:,} rows before {why} ended, after {rounds} rounds with {pool - admitted:,} rows of "
        "each part left over",
        fix="let the threshold decay more, or lower it; allow more rounds or patience; raise oversampling; "
        "or take `join: concatenate`",
    )
