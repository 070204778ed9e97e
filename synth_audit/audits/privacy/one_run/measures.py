"""The quantities of the one-run audit, and what it says of its claims."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from synth_audit.audits._tradeoff import LARGEST_MU
from synth_audit.audits.privacy.one_run.gaussian import FEWEST_GUESSES, GaussianBound
from synth_audit.core.measurement import Direction, Interval, Measurement, Quantity, Reference, SampleCounts
from synth_audit.kernels.one_run_bound import (
    LARGEST,
    Chances,
    Claims,
    FixedSizes,
    epsilon_at_least,
    epsilon_usual,
)
from synth_audit.kernels.one_run_claims import ClaimRule
from synth_audit.kernels.proportion_interval import proportion_interval

EMPIRICAL_EPSILON = Quantity(
    "empirical_epsilon",
    "Epsilon that this release costs at least",
    unit="epsilon",
    range=(0.0, LARGEST),
    proportional=False,  # a logarithm
    help="No smaller epsilon allows claims of who was in train to be right so often. 0 proves nothing.",
)
CEILING = Quantity(
    "epsilon_ceiling",
    "Largest epsilon that could be shown here",
    unit="epsilon",
    direction=Direction.NEUTRAL,
    range=(0.0, LARGEST),
    proportional=False,
    help="What claims about everybody whose side was secret would prove if all were right.",
)
BEYOND_CHANCE = Quantity(
    "beyond_chance",
    "Right claims beyond those of guessing",
    direction=Direction.NEUTRAL,
    range=(-1.0, 1.0),
    proportional=False,  # claims are of those that look most like it
    help="Share of the claims that were right, less the share that guessing by the split's odds has right.",
)
EPSILON_REFUTED = Quantity(
    "epsilon_refuted",
    "Epsilon that one run proves beyond the one guaranteed",
    unit="epsilon",
    range=(-math.inf, math.inf),
    proportional=False,  # a logarithm
    help="How far the epsilon that explains the claims lies above the guarantee; at most 0: it holds.",
)
GAUSSIAN_MU = Quantity(
    "gaussian_mu",
    "Lower bound on mu under the Gaussian model",
    unit="score",
    direction=Direction.NEUTRAL,  # no gate rests on it
    range=(0.0, LARGEST_MU),
    proportional=False,
    help="If the generator protects people as Gaussian noise does, mu is at least this. 0 proves nothing.",
)
GAUSSIAN_MU_CONVERTED = Quantity(
    "gaussian_mu_converted",
    "The same, converted at a delta under the Gaussian model",
    unit="score",
    direction=Direction.NEUTRAL,
    range=(0.0, math.inf),
    proportional=False,
    help="What Gaussian noise of this mu costs, at the delta in the notes. It bounds no other generator.",
)
QUANTITIES = (
    EMPIRICAL_EPSILON,
    CEILING,
    BEYOND_CHANCE,
    EPSILON_REFUTED,
    GAUSSIAN_MU,
    GAUSSIAN_MU_CONVERTED,
)

FEWEST_JUDGED = 10
"""With fewer claims about people whose side was secret the number is no evidence."""

_METHOD = "binomial tail of right claims"


@dataclass(frozen=True)
class Judgement:
    """Claims about the half whose sides were secret, and how they were come by.

    Attributes:
        p: probability of train. delta: used in the bound. pool, members: people of whom a claim could
            have been made, and those of them in train.
        claimed: the ε that is guaranteed; None where none is that could be compared.
    """

    chances: Chances
    claims: Claims
    rule: ClaimRule
    alpha: float
    p: float
    delta: float
    pool: int
    members: int
    claimed: float | None

    @property
    def fixed(self) -> bool:
        """Whether the sizes of train and control were fixed."""
        return isinstance(self.chances, FixedSizes)

    @property
    def epsilon(self) -> float:
        """The largest ε that the claims refute."""
        return epsilon_at_least(self.chances, self.claims, self.alpha)

    @property
    def of_these(self) -> float:
        """The same if all of them had been right."""
        return epsilon_at_least(self.chances, self.claims.perfect, self.alpha)

    @property
    def ceiling(self) -> float:
        """The same if everybody had been claimed, and rightly; of a split of fixed sizes all of train."""
        others = 0 if self.fixed else self.pool - self.members
        everybody = Claims(self.members, others, self.members + others)
        return epsilon_at_least(self.chances, everybody, self.alpha)

    @property
    def by_chance(self) -> float:
        """The share of the claims that guessing has right."""
        c = self.claims
        return (c.members * self.p + c.others * (1 - self.p)) / max(c.made, 1)


def measured(judged: Judgement, level: float) -> tuple[Measurement, ...]:
    """All quantities; a guarantee is only compared where there is one."""
    claims, epsilon = judged.claims, judged.epsilon
    middle, high = (max(epsilon, epsilon_usual(judged.chances, claims, x)) for x in (0.5, level))
    counts = SampleCounts(n_requested=judged.pool, n_achieved=claims.made, n_minimum=FEWEST_JUDGED)
    found = [
        EMPIRICAL_EPSILON.at(
            epsilon,
            interval=Interval(epsilon, high, level, _METHOD),
            reference=Reference(0.0, "a release that nobody's presence has changed"),
            **counts,
        ),
        CEILING.at(judged.ceiling, **counts),
    ]
    if claims.made:
        share, chance = proportion_interval(claims.right, claims.made, level), judged.by_chance
        interval = Interval(share.low - chance, share.high - chance, level, share.method)
        reference = Reference(0.0, "guessing")
        value = claims.right / claims.made - chance
        found.append(BEYOND_CHANCE.at(value, interval=interval, reference=reference, **counts))
    if (claimed := judged.claimed) is not None:
        interval = Interval(epsilon - claimed, high - claimed, level, _METHOD)
        reference = Reference(0.0, "a guarantee that the claims do not contradict")
        found.append(EPSILON_REFUTED.at(middle - claimed, interval=interval, reference=reference, **counts))
    return tuple(found)


def told(judged: Judgement, names: Sequence[str]) -> tuple[str, ...]:
    """How the claims were made, in words; no number of people, since that might be a small one."""
    rule, claims = judged.rule, judged.claims
    sides = (
        (rule.members, claims.members, "most were claimed to be in train"),
        (rule.others, claims.others, "least were claimed not to be"),
    )
    made = [
        f"people whom the score {names[threshold.score]!r} suspects {what}"
        for threshold, n, what in sides
        if threshold is not None and n
    ]
    how = "sizes were fixed, train had a share of" if judged.fixed else "every entity went to train with"
    return (
        f"{'; '.join(made) or 'nobody was claimed to be in train'}; score and threshold were chosen on "
        "people who are not counted",
        f"{how} {judged.p:.3g}; α = {judged.alpha:.3g}, δ = {judged.delta:g}; had all of these claims been "
        f"right, they would have shown an epsilon of {judged.of_these:.2f}",
    )


def gaussian_measured(found: GaussianBound) -> tuple[Measurement, ...]:
    """μ under the Gaussian model, and its conversion."""
    counts = SampleCounts(n_requested=found.pool, n_achieved=found.guesses, n_minimum=FEWEST_GUESSES)
    return GAUSSIAN_MU.at(found.mu, **counts), GAUSSIAN_MU_CONVERTED.at(found.converted, **counts)


def gaussian_told(found: GaussianBound, level: float, *, fixed: bool) -> str:
    """What the bound on μ assumes, in words."""
    change = "replacing" if fixed else "adding or removing"
    return (
        f"mu is that of Gaussian differential privacy for {change} one person, with {100 * level:.4g} % "
        f"confidence over {found.tried} numbers and kinds of guesses, converted at δ = {found.delta:g}. It "
        "is no bound on epsilon: the generator need not be Gaussian. No mu above "
        f"{found.best:.2f} could be shown here"
    )
