"""Noise that nobody can repeat."""

from __future__ import annotations

import random

import numpy as np
import pytest
from scipy import stats

from synth_audit.dp.mechanisms import gaussian_noise, gumbel_noise, laplace_noise, poisson_sample, random_bits
from synth_audit.errors import PluginError

DRAWS = (
    lambda: gaussian_noise(1.0, 8).tolist(),
    lambda: laplace_noise(1.0, 8).tolist(),
    lambda: gumbel_noise(1.0, 8).tolist(),
    lambda: poisson_sample(256, 0.5).tolist(),
    lambda: random_bits(128),
)


def _seed_python() -> None:
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002


def _seed_torch() -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)


@pytest.mark.parametrize("seed", [_seed_python, pytest.param(_seed_torch, marks=pytest.mark.slow)])
@pytest.mark.parametrize("draw", DRAWS)
def test_no_seed_repeats_it(draw, seed):
    seed()
    once = draw()
    seed()
    assert draw() != once


def test_drawing_moves_no_seeded_stream():
    np.random.seed(0)  # noqa: NPY002
    expected = np.random.random(3)  # noqa: NPY002
    np.random.seed(0)  # noqa: NPY002
    for draw in DRAWS:
        draw()
    assert np.array_equal(np.random.random(3), expected)  # noqa: NPY002


_GENERATORS = (
    np.random.default_rng(0),
    np.random.RandomState(0),
    np.random.SeedSequence(0),
    np.random.PCG64(0),
    random.Random(0),  # noqa: S311
)


@pytest.mark.parametrize("generator", _GENERATORS, ids=lambda g: type(g).__name__)
@pytest.mark.parametrize(
    "draw",
    [
        lambda g: gaussian_noise(g, 3),
        lambda g: gaussian_noise(1.0, g),
        lambda g: laplace_noise(1.0, g),
        lambda g: gumbel_noise(1.0, g),
        lambda g: poisson_sample(3, g),
        random_bits,
    ],
)
def test_a_generator_is_refused(draw, generator):
    with pytest.raises(PluginError, match="cannot be seeded"):
        draw(generator)


@pytest.mark.parametrize("function", [gaussian_noise, laplace_noise, gumbel_noise])
def test_there_is_no_seed_to_pass(function):
    with pytest.raises(TypeError):
        function(1.0, 3, seed=0)
    with pytest.raises(TypeError):
        function(1.0, 3, 0)


@pytest.mark.parametrize(
    ("function", "law"),
    [
        (gaussian_noise, stats.norm(0, 3)),
        (laplace_noise, stats.laplace(0, 3)),
        (gumbel_noise, stats.gumbel_r(0, 3)),
    ],
)
def test_it_has_the_law_it_is_named_after(function, law):
    drawn = function(3.0, (100, 200))
    assert drawn.shape == (100, 200)
    assert stats.kstest(drawn.ravel(), law.cdf).pvalue > 1e-9
    assert abs(drawn.std() / law.std() - 1) < 0.1


def test_a_batch_is_a_coin_per_row():
    sizes = [len(poisson_sample(1000, 0.3)) for _ in range(200)]
    assert abs(np.mean(sizes) - 300) < 8
    assert 9 < np.std(sizes) < 22
    assert poisson_sample(50, 1.0).tolist() == list(range(50))
    assert poisson_sample(50, 0.0).tolist() == []


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf")])
def test_noise_needs_a_scale(scale):
    for function in (gaussian_noise, laplace_noise, gumbel_noise):
        with pytest.raises(PluginError, match="scale"):
            function(scale, 3)


def test_a_rate_is_a_probability():
    with pytest.raises(PluginError, match="probability"):
        poisson_sample(3, 1.5)
