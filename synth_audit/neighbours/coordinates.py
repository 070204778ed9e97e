"""Where rows lie: coordinates under the Euclidean distance, and labels compared as bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from synth_audit.arrays import Bools, Floats, Integers, Positions, Scores
from synth_audit.neighbours import gpu_scores
from synth_audit.neighbours.leaves import Boxes, Leaves

_LONG = 1e3
"""Rows longer than this lie too far out for products in single precision to tell their neighbours apart."""

_FAR = 1e140
"""Where coordinates beyond all reason are put, so that no product overflows."""

_TIED = 1e-9
"""Distances are rounded to this."""

_BYTE = 255
"""As many unlike labels as a byte can count."""

MISSING = -1
"""Code of a missing value."""

FAR = 10.0
"""Standard deviations beyond which only the logarithm grows."""


def told_apart(labels: Integers, others: Integers) -> Bools:
    """The columns in which not all rows of two tables agree, shape (q,); what is the same adds nothing."""
    [first] = labels[:1] if len(labels) else others[:1]
    told: Bools = (labels != first).any(axis=0) | (others != first).any(axis=0)
    return told


def smallest_type(codes: npt.NDArray[Any]) -> np.dtype[Any]:
    """The smallest type of whole numbers that holds these codes, of which missing ones are negative."""
    most, least = int(codes.max(initial=0)), int(codes.min(initial=0))
    return np.result_type(np.min_scalar_type(-1 - most), np.min_scalar_type(min(least, -1)))


def stable_order(codes: npt.NDArray[Any]) -> Positions:
    """Positions by ascending code, equal ones in their order; codes are not negative.

    Two bytes are sorted digit by digit, several times as fast.
    """
    short = codes.astype(np.uint16) if codes.max(initial=0) < 2**16 else codes
    return np.argsort(short, kind="stable")


def side_by_side(columns: Sequence[npt.NDArray[Any]], n: int) -> npt.NDArray[Any]:
    """Columns of n codes beside one another, shape (n, q), in the smallest of their types that holds all."""
    found = np.empty((n, len(columns)), np.result_type(np.int8, *(c.dtype for c in columns)))
    for j, column in enumerate(columns):
        found[:, j] = column
    return found


def small_codes(labels: Integers, others: Integers) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Codes of two tables, shape (n, q) and (m, q), column by column in the smallest type that holds them."""
    most = max(int(labels.max(initial=0)), int(others.max(initial=0))) + 1
    small = np.uint8 if most < 2**8 else np.uint16 if most < 2**16 else np.int64
    return _shrunk(labels, small), _shrunk(others, small)


def _shrunk(labels: Integers, small: type[np.integer[Any]]) -> npt.NDArray[Any]:
    """Column by column, so that no second table of large numbers is made on the way."""
    codes = np.empty(labels.shape[::-1], small)
    for place, column in zip(codes, labels.T, strict=True):
        np.add(column, 1, out=place, dtype=small, casting="unsafe")
    return codes


