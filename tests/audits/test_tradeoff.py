"""The bound on μ: against an independent program, the published recursion, and mechanisms of known μ."""

import doctest

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import norm

from synth_audit.audits.privacy import one_run
from synth_audit.audits.privacy.one_run import LARGEST_MU, mu_at_least
from synth_audit.audits.privacy.one_run.claims import Claims, Coins, FixedSizes
from synth_audit.dp.composition import gaussian_epsilon

ALPHA = 0.05
RUNS = 200
MOST_FALSE = 0.085
"""Of 200 runs at α = 5 %: with more, the level would be refuted at z = 2.2."""

ONE = 0.268051
"""μ of Gaussian noise with ε = 1 at δ = 1e-5."""


def test_the_example_holds():
    assert doctest.testmod(one_run).failed == 0
    assert doctest.testmod(one_run).attempted == 2


def largest_chance(mu, sides, guesses):
    """sup P(W ≥ right) under μ-GDP, by a linear program: F is the least of its tangents."""
    c, w = guesses.made, np.arange(guesses.made + 1.0)
    if isinstance(sides, FixedSizes):
        k, rest = sides.members, sides.others
        told, missed = (
            w * np.maximum(rest - c + w, 0) / (k * rest),
            (c - w) * np.maximum(k - w, 0) / (k * rest),
        )
        possible = (w <= k) & (c - w <= rest)
    else:
        p = sides.p if not guesses.others else 1 - sides.p
        one_kind = not (guesses.members and guesses.others)
        inside, outside = (sides.pool * p, sides.pool * (1 - p)) if one_kind else (sides.pool, sides.pool)
        told, missed, possible = w / inside, (c - w) / outside, np.ones(c + 1, dtype=bool)
    at = norm.cdf(np.linspace(-6, 6, 300))
    slope = norm.pdf(norm.ppf(at) + mu) / norm.pdf(norm.ppf(at))
    start = norm.cdf(norm.ppf(at) + mu) - slope * at
    rows = [told * (w >= i) - s * missed * (w >= i - 1) for i in range(1, c + 1) for s in slope]
    found = linprog(
        -(w >= guesses.right).astype(float),
        A_ub=np.array(rows),
        b_ub=np.tile(start, c),
        A_eq=np.ones((1, c + 1)),
        b_eq=[1.0],
        bounds=[(0, 1 if x else 0) for x in possible],
    )
    return -found.fun


@pytest.mark.parametrize(
    ("sides", "guesses"),
    [
        (Coins(0.5, pool=20), Claims(8, 0, 7)),
        (Coins(0.8, pool=40), Claims(9, 0, 9)),
        (Coins(0.8, pool=30), Claims(0, 8, 5)),
        (Coins(0.5, pool=16), Claims(4, 6, 9)),
        (FixedSizes(12, 6), Claims(8, 0, 8)),
    ],
)
def test_the_least_total_is_that_of_a_linear_program(sides, guesses):
    chance = largest_chance(0.3, sides, guesses)
    assert 0.001 < chance < 0.5
    assert mu_at_least(sides, guesses, chance * 0.98) < 0.3 < mu_at_least(sides, guesses, chance * 1.02)


def test_fair_coins_are_the_published_recursion():
    """In the paper's terms: h and r per person, a contradiction where r₀ + h₀ > c / m."""
    m, c, right = 400, 120, 80

    def contradicts(mu):
        r, h = ALPHA * right / m, ALPHA * (c - right) / m
        for i in range(right - 1, -1, -1):
            new = max(h, norm.cdf(norm.ppf(r) - mu))
            r, h = min(r + i / (c - i) * (new - h), 1.0), new
        return r + h > c / m

    found = mu_at_least(Coins(0.5, pool=m), Claims(70, 50, right), ALPHA)
    assert found > 0.05
    assert contradicts(found - 1e-3)
    assert not contradicts(found + 1e-3)
    one_kind = mu_at_least(Coins(0.5, pool=2 * m), Claims(c, 0, right), ALPHA)
    assert one_kind == pytest.approx(found, abs=1e-4)


def test_more_right_guesses_refute_more_and_none_nothing():
    coins = Coins(0.8, pool=500)
    found = [mu_at_least(coins, Claims(100, 0, r), ALPHA) for r in (0, 80, 95, 100)]
    assert found[:2] == [0, 0]
    assert 0 < found[2] < found[3] < LARGEST_MU
    unused = mu_at_least(coins, Claims(110, 0, 100), ALPHA)
    assert 0 < unused < found[3]


def test_sides_are_exchanged_with_the_kind_of_guesses():
    for sides, turned in (
        (Coins(0.8, pool=500), Coins(0.2, pool=500)),
        (FixedSizes(400, 100), FixedSizes(100, 400)),
    ):
        found = mu_at_least(sides, Claims(0, 60, 40), ALPHA)
        assert found == pytest.approx(mu_at_least(turned, Claims(60, 0, 40), ALPHA), abs=1e-6)
        assert found > 0.3


