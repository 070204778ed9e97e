"""Equal rows of a table without keys: how many chance would make, and which of them it explains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from synth_audit.core.arrays import Bools, Codes32, Counts, Floats
from synth_audit.core.table import Table

_FEW = 0.01
"""Share of rows with an equal below which nothing is asked: all equal rows count as one person's."""

_CELLS = 50_000_000
"""Cells up to which it is asked: 4 bytes are held of each."""

_PAIRS = 66
"""Pairs of columns that are left out together, at most: all of twelve columns."""

_TIMES = 2
"""How many rows alike by chance there must be for each equal row that chance does not explain."""

_SURER = 3
"""By how many times more, where a person entered twice is the rule."""

_MISFIT = 0.05
"""By how much the expected number may be wrong in all."""

_MOST = 3, 6
"""A row's equals are no chance beyond so many times their expected number, and so many."""

_BESIDE, _FEWEST_BESIDE = 40, 25
"""Rows that count as rare as another: on either side one in so many, and no fewer than so many."""

_HALVINGS = 9
"""Shares of rare rows that are tried: all, half of them, and so on."""

_Keys = npt.NDArray[np.uint64]


def alike_by_chance(table: Table) -> Bools:
    """Which rows equal another one as rows of different people do in a table so dense, shape (n,).

    Somebody may be in a table twice, and in a table of few values strangers have equal rows. Which of the two
    it was is told from the table alone, for each group of equal rows: :attr:`NearRows.expected` has λ others
    by chance. What chance leaves over, δ for each row, is counted among rare rows, where it shows best, since
    people enter a table twice whether their rows are rare or common. It is taken from above: a standard
    deviation and a misfit of 5 % of the λ are added, and fewer equals than expected count as if they were
    more, since then λ is not to be relied on. Chance explains a group if
    ``λ ≥ 2 δ (1 + 3 min(δ, 1))`` and it has at most ``3 λ + 6`` others: two rows alike by chance for each one
    that chance leaves over, and eight where that is everybody's, so that hardly anybody in control meets in
    train no row but the own double. Nothing is explained where all sizes of groups share a divisor, as in a
    table laid twice under itself, where fewer than one row in a hundred has an equal, or where more than
    5 × 10⁷ cells would have to be compared.
    """
    names = sorted(c.name for c in table.schema.features)
    n = table.n_rows
    if len(names) < 2 or n * len(names) > _CELLS:
        return np.zeros(n, dtype=bool)
    keys = RowKeys.of([_codes(table.texts(name)) for name in names])
    equals = keys.alike_but_in()
    if np.mean(equals > 0) < _FEW or np.gcd.reduce(equals + 1) > 1:
        return np.zeros(n, dtype=bool)
    near = NearRows.told_by(keys)
    expected, (factor, beside) = near.expected, _MOST
    most = factor * expected + beside
    left = near.unexplained(most)
    explained: Bools = (near.equals > 0) & (near.equals <= most)
    return explained & (expected >= _TIMES * left * (1 + _SURER * min(left, 1)))


