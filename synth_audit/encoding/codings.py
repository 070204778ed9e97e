"""One column as numbers of a linear model: itself, or indicators of its labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from synth_audit.core.arrays import Bools, Counts, Floats
from synth_audit.core.schema import Column
from synth_audit.core.table import Table
from synth_audit.encoding.label_forms import label_forms

RARE = 0.02
"""A category or a gap that a smaller share of train has gets no number of its own: a set of some hundred rows
holds too few of it to estimate anything, and each indicator adds noise to the attack."""


@dataclass(frozen=True)
class NumberCoding:
    """The number itself, read no further than train's own smallest and largest.

    Attributes:
        start: position of its first number in the design.
        gap: a second number says where it is missing.
        span: smallest and largest number in train.
    """

    column: Column
    start: int
    gap: bool
    span: tuple[float, float]

    @classmethod
    def on(cls, train: Table, column: Column, start: int) -> NumberCoding | None:
        """Read off train; None where the numbers are all the same and too few are missing."""
        values = train.numbers(column.name)
        missing = np.isnan(values)
        gap = RARE <= float(missing.mean()) < 1
        if not gap and len(np.unique(values[~missing])) < 2:
            return None
        return cls(column, start, gap, (float(values[~missing].min()), float(values[~missing].max())))

    @property
    def width(self) -> int:
        """One, or two with gaps."""
        return 1 + self.gap

    @property
    def regressors(self) -> list[int]:
        """Positions of all of them."""
        return list(range(self.start, self.start + self.width))

    @property
    def responses(self) -> dict[int, float]:
        """The number itself."""
        return {self.start: 1.0}

    def numbers(self, table: Table) -> Floats:
        """Shape (n, width), NaN where a number is missing."""
        values = np.clip(table.numbers(self.column.name), *self.span)  # a sentinel must not drown a column
        return np.column_stack([values, np.isnan(values)] if self.gap else [values])

    def present(self, table: Table) -> Bools:
        """Rows that hold a number, shape (n,)."""
        return np.asarray(~np.isnan(table.numbers(self.column.name)))

    def rare_counts(self, train: Table) -> Mapping[str, int]:
        """Numbers have no labels."""
        return {}


@dataclass(frozen=True)
class LabelCoding:
    """Indicators, since no order of codes could carry what labels say of a secret; of two one is enough.

    Attributes:
        start: position of its first number in the design.
        labels: labels that get an indicator, ascending; None for a gap.
        shares: their frequencies in train, then that of the pooled ones.
        known: labels of train, whether frequent or not.
        pooled: the last number says that the label is one of those that got none of their own.
    """

    column: Column
    start: int
    labels: tuple[str | None, ...]
    shares: tuple[float, ...]
    known: frozenset[str]
    pooled: bool

    @classmethod
    def on(cls, train: Table, column: Column, start: int) -> LabelCoding | None:
        """Read off train; None where no label is frequent, or one is all there is."""
        labels, counts = _counted(train, column.name)
        missing = train.missing(column.name)
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
        return cls(column, start, tuple(frequent), parts, frozenset(labels.tolist()), pooled)

    @property
    def width(self) -> int:
        """One for each frequent label, and one for the pooled ones."""
        return len(self.shares)

    @property
    def regressors(self) -> list[int]:
        """Positions that predict other columns: where they leave little over, all but the commonest."""
        positions = list(range(self.start, self.start + self.width))
        if sum(self.shares) > 1 - RARE:
            del positions[int(np.argmax(self.shares))]
        return positions

    @property
    def responses(self) -> dict[int, float]:
        """Position and share in train of each number that stands for this column as a secret."""
        known = {
            self.start + i: share
            for i, share in enumerate(self.shares)
            if i >= len(self.labels) or self.labels[i] is not None
        }
        if len(known) == 2 and sum(known.values()) > 1 - RARE:
            del known[max(known, key=known.__getitem__)]  # the same number as the other, turned round
        return known

    def numbers(self, table: Table) -> Floats:
        """Shape (n, width)."""
        labels = label_forms(table, self.column.name)
        parts = [np.asarray(labels == label, dtype=bool) for label in self.labels]
        if self.pooled:
            seldom = self.known - set(self.labels)
            parts.append(np.array([label in seldom for label in labels], dtype=bool))
        return np.column_stack(parts).astype(np.float64)

    def present(self, table: Table) -> Bools:
        """Rows that hold a label of train, shape (n,)."""
        return np.array([label in self.known for label in label_forms(table, self.column.name)], dtype=bool)

    def rare_counts(self, train: Table) -> Mapping[str, int]:
        """Rows of train that hold each label of a share below :data:`RARE`."""
        labels, counts = _counted(train, self.column.name)
        rare = counts < RARE * train.n_rows
        return dict(zip(labels[rare].tolist(), counts[rare].tolist(), strict=True))


def _counted(train: Table, name: str) -> tuple[npt.NDArray[np.str_], Counts]:
    """Labels of train, ascending, and how many rows hold each, shape (k,) each."""
    known = label_forms(train, name)[~train.missing(name)].astype(str)
    return np.unique(known, return_counts=True)
