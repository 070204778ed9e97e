"""Columns as numbers whose ranks carry their dependence: labels in an order; and the way back."""

from dataclasses import dataclass, field

import numpy as np

from synth_audit.arrays import Codes, Floats, Labels
from synth_audit.column_kinds import number_kind
from synth_audit.encode.codes import Vocabulary
from synth_audit.table.schema import Column, Schema
from synth_audit.table.table import Table, assemble

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


@dataclass(frozen=True, eq=False)
class CodedColumns:
    """What the numbers of all columns stand for.

    Attributes:
        schema: of the table that is drawn.
        labels: of each column by code 0, 1, …; None for a column of numbers.
    """

    schema: Schema = field(repr=False)
    labels: tuple[Labels | None, ...] = field(repr=False)

    @classmethod
    def of(cls, train: Table) -> "tuple[CodedColumns, Floats]":
        """The columns of train and their values, shape (n, d), NaN where missing.

        Dates are microseconds. Labels of equal frequency are numbered by their texts.
        """
        scales = [rank_scale(train, c, None, own_order=True) for c in train.schema]
        values = np.column_stack([scale.of(train) for scale in scales])
        return cls(train.schema, tuple(scale.labels for scale in scales)), values

    @property
    def sizes(self) -> tuple[int | None, ...]:
        """How many labels each column has; None for numbers."""
        return tuple(None if labels is None else len(labels) for labels in self.labels)

    def table(self, values: Floats) -> Table:
        """Rows of a table from the numbers of all columns, shape (n, d)."""
        return assemble(
            self.schema,
            {c.name: _read(values[:, j], self.labels[j]) for j, c in enumerate(self.schema)},
        )


def _read(values: Floats, labels: Labels | None) -> Floats | Labels:
    if labels is None:
        return values
    missing = np.isnan(values)
    texts: Labels = np.array([*labels, None], dtype=object)
    return texts[np.where(missing, len(labels), values).astype(np.intp)]
