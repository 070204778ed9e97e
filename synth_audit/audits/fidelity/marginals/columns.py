"""One column of a table beside the same column of train: its distances, and how far chance moves them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from synth_audit.core.arrays import Codes, Floats
from synth_audit.core.measurement import Estimate, Interval
from synth_audit.core.schema import Column, nominal, quantitative
from synth_audit.core.subject import Subject
from synth_audit.core.table import Table
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

    def distances(self, columns: Sequence[Column], most_cells: int) -> dict[str, dict[str, Distance]]:
        """Every distance that tells of nobody, by column and quantity; ``marginal_distance`` is a column's
        part of that mean.

        Cells are joined until enough real rows lie in each; where that leaves one, they are not compared.
        """
        tested = {c.name for c in nominal(columns)}
        found: dict[str, dict[str, Distance]] = {}
        for column in columns:
            cells = self._joined(column, most_cells)
            found[column.name] = {} if cells is None else cells.distances()
            if cells is not None and column.name in tested:
                found[column.name] |= cells.tested(self.table.n_rows)
        for column in quantitative(columns):
            found[column.name] |= _numeric_values(self, column, most_cells)
        return found

    def _joined(self, column: Column, most_cells: int) -> _JoinedCells | None:
        """The cells of a column, small ones joined; None where nothing is left to compare."""
        real, fewest = real_tables(self.subject), self.subject.suppression
        cells = column.kind.shared_cells([*real, self.table], real, column, most=most_cells, fewest=fewest)
        counts = [np.bincount(c, minlength=cells.size) for c in cells.codes[: len(real)]]
        numbers, k = dist.joined_cells(counts, fewest, ordered=cells.ordered)
        if k == _NOTHING_TOLD:
            return None
        train, table = numbers[cells.codes[0]], numbers[cells.codes[-1]]
        p, q = dist.shares(train, k), dist.shares(table, k)
        if k > MOST_CELLS and not cells.ordered:
            train, table, k = train % MOST_CELLS, table % MOST_CELLS, MOST_CELLS
        return _JoinedCells(p, q, self.drawn((train, table), k))


@dataclass(frozen=True, eq=False)
class _JoinedCells:
    """Shares of the cells of one column.

    Attributes:
        train, table: shape (k,). drawn: of the resamples of either, shape (n_draws, at most k) each.
    """

    train: Floats
    table: Floats
    drawn: tuple[Floats, Floats]

    def distances(self) -> dict[str, Distance]:
        """Of shares, on any scale of measurement."""
        return {
            "total_variation": Distance(
                float(dist.total_variation(self.train, self.table)), dist.total_variation(*self.drawn)
            ),
            "hellinger": Distance(float(dist.hellinger(self.train, self.table)), dist.hellinger(*self.drawn)),
        }

    def tested(self, n_rows: int) -> dict[str, Distance]:
        """The χ² test of nominal values."""
        tested = Distance(float(dist.inverted_chi_square(self.table, self.train, n_rows)), None)
        return {"chi_square": tested, "marginal_distance": tested}


def real_tables(subject: Subject) -> list[Table]:
    """Train, and control where it is there: they alone decide which cells are compared."""
    return [subject.train] if subject.control is None else [subject.train, subject.control]


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
    everything = dist.in_deviations(np.concatenate([both, edges]), train)
    if everything is not None:
        scaled, beside = everything[: len(both)], everything[len(both) :]
        parts = scaled[: len(train)], scaled[len(train) :]
        value = dist.wasserstein(*(x[~np.isnan(x)] for x in parts))
        places = dist.cell_places(scaled, np.concatenate(cells), beside)
        # The unit is train's deviation, which is a matter of chance as well.
        whole = dist.spread(dist.shares(cells[0], len(edges) + 2), places)
        unit = dist.spread(drawn[0], places) / whole
        moved = gaps[:, :-1] @ np.diff(places)
        found["wasserstein"] = Distance(value, np.divide(moved, unit, out=moved, where=unit > 0))
    return found


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