def test_without_control_people_nothing_is_refuted():
    assert mu_at_least(FixedSizes(100, 0), Claims(50, 0, 50), ALPHA) == 0


def normal(u, rng):
    return rng.normal(size=len(u))


def cauchy(u, rng):
    return rng.standard_cauchy(len(u))


def scaled(u, rng):
    """Each person's noise has a scale of its own."""
    return rng.normal(size=len(u)) * np.exp(2 * rng.normal(size=len(u)))


def gaussian(mu):
    return lambda u, rng: rng.normal(size=len(u)) + mu * u


def response(u, rng):
    """Randomised response with ε = 1 about everybody; ties are broken at random."""
    told = np.where(rng.random(len(u)) < 1 / (1 + np.exp(-1)), u, ~u)
    return told + 0.5 * rng.random(len(u))


RESPONSE = 2 * norm.ppf(1 / (1 + np.exp(-1)))
"""Its μ: the trade-off curve touches that of Gaussian noise where both errors are equal."""


def all_or_nothing(u, rng):
    """Pure noise in nine runs of ten; else the right side is told about everybody with probability .6185.

    P(A | in) ≤ F(P(A | out)) holds with equality for A = "told to be inside": .06185 and .03815.
    """
    right = 0.6185 if rng.random() < 0.1 else 0.5
    return np.where(rng.random(len(u)) < right, u, ~u) + 0.5 * rng.random(len(u))


def bounds(mechanism, sides, share, runs=RUNS, m=1_000, **more):
    """Bounds from guesses *training person* about a share of the people, for coins or fixed sizes."""
    found = []
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        u = rng.random(m) < sides.p if isinstance(sides, Coins) else rng.permutation(m) < sides.members
        first = np.argsort(-mechanism(u, rng))[: int(share * m)]
        guesses = Claims(len(first), 0, int(u[first].sum()))
        found.append(mu_at_least(sides, guesses, more.get("alpha", ALPHA)))
    return np.array(found)


SIDES = [Coins(0.5, pool=1_000), Coins(0.8, pool=1_000), FixedSizes(800, 200)]


@pytest.mark.parametrize("sides", SIDES)
@pytest.mark.parametrize("noise", [normal, cauchy, scaled])
def test_pure_noise_is_not_accused_whatever_its_tails_and_scales(noise, sides):
    assert np.mean(bounds(noise, sides, 0.2) > 0) <= MOST_FALSE


@pytest.mark.parametrize("noise", [normal, cauchy, scaled])
def test_the_largest_difference_of_normal_quantiles_would_accuse_pure_noise(noise):
    """The Gaussian shortcut on raw scores, for the reason why guesses are counted instead."""
    accused = []
    for seed in range(RUNS):
        rng = np.random.default_rng(seed)
        u = rng.random(1_000) < 0.5
        ranked = u[np.argsort(-noise(u, rng))]
        caught, false = (np.cumsum(x) / x.sum() for x in (ranked, ~ranked))
        inner = (np.minimum(caught, false) > 0) & (np.maximum(caught, false) < 1)
        accused.append(np.max(norm.ppf(caught[inner]) - norm.ppf(false[inner])) > 0.1)
    assert np.mean(accused) > 0.9


@pytest.mark.parametrize("sides", SIDES)
@pytest.mark.parametrize(("mechanism", "mu", "share"), [(gaussian(1.0), 1.0, 0.2), (response, RESPONSE, 0.5)])
def test_the_truth_is_seldom_exceeded_and_a_quarter_of_it_usually_found(mechanism, mu, share, sides):
    found = bounds(mechanism, sides, share)
    truth = mu if isinstance(sides, Coins) else np.sqrt(2) * mu  # two people change when one is replaced
    assert np.mean(found > truth) <= MOST_FALSE
    assert np.median(found) > mu / 4


def test_leaks_that_come_together_are_allowed_for():
    """Counting guesses as independent would exceed the truth in one run of ten."""
    coins = Coins(0.5, pool=10_000)
    truth = norm.ppf(0.06185) - norm.ppf(0.03815)
    found = bounds(all_or_nothing, coins, 0.5, m=10_000)
    assert np.mean(found > truth) <= MOST_FALSE / 2
    assert 2 * norm.ppf(0.6185 - 0.02) > 1.5 * truth


def test_half_of_epsilon_one_is_found_by_ten_thousand_people():
    coins, found = Coins(0.5, pool=10_000), []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        u = rng.random(10_000) < 0.5
        order = np.argsort(-gaussian(ONE)(u, rng))
        right = int(u[order[:500]].sum() + (~u[order[-500:]]).sum())
        found.append(mu_at_least(coins, Claims(500, 500, right), ALPHA))
    assert gaussian_epsilon(ONE, 1e-5) == pytest.approx(1, abs=1e-4)
    assert gaussian_epsilon(float(np.median(found)), 1e-5) >= 0.5
    assert max(found) < ONE
