"""Noise that buys differential privacy: from the operating system's entropy, never seeded or recorded.

Whoever can repeat the noise can take it off again, so nothing here takes a seed or a generator, and no
library's seed moves it.

*Floating point.* The proofs are about real numbers. The least significant bits of a float drawn by inverting
a distribution function can tell which values were possible before the noise was added (Mironov 2012), and so
can those of Box and Muller's transform. Here a normal or Laplace draw combines four transforms of independent
bits, after Holohan and Braghin (2021), which makes such an attack impractical. That is a mitigation, not a
proof; for a proof use a discrete mechanism. Uniforms have 53 bits, so that a normal summand ends at 8.6
standard deviations (mass 1e-17).
"""

from __future__ import annotations

import math
import os
import random
import secrets

import numpy as np

from synth_audit.core.arrays import Floats, Positions
from synth_audit.core.errors import PluginError

Shape = int | tuple[int, ...]

_SEEDABLE = (
    np.random.Generator,
    np.random.RandomState,
    np.random.SeedSequence,
    np.random.BitGenerator,
    random.Random,
)
_UNIT = 2.0**-53


def gaussian_noise(scale: float, size: Shape) -> Floats:
    """Normal noise with standard deviation ``scale``: the mean of four independent normals, doubled.

    Raises:
        PluginError: the scale is not positive and finite, or a generator or seed was passed.
    """
    count = _count(scale, size)
    total = _normal(count) + _normal(count) + _normal(count) + _normal(count)
    return (total * (scale / 2)).reshape(size)


def laplace_noise(scale: float, size: Shape) -> Floats:
    """Laplace noise of this scale: (N₁² + N₂² − N₃² − N₄²) / 2, a difference of two exponentials.

    Raises:
        PluginError: the scale is not positive and finite, or a generator or seed was passed.
    """
    count = _count(scale, size)
    total = _normal(count) ** 2 + _normal(count) ** 2 - _normal(count) ** 2 - _normal(count) ** 2
    return (total * (scale / 2)).reshape(size)


def gumbel_noise(scale: float, size: Shape) -> Floats:
    """Gumbel noise: the place of the largest score plus noise is an exponential mechanism of ε = 2 Δ / scale.

    The noisy scores themselves must not be shown.

    Raises:
        PluginError: the scale is not positive and finite, or a generator or seed was passed.
    """
    count = _count(scale, size)
    words = np.frombuffer(os.urandom(8 * count), dtype=np.uint64)
    inside = ((words >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52  # neither 0 nor 1
    return (-np.log(-np.log(inside)) * scale).reshape(size)


def poisson_sample(n: int, rate: float) -> Positions:
    """Positions of the rows in one batch, each of ``n`` by a coin of its own with probability ``rate``.

    Who is in a batch must be as secret as the noise, or sampling amplifies nothing.

    Raises:
        PluginError: the rate is outside [0, 1], or a generator or seed was passed.
    """
    _refuse_seeds(n, rate)
    if not 0 <= rate <= 1:
        raise PluginError("a sampling rate is no probability", where="rate", expected="0 to 1")
    return np.flatnonzero(_uniform(n) <= rate)


def random_bits(count: int) -> int:
    """An integer of ``count`` random bits, for a library that must be given a seed: use once and forget.

    Raises:
        PluginError: a generator was passed.
    """
    _refuse_seeds(count)
    return secrets.randbits(count)


class Noise:
    """What a fit is handed: the functions above under one name, so that none of them can be exchanged."""

    gaussian = staticmethod(gaussian_noise)
    laplace = staticmethod(laplace_noise)
    gumbel = staticmethod(gumbel_noise)
    poisson_sample = staticmethod(poisson_sample)
    bits = staticmethod(random_bits)


def _uniform(count: int) -> Floats:
    """Uniform on (0, 1], multiples of 2⁻⁵³."""
    words = np.frombuffer(os.urandom(8 * count), dtype=np.uint64)
    return ((words >> np.uint64(11)).astype(np.float64) + 1) * _UNIT


def _normal(count: int) -> Floats:
    """Standard normals after Box and Muller (1958), one from each pair of uniforms."""
    drawn: Floats = np.sqrt(-2 * np.log(_uniform(count))) * np.cos(2 * np.pi * _uniform(count))
    return drawn


def _count(scale: float, size: Shape) -> int:
    _refuse_seeds(scale, size)
    if not 0 < scale < math.inf:
        raise PluginError("noise needs a scale", where="scale", expected="a positive finite number")
    return math.prod(size) if isinstance(size, tuple) else size


def _refuse_seeds(*arguments: object) -> None:
    if any(isinstance(argument, _SEEDABLE) for argument in arguments):
        raise PluginError(
            "noise that buys differential privacy cannot be seeded",
            where="core.noise",
            expected="a scale and a size",
            fix="draw what needs no protection from the fit's own generator",
        )
