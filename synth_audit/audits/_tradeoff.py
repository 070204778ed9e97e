"""A lower bound on μ from one release: could a μ-GDP mechanism have let so many guesses be right?

Gaussian differential privacy describes a mechanism by the trade-off curve ``G_μ(x) = Φ(Φ⁻¹(1 − x) − μ)`` of a
test whether one person was in the training set. For an event A this means ``P(A | in) ≤ F(P(A | out))`` with
``F(x) = 1 − G_μ(x) = Φ(Φ⁻¹(x) + μ)``, and the same with *in* and *out* exchanged.

**Inequalities.** An adversary makes c guesses *training person*, and W of them are right. Take one person.
Let A be "guessed, and at least i − 1 guesses about others are right", and change the person's side. Inside, A
means a right guess and W ≥ i. Outside, it means a wrong guess and W ≥ i − 1. The mean over all people keeps
the bound, because F is concave. With ``x_w = P(W = w)`` this gives, for every i,

    ``Σ_{w ≥ i} a_w x_w ≤ F(Σ_{w ≥ i − 1} b_w x_w)``.

* Coins (m people, training share p): ``a_w = w / (m p)``, ``b_w = (c − w) / (m (1 − p))``.
* Fixed sizes (k training and l control people, F for replacing one person): a pair exchanges sides, so
  ``a_w = w (l − c + w) / (k l)``, ``b_w = (c − w) (k − w) / (k l)``.
* Guesses *control person* exchange p and 1 − p, or k and l. Guesses of both kinds together need p = ½ and
  have ``a_w = w / m``, ``b_w = (c − w) / m``. For other p the two kinds have no common inequality.

**Test.** If P(W ≥ right) = α, the least total probability is found from the top down. Put α on w = right, and
on each smaller w only what its inequality demands. A total above 1 is a contradiction and refutes μ. No other
distribution needs less, because a_w grows with w and b_w falls.

c must not depend on the release. At most c guesses are allowed too.

Source: Mahloujifar, Melis & Chaudhuri 2024 (fair coins); Dong, Roth & Su 2022 (μ-GDP). Other p and fixed
sizes are ours, by the same argument.
"""

from __future__ import annotations

import math

import numpy as np

from synth_audit.core.arrays import Floats
from synth_audit.kernels.one_run_bound import Claims, Coins, FixedSizes

LARGEST_MU = 8.0
"""No larger μ is reported: with it, one guess in 30,000 would be wrong."""

_HALVINGS = 20
"""Of the interval of μ: to 1e-5."""


def mu_at_least(sides: Coins | FixedSizes, guesses: Claims, alpha: float) -> float:
    """Return the largest μ refuted at level α: a lower bound on μ under the Gaussian model.

    If the mechanism is μ-GDP, the result exceeds μ with probability at most α. It is no bound on ε, because
    a mechanism need not be Gaussian.

    Args:
        sides: how sides were decided. ``Coins.pool`` is m, the people a guess could have been about.
            ``delta`` is not used.
        guesses: c guesses, fixed before the release was seen, and how many were right.
        alpha: in (0, 1).

    Returns:
        In [0, 8]; 0 if no μ is refuted.

    Raises:
        ValueError: α is out of range. There are more guesses than people or, with fixed sizes, more right
            guesses than people of that side. Guesses are of both kinds and coins are not fair.

    Source: Mahloujifar, Melis & Chaudhuri 2024.

    Example: 10,000 people, fair coins, 654 right guesses of 1,000. Gaussian noise of this μ has ε = 0.7 at
    δ = 1e-5.

        >>> round(mu_at_least(Coins(0.5, pool=10_000), Claims(500, 500, 654), 0.05), 3)
        0.195
    """
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must be in (0, 1), got {alpha}")
    if not guesses.right:
        return 0.0
    right, wrong = _weights(sides, guesses)
    if not _refuted(0.0, right, wrong, alpha):
        return 0.0
    low, high = 0.0, LARGEST_MU
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _refuted(middle, right, wrong, alpha) else (low, middle)
    return low


def _weights(sides: Coins | FixedSizes, guesses: Claims) -> tuple[Floats, Floats]:
    """a_w and b_w for w = 0, …, right; shape (right + 1,) each."""
    w, c, both = np.arange(guesses.right + 1.0), guesses.made, bool(guesses.members and guesses.others)
    people = sides.pool if isinstance(sides, Coins) else sides.members + sides.others
    if c > people:
        raise ValueError(f"{c} guesses about {people} people")
    if isinstance(sides, FixedSizes):
        k, rest = (sides.others, sides.members) if guesses.others else (sides.members, sides.others)
        if both or guesses.right > k:
            raise ValueError(
                "with fixed sizes guesses are of one kind, no more right than people of that side"
            )
        pairs = max(k * rest, 1)
        return w * np.maximum(rest - c + w, 0) / pairs, (c - w) * (k - w) / pairs
    if both and sides.p != 0.5:
        raise ValueError("guesses of both kinds need fair coins")
    if both:
        return w / people, (c - w) / people
    p = 1 - sides.p if guesses.others else sides.p
    return w / (people * p), (c - w) / (people * (1 - p))


def _refuted(mu: float, right: Floats, wrong: Floats, alpha: float) -> bool:
    """Whether P(W ≥ right) = α needs a total probability above 1 under μ-GDP."""
    from scipy.special import ndtri  # lazy import: keeps CLI start fast

    total, inside, outside = alpha, alpha * right[-1], alpha * wrong[-1]
    for w in range(len(right) - 2, -1, -1):
        if inside >= 1:
            return True
        demanded = math.erfc((mu - ndtri(inside)) / math.sqrt(2)) / 2  # the inverse of F
        if demanded <= outside:  # nothing is added here, and so nothing below
            return False
        added = (demanded - outside) / wrong[w]
        total, inside, outside = total + added, inside + added * right[w], demanded
        if total > 1:
            return True
    return False
