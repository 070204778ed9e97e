"""How often does the lower bound on μ exceed the truth, and how much of it does it find?

Each line is 1,000 runs of a mechanism of known μ on 10,000 people. It shows the bounds converted at δ = 1e-5
(5 %, 50 % and 95 % quantiles), the share of runs at or above 0.5, and the share above the truth, at most 5 %.
`one_run` stands for the audit's own way: scores chosen on one half, many numbers of guesses about the other.
Randomised response is bounded twice, by μ and by ε as `one_run` does, each against its own truth.

    .venv/bin/python benchmarks/gaussian_bound.py --runs 1000
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.stats import norm

from synth_audit.arrays import Bools, Floats
from synth_audit.audits.privacy.one_run import gaussian_bound, mu_at_least
from synth_audit.audits.privacy.one_run.claims import Claims, Coins, FixedSizes, epsilon_at_least
from synth_audit.audits.privacy.one_run.people import ClaimablePeople
from synth_audit.dp.composition import gaussian_epsilon

PEOPLE, ALPHA, DELTA = 10_000, 0.05, 1e-5

ONE = 0.268051
"""μ of Gaussian noise with ε = 1 at δ = 1e-5."""

RESPONSE = 2 * norm.ppf(1 / (1 + np.exp(-1)))
"""μ of randomised response with ε = 1: the curves touch where both errors are equal."""

Noise = Callable[[Bools, np.random.Generator], Floats]


def gaussian(mu: float) -> Noise:
    return lambda u, rng: rng.normal(size=len(u)) + mu * u


def cauchy(u: Bools, rng: np.random.Generator) -> Floats:
    return rng.standard_cauchy(len(u))


def scaled(u: Bools, rng: np.random.Generator) -> Floats:
    """Each person's noise has a scale of its own."""
    return rng.normal(size=len(u)) * np.exp(2 * rng.normal(size=len(u)))


def response(u: Bools, rng: np.random.Generator) -> Floats:
    """Ties are broken at random."""
    told = np.where(rng.random(len(u)) < 1 / (1 + np.exp(-1)), u, ~u)
    return told + 0.5 * rng.random(len(u))


def all_or_nothing(u: Bools, rng: np.random.Generator) -> Floats:
    """Noise in nine runs of ten; else the right side of everybody with probability .6185, as μ allows."""
    right = 0.6185 if rng.random() < 0.1 else 0.5
    return np.where(rng.random(len(u)) < right, u, ~u) + 0.5 * rng.random(len(u))


TOGETHER = float(norm.ppf(0.06185) - norm.ppf(0.03815))

FAIR, UNFAIR, FIXED = Coins(0.5, pool=PEOPLE), Coins(0.8, pool=PEOPLE), FixedSizes(8_000, 2_000)

CASES: list[tuple[str, Noise, float, Coins | FixedSizes, float | str]] = [
    *(
        (f"Gaussian, ε = 1, {s:.0%} guessed, both kinds", gaussian(ONE), ONE, FAIR, s)
        for s in (0.05, 0.1, 0.2)
    ),
    ("Gaussian, ε = 1, p = 0.8, 10 % guessed", gaussian(ONE), ONE, UNFAIR, 0.1),
    ("Gaussian, ε = 1, fixed sizes, 10 % guessed", gaussian(ONE), np.sqrt(2) * ONE, FIXED, 0.1),
    ("Gaussian, ε = 1, one_run", gaussian(ONE), ONE, FAIR, "one_run"),
    ("Gaussian, μ = 1, p = 0.8, one_run", gaussian(1.0), 1.0, UNFAIR, "one_run"),
    ("noise, normal, both kinds", gaussian(0.0), 0.0, FAIR, 0.1),
    ("noise, normal, p = 0.8", gaussian(0.0), 0.0, UNFAIR, 0.1),
    ("noise, normal, fixed sizes", gaussian(0.0), 0.0, FIXED, 0.1),
    ("noise, Cauchy, p = 0.8", cauchy, 0.0, UNFAIR, 0.1),
    ("noise, a scale for each, p = 0.8", scaled, 0.0, UNFAIR, 0.1),
    ("noise, normal, one_run", gaussian(0.0), 0.0, FAIR, "one_run"),
    ("noise, a scale for each, p = 0.8, one_run", scaled, 0.0, UNFAIR, "one_run"),
    ("all or nothing, all guessed, both kinds", all_or_nothing, TOGETHER, FAIR, 1.0),
    ("response, ε = 1, p = 0.5, 50 % guessed", response, RESPONSE, FAIR, 0.5),
    ("response, ε = 1, p = 0.8, 50 % guessed", response, RESPONSE, UNFAIR, 0.5),
]
"""Name, mechanism, its μ, how sides are decided, and the share of people guessed about."""


def guesses(noise: Noise, sides: Coins | FixedSizes, share: float, rng: np.random.Generator) -> Claims:
    """Guesses about the most extreme people; of both kinds where that is quick to bound."""
    u = coins(sides, rng)
    order, c = np.argsort(-noise(u, rng)), round(share * PEOPLE)
    if sides != FAIR or noise is response:
        return Claims(c, 0, int(u[order[:c]].sum()))
    half = c // 2
    return Claims(half, half, int(u[order[:half]].sum() + (~u[order[-half:]]).sum()))


def coins(sides: Coins | FixedSizes, rng: np.random.Generator) -> Bools:
    if isinstance(sides, FixedSizes):
        return np.asarray(rng.permutation(PEOPLE) < sides.members)
    return np.asarray(rng.random(PEOPLE) < sides.p)


def by_audit(noise: Noise, sides: Coins | FixedSizes, rng: np.random.Generator) -> float:
    """μ as `one_run` finds it: half of the people are guessed about."""
    u, nothing = coins(sides, rng), np.arange(PEOPLE)
    nobody: Any = None  # no rows are read
    people = ClaimablePeople(nobody, nothing, nothing, u, np.arange(PEOPLE) % 2 == 0)
    p = sides.p if isinstance(sides, Coins) else None
    return gaussian_bound(noise(u, rng)[None], people, p, ALPHA, DELTA).mu


def converted(mu: float) -> float:
    return gaussian_epsilon(mu, DELTA) if mu > 0 else 0.0


def line(name: str, found: list[float], above: float) -> str:
    low, middle, high = np.quantile(found, [0.05, 0.5, 0.95])
    half = np.mean(np.array(found) >= 0.5)
    return (
        f"{name:48} {low:5.2f} {middle:5.2f} {high:5.2f}  >= 0.5: {half:6.1%}  above the truth: {above:.1%}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--only", default="", help="cases whose names begin so")
    asked = parser.parse_args()
    runs = range(asked.runs)
    for name, noise, truth, sides, share in CASES:
        if not name.startswith(asked.only):
            continue
        found, epsilon = [], []
        for seed in runs:
            rng = np.random.default_rng(seed)
            if isinstance(share, str):
                found.append(by_audit(noise, sides, rng))
                continue
            made = guesses(noise, sides, share, rng)
            found.append(mu_at_least(sides, made, ALPHA))
            if noise is response:
                epsilon.append(epsilon_at_least(sides, made, ALPHA))
        above = float(np.mean(np.array(found) > truth))
        print(line(name, list(map(converted, found)), above), flush=True)
        if epsilon:
            print(line("  its ε, as today", epsilon, float(np.mean(np.array(epsilon) > 1))), flush=True)


if __name__ == "__main__":
    main()
