"""Rules that a table obeys without exception and not by chance, to be proposed to a person."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from synth_audit.core.arrays import Bools, Codes32, Counts, Floats, Positions
from synth_audit.core.kind import Order
from synth_audit.core.rules import Ordered, Rule, determines, ordered
from synth_audit.core.schema import Column
from synth_audit.core.table import Table
from synth_audit.encoding.codes import codes
from synth_audit.kernels.coordinates import MISSING

MOST_RULES = 20
"""More proposals than a person looks over carefully."""

FEWEST_ROWS = 50
"""Rows with both values below which nothing is proposed."""

FEWEST_SPARED = 25.0
"""Exceptions that a rule must be spared: with so many expected, chance gives none once in e^25 pairs."""

LEAST_CHANCE = 0.01
"""Share of rows that must break a rule once paired at random; below it, disjoint ranges or a value that
nearly all rows share keep the rule."""

MOST_UNLIKE = 100.0
"""Ratio of the spreads of two columns beyond which comparing them means nothing."""

_ROWS_A_VALUE = 5
_SAMPLE = 1_000
_GROUPED_ROWS = 4_000
_BLOCK = 8_192


@dataclass(frozen=True)
class Proposal:
    """A rule that held on every row that has its values.

    Attributes:
        rows: how many these are.
        chance: share of them that would break it if one column were shuffled, in (0, 1].
    """

    rule: Rule
    rows: int
    chance: float

    @property
    def spared(self) -> float:
        """Exceptions that were to be expected and did not come."""
        return self.rows * self.chance


def discover(table: Table, columns: Sequence[Column], most: int = MOST_RULES) -> tuple[Proposal, ...]:
    """Inequalities and functional dependencies that hold on all rows, the best supported first.

    ``a <= b`` and ``a == b`` between numbers or between dates; ``a -> b`` where a has fewer values than a
    fifth of its rows, b more than one, and both are labels or whole numbers. Each holds on at least
    :data:`FEWEST_ROWS` rows and would be broken by :data:`LEAST_CHANCE` of them and :data:`FEWEST_SPARED` in
    all if its columns had nothing to do with each other. What follows from two others is left out. Ranges and
    categories are never proposed: their ends and names are somebody's values. A proposal holds no value.
    """
    inequalities = list(_inequalities(table, columns))
    same = {p.rule.right for p in inequalities if isinstance(p.rule, Ordered) and p.rule.operator == "=="}
    rest = [c for c in columns if c.name not in same]
    found = [*inequalities, *_dependencies(table, rest)]
    return tuple(sorted(found, key=lambda p: -p.spared)[:most])


def _inequalities(table: Table, columns: Sequence[Column]) -> Iterator[Proposal]:
    for order in (Order.DATES, Order.NUMBERS):
        alike = [c.name for c in columns if c.kind.order is order]
        if len(alike) < 2:
            continue
        numbers = [table.numbers(name) for name in alike]
        chance = _chance_above(numbers)
        rows = _rows_with_both([~np.isnan(x) for x in numbers])

        def holds(i: int, j: int, numbers: Sequence[Floats] = numbers) -> bool:
            return _never_above(numbers[i], numbers[j])

        equal, single = _settled(rows, chance, holds)
        for i, j in equal:
            unequal = _impurity(np.unique(numbers[i][~np.isnan(numbers[i])], return_counts=True)[1])
            yield Proposal(ordered(alike[i], "==", alike[j]), int(rows[i, j]), unequal)
        for i, j in single:
            yield Proposal(ordered(alike[i], "<=", alike[j]), int(rows[i, j]), float(chance[i, j]))


def _never_above(a: Floats, b: Floats) -> bool:
    """Whether a ≤ b on all rows with both, and would not be on enough of them by chance.

    Asked of these rows once more: where b is missing may depend on a.
    """
    both = ~(np.isnan(a) | np.isnan(b))
    first, second = a[both], b[both]
    if not len(first) or np.any(first > second):
        return False
    at = _spread_out(len(first))
    above = np.searchsorted(np.sort(second[at]), first[at], side="left")
    return bool(above.mean() / len(at) >= LEAST_CHANCE)


def _chance_above(numbers: Sequence[Floats]) -> Floats:
    """``P(a > b')`` with b' from another row, on a sample; 0 where some of its rows have a above b, or where
    the columns' spreads are not of one order. Shape (columns, columns)."""
    values = np.column_stack([x[_spread_out(len(x))] for x in numbers])
    known = [np.sort(x[~np.isnan(x)]) for x in values.T]
    spreads = np.array([_spread(x) for x in known])
    chance = np.zeros((len(known), len(known)))
    for i, column in enumerate(values.T):
        alike = (spreads > 0) & (spreads <= spreads[i] * MOST_UNLIKE) & (spreads[i] <= spreads * MOST_UNLIKE)
        alike &= ~np.any(column[:, None] > values, axis=0)
        for j in np.flatnonzero(alike):
            above = np.searchsorted(known[j], known[i], side="left")
            chance[i, j] = above.mean() / len(known[j])
    np.fill_diagonal(chance, 0.0)
    return chance


def _spread_out(n: int) -> Positions:
    return np.unique(np.linspace(0, n - 1, min(n, _SAMPLE)).astype(np.intp))


def _spread(x: Floats) -> float:
    """Distance of the 5 % and 95 % quantiles of known values, or of the ends where these agree."""
    if not len(x):
        return 0.0
    low, high = map(float, np.quantile(x, [0.05, 0.95]))
    return high - low or float(x.max()) - float(x.min())


def _impurity(counts: Counts) -> float:
    """``1 − Σ p²``: how often two random rows differ."""
    return float(1 - np.sum((counts / counts.sum()) ** 2)) if len(counts) else 0.0


def _rows_with_both(present: Sequence[Bools]) -> Counts:
    """Rows on which two columns are both there, for every two, shape (columns, columns)."""
    total = np.zeros((len(present), len(present)))
    for first in range(0, len(present[0]), _BLOCK):
        block = np.array([p[first : first + _BLOCK] for p in present], dtype=np.float32)
        total += block @ block.T  # whole numbers up to the size of a block: exact
    return total.astype(np.int64)


def _settled(
    rows: Counts, chance: Floats, holds: Callable[[int, int], bool]
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Pairs that hold and are worth telling: those that hold both ways, and the other ones.

    The second of two columns that hold both ways stands back for the first. What follows from two others on
    as many rows is left out, and not even looked at.

    Args:
        chance: how likely a row is to break the pair by chance; 0 for a pair that is no candidate.
    """
    spared = rows * chance
    worth = (rows >= FEWEST_ROWS) & (chance >= LEAST_CHANCE) & (spared >= FEWEST_SPARED)
    left = np.where(worth, rows, 0)
    both_ways = []
    for i, j in np.argwhere(np.triu((left > 0) & (left.T > 0))).tolist():
        if left[i, j] and left[j, i] and holds(i, j) and holds(j, i):
            both_ways.append((i, j))
            left[j, :] = left[:, j] = 0
    sure: set[tuple[int, int]] = set()
    kept = _unimplied(left, spared)
    while not sure.issuperset(kept):
        for pair in kept:
            if pair in sure or holds(*pair):
                sure.add(pair)
            else:
                left[pair] = 0
        kept = _unimplied(left, spared)  # what seemed to follow from a pair that does not hold is back
    return both_ways, kept


def _unimplied(rows: Counts, spared: Floats) -> list[tuple[int, int]]:
    """Pairs that do not follow from two others on as many rows; those that spare least go first."""
    left = rows.copy()
    pairs = [(int(i), int(j)) for i, j in np.argwhere(left)]
    for i, j in sorted(pairs, key=lambda p: float(spared[p])):
        if np.any((left[i] >= left[i, j]) & (left[:, j] >= left[i, j])):
            left[i, j] = 0
    return [p for p in pairs if left[p]]


def _dependencies(table: Table, columns: Sequence[Column]) -> Iterator[Proposal]:
    names = [c.name for c in columns if c.kind.groups(table.column(c.name)) and not c.typeless]
    if len(names) < 2:
        return
    values = [codes([table], table.schema[name])[0].astype(np.int32) for name in names]
    rows = _rows_with_both([v != MISSING for v in values])
    chance = _chance_undetermined(values)

    def holds(i: int, j: int) -> bool:
        return _determines(values[i], values[j])

    both_ways, single = _settled(rows, chance, holds)
    there_and_back = [*both_ways, *((j, i) for i, j in both_ways)]
    for i, j in [*there_and_back, *single]:
        yield Proposal(determines([names[i]], names[j]), int(rows[i, j]), float(chance[i, j]))


def _chance_undetermined(values: Sequence[Codes32]) -> Floats:
    """How likely a row is to differ in b from the row before it with its a, were b shuffled: share of rows
    that are not the first with their a, times ``1 − Σ p²`` of b. 0 where a has too many values, or where
    some whole groups of rows with one a are already seen to differ in b. Shape (columns, columns)."""
    sizes = [np.bincount(v[v != MISSING]) for v in values]
    impurity = np.array([_impurity(s) for s in sizes])
    chance = np.zeros((len(values), len(values)))
    for i, (column, size) in enumerate(zip(values, sizes, strict=True)):
        if not 2 <= len(size) < size.sum() / _ROWS_A_VALUE:
            continue
        few = int(np.searchsorted(np.cumsum(size), _GROUPED_ROWS)) + 1
        at = np.flatnonzero((column != MISSING) & (column < few))
        some = np.column_stack([v[at] for v in values])
        usual = np.full((few, len(values)), MISSING, dtype=np.int32)
        usual[some[:, i]] = some
        expected = usual[some[:, i]]
        differs = np.any((some != expected) & (some != MISSING) & (expected != MISSING), axis=0)
        chance[i] = np.where(differs, 0.0, (1 - len(size) / size.sum()) * impurity)
    np.fill_diagonal(chance, 0.0)
    return chance


def _determines(a: Codes32, b: Codes32) -> bool:
    """Whether rows with one a never differ in b, where both are there."""
    both = (a != MISSING) & (b != MISSING)
    usual = np.full(int(a.max(initial=0)) + 1, MISSING, dtype=np.int32)
    usual[a[both]] = b[both]
    return bool(np.all(usual[a[both]] == b[both]))
