"""α-precision, β-recall and the propensity ratio as TableDiffusion's thesis computes them."""

from __future__ import annotations

import numpy as np

from synth_audit.core.arrays import Bools, Floats
from synth_audit.kernels.parallel import single_threaded

STEPS = 30
"""Levels of α and β, 0 and 1 among them."""


def precision_curve(real: Floats, made: Floats) -> Floats:
    """Share of made rows within the α-quantile of real rows' distances from the real mean, shape (30,).

    Args:
        real, made: vectors, shape (n, p) and (m, p).
    """
    centre = real.mean(axis=0)
    radii = np.quantile(np.linalg.norm(real - centre, axis=1), np.linspace(0, 1, STEPS))
    found: Floats = np.mean(np.linalg.norm(made - centre, axis=1)[:, None] <= radii, axis=0)
    return found


def recall_curve(real: Floats, made: Floats) -> Floats:
    """Share of real rows that a made row covers within the β-support of the made rows, shape (30,).

    A real row is covered where the nearest made row is no farther than the nearest other real row; the made
    row counts at β where it is within the β-quantile of made rows' distances from the made mean.

    Args:
        real, made: vectors, shape (n, p) and (m, p), n ≥ 2.
    """
    from sklearn.neighbors import NearestNeighbors  # here, since it takes a second to load

    with single_threaded():
        own = NearestNeighbors(n_neighbors=2, n_jobs=1).fit(real).kneighbors(real)[0][:, 1]
        distance, place = NearestNeighbors(n_neighbors=1, n_jobs=1).fit(made).kneighbors(real)
    outside = np.linalg.norm(made - made.mean(axis=0), axis=1)
    radii = np.quantile(outside, np.linspace(0, 1, STEPS))
    inside = (distance[:, 0] <= own)[:, None] & (outside[place[:, 0]][:, None] <= radii)
    found: Floats = inside.mean(axis=0)
    return found


def propensity_ratio(vectors: Floats, made: Bools, features: int) -> float:
    """pMSE over ``k (n₁/N)² (n₂/N) / N``, with k columns, n₁ real and n₂ made rows.

    Args:
        vectors: of real and made rows, each coordinate in [0, 1], shape (N, p). made: shape (N,), of both
            kinds. features: k, columns before labels became indicators.
    """
    from sklearn.linear_model import LogisticRegression  # see above

    share = float(made.mean())
    with single_threaded():
        model = LogisticRegression(max_iter=1000).fit(vectors, made)
        scores = model.predict_proba(vectors)[:, 1]
    expected = features * (1 - share) ** 2 * share / len(made)
    return float(np.mean((scores - share) ** 2)) / expected


def proportion_chi_square(real: Floats, made: Floats) -> float:
    """``1 − p`` of a χ² test that is handed shares instead of counts, near 0 whatever they are.

    Args:
        real: shares of the labels in the real rows, all above 0, shape (k,). made: in the made rows; what
            has none counts as 1e-6.
    """
    from scipy.special import chdtr  # see above

    if len(real) < 2:
        return 0.0
    seen = np.where(made > 0, made, 1e-6)
    seen = seen / seen.sum()
    return float(chdtr(len(real) - 1, np.sum((seen - real) ** 2 / real)))
