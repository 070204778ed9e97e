"""A lower bound on μ under the Gaussian model, from the scores that also bound ε."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from synth_audit.audits._tradeoff import mu_at_least
from synth_audit.audits.privacy.one_run.people import ClaimablePeople
from synth_audit.core.accounting.gaussian_curve import gaussian_epsilon
from synth_audit.core.arrays import Bools, Floats
from synth_audit.kernels.one_run_bound import Claims, Coins, FixedSizes

USUAL_DELTA = 1e-5
"""δ of the conversion without a guarantee that has one; usual for tables of up to 100,000 people."""

FEWEST_GUESSES = 10
"""With fewer guesses almost no μ is refuted, and each number of guesses has its share of α."""


@dataclass(frozen=True)
class GaussianBound:
    """Whether a μ-GDP mechanism could have let so many guesses be right.

    Attributes:
        mu: lower bound on μ; 0 if none was refuted. delta: at which it is converted.
        best: the same if every guess had been right.
        guesses: how many were made for ``mu``. pool: people whom guesses could be about.
        tried: numbers and kinds of guesses, among which α was divided.
    """

    mu: float
    best: float
    guesses: int
    pool: int
    tried: int
    delta: float

    @property
    def converted(self) -> float:
        """ε of Gaussian noise with this μ at this δ. It is no bound on the ε of the release."""
        return gaussian_epsilon(self.mu, self.delta) if self.mu > 0 else 0.0


def gaussian_bound(
    scores: Floats, people: ClaimablePeople, p: float | None, alpha: float, delta: float
) -> GaussianBound:
    """Guesses about the half whose sides are secret, and the largest μ that they refute.

    The numbers of guesses are ½, ¼, … of these people, so none depends on the release. For each number, and
    for guesses of either side, the score with the most right guesses on the known half is used. α is divided
    equally, and the largest μ is taken.

    Args:
        scores: shape (s, n), higher for likelier training people. Ties are broken by the order of people,
            which is random.
        p: probability of train; None where the sizes of the sides were fixed.
        delta: of a guarantee; 0 without one.
    """
    secret = ~people.known
    n, inside = int(secret.sum()), int(people.members[secret].sum())
    sides = Coins(p, pool=n) if p is not None else FixedSizes(inside, n - inside)
    sizes = [n >> k for k in range(1, n.bit_length()) if n >> k >= FEWEST_GUESSES]
    right = [
        *_right(scores, people.members, people.known, sizes),
        *_right(-scores, ~people.members, people.known, sizes),
    ]
    each = alpha / max(len(right), 1)
    made = [Claims(g, 0, r) for g, r in zip(sizes, right[: len(sizes)], strict=True)]
    made += [Claims(0, g, r) for g, r in zip(sizes, right[len(sizes) :], strict=True)]
    perfect = [Claims(g.members, g.others, min(g.made, inside if g.members else n - inside)) for g in made]
    mu, guesses = max(((mu_at_least(sides, g, each), g.made) for g in made), default=(0.0, 0))
    return GaussianBound(
        mu=mu,
        best=max((mu_at_least(sides, g, each) for g in perfect), default=0.0),
        guesses=guesses,
        pool=n,
        tried=len(made),
        delta=delta or USUAL_DELTA,
    )


def _right(scores: Floats, wanted: Bools, known: Bools, sizes: list[int]) -> list[int]:
    """Right guesses among the highest secret scores, for each number of guesses."""
    on_known, on_secret = (
        np.cumsum(wanted[half][np.argsort(-scores[:, half], axis=1, kind="stable")], axis=1)
        for half in (known, ~known)
    )
    return [int(on_secret[np.argmax(on_known[:, g - 1]), g - 1]) for g in sizes]
