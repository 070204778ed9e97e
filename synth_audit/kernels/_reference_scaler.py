"""Coded rows in the units of an attacker's reference rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from synth_audit.core.arrays import Bools, Floats, Integers

MOST_LABELS = 64
"""Labels with a frequency of their own: the most frequent of the reference; the others share one."""

_FAR = 1e6
"""Standard deviations beyond which a number is as good as infinitely far, so that no square overflows."""


@dataclass(frozen=True, eq=False)
class ReferenceScaler:
    """The attacker's units, read off the reference rows, which hold no target.

    Attributes:
        centre, scale: mean and standard deviation of each numeric column; 0 and 1 for labels. A numeric
            column without spread has its size as unit.
        numeric: which columns are numbers; graded: which of them vary in the reference, shape (C,) each.
            Numbers that do not are compared as labels are, for a distance in them has no unit.
        low, high: least and largest value of each numeric column in those units.
        ranked: for each column of labels the bin of each code, the last bin shared by rare ones.
    """

    centre: Floats
    scale: Floats
    numeric: Bools
    graded: Bools
    low: Floats
    high: Floats
    ranked: Mapping[int, Integers]

    @classmethod
    def of(cls, reference: Floats, n_labels: Sequence[int | None]) -> ReferenceScaler:
        """Read it off coded reference rows.

        Args:
            reference: shape (n, C). n_labels: how many labels each column has; None for numbers.
        """
        numeric = np.array([n is None for n in n_labels], dtype=bool)
        moments = [
            _moments(reference[:, j]) if n is None else (0.0, 1.0, True) for j, n in enumerate(n_labels)
        ]
        centre, scale, varies = (np.array(part) for part in zip(*moments, strict=True))
        inside = _scaled(reference, centre, scale)
        known = ~np.isnan(inside)
        ranked = {j: _bins_of_labels(reference[:, j], n) for j, n in enumerate(n_labels) if n is not None}
        return cls(
            centre=centre,
            scale=scale,
            numeric=numeric,
            graded=numeric & varies.astype(bool),
            low=np.min(inside, axis=0, where=known, initial=np.inf),
            high=np.max(inside, axis=0, where=known, initial=-np.inf),
            ranked=ranked,
        )

    def measured(self, rows: Floats) -> Floats:
        """Coded rows in the attacker's units, shape (…, C); codes stay as they are."""
        return _scaled(rows, self.centre, self.scale)


def _moments(values: Floats) -> tuple[float, float, bool]:
    """Mean, standard deviation and whether there is any, in units of the largest, so that none overflows."""
    known = values[~np.isnan(values)]
    if not len(known):
        return 0.0, 1.0, False
    unit = float(np.abs(known).max()) or 1.0
    if known.min() == known.max():
        return float(known[0]), unit, False
    return unit * float((known / unit).mean()), unit * float((known / unit).std()), True


def _scaled(rows: Floats, centre: Floats, scale: Floats) -> Floats:
    with np.errstate(over="ignore"):
        scaled: Floats = np.clip((rows - centre) / scale, -_FAR, _FAR)
    return scaled


def _bins_of_labels(codes: Floats, n_labels: int) -> Integers:
    """Bin of each code 0 … n_labels, the most frequent first, ties by code; the rare ones share the last."""
    counts = np.bincount(codes[~np.isnan(codes)].astype(np.int64), minlength=n_labels + 1)
    bins = np.empty(len(counts), dtype=np.int64)
    bins[np.argsort(-counts, kind="stable")] = np.arange(len(counts))
    return np.minimum(bins, MOST_LABELS - 1)
