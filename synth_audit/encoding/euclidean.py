"""Coordinates of mixed records for the Euclidean distance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from synth_audit.core.arrays import Codes, Floats
from synth_audit.core.parts import NumberPart
from synth_audit.core.schema import Column
from synth_audit.core.table import Table
from synth_audit.encoding.anchored_parts import (
    AnchoredPart,
    ScaledNumbers,
    SharedLabels,
    Vectors,
    anchored_parts,
    varies,
)
from synth_audit.encoding.codes import codes, split_rows
from synth_audit.kernels.coordinates import Coordinates, drawn_in

_FARTHEST = 1e100
"""Standard deviations from train's mean beyond which no number counts: every distance is then finite."""


@dataclass(frozen=True)
class EuclideanEncoder:
    """Coordinates in which the Euclidean distance is that of mixed records.

    Numeric columns are standardised on train (mean 0, standard deviation 1) with missing read as
    the mean; discrete columns are as one-hot. Every column has one more coordinate that is 1 where the
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
            part = column.kind.part
            if isinstance(part, NumberPart):
                known = part.read(train.column(column.name))
                centre[column.name], scale[column.name] = _centre_and_scale(known)
        constant = {c.name for c in columns if np.ptp(codes([train], c)[0]) == 0}
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
            part = column.kind.part
            if isinstance(part, NumberPart):
                values = np.concatenate([part.read(t.column(column.name)) for t in tables])
                dense.append(self._numeric(values, column.name))
                continue
            labels.append(np.concatenate(codes(tables, column))[:, None])
        parts = zip(split_rows(np.hstack(dense), tables), split_rows(np.hstack(labels), tables), strict=True)
        return [Coordinates.of(d, c) for d, c in parts]

    def _numeric(self, values: Floats, name: str) -> Floats:
        missing, scale = np.isnan(values), self.scale[name]
        scaled = np.zeros(len(values))
        if np.isfinite(scale):  # by infinity even an infinite difference is divided to 0
            with np.errstate(over="ignore"):
                scaled[~missing] = np.clip(
                    (values[~missing] - self.centre[name]) / scale, -_FARTHEST, _FARTHEST
                )
        return np.column_stack([scaled, missing] if missing.any() else [scaled]).astype(np.float64)


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


@dataclass(frozen=True)
class RobustEuclideanEncoder:
    """Coordinates on the robust scale, by all parts of each column.

    Every part adds ``w d²`` to the squared distance, w its weight. Numbers differ in units of the robust
    standard deviation (beyond ten of them only the logarithm grows, so that no absurd value drowns the other
    columns), and by 1 more where one is missing or one of the values that are labels. Labels that differ are
    as far apart as two one-hot rows, d² = 2, and so are vectors that have nothing in common. A column that
    is constant in train is left out, as in :class:`EuclideanEncoder`.
    """

    parts: tuple[AnchoredPart, ...]

    @classmethod
    def anchored_on(
        cls, train: Table, columns: Sequence[Column], *, beside: Sequence[Table] = ()
    ) -> RobustEuclideanEncoder:
        """Read the scale off train and the further real tables ``beside`` it."""
        kept = [c for c in columns if varies(train, c)]
        return cls(tuple(anchored_parts([train, *beside], kept)))

    def encode(self, tables: Sequence[Table]) -> list[Coordinates]:
        """Coordinates of several tables in one common space."""
        shared = [p for p in self.parts if isinstance(p, SharedLabels)]
        joint = [p.read(tables) for p in shared]
        numbers = [p for p in self.parts if isinstance(p, ScaledNumbers)]
        vectors = [p for p in self.parts if isinstance(p, Vectors)]
        unlike = [2 * p.part.weight for p in shared] + [p.part.weight for p in numbers]
        placed = []
        for i, table in enumerate(tables):
            dense, labels = [np.empty((table.n_rows, 0))], [part[i] for part in joint]
            for part in numbers:
                scaled, what = part.read(table)
                root = np.sqrt(part.part.weight)
                dense.append(root * drawn_in(scaled * part.scale.deviations_in_range)[:, None])
                labels.append(what)
            for vector in vectors:
                dense.append(np.sqrt(vector.part.weight) * np.nan_to_num(vector.read(table)))
            stacked = np.array(labels, dtype=np.int64).reshape(-1, table.n_rows).T
            placed.append(Coordinates.of(np.hstack(dense), stacked, np.array(unlike)))
        return placed
