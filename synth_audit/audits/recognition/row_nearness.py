"""Row nearness: is a row nearer to people than other people are?

A generator that was fitted on train *and* control treats both alike, so no excess over control shows. But
rows drawn from the population are no nearer to people than further people are. Half of the people are looked
up among k rows and k people of the other half. With ``s_r`` and ``s_p`` the similarity, minus the logarithm
of the distance, of the nearest row and of the nearest person,

    T = share(s_r - s_p >= c) - share(s_r - s_p <= -c), divided by share(|s_r - s_p| >= c),

over the tenth of the people for whom one side is clearest. T is 0 for rows of other people, 1 where every
clear neighbour is a row, and below 0 for rows unlike people. Under exchangeability of rows and people their
labels are permuted; the largest T of all distances is compared. A release that crowds where people are most
frequent can raise T as well: it says that rows are too near, not by which mistake.

Source: nearest neighbours as in Schilling 1986; relative nearness as in NNDR, Lowe 2004.
"""

from dataclasses import dataclass, replace

import numpy as np

from synth_audit.arrays import Bools, Floats, Positions
from synth_audit.audits.recognition.coded_cells import CodedCells
from synth_audit.audits.recognition.engine import CLEAR
from synth_audit.audits.recognition.matching import matched
from synth_audit.audits.recognition.pair_weights import WEIGHTINGS
from synth_audit.audits.recognition.people import PooledPeople
from synth_audit.audits.recognition.views.nearness import FLOOR, nearness_tables
from synth_audit.findings.measurement import Interval
from synth_audit.stats.proportions import proportion_interval

KEPT = 32
"""Nearest rows and people that are kept: all of them on one side has a probability of 2^-31."""

CLEAREST = 0.1
"""Share of the people who are counted: those for whom a row or a person is clearly the nearest."""


@dataclass(frozen=True)
class RowNearness:
    """T of the distance for which it is largest.

    Attributes:
        nearer, clear: people for whom a row is clearly the nearest, and for whom a row or a person is.
        p: probability of so large a T, or a larger one, if rows were further people.
    """

    nearer: int
    clear: int
    p: float

    @property
    def value(self) -> float:
        """T, in [-1, 1]."""
        return 2 * self.nearer / self.clear - 1 if self.clear else -1.0

    def interval(self, level: float) -> Interval:
        """Interval of T, from that of the share of clear people whose neighbour is a row."""
        ends = proportion_interval(self.nearer, self.clear, level)
        return Interval(2 * ends.low - 1, 2 * ends.high - 1, level, ends.method)


def row_nearness(pool: PooledPeople, rng: np.random.Generator) -> RowNearness | None:
    """Compare rows with people as neighbours; None with too few of either, or if all neighbours are equal.

    Returns:
        value in [-1, 1], p in (0, 1].
    """
    first = rng.permutation(pool.people) < pool.people // 2
    order = rng.permutation(pool.records)
    _, one_each = np.unique(pool.person[order], return_index=True)
    record = order[one_each]  # one record of each person
    asked, others = record[first], record[~first]
    k = min(len(others), pool.rows)
    if len(asked) < KEPT or 2 * k < KEPT:
        return None
    similarity, neighbour = _neighbours(pool, asked, others[:k], rng.permutation(pool.rows)[:k])
    is_row = np.arange(2 * k) >= k
    found = _largest(similarity, neighbour, is_row)
    if not found.clear:
        return None
    permuted = [_largest(similarity, neighbour, rng.permutation(is_row)) for _ in range(CLEAR)]
    reached = sum(x.value >= found.value for x in permuted)
    return replace(found, p=(1 + reached) / (1 + CLEAR))


def _neighbours(
    pool: PooledPeople, asked: Positions, others: Positions, rows: Positions
) -> tuple[Floats, Positions]:
    """Similarity of the nearest people and rows in one list, the nearest last, and their positions."""
    columns = [
        CodedCells.of(
            replace(c, people=c.people[asked], release=np.concatenate([c.people[others], c.release[rows]]))
        )
        for c in pool.columns
    ]
    tables = [nearness_tables(c) for c in columns]
    found = matched(columns, tables, kept=KEPT)
    far = sum(t.max(axis=(1, 2)) for t in tables)
    return -np.log(np.maximum(0, far[:, None, None] - found.weights) + FLOOR), found.rows


def _largest(similarity: Floats, neighbour: Positions, is_row: Bools) -> RowNearness:
    each = [_nearer(similarity[w], is_row[neighbour[w]]) for w in range(WEIGHTINGS)]
    return max(each, key=lambda found: found.value)


def _nearer(similarity: Floats, row: Bools) -> RowNearness:
    least = similarity[:, :1]
    of_row = np.where(row, similarity, least).max(axis=1)
    of_person = np.where(row, least, similarity).max(axis=1)
    by = of_row - of_person
    clear = max(float(np.quantile(np.abs(by), 1 - CLEAREST)), 1e-9)
    nearer, further = int((by >= clear).sum()), int((by <= -clear).sum())
    return RowNearness(nearer, nearer + further, 1.0)
