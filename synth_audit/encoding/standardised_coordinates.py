"""Mixed rows as coordinates to which every column adds the same variance, for linear methods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from synth_audit.core.arrays import Floats, Positions
from synth_audit.core.schema import Column
from synth_audit.core.table import Table
from synth_audit.encoding.codes import anchored_codes, codes
from synth_audit.encoding.euclidean import EuclideanEncoder
from synth_audit.kernels.coordinates import MISSING, NOWHERE, CoordinateRows, labels_that_fit

_FAR = 1e6
"""Standard deviations of train beyond which nothing counts as farther away, so that no square overflows."""

_FLAT = 1e-12
"""Less variance than this is rounding."""


@dataclass(frozen=True, eq=False)
class _ColumnPart:
    """One column.

    Attributes:
        number: place of the coordinate of its numbers. centre, scale: of that coordinate.
        labels: places of the codes that train has. others: of other labels. missing: of no value.
    """

    column: Column
    number: int = NOWHERE
    centre: float = 0.0
    scale: float = 1.0
    labels: Positions | None = None
    others: int = NOWHERE
    missing: int = NOWHERE


@dataclass(frozen=True, eq=False)
class StandardisedCoordinates:
    """Coordinates in which every column that varies in train has total variance 1 there.

    A numeric column is centred and scaled by train, missing read as the mean, with a further coordinate that
    is 1 where it is missing. A discrete column has one for each label that is frequent in train, one for all
    other labels, unseen ones included, and one for missing. The coordinates of a column are divided by the
    root of their total variance in train. Source: the scaling of factor analysis of mixed data, Pagès 2004,
    with columns instead of labels weighing the same.

    Attributes:
        weights: value of each indicator, 0 for numbers, and 0 for the place of nothing at the end.
        owners: name of the column of each coordinate.
        n_numeric: how many of the first coordinates are those of numbers.
    """

    train: Table
    parts: tuple[_ColumnPart, ...]
    weights: Floats
    owners: tuple[str, ...]
    n_numeric: int

    @classmethod
    def of(cls, tables: Sequence[Table], columns: Sequence[Column], most: int) -> StandardisedCoordinates:
        """Anchored on the first of the tables; the others only say which coordinates are needed.

        Args:
            most: coordinates to keep to where possible, by counting rarer labels among the others.
        """
        scales = EuclideanEncoder.anchored_on(tables[0], columns)
        varying = [c for c in columns if c.name not in scales.constant]
        numeric = [c for c in varying if c.name in scales.scale]
        numeric.sort(key=lambda c: not np.isfinite(scales.scale[c.name]))
        places = _Allocation([], [])
        n_numeric = sum(bool(np.isfinite(scales.scale[c.name])) for c in numeric)
        places.numbers([c.name for c in numeric[:n_numeric]])
        parts = [_numeric_part(tables, c, i, n_numeric, scales, places) for i, c in enumerate(numeric)]
        discrete = [c for c in varying if c.name not in scales.scale]
        sizes = [len(_counts(tables[0], c)) for c in discrete]
        kept = labels_that_fit(sizes, most - len(places.weights), max(sizes, default=1))
        parts += [p for c in discrete if (p := _discrete_part(tables, c, kept, places)) is not None]
        return cls(tables[0], tuple(parts), np.array([*places.weights, 0.0]), tuple(places.owners), n_numeric)

    @property
    def width(self) -> int:
        """Number of coordinates."""
        return len(self.owners)

    def read(self, table: Table) -> CoordinateRows:
        """A table in these coordinates."""
        numbers = np.zeros((table.n_rows, self.n_numeric))
        places = np.full((table.n_rows, len(self.parts)), NOWHERE, dtype=np.int32)
        for j, part in enumerate(self.parts):
            if part.labels is not None:
                places[:, j] = self._label_places(part, part.labels, table)
                continue
            values = table.numbers(part.column.name)
            missing = np.isnan(values)
            places[missing, j] = part.missing
            if part.number != NOWHERE:
                with np.errstate(over="ignore"):  # infinitely far is far
                    scaled = np.clip((values - part.centre) / part.scale, -_FAR, _FAR)
                numbers[:, part.number] = np.where(missing, 0.0, scaled)
        return CoordinateRows(numbers, places, self.weights)

    def _label_places(self, part: _ColumnPart, labels: Positions, table: Table) -> Positions:
        found = anchored_codes([self.train, table], part.column)[1]
        of_train = labels[np.minimum(found, len(labels) - 1)]
        return np.where(found == MISSING, part.missing, np.where(found < len(labels), of_train, part.others))


@dataclass(frozen=True, eq=False)
class _Allocation:
    """Coordinates as they are given out."""

    weights: list[float]
    owners: list[str]

    def numbers(self, names: Sequence[str]) -> None:
        """One coordinate for the numbers of each column."""
        self.weights.extend(0.0 for _ in names)
        self.owners.extend(names)

    def indicator(self, name: str, weight: float) -> int:
        """One more coordinate that is ``weight`` or 0; returns its place."""
        self.weights.append(weight)
        self.owners.append(name)
        return len(self.weights) - 1


def _numeric_part(
    tables: Sequence[Table], column: Column, i: int, n: int, scales: EuclideanEncoder, places: _Allocation
) -> _ColumnPart:
    """With a share m of missing values: the numbers have variance 1 − m, the indicator m (1 − m)."""
    absent = float(tables[0].missing(column.name).mean())
    root = float(np.sqrt((1 - absent) * ((i < n) + absent)))
    gaps = any(t.missing(column.name).any() for t in tables)
    return _ColumnPart(
        column,
        number=i if i < n else NOWHERE,
        centre=scales.centre[column.name],
        scale=scales.scale[column.name] * root,
        missing=places.indicator(column.name, 1 / root) if gaps else NOWHERE,
    )


def _discrete_part(
    tables: Sequence[Table], column: Column, kept: int, places: _Allocation
) -> _ColumnPart | None:
    """None where nothing but labels too rare to tell apart remains. Equally frequent labels are kept all or
    none, since nothing but their order could choose among them."""
    joint = anchored_codes(tables, column)
    counts = _counts(tables[0], column)
    frequent = counts > (np.sort(counts)[-kept - 1] if len(counts) > kept else 0)
    merged = not frequent.all() or any((c >= len(counts)).any() for c in joint)
    gaps = any((c == MISSING).any() for c in joint)
    n = tables[0].n_rows
    shares = np.array([*counts[frequent], counts[~frequent].sum(), n - counts.sum()]) / n
    total = 1 - float(shares @ shares)
    if total < _FLAT:
        return None
    weight = 1 / float(np.sqrt(total))
    labels = np.full(len(counts), NOWHERE, dtype=np.intp)
    labels[frequent] = [places.indicator(column.name, weight) for _ in range(int(frequent.sum()))]
    others = places.indicator(column.name, weight) if merged else NOWHERE
    labels[~frequent] = others
    missing = places.indicator(column.name, weight) if gaps else NOWHERE
    return _ColumnPart(column, labels=labels, others=others, missing=missing)


def _counts(train: Table, column: Column) -> Positions:
    """How many rows of train have each code."""
    found = codes([train], column)[0]
    return np.bincount(found[found != MISSING])
