"""Stand-ins for missing values that keep linear relations between normal scores."""

from __future__ import annotations

import numpy as np

from synth_audit.core.arrays import Floats

MIN_PAIRS = 10
"""Columns that are present together in fewer rows count as unrelated."""


def fill_scores(scores: Floats, rng: np.random.Generator) -> Floats:
    """Draw missing entries from a Gaussian given the entries that are present in the row.

    z_m | z_o ~ N(R_mo R_oo⁻¹ z_o, R_mm − R_mo R_oo⁻¹ R_om), with R from :func:`pairwise_correlation`.

    Args:
        scores: normal scores, shape (n, d), NaN where missing; not changed.
    """
    known = ~np.isnan(scores)
    if known.all():
        return scores
    correlation = pairwise_correlation(scores)
    noise = rng.normal(size=scores.shape)
    filled = scores.copy()
    patterns, which = np.unique(known, axis=0, return_inverse=True)
    for i, present in enumerate(patterns):
        if present.all():
            continue
        rows, there, gone = np.flatnonzero(which == i), np.flatnonzero(present), np.flatnonzero(~present)
        weights = np.linalg.solve(correlation[np.ix_(there, there)], correlation[np.ix_(there, gone)])
        spread = correlation[np.ix_(gone, gone)] - correlation[np.ix_(gone, there)] @ weights
        root = np.linalg.cholesky(spread + 1e-9 * np.eye(len(gone)))
        filled[np.ix_(rows, gone)] = (
            scores[np.ix_(rows, there)] @ weights + noise[np.ix_(rows, gone)] @ root.T
        )
    return filled


def pairwise_correlation(scores: Floats) -> Floats:
    """Pearson correlations over the rows with both values, made positive definite, shape (d, d).

    Args:
        scores: shape (n, d), NaN where missing.
    """
    known = (~np.isnan(scores)).astype(np.float64)
    values = np.nan_to_num(scores)
    pairs = known.T @ known
    counts = np.maximum(pairs, 1.0)
    means = values.T @ known / counts  # of column i over the rows where j is present too
    variances = (values**2).T @ known / counts - means**2
    covariance = values.T @ values / counts - means * means.T
    scale = np.sqrt(np.maximum(variances, 0) * np.maximum(variances.T, 0))
    usable = (scale > 1e-6) & (pairs >= MIN_PAIRS)
    correlation = np.where(usable, covariance / np.where(usable, scale, 1.0), 0.0)
    np.fill_diagonal(correlation, 1.0)
    sizes, axes = np.linalg.eigh(correlation)
    correlation = (axes * np.maximum(sizes, 1e-3)) @ axes.T
    length = np.sqrt(np.diag(correlation))
    return np.asarray(correlation / np.outer(length, length))
