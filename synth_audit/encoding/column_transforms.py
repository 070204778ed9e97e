"""One column as coordinates of a row vector, and back: labels, ranges, and ranges with modes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from synth_audit.core.arrays import Floats, Floats32, Labels
from synth_audit.core.kind import Bounds
from synth_audit.core.table import Table
from synth_audit.encoding.quantile_transform import QuantileTransform
from synth_audit.encoding.rank_transform import RankTransform
from synth_audit.kernels.calibration import label_offsets
from synth_audit.kernels.modes import Modes
from synth_audit.kernels.row_layout import one_hot

_SPREAD = 4.0
"""Standard deviations of a mode that reach from −1 to 0 and from 0 to 1."""


class ColumnTransform(Protocol):
    """One column as coordinates."""

    @property
    def name(self) -> str:
        """Of the column."""

    @property
    def numbers(self) -> int:
        """Leading coordinates that are numbers."""

    @property
    def slices(self) -> tuple[int, ...]:
        """Widths of the one-hot slices that follow."""

    @property
    def choice(self) -> bool:
        """True where the slice is a column of labels; modes and gaps are none."""

    def encode(self, table: Table, rng: np.random.Generator) -> Floats32:
        """Shape (n, width); the draws choose among modes."""

    def decode(self, vectors: Floats32) -> Floats | Labels:
        """Plain values, shape (n,)."""

    @property
    def known(self) -> bool:
        """Whether the margin is known."""

    def calibrated(self, vectors: Floats32) -> ColumnTransform:
        """Such that vectors like these, which a network drew, decode to what is known of the margin."""

    def plain(self) -> dict[str, Any]:
        """As JSON values; :func:`transform_from_plain` reads them."""


@dataclass(frozen=True)
class LabelTransform:
    """Labels, one coordinate each. A column of one value has none.

    Attributes:
        labels: all that may be drawn; a label of a row that is not among them counts as missing, or where
            nothing may be missing as the first.
        gap: values may be missing.
        shares: of labels and gap as far as they are known. offsets: added to what a network draws.
    """

    name: str
    labels: tuple[str, ...]
    gap: bool
    shares: tuple[float, ...] = ()
    offsets: tuple[float, ...] = ()

    numbers = 0
    choice = True

    @property
    def slices(self) -> tuple[int, ...]:
        """One slice, if there is something to choose."""
        width = len(self.labels) + self.gap
        return (width,) if width > 1 else ()

    def encode(self, table: Table, rng: np.random.Generator) -> Floats32:
        """One-hot."""
        from pandas import Index  # here, so that looking around stays light

        if not self.slices:
            return np.zeros((table.n_rows, 0), dtype=np.float32)
        codes = Index(np.array(self.labels, dtype=object)).get_indexer(Index(table.labels(self.name)))
        return one_hot(np.where(codes < 0, len(self.labels) if self.gap else 0, codes), self.slices[0])

    def decode(self, vectors: Floats32) -> Labels:
        """The label of the largest coordinate."""
        values = np.array([*self.labels, None], dtype=object)
        if not self.slices:
            return np.full(len(vectors), values[0], dtype=object)
        drawn: Labels = values[(vectors + np.array(self.offsets or [0.0])).argmax(axis=1)]
        return drawn

    @property
    def known(self) -> bool:
        """Where shares are."""
        return bool(self.shares)

    def calibrated(self, vectors: Floats32) -> LabelTransform:
        """With offsets by which each label is drawn as often as its share."""
        if not self.shares:
            return self
        return replace(self, offsets=tuple(label_offsets(vectors, np.array(self.shares)).tolist()))

    def plain(self) -> dict[str, Any]:
        """The fields."""
        known = {"shares": list(self.shares), "offsets": list(self.offsets)}
        return {"name": self.name, "labels": list(self.labels), "gap": self.gap, **known}


@dataclass(frozen=True)
class RangeTransform:
    """A number between two bounds, ``2 (x − low) / (high − low) − 1``; what lies outside is clipped.

    Attributes:
        bounds: lowest and highest; None where no value is known.
        gap: values may be missing.
    """

    name: str
    bounds: Bounds | None
    gap: bool

    choice = False
    known = False

    @property
    def numbers(self) -> int:
        """One, if it can differ."""
        return int(self.bounds is not None and self.bounds[0] < self.bounds[1])

    @property
    def slices(self) -> tuple[int, ...]:
        """*Present* and *missing*."""
        return (2,) if self.gap and self.bounds is not None else ()

    def encode(self, table: Table, rng: np.random.Generator) -> Floats32:
        """The number, 0 where missing, and whether it is."""
        values = table.numbers(self.name)
        missing = np.isnan(values)
        parts = [np.zeros((len(values), 0), dtype=np.float32)]
        if self.numbers:
            assert self.bounds is not None
            low, high = self.bounds
            scaled = 2 * ((values - low) / (high - low)) - 1
            parts.append(np.clip(np.nan_to_num(scaled), -1, 1).astype(np.float32)[:, None])
        if self.slices:
            parts.append(one_hot(missing.astype(np.intp), 2))
        return np.hstack(parts)

    def decode(self, vectors: Floats32) -> Floats:
        """Within the bounds."""
        if self.bounds is None:
            return np.full(len(vectors), np.nan)
        low, high = self.bounds
        values = np.full(len(vectors), low)
        if self.numbers:
            unit = (np.clip(vectors[:, 0].astype(np.float64), -1, 1) + 1) / 2
            values = np.clip(low + unit * (high - low), low, high)
        if self.slices:
            values[vectors[:, -1] > vectors[:, -2]] = np.nan
        return values

    def calibrated(self, vectors: Floats32) -> RangeTransform:
        """As it is."""
        return self

    def plain(self) -> dict[str, Any]:
        """The fields."""
        return {"name": self.name, "bounds": self.bounds, "gap": self.gap}


@dataclass(frozen=True)
class ModeTransform:
    """A number as its mode k, one-hot, and its place ``(x − μ_k) / 4 σ_k`` within, clipped to [−1, 1].

    Attributes:
        means, deviations, weights: of the modes.
        bounds: of what is drawn. gap: values may be missing, which is a mode too, the last.

    Source: Xu et al. 2019, section 4.2; that missing is a mode is ours.
    """

    name: str
    means: tuple[float, ...]
    deviations: tuple[float, ...]
    weights: tuple[float, ...]
    bounds: Bounds
    gap: bool

    numbers = 1
    choice = False
    known = False

    @property
    def slices(self) -> tuple[int, ...]:
        """The modes."""
        return (len(self.means) + self.gap,)

    @classmethod
    def of(cls, name: str, values: Floats, bounds: Bounds, rng: np.random.Generator) -> ModeTransform:
        """Modes of the values that are present."""
        missing = np.isnan(values)
        modes = Modes.of(values[~missing], rng)
        parts = (modes.means, modes.deviations, modes.weights)
        means, deviations, weights = (tuple(map(float, part)) for part in parts)
        return cls(name, means, deviations, weights, bounds, bool(missing.any()))

    def encode(self, table: Table, rng: np.random.Generator) -> Floats32:
        """The place within the mode, 0 where missing; and the mode, drawn by its share of the density."""
        values = table.numbers(self.name)
        missing = np.isnan(values)
        means, deviations, weights = (np.array(x) for x in (self.means, self.deviations, self.weights))
        known = np.where(missing, means[0], values)
        mode = Modes(means, deviations, weights).drawn(known, rng)
        place = np.clip((known - means[mode]) / (_SPREAD * deviations[mode]), -1, 1)
        chosen = one_hot(np.where(missing, len(means), mode), self.slices[0])
        return np.column_stack([np.where(missing, 0, place).astype(np.float32), chosen])

    def decode(self, vectors: Floats32) -> Floats:
        """From the mode of the largest coordinate, within the bounds."""
        mode = vectors[:, 1:].argmax(axis=1)
        missing = mode == len(self.means)
        mode = np.where(missing, 0, mode)
        place = np.clip(vectors[:, 0].astype(np.float64), -1, 1)
        values = place * _SPREAD * np.array(self.deviations)[mode] + np.array(self.means)[mode]
        return np.where(missing, np.nan, np.clip(values, *self.bounds))

    def calibrated(self, vectors: Floats32) -> ModeTransform:
        """As it is."""
        return self

    def plain(self) -> dict[str, Any]:
        """The fields."""
        return {
            "name": self.name,
            "means": self.means,
            "deviations": self.deviations,
            "weights": self.weights,
            "bounds": self.bounds,
            "gap": self.gap,
        }


def transform_from_plain(plain: Mapping[str, Any]) -> ColumnTransform:
    """The transform that wrote these JSON values."""
    if "labels" in plain:
        known = (tuple(plain[name]) for name in ("shares", "offsets"))
        return LabelTransform(plain["name"], tuple(plain["labels"]), plain["gap"], *known)
    if "edges" in plain:
        return RankTransform.from_plain(plain)
    if "quantiles" in plain:
        return QuantileTransform.from_plain(plain)
    bounds = plain["bounds"]
    ends = None if bounds is None else (float(bounds[0]), float(bounds[1]))
    if "means" not in plain:
        return RangeTransform(plain["name"], ends, plain["gap"])
    assert ends is not None
    means, deviations, weights = (tuple(plain[name]) for name in ("means", "deviations", "weights"))
    return ModeTransform(plain["name"], means, deviations, weights, ends, plain["gap"])
