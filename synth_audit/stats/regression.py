"""Least squares on standardised columns, and means of groups."""

import math
from dataclasses import dataclass

import numpy as np

from synth_audit.arrays import Codes, Floats, Positions

SMALLEST = 1e-8
"""Directions in which standardised columns vary less than this part of the widest one count as collinear.

Far above rounding (1e-14) and far below the sampling noise of any table that fits a machine.
"""

_FARTHEST = float(np.finfo(np.float64).max) / 2
"""Numbers further out count as here: the difference of any two is then finite."""

BELIEVED = 5
"""The mean of a group of so many rows is drawn half way to 0: means of few rows are mostly noise."""


@dataclass(frozen=True)
class Scaling:
    """Mean and standard deviation (n − 1) of columns, shape (p,) each; infinite scale where all are equal."""

    centre: Floats
    scale: Floats

    @classmethod
    def of(cls, values: Floats) -> "Scaling":
        """Read off ``values``, shape (n, p), NaN where missing: missing is read as the mean of its column.

        Equality is asked of the values themselves and the moments are taken from the smallest value on, since
        rounding gives equal large values a tiny deviation.
        """
        known = ~np.isnan(values)
        values = np.clip(values, -_FARTHEST, _FARTHEST)
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
        within = np.clip(values, -_FARTHEST, _FARTHEST)
        return np.nan_to_num((within - self.centre) / self.scale, nan=0.0)


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
    def on(cls, predictors: Floats, groups: Positions, n: int) -> "Regression":
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


@dataclass(frozen=True)
class GroupMeans:
    """Means of responses in the groups of one grouping, drawn towards 0: ``S_g / (n_g + m)``.

    Attributes:
        sums: S_g, shape (G, c). counts: n_g, shape (G, 1).
    """

    sums: Floats
    counts: Floats

    @classmethod
    def of(cls, groups: Codes, responses: Floats, size: int) -> "GroupMeans":
        """Read off rows, shapes (n,) and (n, c), whose groups are numbers 0 … size − 1."""
        sums = [np.bincount(groups, weights=column, minlength=size) for column in responses.T]
        counts = np.bincount(groups, minlength=size).astype(np.float64)
        return cls(np.column_stack([np.empty((size, 0)), *sums]), counts[:, None])

    def at(self, groups: Codes) -> Floats:
        """The mean of each row's group, shape (n, c); 0 where nobody was in it."""
        means: Floats = (self.sums / (self.counts + BELIEVED))[groups]
        return means

    def of_others(self, groups: Codes, responses: Floats) -> Floats:
        """The mean of the others in each row's group, shape (n, c), for rows that the means were read off.

        ``(S_g − y) / (n_g − 1 + m)``: a row must not help to predict itself, or groups of one would be
        taken to tell all.
        """
        others: Floats = (self.sums[groups] - responses) / (self.counts[groups] - 1 + BELIEVED)
        return others

    def chance(self, responses: Floats, weights: Floats) -> float:
        """p-value of the F test that the groups' means of the responses, shape (n, c), differ by chance.

        The share of variance between groups is weighted over the responses: a mean of several such shares
        varies no more than one, so that the test holds for them too. 1 where it cannot be asked.
        """
        held = self.counts[:, 0] > 0
        total = float(((responses - responses.mean(axis=0)) ** 2).sum(axis=0) @ weights)
        apart = self.sums[held] / self.counts[held] - self.sums[held].sum(axis=0) / len(responses)
        between = float((apart**2 * self.counts[held]).sum(axis=0) @ weights)
        return chance_of_share(between / total if total > 0 else 0.0, self.spent, len(responses) - 1)

    @property
    def spent(self) -> int:
        """Degrees of freedom: groups that somebody is in, less one."""
        return int((self.counts > 0).sum()) - 1


def chance_of_share(explained: float, used: int, free: int) -> float:
    """p-value of the F test of a share of variance that ``used`` of ``free`` degrees of freedom explain.

    ``F = (R² / used) / ((1 − R²) / (free − used))``; 1 where none are used or left over.
    """
    from scipy.special import fdtrc  # here, since a code location must not load it

    if used < 1 or free - used < 1:
        return 1.0
    left = max(1 - explained, 1e-12)
    return float(fdtrc(used, free - used, explained / used / (left / (free - used))))


def share_overlooked(used: int, free: int, chance: float, level: float) -> float:
    """The largest share of variance that the F test may overlook, at this level.

    The share R² at which the test at ``chance`` finds it with probability ``(1 + level) / 2``, from the
    non-central F distribution with ``λ = n R² / (1 − R²)``; 1 where there is no test.
    """
    from scipy.special import fdtri, ncfdtrinc  # here, since a code location must not load it

    if used < 1 or free - used < 1:
        return 1.0
    edge = float(fdtri(used, free - used, 1 - chance))
    apart = float(ncfdtrinc(used, free - used, 0.5 - level / 2, edge))
    return apart / (apart + free + 1) if math.isfinite(apart) and apart > 0 else 1.0
