"""One column of a table beside the same column of train: its distances, and how far chance moves them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from synth_audit.core.arrays import Codes, Floats
from synth_audit.core.measurement import Estimate, Interval
from synth_audit.core.schema import Column
from synth_audit.core.subject import Subject
from synth_audit.core.table import Table
from synth_audit.encoding.codes import codes
from synth_audit.kernels import distributions as dist
from synth_audit.kernels.proportion_interval import proportion_difference

MOST_CELLS = 1024
"""Labels beyond so many share cells where resamples are drawn, so that memory does not grow with them."""

_NOTHING_TOLD = 2
"""New cells where all real rows are joined: theirs, and the one of the release alone."""


class Distance(NamedTuple):
    """A distance and its bootstrap draws, shape (n_draws,); None where they would say nothing."""

    value: float
    draws: Floats | None


@dataclass(frozen=True, eq=False)
class ResampledPair:
    """A table beside train, with resamples of the rows of both."""

    subject: Subject
    table: Table
    of_train: dist.Resamples
    of_table: dist.Resamples

    @classmethod
    def of(cls, subject: Subject, table: Table, n_draws: int, rng: np.random.Generator) -> ResampledPair:
        """Draw the resamples."""
        resamples = [dist.Resamples.of(t.n_rows, n_draws, rng) for t in (subject.train, table)]
        return cls(subject, table, *resamples)

    def drawn(self, cells: tuple[Codes, Codes], n_cells: int) -> tuple[Floats, Floats]:
        """Cell shares of the resamples of train and of the table, shape (n_draws, n_cells) each."""
        return self.of_train.shares(cells[0], n_cells), self.of_table.shares(cells[1], n_cells)

    def distances(self, column: Column, most_cells: int) -> dict[str, Distance]:
        """Every distance of one column that tells of nobody, by quantity; ``marginal_distance`` is its part
        of that mean.

        Cells are joined until enough real rows lie in each; where that leaves one, nothing is compared.
        """
        if not column.kind.numeric:
            return _discrete(self, column)
        return _numeric_cells(self, column, most_cells) | _numeric_values(self, column, most_cells)


def real_tables(subject: Subject) -> list[Table]:
    """Train, and control where it is there: they alone decide which cells are compared."""
    return [subject.train] if subject.control is None else [subject.train, subject.control]


def _discrete(pair: ResampledPair, column: Column) -> dict[str, Distance]:
    real = real_tables(pair.subject)
    cells = discrete_cells([*real, pair.table], column)
    k = 1 + max(int(c.max()) for c in cells)
    counts = [np.bincount(c, minlength=k) for c in cells[: len(real)]]
    numbers, k = dist.joined_cells(counts, pair.subject.suppression, ordered=False)
    if k == _NOTHING_TOLD:
        return {}
    train, table = numbers[cells[0]], numbers[cells[-1]]
    p, q = dist.shares(train, k), dist.shares(table, k)
    if k > MOST_CELLS:
        train, table, k = train % MOST_CELLS, table % MOST_CELLS, MOST_CELLS
    tested = Distance(float(dist.inverted_chi_square(q, p, pair.table.n_rows)), None)
    found = _of_shares(p, q, *pair.drawn((train, table), k))
    return found | {"chi_square": tested, "marginal_distance": tested}


def number_edges(subject: Subject, column: Column, most: int) -> Floats:
    """Inner edges of as many quantile cells of train, at most ``most``, as leave the most to compare.

    Fewer where control is small: of ten cells with too few control rows each, all would be joined.
    """
    real = [t.numbers(column.name) for t in real_tables(subject)]
    best, left = np.empty(0), -1
    for n_cells in range(most, 1, -1):
        edges = dist.quantile_cells(real[0], n_cells)
        counts = number_counts(real, edges)
        told = dist.tellable_cells(counts, subject.suppression, ordered=True)
        if len(told) > left:
            best, left = edges, len(told)
        if len(told) == np.count_nonzero(np.sum(counts, axis=0)):
            break  # none is joined, so fewer cells leave no more
    return best


def number_counts(values: Sequence[Floats], edges: Floats) -> list[Codes]:
    """Rows of each sample in every cell, the last for missing, shape (len(edges) + 2,) each."""
    return [np.bincount(dist.cell_codes(v, edges), minlength=len(edges) + 2) for v in values]


def _numeric_cells(pair: ResampledPair, column: Column, most_cells: int) -> dict[str, Distance]:
    """Distances of shares of cells; draws need no finer cells than those compared."""
    edges = number_edges(pair.subject, column, most_cells)
    real = [t.numbers(column.name) for t in real_tables(pair.subject)]
    numbers, k = dist.joined_cells(number_counts(real, edges), pair.subject.suppression, ordered=True)
    if k == _NOTHING_TOLD:
        return {}
    values = pair.subject.train.numbers(column.name), pair.table.numbers(column.name)
    train, table = (numbers[dist.cell_codes(x, edges)] for x in values)
    drawn = pair.drawn((train, table), k)
    return _of_shares(dist.shares(train, k), dist.shares(table, k), *drawn)


def varies_enough(subject: Subject, name: str) -> bool:
    """Whether enough real rows differ from the most frequent number for sums over values to tell of nobody.

    Of a column that is nearly all one value, such a sum is that of the few others.
    """
    fewest = subject.suppression
    train, *control = (t.numbers(name) for t in real_tables(subject))
    values, counts = np.unique(train[~np.isnan(train)], return_counts=True)
    if counts.sum() - counts.max(initial=0) < fewest:
        return False
    # Of equally frequent values, the one that leaves the fewest control rows beside it.
    usual = values[counts == counts.max()]
    for known in (x[~np.isnan(x)] for x in control):
        like = np.unique(known[np.isin(known, usual)], return_counts=True)[1]
        if 0 < len(known) - like.max(initial=0) < fewest:
            return False
    return True


def _numeric_values(pair: ResampledPair, column: Column, most_cells: int) -> dict[str, Distance]:
    """Distances of the present values themselves, where enough of them vary."""
    if not varies_enough(pair.subject, column.name):
        return {}
    train, table = pair.subject.train.numbers(column.name), pair.table.numbers(column.name)
    known = train[~np.isnan(train)], table[~np.isnan(table)]
    if not len(known[1]):
        return {"marginal_distance": Distance(1.0, None)}  # nothing on one side is as far as can be
    both = np.concatenate([train, table])
    edges = dist.fine_cells(both, dist.quantile_cells(train, most_cells))
    cells = dist.cell_codes(train, edges), dist.cell_codes(table, edges)
    drawn = pair.drawn(cells, len(edges) + 2)
    gaps = np.abs(np.subtract(*map(dist.distribution_functions, drawn)))
    ks = Distance(dist.kolmogorov_smirnov(*known), gaps.max(axis=1))
    found = {"ks": ks, "marginal_distance": Distance(ks.value, None)}
    scaled = dist.in_deviations(both, train)
    if scaled is not None:
        parts = scaled[: len(train)], scaled[len(train) :]
        value = dist.wasserstein(*(x[~np.isnan(x)] for x in parts))
        places = dist.cell_places(scaled, np.concatenate(cells), edges)
        # The unit is train's deviation, which is a matter of chance as well.
        whole = dist.spread(dist.shares(cells[0], len(edges) + 2), places)
        unit = dist.spread(drawn[0], places) / whole
        moved = gaps[:, :-1] @ np.diff(places)
        found["wasserstein"] = Distance(value, np.divide(moved, unit, out=moved, where=unit > 0))
    return found


def _of_shares(p: Floats, q: Floats, drawn_p: Floats, drawn_q: Floats) -> dict[str, Distance]:
    return {
        "total_variation": Distance(
            float(dist.total_variation(p, q)), dist.total_variation(drawn_p, drawn_q)
        ),
        "hellinger": Distance(float(dist.hellinger(p, q)), dist.hellinger(drawn_p, drawn_q)),
    }


def discrete_cells(tables: list[Table], column: Column) -> list[Codes]:
    """Cell of every row of every table: one for each label, and the last for missing; shape (n,) each."""
    joint = codes(tables, column)
    last = 1 + max(int(c.max()) for c in joint)
    return [np.where(c < 0, last, c) for c in joint]


def missing_difference(train: Table, table: Table, name: str, subject: Subject) -> Estimate:
    """``|share missing in the table − share missing in train|`` with Newcombe's interval, folded at 0.

    Where fewer rows are missing than may be told of, none is taken to be, and all where fewer are present:
    against a release that shows its own share, the difference would tell how few they are.
    """
    a, b = (_tellable(t, name, subject.suppression) for t in (table, train))
    signed = proportion_difference(a, table.n_rows, b, train.n_rows, subject.level)
    ends = sorted((abs(signed.low), abs(signed.high)))
    low = 0.0 if signed.low <= 0 <= signed.high else ends[0]
    value = abs(a / table.n_rows - b / train.n_rows)
    return Estimate(value, Interval(low, ends[1], subject.level, f"{signed.method}, folded at 0"))


def _tellable(table: Table, name: str, fewest: int) -> int:
    """Missing values of a column, or the nearest number that tells of nobody."""
    missing, n = int(table.missing(name).sum()), table.n_rows
    if missing < fewest:
        return 0
    return n if n - missing < fewest else missing


def has_gaps(tables: Sequence[Table], name: str, subject: Subject) -> bool:
    """Whether some table lacks values in enough rows to tell of."""
    return any(_tellable(t, name, subject.suppression) > 0 for t in tables)
