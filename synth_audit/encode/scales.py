"""Scales of numbers: one that extremes do not move, one on which labels have an order."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from synth_audit.arrays import Bools, Codes, Counts, Floats, Labels
from synth_audit.column_kinds import number_kind
from synth_audit.encode.codes import Vocabulary
from synth_audit.neighbours.gower import NEAR
from synth_audit.table.schema import Column
from synth_audit.table.table import Table

CENTRAL = 0.05, 0.95
"""Quantiles that bound the central range."""

REGULAR, MISSING, FIRST_LABEL = range(3)
"""What a cell is: a number; missing; from here on one of the values that are labels."""

_FREQUENT = 3
"""An isolated extreme that occurs less often is a number that lies far away."""

_MOST_LABELS = 16
"""Values of a column of numbers that may be labels; codes such as 9999 are few."""

_MOST_EXTREMES = 64
"""Values at either end that are looked at."""

FAR = 1e100
"""Where numbers beyond all reason are put, so that no difference overflows."""

_MOST = 2**20
"""Values that a scale is read off at most: of so many, the ends of the central range are those of all rows to
± 0.04 % of the rows, and sorting more would take longer than much of what is compared on the scale."""

_SHARED = 0.8
"""Share of regular values that are one value, from which the central range counts as empty."""


@dataclass(frozen=True, eq=False)
class RobustScale:
    """Where numbers lie relative to the central range of a reference, and which of them are labels.

    The range of a column is ``(q95 − q05) / 0.9`` of its regular values, which is the range of a uniform
    column, and at most their own. Two sorts of values are labels, equal or not and at no distance.
    An isolated frequent extreme, such as 9999 for "unknown", is separated from all that lies inside by a gap
    wider than the central range of that; whatever lies nearer to it than to any other value of the reference
    is that label, or a copy could leave all labels by a hair. Where four values in five are the same one, so
    that the central range is all but empty, that value is a label and the scale is that of the others.

    Attributes:
        centre: middle of the central range.
        span: the range; infinite where the regular values do not differ.
        labels: values that are labels, ascending, shape (k,).
        reach: how far a number may lie from each and still be it, shape (k,).
    """

    centre: float
    span: float
    labels: Floats
    reach: Floats

    @classmethod
    def of(cls, reference: Floats) -> Self:
        """Read the scale off the values of a reference, NaN where there is none, shape (n,).

        Of more than 2^20 so many are drawn, always the same.
        """
        if len(reference) > _MOST:
            reference = reference[np.random.default_rng(0).choice(len(reference), _MOST, replace=False)]
        distinct, counts = np.unique(reference[~np.isnan(reference)], return_counts=True)
        left, left_counts, extremes, shared = distinct, counts, np.empty(0), np.empty(0)
        while len(left) and len(extremes) + len(shared) < _MOST_LABELS:
            found = _isolated(left, left_counts)
            if found.any():
                extremes = np.concatenate([extremes, left[found]])
            elif _is_shared(left_counts):
                found = np.arange(len(left)) == np.argmax(left_counts)
                shared = np.concatenate([shared, left[found]])
            else:
                break
            left, left_counts = left[~found], left_counts[~found]
        labels = np.sort(np.concatenate([extremes, shared]))
        centre, span = _spread(left, left_counts)
        most = np.where(np.isin(labels, extremes), np.inf, span / NEAR)
        return cls(centre, span, labels, np.minimum(most, _half_way(labels, distinct)))

    def read(self, values: Floats) -> tuple[Floats, Codes]:
        """Numbers in ranges from the centre, 0 for others, and what each cell is; shape (n,) each."""
        what = np.where(np.isnan(values), MISSING, REGULAR)
        for code, (label, reach) in enumerate(zip(self.labels, self.reach, strict=True), FIRST_LABEL):
            with np.errstate(over="ignore"):
                what[np.abs(values - label) <= reach] = code
        with np.errstate(over="ignore"):  # halves, since the difference of huge numbers may be infinite
            scaled = (values / 2 - self.centre / 2) / (self.span / 2)
        return np.where(what == REGULAR, np.clip(scaled, -FAR, FAR), 0.0), what.astype(np.int64)


def _central(distinct: Floats, counts: Counts) -> tuple[float, float]:
    """Ends of the central range of values that occur so often."""
    below = np.cumsum(counts)
    low, high = (int(np.searchsorted(below, q * below[-1])) for q in CENTRAL)
    return float(distinct[low]), float(distinct[min(high, len(distinct) - 1)])


def _isolated(distinct: Floats, counts: Counts) -> Bools:
    """Which values are frequent and lie at one end beyond a gap wider than the central range inside it."""
    found = np.zeros(len(distinct), dtype=bool)
    for step in (-1, 1):  # from the highest value down, then from the lowest up
        values, often = distinct[::step], counts[::step]
        for i in range(min(len(values) - 1, _MOST_EXTREMES)):
            inside, inside_counts = values[i + 1 :][::step], often[i + 1 :][::step]
            low, high = _central(inside, inside_counts)
            gap = abs(values[i] / 2 - values[i + 1] / 2)
            if _is_shared(inside_counts) or gap <= high / 2 - low / 2:
                break
            found[len(found) - 1 - i if step < 0 else i] = often[i] >= _FREQUENT
        if found.any():
            break  # the other end is looked at again without them
    return found


def _is_shared(counts: Counts) -> bool:
    """Whether nearly all values are the same one."""
    return bool(counts.max() >= _SHARED * counts.sum())


def _spread(distinct: Floats, counts: Counts) -> tuple[float, float]:
    """Middle and range of the central range; of halves, lest a difference be infinite."""
    if not len(distinct):
        return 0.0, np.inf
    low, high = _central(distinct, counts)
    half = min((high / 2 - low / 2) / (CENTRAL[1] - CENTRAL[0]), distinct[-1] / 2 - distinct[0] / 2)
    if not half > 0:
        return low / 2 + high / 2, np.inf
    half = float(np.clip(half, np.finfo(np.float64).tiny, np.finfo(np.float64).max / 2))
    return low / 2 + high / 2, half * 2


def _half_way(labels: Floats, distinct: Floats) -> Floats:
    """A little less than half of the way from each label to the nearest other value of the reference."""
    if len(distinct) < 2:
        return np.zeros(len(labels))
    place = np.searchsorted(distinct, labels)
    steps = np.concatenate([[np.inf], np.diff(distinct / 2), [np.inf]])
    half_way: Floats = np.minimum(steps[place], steps[place + 1]) * (1 - 1e-9)
    return half_way


PSEUDO_ROWS = 5
"""Weight of the overall mean in the mean of one category."""


def order_by_response(codes: Codes, n_categories: int, response: Floats) -> Codes:
    """The categories sorted by the mean rank of the response in each, shape (k,).

    One pair copula has one direction: on this scale it can carry the whole effect of a nominal variable
    on the response. Means are shrunk by ``PSEUDO_ROWS``, so that a rare category does not land at an end by
    chance; equal means keep the given order.

    Args:
        codes: shape (n,), −1 where missing.
        response: shape (n,), NaN where missing.
    """
    from scipy.stats import rankdata

    both = (codes >= 0) & ~np.isnan(response)
    ranks = rankdata(response[both])
    overall = float(ranks.mean()) if len(ranks) else 0.0
    sums = np.bincount(codes[both], weights=ranks, minlength=n_categories)
    counts = np.bincount(codes[both], minlength=n_categories)
    return np.argsort((sums + PSEUDO_ROWS * overall) / (counts + PSEUDO_ROWS), kind="stable")


@dataclass(frozen=True, eq=False)
class RankScale:
    """How one column becomes numbers whose ranks carry its dependence on others.

    Attributes:
        vocabulary: the labels in an order that train fixes; None where values are numbers already.
    """

    name: str
    vocabulary: Vocabulary | None = None

    @property
    def labels(self) -> Labels | None:
        """Labels in the order of their codes 0, 1, …, shape (k,); None where values are numbers already."""
        return None if self.vocabulary is None else self.vocabulary.array

    def of(self, table: Table) -> Floats:
        """Numbers, shape (n,), NaN where missing or a label that train lacks."""
        if self.vocabulary is None:
            return table.numbers(self.name)
        places = self.vocabulary.places(table)
        unknown = (places < 0) | (places == len(self.vocabulary.labels))
        return np.where(unknown, np.nan, places.astype(np.float64))


def rank_scale(train: Table, column: Column, response: Floats | None, *, own_order: bool) -> RankScale:
    """Numbers are on one already; labels by the mean rank of a response in each, or by falling frequency.

    Nominal labels have no order of their own: on this one, ranks show most of what they say about the
    response.

    Args:
        response: shape (n,); None for none.
        own_order: labels of a kind that has them fixed stay in the order of their texts.
    """
    if number_kind(column):
        return RankScale(column.name)
    known = Vocabulary.of(column.name, train, exact=True)
    if own_order and column.kind.fixed_domain is not None:
        return RankScale(column.name, known)
    if response is None:
        return RankScale(column.name, known.by_frequency(train))
    order = order_by_response(known.places(train), len(known.labels), response)
    return RankScale(column.name, known.reordered(order))
