"""One column of a table beside the same column of train: its distances, and how far chance moves them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from synth_audit.core.measurement import Estimate, Interval
from synth_audit.core.schema import Column
from synth_audit.core.subject import Subject
from synth_audit.core.table import Table
from synth_audit.kernels import distributions as dist
from synth_audit.kernels.encode import codes
from synth_audit.kernels.intervals import newcombe

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]

MOST_CELLS = 1024
"""Labels beyond so many share cells where resamples are drawn, so that memory does not grow with them."""


class Distance(NamedTuple):
    """A distance and its bootstrap draws, shape (n_draws,)."""

    value: float
    draws: Floats


@dataclass(frozen=True, eq=False)
class Pair:
    """A table beside train, with resamples of the rows of both."""

    train: Table
    table: Table
    of_train: dist.Resamples
    of_table: dist.Resamples

    @classmethod
    def of(cls, train: Table, table: Table, n_draws: int, rng: np.random.Generator) -> Pair:
        """Draw the resamples."""
        resamples = [dist.Resamples.of(t.n_rows, n_draws, rng) for t in (train, table)]
        return cls(train, table, *resamples)

    def drawn(self, cells: tuple[Codes, Codes], n_cells: int) -> tuple[Floats, Floats]:
        """Cell shares of the resamples of train and of the table, shape (n_draws, n_cells) each."""
        return self.of_train.shares(cells[0], n_cells), self.of_table.shares(cells[1], n_cells)

    def distances(self, column: Column, most_cells: int) -> dict[str, Distance]:
        """Every distance of one column, by quantity; ``marginal_distance`` is its part of that mean."""
        return _numeric(self, column, most_cells) if column.kind.numeric else _discrete(self, column)


def _discrete(pair: Pair, column: Column) -> dict[str, Distance]:
    train, table = discrete_cells([pair.train, pair.table], column)
    k = 1 + max(int(train.max()), int(table.max()))
    p, q = dist.shares(train, k), dist.shares(table, k)
    if k > MOST_CELLS:
        train, table, k = train % MOST_CELLS, table % MOST_CELLS, MOST_CELLS
    drawn_p, drawn_q = pair.drawn((train, table), k)
    n = pair.table.n_rows
    tested = Distance(
        float(dist.inverted_chi_square(q, p, n)),
        dist.inverted_chi_square(drawn_q, drawn_p, n),
    )
    return {**_of_shares(p, q, drawn_p, drawn_q), "chi_square": tested, "marginal_distance": tested}


def _numeric(pair: Pair, column: Column, most_cells: int) -> dict[str, Distance]:
    train, table = pair.train.numbers(column.name), pair.table.numbers(column.name)
    coarse = dist.quantile_cells(train, most_cells)
    p, q = (dist.shares(dist.cell_codes(x, coarse), len(coarse) + 2) for x in (train, table))
    both = np.concatenate([train, table])
    edges = dist.fine_cells(both, coarse)
    cells = dist.cell_codes(train, edges), dist.cell_codes(table, edges)
    drawn = pair.drawn(cells, len(edges) + 2)
    # A coarse edge is a fine one too, so each coarse cell is a run of fine ones; missing comes last in both.
    starts = [0, *(np.searchsorted(edges, coarse) + 1), len(edges) + 1]
    found = _of_shares(p, q, *(np.add.reduceat(d, starts, axis=1) for d in drawn))
    known = train[~np.isnan(train)], table[~np.isnan(table)]
    if not (len(known[0]) and len(known[1])):
        apart = float(len(known[0]) != len(known[1]))  # nothing there on one side only is as far as can be
        return found | {"marginal_distance": Distance(apart, np.full(len(drawn[0]), apart))}
    gaps = np.abs(np.subtract(*map(dist.distribution_functions, drawn)))
    ks = Distance(dist.kolmogorov_smirnov(*known), gaps.max(axis=1))
    found |= {"ks": ks, "marginal_distance": ks}
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
    signed = newcombe(a, table.n_rows, b, train.n_rows, subject.level)
    ends = sorted((abs(signed.low), abs(signed.high)))
    low = 0.0 if signed.low <= 0 <= signed.high else ends[0]
    value = abs(a / table.n_rows - b / train.n_rows)
    return Estimate(value, Interval(low, ends[1], subject.level, "newcombe, folded at 0"))


def _tellable(table: Table, name: str, fewest: int) -> int:
    """Missing values of a column, or the nearest number that tells of nobody."""
    missing, n = int(table.missing(name).sum()), table.n_rows
    if missing < fewest:
        return 0
    return n if n - missing < fewest else missing


def has_gaps(tables: Sequence[Table], name: str, subject: Subject) -> bool:
    """Whether some table lacks values in enough rows to tell of."""
    return any(_tellable(t, name, subject.suppression) > 0 for t in tables)
