"""One column as numbers whose ranks carry its dependence on others, for rank correlations and copulas."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synth_audit.core.arrays import Codes, Floats, Labels
from synth_audit.core.table import Table
from synth_audit.kernels.ordering import scale_by_frequency, scale_by_response


@dataclass(frozen=True, eq=False)
class NumberScale:
    """Numbers as they are."""

    name: str
    labels: Labels | None = None

    def of(self, table: Table) -> Floats:
        """The numbers, shape (n,), NaN where missing."""
        return table.numbers(self.name)


@dataclass(frozen=True, eq=False)
class LabelScale:
    """Labels as their position in an order that train fixes.

    Attributes:
        labels: of train, in that order, shape (k,).
    """

    name: str
    labels: Labels

    @classmethod
    def sorted_by(cls, train: Table, name: str, response: Floats | None) -> LabelScale:
        """By the mean rank of a response, shape (n,), in each label; without one by falling frequency."""
        alphabet = cls.alphabetic(train, name)
        places, n = alphabet._places(train), len(alphabet.labels)
        scale = scale_by_frequency(places, n) if response is None else scale_by_response(places, n, response)
        return cls(name, alphabet.labels[np.argsort(scale)])

    @classmethod
    def alphabetic(cls, train: Table, name: str) -> LabelScale:
        """By their texts."""
        known = sorted({x for x in train.labels(name) if x is not None})
        labels = np.empty(len(known), dtype=object)
        labels[:] = known
        return cls(name, labels)

    def of(self, table: Table) -> Floats:
        """Positions, shape (n,), NaN where missing or a label that train lacks."""
        places = self._places(table)
        return np.where(places < 0, np.nan, places.astype(np.float64))

    def _places(self, table: Table) -> Codes:
        place = {label: i for i, label in enumerate(self.labels)}
        texts = table.labels(self.name)
        return np.fromiter((place.get(x, -1) for x in texts), dtype=np.intp, count=len(texts))
