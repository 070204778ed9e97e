"""Columns as cells, labels one each and numbers in bins, by noisy counts where a budget is declared."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Self, TypeAlias

import numpy as np

from synth_audit.arrays import Codes, Floats, Labels
from synth_audit.encode.codes import Vocabulary
from synth_audit.encode.univariate import NumberDomain, ends_of, number_domain
from synth_audit.errors import DataError
from synth_audit.plugins.generator import FitContext
from synth_audit.table.kind import Bounds
from synth_audit.table.schema import Column, PublicDomain, Schema, quantitative
from synth_audit.table.table import Table, assemble

Noisy = Callable[[Floats], Floats]
"""Counts with their noise."""

_MOST_PARTS = 32
"""Parts into which a cell is divided."""

_WIDER = 1.1
"""Times the share of a group, while there are too many."""

_SPREAD = 1e-6
"""Share that is spread evenly, so that every place has some."""

_WHAT = "counts of the values of each column"

_ABOVE = 3.0
"""Standard deviations of the noise from which a count is told from none."""

_SOME, _SHARE = 10.0, 0.005
"""Rows, and share of them, from which on cells are divided where nothing is noised."""

_EXACT = 2.0**40
"""More values than this between two bounds are drawn as if there were no spacing."""

_MOST_LABELS = 10_000
"""Labels that are read off train; a plan may declare more."""


@dataclass(frozen=True, eq=False)
class MarginCells:
    """Neighbouring intervals and the share of each.

    Attributes:
        edges: ascending, one more than cells. shares: shape (cells,), above 0, sum 1.
    """

    edges: Floats
    shares: Floats

    def ranks(self, places: Floats) -> Floats:
        """The share below each place, within a cell in proportion."""
        return np.interp(places, self.edges, self._sums())

    def places(self, ranks: Floats) -> Floats:
        """The place below which each share lies."""
        return np.interp(ranks, self._sums(), self.edges)

    def grouped(self, most: int) -> Codes:
        """Neighbouring cells in at most ``most`` groups of much the same share; a larger cell is one alone.

        Returns:
            The first cell of each group, ascending from 0.
        """
        least = 1 / most
        while len(found := self._groups(least)) > most:
            least *= _WIDER
        return found

    def _groups(self, share: float) -> Codes:
        """Cells of ``share`` and more alone, runs of others cut where their sum passes a multiple of it."""
        large = self.shares >= share
        below = np.cumsum(np.where(large, 0.0, self.shares)) - np.where(large, 0.0, self.shares)
        part = np.floor(below / share)
        begins = np.ones(len(large), dtype=bool)
        begins[1:] = large[1:] | large[:-1] | (part[1:] != part[:-1])
        return np.flatnonzero(begins)

    def _sums(self) -> Floats:
        return np.concatenate([[0.0], np.cumsum(self.shares) / self.shares.sum()])


def rounds(places: int) -> int:
    """How many rounds single out one of so many places."""
    return max(1, math.ceil(math.log(max(places, 2), _MOST_PARTS)))


def adaptive_cells(values: Floats, places: int, noisy: Noisy, least: float) -> MarginCells:
    """Cells of ``[0, places)``, down to width 1 where more than ``least`` rows were counted.

    Args:
        values: where the rows are, shape (n,).
        noisy: called ``rounds(places)`` times at most.
        least: rows, to be chosen well above the noise.
    """
    ordered, n_rounds = np.sort(values), rounds(places)
    parts = max(2, math.ceil(places ** (1 / n_rounds) - 1e-9))
    width = float(parts**n_rounds)
    starts, shares, found = np.array([0.0]), np.array([1.0]), []
    for _ in range(n_rounds):
        if not len(starts):
            break
        width /= parts
        children = starts[:, None] + width * np.arange(parts)
        ends = np.searchsorted(ordered, np.stack([children, children + width]))
        counts = noisy((ends[1] - ends[0]).astype(np.float64))
        counts[children >= places] = -math.inf  # known to be empty
        own = shares[:, None] * np.stack([settled(row, least) for row in counts])
        divided = counts > least
        found.append((children[~divided], own[~divided], width))
        starts, shares = children[divided], own[divided]
    return _joined([*found, (starts, shares, width)], places)


def settled(counts: Floats, least: float) -> Floats:
    """Shares from noisy counts: those below ``least`` share what is left in equal parts; −∞ has nothing.

    Returns:
        Shape of ``counts``, sum 1.
    """
    able = np.isfinite(counts)
    large = able & (counts > least)
    left = max(float(counts[able].sum() - counts[large].sum()), 0.0)
    kept = np.where(large, counts, 0.0)
    small = able & ~large
    if small.any():
        kept = kept + small * (left / small.sum())
    if not kept.any():
        kept = able.astype(np.float64)
    found: Floats = kept / kept.sum()
    return found


def _joined(parts: list[tuple[Floats, Floats, float]], places: int) -> MarginCells:
    starts = np.concatenate([start for start, _, _ in parts])
    shares = np.concatenate([share for _, share, _ in parts])
    order = np.argsort(starts)
    inside = order[starts[order] < places]
    edges = np.append(starts[inside], float(places))
    spread = _SPREAD * np.diff(edges) / places
    return MarginCells(edges, (1 - _SPREAD) * shares[inside] + spread)


@dataclass(frozen=True)
class Counting:
    """How counts are noised, and how many rows are told from noise."""

    noisy: Noisy
    least: float


def bought_counts(
    context: FitContext, n_rows: int, queries: int, share: float, *, pure: bool = False
) -> Counting:
    """So many queries of sensitivity 1, all bought before the first is made; without a budget no noise.

    Under a budget they are Gaussian mechanisms, or Laplace's where δ is 0.

    Args:
        share: of ε, for all queries together.
        pure: Laplace's whatever δ is.

    Raises:
        BudgetSpent: the budget does not bear it.
    """
    accountant = context.accountant
    if accountant.budget is None:
        return Counting(lambda counts: counts, max(_SOME, _SHARE * n_rows))
    reach = accountant.reached(share)
    if pure or accountant.budget.delta == 0:
        scale = accountant.least_laplace_noise(queries, epsilon=reach)
        accountant.laplace(scale, what=_WHAT, count=queries)
        noise, least = context.noise.laplace, _ABOVE * 2**0.5 * scale
    else:
        scale = accountant.least_noise(steps=queries, epsilon=reach)
        accountant.gaussian(scale, what=_WHAT, count=queries)
        noise, least = context.noise.gaussian, _ABOVE * scale
    return Counting(lambda counts: counts + noise(scale, counts.shape), least)


@dataclass(frozen=True, eq=False)
class CellBins:
    """Bins of neighbouring cells; a value that many rows share is a bin alone.

    From a bin its cells are drawn as often as they were counted, and any value of a cell with equal
    probability.

    Attributes:
        cells: over the places of the domain. first: the first cell of each bin.
        gap: values may be missing.
    """

    name: str
    domain: NumberDomain
    cells: MarginCells = field(repr=False)
    first: Codes = field(repr=False)
    gap: bool

    @classmethod
    def counted(
        cls, name: str, domain: NumberDomain, values: Floats, counting: Counting, bins: int, *, gap: bool
    ) -> Self:
        """From ``rounds(domain.places)`` noisy counts of the values, NaN where missing."""
        placed = domain.placed(values[~np.isnan(values)])
        cells = adaptive_cells(placed, domain.places, counting.noisy, counting.least)
        return cls(name, domain, cells, cells.grouped(bins), gap)

    @property
    def size(self) -> int:
        """Bins, and missing."""
        return len(self.first) + self.gap

    def codes(self, table: Table) -> Codes:
        """The bin of each number."""
        numbers = table.numbers(self.name)
        missing = np.isnan(numbers)
        places = self.domain.placed(np.where(missing, self.domain.low, numbers))
        found = np.searchsorted(self._ends[1:-1], places, side="right")
        return np.where(missing, len(self.first) if self.gap else 0, found).astype(np.int64)

    def values(self, codes: Codes, rng: np.random.Generator) -> Floats:
        """Numbers within the bins."""
        ends = self._ends
        ranks, bins = self.cells.ranks(ends), np.minimum(codes, len(self.first) - 1)
        drawn = ranks[bins] + rng.random(len(codes)) * (ranks[bins + 1] - ranks[bins])
        places = np.clip(self.cells.places(drawn), ends[bins], np.nextafter(ends[bins + 1], 0))
        return np.where(codes == len(self.first), np.nan, self.domain.values(places))

    @property
    def _ends(self) -> Floats:
        """Places where bins begin, and the end of the last."""
        return np.append(self.cells.edges[self.first], self.cells.edges[-1])


@dataclass(frozen=True)
class LabelBins:
    """A cell for every label.

    Attributes:
        labels: all that may be drawn; a label of a row that is not among them counts as missing, or where
            nothing may be missing as the first.
        gap: values may be missing.
    """

    name: str
    labels: tuple[str, ...]
    gap: bool

    @property
    def size(self) -> int:
        """Labels, and missing."""
        return max(1, len(self.labels) + self.gap)

    def codes(self, table: Table) -> Codes:
        """Positions among the labels."""
        return label_codes(table, self.name, self.labels, gap=self.gap)

    def values(self, codes: Codes, rng: np.random.Generator) -> Labels:
        """The labels."""
        return np.array([*self.labels, None], dtype=object)[codes]


@dataclass(frozen=True)
class RangeBins:
    """Bins of equal width between two bounds; what lies outside is clipped.

    Values that are a step apart are dealt to the bins as evenly as they go, and are drawn from a bin with
    equal probability; without a step any number between the ends of the bin is.

    Attributes:
        bounds: lowest and highest value; None where no value is known.
        bins: how many at most.
        step: spacing of the values; 0 where all between the bounds can occur.
        gap: values may be missing.
    """

    name: str
    bounds: Bounds | None
    bins: int
    step: float
    gap: bool

    @property
    def size(self) -> int:
        """Bins, and missing."""
        return max(1, self._bins + self.gap)

    @property
    def _values(self) -> int:
        """How many values there are; 0 where they are not counted."""
        if self.bounds is None or not self.step:
            return 0
        last = (self.bounds[1] - self.bounds[0]) / self.step
        return round(last) + 1 if last < _EXACT else 0

    @property
    def _bins(self) -> int:
        if self.bounds is None:
            return 0
        if self.bounds[0] == self.bounds[1]:
            return 1
        return min(self.bins, self._values) if self._values else self.bins

    def codes(self, table: Table) -> Codes:
        """The bin of each number."""
        numbers = table.numbers(self.name)
        missing = np.isnan(numbers)
        last = self._bins if self.gap else 0
        if self.bounds is None:
            return np.zeros(len(numbers), dtype=np.int64)
        low, high = self.bounds
        inside = np.clip(np.where(missing, low, numbers), low, high) - low
        if self._values:
            place = np.rint(inside / self.step).astype(np.int64) * self._bins // self._values
        else:
            place = np.floor(inside / ((high - low) or 1.0) * self._bins).astype(np.int64)
        return np.where(missing, last, np.clip(place, 0, self._bins - 1))

    def values(self, codes: Codes, rng: np.random.Generator) -> Floats:
        """Numbers within the bins."""
        if self.bounds is None:
            return np.full(len(codes), np.nan)
        low, high = self.bounds
        share = rng.random(len(codes))
        if n := self._values:
            first, after = -(-codes * n // self._bins), -(-(codes + 1) * n // self._bins)
            numbers = low + (first + np.floor(share * (after - first))) * self.step
        else:
            numbers = low + (codes + share) / self._bins * (high - low)
        return np.where(codes == self._bins, np.nan, np.clip(numbers, low, high))


BinnedColumn: TypeAlias = LabelBins | RangeBins | CellBins
"""The cells of one column."""


def label_codes(table: Table, name: str, labels: tuple[str, ...], *, gap: bool) -> Codes:
    """The place of each row's label among the labels, shape (n,).

    What is not among them counts as missing, after the last label, or where nothing may be missing as the
    first.
    """
    found = Vocabulary(name, labels, exact=True).places(table)
    known = (found >= 0) & (found < len(labels))
    return np.where(known, found, len(labels) if gap else 0)


@dataclass(frozen=True)
class ColumnDomain:
    """What values a column may hold.

    Attributes:
        bounds: of a column of numbers; None where no value is known.
        labels: that may be drawn; None for numbers.
        gap: values may be missing.
    """

    bounds: Bounds | None
    labels: tuple[str, ...] | None
    gap: bool


def declared_domain(context: FitContext) -> PublicDomain | None:
    """What is declared, by which alone rows are read under a budget; None without one.

    The accountant is told whether something is left out, which is then read off train.
    """
    if context.accountant.budget is None:
        return None
    context.accountant.domain("inferred" if context.public_domain.unknown else "declared")
    return context.public_domain


def column_domains(train: Table, domain: PublicDomain | None, doing: str) -> tuple[ColumnDomain, ...]:
    """What the columns of train may hold: as declared, and where nothing is declared as train holds it.

    Args:
        domain: what is declared; None to go by train alone. doing: what is done with labels, for a message.

    Raises:
        DataError: a column holds free text, or more labels than are read off.
    """

    def known(column: Column) -> ColumnDomain:
        declared = None if domain is None else domain.columns[column.name]
        if declared is not None and declared.bounds is not None:
            return ColumnDomain(declared.bounds, None, declared.nullable)
        if declared is not None and declared.labels:
            return ColumnDomain(None, tuple(declared.labels), declared.nullable)
        gap = train.n_missing(column.name) > 0
        if quantitative([column]):
            return ColumnDomain(ends_of(train.numbers(column.name)), None, gap)
        labels = column.kind.domain(train.column(column.name)).categories or ()
        if column.kind.as_it_is or len(labels) > _MOST_LABELS:
            raise DataError(
                f"column {column.name!r} has too many different labels to be {doing}",
                where=f"train.{column.name}",
                expected=f"categories, at most {_MOST_LABELS:,}",
                fix="drop the column, give it `role: identifier`, or merge its rare labels at the source",
            )
        return ColumnDomain(None, labels, gap)

    return tuple(map(known, train.schema))


@dataclass(frozen=True, eq=False)
class Binning:
    """The cells of all columns.

    Attributes:
        schema: of the table that is drawn.
        columns: in the schema's order.
    """

    schema: Schema = field(repr=False)
    columns: tuple[BinnedColumn, ...] = field(repr=False)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many cells each column has."""
        return tuple(column.size for column in self.columns)

    def codes(self, table: Table) -> Codes:
        """The cell of every value, shape (n, d)."""
        return np.stack([column.codes(table) for column in self.columns], axis=1)

    def table(self, codes: Codes, rng: np.random.Generator) -> Table:
        """Rows with a value from each cell; ``codes`` has shape (n, d)."""
        drawn = {c.name: c.values(codes[:, j], rng) for j, c in enumerate(self.columns)}
        return assemble(self.schema, drawn)


