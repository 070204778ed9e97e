"""One column of a table beside the same column of train: distances, chance, and a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from synth_audit.arrays import Codes, Floats
from synth_audit.findings.measurement import Estimate, Interval, MeasurementId, Series
from synth_audit.plugins.audit import Subject
from synth_audit.stats import distributions as dist
from synth_audit.stats.distributions import SortedNumbers, SortedPair, tellable
from synth_audit.stats.proportions import proportion_difference
from synth_audit.table.kind import SharedCells
from synth_audit.table.schema import Column, nominal, quantitative
from synth_audit.table.table import Table

MOST_CELLS = 1024
"""Labels beyond so many share cells where resamples are drawn, so that memory does not grow with them."""

_NOTHING_TOLD = 2
"""New cells where all real rows are joined: theirs, and the one of the release alone."""


class Distance(NamedTuple):
    """A distance and its bootstrap draws, shape (n_draws,); None where they would say nothing."""

    value: float
    draws: Floats | None


@dataclass(frozen=True, eq=False)
class ColumnFound:
    """What there is to say of one column.

    Attributes:
        distances: of each table from train, by quantity; ``marginal_distance`` is the column's part of that
            mean. Those that would tell of somebody are left out.
        cells: of the tables of :meth:`ResampledTables.in_cells`, in which they were compared.
        varies: for numbers, whether enough real rows differ from the most frequent one.
    """

    distances: tuple[dict[str, Distance], ...]
    cells: SharedCells
    varies: bool = True


@dataclass(frozen=True, eq=False)
class ResampledTables:
    """Tables beside train, with resamples of the rows of all of them. One column is in memory at a time.

    Attributes:
        tables: to be compared with train. drawn: resamples of each. of_train: those of train.
    """

    subject: Subject
    tables: tuple[Table, ...]
    of_train: dist.Resamples
    drawn: tuple[dist.Resamples, ...]

    @classmethod
    def of(cls, subject: Subject, tables: Sequence[Table], n_draws: int, seed: int) -> ResampledTables:
        """Draw the resamples: of train and one table after the other, each from the same seed."""
        drawn = []
        for table in tables:
            rng = np.random.default_rng(seed)
            of_train = dist.Resamples.of(subject.train.n_rows, n_draws, rng)
            drawn.append(dist.Resamples.of(table.n_rows, n_draws, rng))
        return cls(subject, tuple(tables), of_train, tuple(drawn))

    @property
    def in_cells(self) -> list[Table]:
        """The tables whose rows are put into cells: train, control where it is there, those to compare."""
        return [*real_tables(self.subject), *self.tables]

    def compared(self, column: Column, most_cells: int) -> ColumnFound:
        """Compare one column of every table with train.

        Cells are joined until enough real rows lie in each; where that leaves one, they are not compared.
        """
        real = real_tables(self.subject)
        cells = column.kind.shared_cells(
            self.in_cells, real, column, most=most_cells, fewest=self.subject.suppression
        )
        found = self._of_cells(column, cells, len(real))
        if not quantitative([column]):
            return ColumnFound(found, cells)
        numbers = [SortedNumbers.of(t.numbers(column.name)) for t in real]
        varies = varies_enough(numbers, self.subject.suppression)
        if varies:
            own = (self._of_numbers(column.name, i, numbers[0], most_cells) for i in range(len(found)))
            found = tuple(known | more for known, more in zip(found, own, strict=True))
        return ColumnFound(found, cells, varies)

    def _of_cells(self, column: Column, cells: SharedCells, n_real: int) -> tuple[dict[str, Distance], ...]:
        fewest = self.subject.suppression
        counts = [np.bincount(c, minlength=cells.size) for c in cells.codes[:n_real]]
        numbers, k = dist.joined_cells(counts, fewest, ordered=cells.ordered)
        if k == _NOTHING_TOLD:
            return tuple({} for _ in self.tables)
        fold = MOST_CELLS if k > MOST_CELLS and not cells.ordered else k
        train = numbers[cells.codes[0]]
        p, of_p = dist.shares(train, k), self.of_train.shares(train % fold, fold)
        found = []
        for table, codes, drawn in zip(self.tables, cells.codes[n_real:], self.drawn, strict=True):
            rows = numbers[codes]
            joined = _JoinedCells(p, dist.shares(rows, k), (of_p, drawn.shares(rows % fold, fold)))
            tested = joined.tested(table.n_rows) if nominal([column]) else {}
            found.append(joined.distances() | tested)
        return tuple(found)

    def _of_numbers(self, name: str, i: int, train: SortedNumbers, most_cells: int) -> dict[str, Distance]:
        """Distances of the present values themselves."""
        table = self.tables[i].numbers(name)
        own = SortedNumbers.of(table)
        if not len(own.values):
            return {"marginal_distance": Distance(1.0, None)}  # nothing on one side is as far as can be
        pair = SortedPair.of(train, own)
        edges = pair.fine_cells(train.quantile_cells(most_cells))
        k = len(edges) + 2
        drawn = (
            self.of_train.shares(dist.cell_codes(self.subject.train.numbers(name), edges), k),
            self.drawn[i].shares(dist.cell_codes(table, edges), k),
        )
        gaps = np.abs(np.subtract(*map(dist.distribution_functions, drawn)))
        fewest, in_cells = self.subject.suppression, train.cell_counts(edges)[:-1]
        told = tellable(np.cumsum(in_cells), fewest)
        ks = Distance(pair.kolmogorov_smirnov(fewest), gaps[:, told].max(axis=1, initial=0.0))
        found = {"ks": ks, "marginal_distance": Distance(ks.value, None)}
        scaled = dist.in_deviations(np.concatenate([pair.values, edges]), train.values)
        if scaled is not None:
            scaled, beside = scaled[: len(pair.values)], scaled[len(pair.values) :]
            places = pair.cell_places(edges, scaled, beside)
            # The unit is train's deviation, which is a matter of chance as well.
            whole = dist.spread(train.cell_counts(edges) / self.subject.train.n_rows, places)
            unit = dist.spread(drawn[0], places) / whole
            moved = gaps[:, :-1] @ np.diff(places)
            moved = np.divide(moved, unit, out=moved, where=unit > 0)
            found["wasserstein"] = Distance(pair.wasserstein(scaled), moved)
        return found


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


def varies_enough(real: Sequence[SortedNumbers], fewest: int) -> bool:
    """Whether enough real rows differ from the most frequent number for sums over values to tell of nobody.

    Of a column that is nearly all one value, such a sum is that of the few others.

    Args:
        real: numbers of train, and of control where it is there.
    """
    train, *control = real
    usual, held = train.most_frequent()
    if len(train.values) - held < fewest:
        return False
    # Of equally frequent values, the one that leaves the fewest control rows beside it.
    return not any(0 < len(x.values) - x.held(usual).max(initial=0) < fewest for x in control)


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
    missing, n = table.n_missing(name), table.n_rows
    if missing < fewest:
        return 0
    return n if n - missing < fewest else missing


def has_gaps(tables: Sequence[Table], name: str, subject: Subject) -> bool:
    """Whether some table lacks values in enough rows to tell of."""
    return any(_tellable(t, name, subject.suppression) > 0 for t in tables)


_MOST_BARS = 20
_REAL, _SYNTHETIC, _CONTROL = "real", "synthetic", "control rows"


def picture(column: Column, subject: Subject, cells: SharedCells) -> Series:
    """Bars of the shares of real, synthetic and control rows; small cells are drawn together as one.

    Control rows are left out where a bar would stand for too few of them.

    Args:
        cells: of the real tables, then of the release, and of whatever tables come after it.
    """
    held = _Cells.of(subject, cells)
    shown = held.shown(subject.suppression)
    bars = held.bars(shown)
    if _CONTROL in bars and np.any(bars[_CONTROL] < subject.suppression):
        del bars[_CONTROL]
    others = ("all others",) if len(bars[_REAL]) > len(shown) else ()
    return Series(
        id=MeasurementId("", "distribution", column=column.name),
        title=f"Distribution of {column.name}",
        kind="bar",
        x_label=held.cells.axis,
        y_label="share of rows",
        x=(*(held.cells.names[i] for i in shown), *others),
        lines={label: tuple((counts / counts.sum()).tolist()) for label, counts in bars.items()},
    )


@dataclass(frozen=True, eq=False)
class _Cells:
    """The cells of one column, the last for missing, and how many rows of each table lie in them."""

    cells: SharedCells
    counts: dict[str, Codes]

    @classmethod
    def of(cls, subject: Subject, cells: SharedCells) -> _Cells:
        release = len(real_tables(subject))
        places = {_REAL: 0, _SYNTHETIC: release} | ({_CONTROL: 1} if release > 1 else {})
        size = len(cells.names)
        return cls(cells, {k: np.bincount(cells.codes[i], minlength=size) for k, i in places.items()})

    def shown(self, suppression: int) -> list[int]:
        """Cells of enough real rows, of categories the most frequent of them.

        The numbers join the same cells and more, so that none can be told from the two together.
        """
        real, ordered = self.counts[_REAL], self.cells.ordered
        shown = dist.tellable_cells([real], suppression, ordered=ordered)
        return shown if ordered else sorted(shown, key=lambda i: -real[i])[:_MOST_BARS]

    def bars(self, shown: list[int]) -> dict[str, Codes]:
        """Rows in each shown cell, and in all others together where real or synthetic rows are there."""
        rest = np.setdiff1d(np.arange(len(self.cells.names)), shown)
        more = any(self.counts[label][rest].any() for label in (_REAL, _SYNTHETIC))
        return {
            label: np.append(counts[shown], counts[rest].sum()) if more else counts[shown]
            for label, counts in self.counts.items()
            if more or not counts[rest].any()
        }