def in_steps(values: Floats, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Numbers in a type, rounded where it is one of whole numbers."""
    return np.rint(values).astype(dtype) if dtype.kind == "i" else values.astype(dtype)


def add_unlike(
    out: npt.NDArray[Any], unlike: Sequence[float], labels: npt.NDArray[Any], others: npt.NDArray[Any]
) -> None:
    """Add to each pair of rows what their unlike labels weigh; columns that weigh the same are counted first.

    Args:
        out: shape (n, m), of a type which holds every sum.
        unlike: weight of each column, length q. labels, others: of :func:`small_codes`, shape (q, n) and
            (q, m); several times as fast where each column of the others lies in one piece.
    """
    differs, count = np.empty(out.shape, np.bool_), np.empty(out.shape, np.uint8)
    for weight in dict.fromkeys(unlike):
        alike = [j for j, w in enumerate(unlike) if w == weight]
        for start in range(0, len(alike), _BYTE):
            for place, j in enumerate(alike[start : start + _BYTE]):
                np.not_equal(labels[j][:, None], others[j], out=differs)
                if place:
                    count += differs.view(np.uint8)
                else:
                    count[:] = differs
            out += count * out.dtype.type(weight)


def drawn_in(values: Floats, far: float = FAR) -> Floats:
    """Numbers, those beyond ``far`` drawn in: ``sign(z) (far + log(|z| / far))``."""
    size = np.clip(np.abs(values), far, np.finfo(np.float64).max)
    return np.where(size > far, np.sign(values) * (far + np.log(size / far)), values)


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Where rows lie in a space that several tables share.

    ``|a − b|² = Σ_j (a_j − b_j)² + Σ_l u_l [code_l(a) ≠ code_l(b)]``

    Attributes:
        numbers: real coordinates, shape (n, width).
        labels: codes of labels, −1 or more, equal for equal ones, in the smallest type that holds them,
            shape (n, m).
        unlike: u, what two different labels add to the squared distance, shape (m,).
    """

    numbers: Floats
    labels: npt.NDArray[Any]
    unlike: Floats

    @classmethod
    def of(
        cls, numbers: Floats, labels: npt.NDArray[Any] | None = None, unlike: Floats | None = None
    ) -> Self:
        """Rows of one table.

        Args:
            numbers: shape (n, width). labels: shape (n, m); none if left out.
            unlike: 2 for each column of labels if left out, which is how far two one-hot rows are apart.
        """
        codes = np.empty((len(numbers), 0), np.int8) if labels is None else labels
        return cls(
            np.ascontiguousarray(numbers, np.float64),
            np.ascontiguousarray(codes, smallest_type(codes)),
            np.full(codes.shape[1], 2.0) if unlike is None else np.asarray(unlike, np.float64),
        )

    def __len__(self) -> int:
        return len(self.numbers)

    @cached_property
    def leaves(self) -> Leaves:
        """The rows in leaves that lie close together."""
        return Leaves.of(self.numbers, self.labels, self._apart)

    def _apart(self, one: Positions, other: Positions) -> Floats:
        with np.errstate(over="ignore"):  # infinitely far is far
            numbers = (self.numbers[one] - self.numbers[other]) ** 2
        return np.hstack([numbers, (self.labels[one] != self.labels[other]) * self.unlike])

    def take(self, rows: Positions) -> Coordinates:
        """The rows at these positions."""
        return Coordinates(self.numbers[rows], self.labels[rows], self.unlike)

    def beside(self, reference: Coordinates, order: Positions | None) -> Products:
        """Numbers of these queries and of a reference, whose rows stand in that order."""
        return Products.of(self.numbers, reference.numbers, order)

    def distances(self, rows: Positions, reference: Coordinates, columns: Positions) -> Floats:
        """Exact distances of pairs, rounded so that those equal in exact arithmetic compare as equal."""
        apart = self.numbers[rows] - reference.numbers[columns]
        unlike = self.labels[rows] != reference.labels[columns]
        squared = np.einsum("ij,ij->i", apart, apart) + unlike @ reference.unlike
        return np.asarray(np.round(np.sqrt(squared), 9))


@dataclass(frozen=True, eq=False)
class Products:
    """Numbers of queries a and reference b, scored by ``|b|² − 2ab``, that is ``|a − b|² − |a|²``.

    Attributes:
        mine: (−2a, 1), shape (width + 1, n). theirs: (b, |b|²), shape (width + 1, m).
        norms: |a|, shape (n,).
        steps: scores are as large as squared distances.
    """

    mine: Scores
    theirs: Scores
    norms: Floats
    steps: float = 1.0

    @classmethod
    def of(cls, queries: Floats, reference: Floats, order: Positions | None) -> Products:
        """In single precision unless rows lie too far out for it."""
        put: slice | Positions = slice(None) if order is None else order
        squared, others = _squared_norms(queries), _squared_norms(reference)[put]
        short = max(squared.max(initial=0.0), others.max(initial=0.0)) <= _LONG**2
        dtype = np.dtype(np.float32 if short else np.float64)
        mine, theirs = (np.ones((len(x.T) + 1, len(x)), dtype) for x in (queries, reference))
        mine[:-1] = np.clip(queries.T, -_FAR, _FAR) * -2.0
        for row, column in zip(theirs, reference.T, strict=False):  # one by one: there may be millions
            row[:] = np.clip(column[put], -_FAR, _FAR)
        theirs[-1] = others
        return cls(mine, theirs, np.sqrt(squared))

    def scores(self, rows: slice | Positions, columns: slice, out: Scores) -> None:
        """Score some queries against reference rows; shape of ``out``."""
        np.matmul(self.mine[:, rows].T, self.theirs[:, columns], out=out)

    def bounds(self, boxes: Boxes, rows: slice, labels: npt.NDArray[Any]) -> Scores:
        """What no row of each leaf scores less than, shape (leaves, queries)."""
        numbers = self.mine[:-1, rows] / self.mine.dtype.type(-2)
        total = boxes.bounds(numbers, labels, lambda _, apart: apart * apart)
        return np.asarray(total - (self.norms[rows] ** 2).astype(total.dtype))

    def slack(self, rows: slice | Positions, limit: Floats, n_labels: int) -> Floats:
        """Rounding of a product of w terms is at most about ``w u (|a| + |b|)²``, u the type's precision.

        Only rows b near a can be nearest, and |b| ≤ |a| + |a − b|: what is allowed for is one of the query,
        so that no outlier in the reference makes all other rows look tied.
        """
        norms = self.norms[rows]
        apart = np.sqrt(np.maximum(limit + norms**2, 0.0))
        terms = len(self.theirs) + n_labels + 8
        off = terms * float(np.finfo(self.theirs.dtype).eps) * (2.1 * norms + 1.1 * apart) ** 2
        return np.asarray(2 * off + 4 * _TIED * (apart + _TIED))

    def on(self, device: str) -> gpu_scores.NumberScores:
        """The same scores on another device."""
        return gpu_scores.products(self.mine, self.theirs, device)


def _squared_norms(numbers: Floats) -> Floats:
    total = np.zeros(len(numbers))
    for column in numbers.T:
        total += np.clip(column, -_FAR, _FAR) ** 2
    return total
