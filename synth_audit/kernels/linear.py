"""Least squares on standardised columns from their correlations, defined for singular designs too."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Positions = npt.NDArray[np.intp]

SMALLEST = 1e-8
"""Directions in which standardised columns vary less than this part of the widest one count as collinear.

Far above rounding (1e-14) and far below the sampling noise of any table that fits a machine.
"""


@dataclass(frozen=True)
class Scaling:
    """Mean and standard deviation (n − 1) of columns, shape (p,) each; infinite scale where all are equal."""

    centre: Floats
    scale: Floats

    @classmethod
    def of(cls, values: Floats) -> Scaling:
        """Read off ``values``, shape (n, p), NaN where missing: missing is read as the mean of its column.

        Equality is asked of the values themselves and the moments are taken from the smallest value on, since
        rounding gives equal large values a tiny deviation.
        """
        known = ~np.isnan(values)
        counts = known.sum(axis=0)
        low = np.min(values, axis=0, initial=np.inf, where=known)
        low = np.where(counts > 0, low, 0.0)
        above = np.where(known, values - low, 0.0)
        unit = above.max(axis=0, initial=0.0)
        unit = np.where(unit > 0, unit, 1.0)
        mean = (above / unit).sum(axis=0) / np.maximum(counts, 1)
        around = np.where(known, above / unit - mean, 0.0)
        deviation = np.sqrt((around**2).sum(axis=0) / max(len(values) - 1, 1))
        scale = np.where(above.max(axis=0, initial=0.0) > 0, unit * deviation, np.inf)
        return cls(low + unit * mean, scale)

    def apply(self, values: Floats) -> Floats:
        """``(x − centre) / scale``, shape (n, p); 0 where missing, and throughout a column without spread."""
        return np.nan_to_num((values - self.centre) / self.scale, nan=0.0)


def correlation(standardised: Floats) -> Floats:
    """``R = Zᵀ Z / (n − 1)``, shape (p, p); a constant column correlates with nothing, itself included."""
    return np.asarray(standardised.T @ standardised / max(len(standardised) - 1, 1))


def signed_r_squared(guesses: Floats, truths: Floats, counts: Floats | None = None) -> Floats:
    """``sign(c) · c²`` of the correlation c of each column of guesses with its truth, shape (c,).

    In [−1, 1]; 0 where guesses or truths are all equal. Free of units, so that a guess that is too bold or in
    other units counts as much as one that is not.

    Args:
        guesses, truths: shape (n, c) each.
        counts: how often each row counts, shape (n,); once if left out.
    """
    if not len(guesses):
        return np.zeros(truths.shape[1])
    share = np.ones(len(guesses)) if counts is None else counts
    share = (share / share.sum())[:, None]
    g, t = guesses - (share * guesses).sum(axis=0), truths - (share * truths).sum(axis=0)
    both = (share * g * t).sum(axis=0)
    variances = (share * g * g).sum(axis=0) * (share * t * t).sum(axis=0)
    flat = (np.ptp(guesses, axis=0) <= SMALLEST**2) | (np.ptp(truths, axis=0) == 0) | (variances <= 0)
    return np.where(flat, 0.0, both * np.abs(both) / np.where(flat, 1.0, variances))


@dataclass(frozen=True)
class Regression:
    """Ordinary least squares of standardised responses on standardised predictors, no intercept needed.

    ``β = R_xx⁺ r_xy`` with the pseudo-inverse, which gives the coefficients of smallest norm where predictors
    are collinear or constant.

    Attributes:
        inverse: R_xx⁺, shape (q, q). rank: of R_xx. n: rows.
        within: R_xx with 0 between predictors of different groups.
        members: 1 where a predictor belongs to a group, shape (g, q).
    """

    inverse: Floats
    rank: int
    n: int
    within: Floats
    members: Floats

    @classmethod
    def on(cls, predictors: Floats, groups: Positions, n: int) -> Regression:
        """Prepare for any number of responses.

        Args:
            predictors: correlation matrix of the predictors, shape (q, q).
            groups: the group 0 … g−1 of each predictor, shape (q,); each group has a member.
            n: rows that the correlations come from.
        """
        sizes, axes = np.linalg.eigh(predictors)
        kept = sizes > SMALLEST * max(float(sizes[-1]), 1.0)
        used = axes[:, kept]
        inverse = (used / sizes[kept]) @ used.T
        within = predictors * (groups[:, None] == groups[None, :])
        members = (np.arange(int(groups.max()) + 1)[:, None] == groups[None, :]).astype(np.float64)
        return cls(inverse, int(kept.sum()), n, within, members)

    @property
    def singular(self) -> bool:
        """True when predictors are collinear or constant."""
        return self.rank < len(self.inverse)

    def coefficients(self, correlations: Floats) -> Floats:
        """β of each response, shape (q, c), from its correlations with the predictors, shape (q, c)."""
        return np.asarray(self.inverse @ correlations)

    def effects(self, coefficients: Floats) -> Floats:
        """Size of the effect of each group of predictors, shape (g, c): ``sqrt(β_gᵀ R_gg β_g)``.

        The standard deviation of what the group adds to the prediction. For a group of one column that is
        |β|; for the indicators of a label it depends neither on the coding nor on the category that is the
        base.
        """
        squares = self.members @ (coefficients * (self.within @ coefficients))
        return np.sqrt(np.maximum(squares, 0.0))

    def adjusted_r_squared(self, coefficients: Floats, correlations: Floats) -> Floats:
        """``1 − (1 − R²)(n − 1)/(n − rank − 1)`` with ``R² = r_xyᵀ β``, shape (c,).

        Returns:
            At most 1, about 0 without association; NaN where there are no more rows than predictors.
        """
        free = self.n - self.rank - 1
        if free < 1:
            return np.full(coefficients.shape[1], math.nan)
        explained = np.minimum((coefficients * correlations).sum(axis=0), 1.0)
        return np.asarray(1 - (1 - explained) * (self.n - 1) / free)