def binning_for(train: Table, context: FitContext, bins: int) -> Binning:
    """The cells of train's columns, and the accountant told where bounds and labels come from.

    Under a budget they are what the plan declares, and values may be missing wherever it does not rule that
    out. What it leaves out is read off train, and no guarantee follows.

    Raises:
        DataError: a column holds free text, or more labels than are read off.
    """
    declared = declared_domain(context)

    def binned(column: Column, known: ColumnDomain) -> BinnedColumn:
        if known.labels is not None:
            return LabelBins(column.name, known.labels, known.gap)
        if known.bounds is None or column.typeless:
            return RangeBins(column.name, None, bins, 0.0, known.gap)
        resolution = column.resolution if declared is None else column.declared_resolution
        domain = number_domain(column, known.bounds, resolution)
        return RangeBins(column.name, (domain.low, domain.high), bins, domain.step, known.gap)

    known = column_domains(train, declared, "counted")
    return Binning(train.schema, tuple(map(binned, train.schema, known)))


def counted_binning(
    train: Table, context: FitContext, bins: int, share: float, *, pure: bool = False
) -> Binning:
    """:func:`binning_for`, but numbers of more than ``bins`` values lie in bins of much the same share.

    Which these are, and how often values occur in each, is told by noisy counts.

    Args:
        share: of ε, for all counts together; with 0 bins have equal width.
        pure: Laplace noise, also where δ is above 0.

    Raises:
        BudgetSpent: the budget does not bear it.
    """
    binning = binning_for(train, context, bins)
    domains = {column.name: domain for column in binning.columns if (domain := _to_count(column))}
    if not share or not domains:
        return binning
    queries = sum(rounds(domain.places) for domain in domains.values())
    counting = bought_counts(context, train.n_rows, queries, share, pure=pure)

    def counted(column: BinnedColumn) -> BinnedColumn:
        context.deadline.check()
        if not isinstance(column, RangeBins) or column.name not in domains:
            return column
        domain, values = domains[column.name], train.numbers(column.name)
        return CellBins.counted(column.name, domain, values, counting, bins, gap=column.gap)

    return replace(binning, columns=tuple(map(counted, binning.columns)))


def _to_count(column: BinnedColumn) -> NumberDomain | None:
    """What a column of numbers may hold that are more than its bins."""
    if not isinstance(column, RangeBins) or column.bounds is None or column.bounds[0] == column.bounds[1]:
        return None
    domain = NumberDomain(*column.bounds, column.step)
    return domain if domain.places > column.bins else None
