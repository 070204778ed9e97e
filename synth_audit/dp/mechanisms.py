"""Noise that buys differential privacy, the exponential mechanism, and a public number of rows a person."""

import math
import os
import random
import secrets
from collections.abc import Sequence

import numpy as np

from synth_audit.arrays import Floats, Positions
from synth_audit.errors import PlanError, PluginError

Shape = int | tuple[int, ...]

_SEEDABLE = (
    np.random.Generator,
    np.random.RandomState,
    np.random.SeedSequence,
    np.random.BitGenerator,
    random.Random,
)
_UNIT = 2.0**-53
"""Step of the 53 bits of a float's fraction."""


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
            where="noise",
            expected="a scale and a size",
            fix="draw what needs no protection from the fit's own generator",
        )


def exponential_choice(scores: Floats, epsilon: float, sensitivity: float) -> int:
    """The position of one score, i with probability ∝ exp(ε · scores[i] / (2 Δ)).

    Drawn as the largest of scores plus Gumbel noise of scale 2 Δ / ε, from the operating system's entropy.

    Args:
        scores: of the candidates, shape (k,), k ≥ 1.
        epsilon: what the choice costs, to be spent before.
        sensitivity: the most Δ by which one row added or removed changes any score.
    """
    return int(np.argmax(scores + gumbel_noise(2 * sensitivity / epsilon, len(scores))))


def bound_contributions(keys: Sequence[str], most: int, rng: np.random.Generator) -> Positions:
    """Positions of at most ``most`` rows per entity, chosen at random, in ascending order.

    An entity's rows are chosen without regard to any other entity's, so adding or removing an entity adds or
    removes at most ``most`` rows of what is kept: group privacy of that size then covers it.

    Args:
        keys: the entity of each row, shape (n,).
        most: declared publicly, never read off the table.
        rng: drawn from a secret; a reader who could repeat it would know which rows were kept.

    Raises:
        PlanError: ``most`` is below 1.
    """
    if most < 1:
        raise PlanError("an entity must be allowed rows", where="most rows per entity", expected="1 or more")
    from pandas import factorize  # here, so that looking around stays light

    entity, _ = factorize(np.asarray(keys, dtype=object))
    order = np.lexsort((rng.random(len(entity)), entity))
    grouped = entity[order]
    first = (
        np.flatnonzero(np.r_[True, grouped[1:] != grouped[:-1]])
        if len(grouped)
        else np.zeros(0, dtype=np.intp)
    )
    rank = np.arange(len(grouped)) - np.repeat(first, np.diff(np.r_[first, len(grouped)]))
    return np.sort(order[rank < most])
