"""Noise that nobody can repeat, choices with exact probabilities, shares that are never overdrawn."""

import random

import dp_accounting as dp
import numpy as np
import pytest
from dp_accounting import rdp
from scipy import stats
from scipy.stats import chisquare

from synth_audit.dp.accountant import Accountant
from synth_audit.dp.composition import ConcentratedFilter
from synth_audit.dp.guarantee import Budget, Neighbouring, Unit
from synth_audit.dp.mechanisms import (
    exponential_choice,
    gaussian_noise,
    gumbel_noise,
    laplace_noise,
    poisson_sample,
    random_bits,
)
from synth_audit.errors import BudgetSpent, PluginError

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


@pytest.mark.parametrize(("epsilon", "sensitivity"), [(1.0, 1.0), (0.5, 2.0), (3.0, 1.5)])
def test_probabilities_are_those_of_the_exponential_mechanism(epsilon, sensitivity):
    scores = np.array([0.0, 1.0, 2.5, -1.0])
    weights = np.exp(epsilon * scores / (2 * sensitivity))
    drawn = [exponential_choice(scores, epsilon, sensitivity) for _ in range(8000)]
    found = np.bincount(drawn, minlength=4)
    assert chisquare(found, 8000 * weights / weights.sum()).pvalue > 1e-6


def accountant(epsilon=1.0, **terms):
    return Accountant(Budget(epsilon, 1e-5), **{"unit": Unit.ROW} | terms)


def test_what_is_refused_is_not_counted():
    share = ConcentratedFilter(0.5)
    share.gaussian(2.0)
    share.exponential(1.0)
    with pytest.raises(BudgetSpent):
        share.gaussian(1.0)
    assert share.left == pytest.approx(0.25)
    assert share.used == pytest.approx(0.5)
    share.gaussian((2 * share.left) ** -0.5)
    assert share.left == pytest.approx(0, abs=1e-8)
    with pytest.raises(BudgetSpent):
        share.exponential(0.01)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_mechanisms_that_fill_a_share_stay_within_the_budget_by_dp_accounting(epsilon):
    handed = accountant(epsilon)
    rho = handed.most_concentrated()
    handed.concentrated(rho, what="rounds")
    rng, share, events = np.random.default_rng(0), ConcentratedFilter(rho), []
    while share.left > 1e-3 * rho:
        cost = min(share.left, rho * rng.uniform(0.01, 0.1))
        share.gaussian((2 * cost) ** -0.5)
        events.append(dp.GaussianDpEvent((2 * cost) ** -0.5))
    found = rdp.RdpAccountant().compose(dp.ComposedDpEvent(events)).get_epsilon(1e-5)
    assert 0.97 * epsilon < found <= epsilon
    assert found <= handed.spent().epsilon <= epsilon


def test_several_rows_cost_the_square_of_their_number():
    one = accountant().most_concentrated()
    three = accountant(unit=Unit.ENTITY, rows=3).most_concentrated()
    replaced = accountant(neighbouring=Neighbouring.REPLACE).most_concentrated()
    assert one / three == pytest.approx(9, rel=0.02)
    assert one / replaced == pytest.approx(4, rel=0.02)


def test_a_budget_without_delta_bears_none_and_the_guarantee_says_how_it_was_shared():
    with pytest.raises(BudgetSpent):
        Accountant(Budget(1.0), unit=Unit.ROW).most_concentrated()
    handed = accountant()
    handed.concentrated(handed.most_concentrated(), what="rounds")
    handed.draws(5)
    handed.domain("declared")
    assert any("Feldman" in text for text in handed.guarantee().assumptions)
