"""The published way to carry a singling-out rate from the size of control to that of train."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_SIZES = 20
_WEIGHTS = np.logspace(-7, 0, 400)


def isolation_model(n: Floats | int, heaviest: Floats) -> Floats:
    """Chance that a predicate isolates one of n rows when its weight is even in [0, W], up to a factor.

    ``∫₀^W n·w·(1 − w)^(n − 1) dw = (1 − (1 − W)^(n + 1)) / (n + 1) − W·(1 − W)^n``.
    Source: Cohen & Nissim 2020; Giomi et al. 2022.

    Args:
        n: table sizes, heaviest: W in (0, 1]; shapes that go together.
    """
    survive = np.exp(n * np.log1p(-np.minimum(heaviest, 1 - 1e-12)))
    value: Floats = (1 - survive * (1 - heaviest)) / (np.asarray(n) + 1.0) - heaviest * survive
    return value


def published_factor(control: npt.NDArray[np.int64], n_control: int, n_train: int) -> float:
    """What the literature multiplies the control rate with when train is larger than control.

    The model of :func:`isolation_model` is fitted by least squares, in W and a factor, to success rates in
    control subsets of growing size, each known exactly from the counts: with q = m / n_control a predicate
    of c matches isolates one row of a random subset of m with chance ``c·q·(1 − q)^(c − 1)``. The factor
    returned is the model at n_train over that at n_control.

    An even distribution of weights makes the model fall like 1/n beyond 1/W, whatever lies below: where
    releases hold many predicates of small weight it takes strangers for far less often singled out than
    they are, and an honest release for a risk. That is why it is reported beside the risk and not as it.

    Args:
        control: control rows matched by each guess, exact, shape (p,).

    Returns:
        1 without a success to fit.
    """
    sizes = np.unique(np.linspace(n_control / _SIZES, n_control, _SIZES).astype(np.int64).clip(1))
    part = sizes[:, None] / n_control
    with np.errstate(divide="ignore"):
        stays = np.where(control > 0, control * part * (1 - part) ** np.maximum(control - 1, 0), 0.0)
    rates = stays.mean(axis=1)
    if not rates[-1]:
        return 1.0
    shapes = isolation_model(sizes[:, None], _WEIGHTS[None, :])
    factors = (rates @ shapes) / np.sum(shapes**2, axis=0)
    misfit = np.sum((rates[:, None] - factors * shapes) ** 2, axis=0)
    best = _WEIGHTS[[int(np.argmin(misfit))]]
    return float(isolation_model(n_train, best)[0] / isolation_model(n_control, best)[0])