@dataclass(frozen=True, eq=False)
class RowKeys:
    """A random number for each label of a column: sums of two different rows are equal once in 2⁶⁴ times.

    Attributes:
        codes: of each column, from 0 on, shape (n,) each. numbers: of each code of each column.
        whole: the sum of each row, shape (n,).
    """

    codes: Sequence[Codes32]
    numbers: Sequence[_Keys]
    whole: _Keys

    @classmethod
    def of(cls, codes: Sequence[Codes32]) -> RowKeys:
        """Draw them; the same codes have the same."""
        draws = np.random.default_rng(0)
        numbers = [draws.integers(2**64, size=int(c.max(initial=0)) + 1, dtype=np.uint64) for c in codes]
        whole: _Keys = np.zeros(len(codes[0]), np.uint64)
        for number, code in zip(numbers, codes, strict=True):
            whole += number[code]
        return cls(codes, numbers, whole)

    def alike_but_in(self, *columns: int) -> Counts:
        """How many other rows agree with each in all other columns, shape (n,)."""
        from pandas import factorize  # here, so that looking around stays light

        left = self.whole.copy()
        for column in columns:
            left -= self.numbers[column][self.codes[column]]
        which, _ = factorize(left)
        return np.asarray(np.bincount(which)[which] - 1, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class NearRows:
    """Of each row, how many others differ from it in no column, in one alone, and in two; shape (n,) each.

    Attributes:
        equals: others that are equal to it.
        products: Σ n_a n_b over pairs of columns, where n_a others differ from it in column a alone.
        both: Σ n_ab over the same pairs, where n_ab others differ from it in a and in b and nowhere else.
    """

    equals: Counts
    products: Counts
    both: Counts

    @classmethod
    def of(cls, codes: Sequence[Codes32]) -> NearRows:
        """Count them, given the codes of each column, from 0 on, shape (n,) each."""
        return cls.told_by(RowKeys.of(codes))

    @classmethod
    def told_by(cls, keys: RowKeys) -> NearRows:
        """Count them, given the keys of rows."""
        columns, equals = range(len(keys.codes)), keys.alike_but_in()
        one = [keys.alike_but_in(a) - equals for a in columns]
        products, both = np.zeros_like(equals), np.zeros_like(equals)
        for a, b in sorted(combinations(columns, 2), key=lambda pair: pair[1] - pair[0])[:_PAIRS]:
            products += one[a] * one[b]
            both += keys.alike_but_in(a, b) - equals - one[a] - one[b]
        return cls(equals, products, both)

    @cached_property
    def expected(self) -> Floats:
        """λ: how many others are equal to each row by chance, from ``Σ n_a n_b / Σ n_ab``.

        Of those who differ in a as many agree in b as of those who agree in a. That holds where two columns
        are independent given all the others, and is too few where agreements come together. Equal rows are
        not counted, so that nobody who is in the table twice raises it; 0 where no pair has near rows.
        The ratio of few rows is uncertain: half of λ is that of rows that are as rare, but it is at most
        twice the row's own.
        """
        own = self.products / np.maximum(self.both, 1)
        order, beside = np.lexsort((self.products, self.both)), max(_FEWEST_BESIDE, len(own) // _BESIDE)
        products, both = (np.append(0, np.cumsum(each[order])) for each in (self.products, self.both))
        first = np.searchsorted(self.both[order], self.both) - beside
        last = np.searchsorted(self.both[order], self.both, side="right") + beside
        first, last = np.maximum(first, 0), np.minimum(last, len(own))
        as_rare = (products[last] - products[first]) / np.maximum(both[last] - both[first], 1)
        estimate: Floats = np.minimum((own + as_rare) / 2, 2 * own)
        return estimate

    def unexplained(self, most: Floats) -> float:
        """δ: equals of a row beyond those expected, at most, by the share of rare rows that bounds it best.

        Rows are rare that few others differ from in two columns: that hardly hangs on the chance by which
        n_a came out too small or too large. Numbers of equals vary by ``2 λ + 4 λ²``, as sizes of cells are
        Poisson by chance.

        Args:
            most: so many equals of each row are counted at most, shape (n,).
        """
        others, expected = np.minimum(self.equals, most), self.expected
        order = np.lexsort((others, expected, self.both))  # the same sums in whatever order rows come
        rows = np.unique(len(order) >> np.arange(_HALVINGS))
        rows = rows[rows > 0]
        found, usual, squares = (np.cumsum(each[order])[rows - 1] for each in (others, expected, expected**2))
        deviation = np.sqrt(2 * np.maximum(np.maximum(found, usual), 1) + 4 * squares)
        above = np.abs(found - usual) + deviation + _MISFIT * usual
        return float(np.min(above / rows))


def _codes(labels: pa.ChunkedArray) -> Codes32:
    """Labels as numbers from 0 on, equal ones alike; a missing one is a label."""
    found = labels.combine_chunks().dictionary_encode(null_encoding="encode").indices
    return np.asarray(found.to_numpy(), dtype=np.int32)
