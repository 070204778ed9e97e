"""Rows of mixed tables as arrays that several tables share: group numbers and coordinates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from synth_audit.core.arrays import Codes, Floats, Positions
from synth_audit.core.schema import Column
from synth_audit.core.table import Table

Scalar = TypeVar("Scalar", bound=np.generic)

MISSING = -1
"""Code of a missing value."""

MOST_ONE_HOT = 64
"""A column with more categories keeps its codes, so that memory does not grow with the categories."""


def codes(tables: Sequence[Table], column: Column) -> list[Codes]:
    """One column of several tables as shared integer codes: equal values get equal codes.

    Numbers are numbered in their order; labels by how often all the tables together hold them, the most
    frequent first, and in the order of their texts where that is equal. Never in order of appearance, which
    would tell from a code which of the tables a value came from.

    Returns:
        One array of shape (n,) per table; values in 0 … k−1, and :data:`MISSING`.
    """
    if column.kind.numeric:
        numbers = np.concatenate([table.numbers(column.name) for table in tables])
        return _split(_factorized(numbers, in_order=True), tables)
    from pandas import factorize  # here, since it is the only need that a code location would load it for

    found, labels = factorize(np.concatenate([table.labels(column.name) for table in tables]), sort=True)
    often = np.bincount(found[found != MISSING], minlength=len(labels))
    place = np.empty(len(labels) + 1, dtype=np.int64)
    place[np.argsort(-often, kind="stable")] = np.arange(len(labels))
    place[MISSING] = MISSING
    return _split(place[found], tables)


def row_groups(tables: Sequence[Table], columns: Sequence[Column]) -> list[Codes]:
    """Number rows so that two rows share a number exactly when they agree in every column.

    Missing agrees with missing. Numbers are compared as float64, so integers beyond 2**53 may be
    taken for equal: an audit then errs to the safe side.

    Returns:
        One array of shape (n,) per table.
    """
    parts = [np.concatenate(codes(tables, column)) + 1 for column in columns]
    return _split(_agreeing(parts, sum(t.n_rows for t in tables)), tables)


def row_groups_but_one(
    tables: Sequence[Table], columns: Sequence[Column]
) -> Iterator[tuple[Column, list[Codes]]]:
    """For each column, :func:`row_groups` on all the others.

    Halving keeps it at about log2(d) times the work of one grouping instead of d times.
    """
    parts = [np.concatenate(codes(tables, column)) + 1 for column in columns]
    start = np.zeros(sum(t.n_rows for t in tables), dtype=np.int64)
    for position, groups in _without_each(parts, 0, start):
        yield columns[position], _split(groups, tables)


def _without_each(parts: Sequence[Codes], first: int, others: Codes) -> Iterator[tuple[int, Codes]]:
    """Position of each part, counted from ``first``, with the groups by all other parts and ``others``."""
    if len(parts) == 1:
        yield first, others
        return
    half = len(parts) // 2
    left, right = parts[:half], parts[half:]
    yield from _without_each(left, first, _agreeing([others, *right], len(others)))
    yield from _without_each(right, first + half, _agreeing([others, *left], len(others)))


def _agreeing(parts: Sequence[Codes], n: int) -> Codes:
    """Numbers that rows share exactly when they agree in every part, shape (n,)."""
    total = np.zeros(n, dtype=np.int64)
    for part in parts:
        total = _factorized(total * (part.max(initial=0) + 1) + part)
    return total


def _factorized(values: npt.NDArray[np.generic], *, in_order: bool = False) -> Codes:
    """Equal values as equal numbers 0 … k−1, in order of appearance or of size; missing as −1, shape (n,)."""
    from pandas import factorize

    numbers, _ = factorize(values, sort=in_order)
    return numbers.astype(np.int64)


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Where rows lie in a space that several tables share.

    Attributes:
        dense: real coordinates, shape (n, width).
        labels: codes of columns with too many categories for one coordinate each, shape (n, m);
            two different codes are as far apart as two one-hot rows, squared distance 2.
    """

    dense: Floats
    labels: Codes

    def __len__(self) -> int:
        return len(self.dense)

    def take(self, rows: Positions) -> Coordinates:
        """The rows at these positions."""
        return Coordinates(self.dense[rows], self.labels[rows])

    def as_features(self) -> Floats:
        """One matrix for a predictive model, codes as they are, shape (n, width + m)."""
        return np.hstack([self.dense, self.labels.astype(np.float64)])


