"""Columns as numbers for a linear attacker: what predicts a secret, and what stands for the secret."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from synth_audit.core.arrays import Bools, Floats, Labels, Positions
from synth_audit.core.schema import Column
from synth_audit.core.table import Table

RARE = 0.02
"""A category or a gap that a smaller share of train has gets no number of its own: a set of some hundred rows
holds too few of it to estimate anything, and each indicator adds noise to the attack."""


@dataclass(frozen=True)
class Secret:
    """Where a secret and its predictors stand in the design.

    Attributes:
        responses: positions of the numbers that stand for the secret: itself, the indicator of one of two
            labels, or the indicator of each frequent label.
        weights: of the responses, summing to 1: the labels' frequencies in train, so that what is frequent
            counts most.
        predictors: positions of the numbers of all other columns; groups: their column, numbered from 0.
    """

    name: str
    responses: Positions
    weights: Floats
    predictors: Positions
    groups: Positions


@dataclass(frozen=True)
class _Coding:
    """How one column becomes numbers.

    Attributes:
        start: position of its first number in the design.
        labels: labels that get an indicator, ascending; None for a gap. Empty for a numeric column.
        shares: their frequencies in train.
        gap: a numeric column's second number says where it is missing.
        span: smallest and largest number in train. known: labels of train, whether frequent or not.
        pooled: the last number says that the label is one of those that got none of their own.
    """

    column: Column
    start: int
    labels: tuple[str | None, ...] = ()
    shares: tuple[float, ...] = ()
    gap: bool = False
    span: tuple[float, float] = (0.0, 0.0)
    known: frozenset[str] = frozenset()
    pooled: bool = False

    @property
    def width(self) -> int:
        return 1 + self.gap if self.column.kind.numeric else len(self.shares)

    @property
    def regressors(self) -> list[int]:
        """Positions that predict other columns; of labels that leave little over, all but the commonest."""
        positions = list(range(self.start, self.start + self.width))
        if self.labels and sum(self.shares) > 1 - RARE:
            del positions[int(np.argmax(self.shares))]
        return positions

    @property
    def responses(self) -> dict[int, float]:
        """Position and share in train of each number that stands for this column as a secret."""
        if self.column.kind.numeric:
            return {self.start: 1.0}
        known = {
            self.start + i: share
            for i, share in enumerate(self.shares)
            if i >= len(self.labels) or self.labels[i] is not None
        }
        if len(known) == 2 and sum(known.values()) > 1 - RARE:
            del known[max(known, key=known.__getitem__)]  # the same number as the other, turned round
        return known

    def numbers(self, table: Table) -> Floats:
        """Shape (n, width), NaN where a number is missing."""
        name = self.column.name
        if self.column.kind.numeric:
            values = np.clip(table.numbers(name), *self.span)  # a sentinel must not drown a column
            return np.column_stack([values, np.isnan(values)] if self.gap else [values])
        labels = table.labels(name)
        parts = [_equal(labels, label) for label in self.labels]
        if self.pooled:
            seldom = self.known - set(self.labels)
            parts.append(np.array([label in seldom for label in labels], dtype=bool))
        return np.column_stack(parts).astype(np.float64)

    def present(self, table: Table) -> Bools:
        """Rows that hold a value: a number, or a label that train has; shape (n,)."""
        if self.column.kind.numeric:
            return np.asarray(~np.isnan(table.numbers(self.column.name)))
        return np.array([label in self.known for label in table.labels(self.column.name)], dtype=bool)


@dataclass(frozen=True)
class DesignMatrix:
    """The columns that vary in train as numbers; anchored on train, so that no candidate moves its yardstick.

    Numbers and dates stand for themselves, as in the paper's tables. A label becomes indicators, since no
    order of its codes could carry what it says of a secret; one of two labels is a single 0/1 number. Labels
    that fewer than :data:`RARE` of the rows hold share one indicator, if together they are frequent enough.
    Numbers are read no further than train's own smallest and largest. A numeric column with gaps also gets
    a 0/1 number that says where they are, for being missing can say as much as a value.
    """

    codings: tuple[_Coding, ...]

    @classmethod
    def anchored_on(cls, train: Table, columns: Sequence[Column]) -> DesignMatrix:
        """Read off train which columns vary and which labels are frequent."""
        codings: list[_Coding] = []
        for column in columns:
            start = codings[-1].start + codings[-1].width if codings else 0
            coding = (_number if column.kind.numeric else _label)(train, column, start)
            if coding is not None:
                codings.append(coding)
        return cls(tuple(codings))

    def encode(self, table: Table) -> Floats:
        """The numbers of a table, shape (n, p), NaN where missing."""
        return np.hstack([np.empty((table.n_rows, 0)), *(c.numbers(table) for c in self.codings)])

    def present(self, table: Table, name: str) -> Bools:
        """Rows of a table that hold a value of a coded column, shape (n,)."""
        return next(c for c in self.codings if c.column.name == name).present(table)

    def secret(self, name: str) -> Secret | None:
        """The secret in this column, or None when nothing in it varies."""
        own = next((c for c in self.codings if c.column.name == name), None)
        if own is None or not own.responses:
            return None
        others = [c for c in self.codings if c is not own and c.regressors]
        shares = np.array(list(own.responses.values()))
        return Secret(
            name=name,
            responses=np.array(list(own.responses), dtype=np.intp),
            weights=shares / shares.sum(),
            predictors=np.array([p for c in others for p in c.regressors], dtype=np.intp),
            groups=np.array([i for i, c in enumerate(others) for _ in c.regressors], dtype=np.intp),
        )


def _number(train: Table, column: Column, start: int) -> _Coding | None:
    values = train.numbers(column.name)
    missing = np.isnan(values)
    gap = RARE <= float(missing.mean()) < 1
    if not gap and len(np.unique(values[~missing])) < 2:
        return None
    span = (float(values[~missing].min()), float(values[~missing].max()))
    return _Coding(column, start, gap=gap, span=span)


def _label(train: Table, column: Column, start: int) -> _Coding | None:
    values = train.labels(column.name)
    missing = train.missing(column.name)
    labels, counts = np.unique(values[~missing].astype(str), return_counts=True)
    shares: dict[str | None, float] = dict(
        zip(labels.tolist(), (counts / train.n_rows).tolist(), strict=True)
    )
    shares[None] = float(missing.mean())
    frequent = {label: share for label, share in shares.items() if RARE <= share < 1}
    seldom = sum(share for label, share in shares.items() if label is not None and share < RARE)
    if not frequent:
        return None
    pooled = seldom >= RARE and bool(set(frequent) - {None})
    parts = (*frequent.values(), seldom) if pooled else tuple(frequent.values())
    return _Coding(column, start, tuple(frequent), parts, known=frozenset(labels.tolist()), pooled=pooled)


def _equal(values: Labels, label: str | None) -> Bools:
    return np.asarray(values == label, dtype=bool)