@dataclass(frozen=True)
class EuclideanEncoder:
    """Coordinates in which the Euclidean distance is that of mixed records.

    Numeric columns are standardised on train (mean 0, standard deviation 1) with missing read as
    the mean; discrete columns are one-hot. Every column has one more coordinate that is 1 where the
    value is missing. Anchored on train, so a candidate cannot move its own yardstick. A column that is
    constant in train tells no two training rows apart: all its coordinates are 0, or a copy of train
    could hide behind another value in it. Source: contrastive privacy metrics, section 4.1.

    Attributes:
        columns: the columns compared.
        centre, scale: mean and standard deviation of each numeric column in train.
        constant: names of the columns with a single value in train, missing counted as one.
    """

    columns: tuple[Column, ...]
    centre: dict[str, float]
    scale: dict[str, float]
    constant: frozenset[str] = frozenset()

    @classmethod
    def anchored_on(cls, train: Table, columns: Sequence[Column]) -> EuclideanEncoder:
        """Read centre and scale off train."""
        centre, scale = {}, {}
        for column in columns:
            if column.kind.numeric:
                centre[column.name], scale[column.name] = _centre_and_scale(train.numbers(column.name))
        constant = {c.name for c in columns if len(np.unique(codes([train], c)[0])) < 2}
        return cls(tuple(columns), centre, scale, frozenset(constant))

    def encode(self, tables: Sequence[Table]) -> list[Coordinates]:
        """Coordinates of several tables in one common space."""
        total = sum(t.n_rows for t in tables)
        dense: list[Floats] = [np.empty((total, 0))]
        labels: list[Codes] = [np.empty((total, 0), dtype=np.int64)]
        for column in self.columns:
            if column.name in self.constant:
                dense.append(np.zeros((total, 1)))
                continue
            if column.kind.numeric:
                dense.append(self._numeric(tables, column))
                continue
            joint = np.concatenate(codes(tables, column))
            if len(np.unique(joint)) <= MOST_ONE_HOT:
                dense.append(one_hot(joint))
            else:
                labels.append(joint[:, None])
        parts = zip(_split(np.hstack(dense), tables), _split(np.hstack(labels), tables), strict=True)
        return [Coordinates(d, c) for d, c in parts]

    def _numeric(self, tables: Sequence[Table], column: Column) -> Floats:
        values = np.concatenate([t.numbers(column.name) for t in tables])
        missing, scale = np.isnan(values), self.scale[column.name]
        scaled = np.zeros(len(values))
        if np.isfinite(scale):  # by infinity even an infinite difference is divided to 0
            with np.errstate(over="ignore"):
                scaled[~missing] = (values[~missing] - self.centre[column.name]) / scale
        return np.column_stack([scaled, missing] if missing.any() else [scaled]).astype(np.float64)


def one_hot(joint: Codes) -> Floats:
    """Indicator coordinates, missing as a category of its own; joint, so that unseen labels differ."""
    used, position = np.unique(joint, return_inverse=True)
    block = np.zeros((len(joint), len(used)))
    block[np.arange(len(joint)), position] = 1.0
    return block


def labels_that_fit(counts: Sequence[int], room: int, most: int) -> int:
    """The largest number of labels, at most ``most``, that every column can keep in ``room``; at least 1.

    Args:
        counts: labels of each column, of which it keeps all if it has no more.
    """
    kept = most
    while kept > 1 and sum(min(n, kept) for n in counts) > room:
        kept -= 1
    return max(kept, 1)


def _centre_and_scale(values: Floats) -> tuple[float, float]:
    """Mean and standard deviation of the present values; of values without spread, the value and infinity,
    so that nothing else in that column counts.

    Rounding may give equal values a tiny deviation, huge values an infinite one, and the least numbers there
    are none: so equality is asked of the values themselves, the moments are taken in units of the largest,
    and no unit is below the least normal number.
    """
    known = values[~np.isnan(values)]
    if not len(known) or known.min() == known.max():
        return (float(known[0]) if len(known) else 0.0), np.inf
    unit = float(np.abs(known).max())
    deviation = max(unit * float((known / unit).std()), np.finfo(np.float64).tiny)
    return unit * float((known / unit).mean()), deviation


def _split(joint: npt.NDArray[Scalar], tables: Sequence[Table]) -> list[npt.NDArray[Scalar]]:
    ends = np.cumsum([t.n_rows for t in tables])[:-1]
    return list(np.split(joint, ends))
