"""Proportions with their intervals, differences of them, and a test of rare counts."""

import math
from dataclasses import dataclass

import numpy as np

from synth_audit.arrays import Bools, Floats, Integers
from synth_audit.findings.measurement import Interval, IntervalEstimate
from synth_audit.stats.resampling import critical_value

METHOD = "wilson"
"""What every interval that rests on that of a proportion is called after."""

NOTHING_SEEN = f"{METHOD}, for nothing seen"
"""What an interval of the width of :func:`unseen_share` is called."""

SOURCE = "Wilson 1927"
"""Where it is from, for readers of a report."""


def proportion_interval(successes: float, n: float, level: float) -> Interval:
    """Wilson score interval of a share.

    ``centre ± half-width``, with
    ``centre = (s + z²/2) / (n + z²)``,
    ``half-width = z / (n + z²) · sqrt(s (n − s) / n + z² / 4)``.

    Args:
        successes: s, between 0 and n; need not be whole when ties count in part.
        n: trials, > 0; may be an effective number.

    Raises:
        ValueError: n is not positive or successes are outside [0, n].

    Source: Wilson 1927; contrastive privacy metrics, section 3.4.
    """
    if n <= 0 or not 0 <= successes <= n:
        raise ValueError("wilson needs n > 0 and 0 <= successes <= n")
    centre, half = middle_and_half_width(successes, n, level)
    low = 0.0 if successes == 0 else max(0.0, centre - half)  # exactly, where rounding would leave a trace
    high = 1.0 if successes == n else min(1.0, centre + half)
    return Interval(low, high, level, METHOD)


def unknown_proportion(level: float) -> Interval:
    """The interval of a share of nothing: the whole of [0, 1]."""
    return Interval(0.0, 1.0, level, METHOD)


def middle_and_half_width(successes: float, n: float, level: float) -> tuple[float, float]:
    """Middle and half-width of the interval of a share, ½ and ½ without trials.

    Before its ends are cut to [0, 1], as risks in the literature use them.
    """
    z = critical_value(level)
    spread = successes * (n - successes) / n if n else 0.0
    return (successes + z * z / 2) / (n + z * z), z / (n + z * z) * math.sqrt(spread + z * z / 4)


def unseen_share(n: float, level: float) -> float:
    """The largest share that the interval leaves possible for what none of n trials showed."""
    return proportion_interval(0, n, level).high


def joined() -> str:
    """What an interval is called whose ends are joined from those of several shares."""
    return f"{METHOD} intervals joined"


def proportion_difference(
    successes_a: float, n_a: float, successes_b: float, n_b: float, level: float
) -> Interval:
    """Interval of the difference of two independent shares a − b from their intervals.

    ``low = (a − b) − sqrt((a − l_a)² + (u_b − b)²)``, ``high = (a − b) + sqrt((u_a − a)² + (b − l_b)²)``.
    Source: Newcombe 1998, method 10.
    """
    a, b = successes_a / n_a, successes_b / n_b
    of_a, of_b = proportion_interval(successes_a, n_a, level), proportion_interval(successes_b, n_b, level)
    low = (a - b) - math.hypot(a - of_a.low, of_b.high - b)
    high = (a - b) + math.hypot(of_a.high - a, b - of_b.low)
    return Interval(low, high, level, "newcombe")


@dataclass(frozen=True)
class Proportion:
    """Successes among trials; effective numbers where trials hang together or weigh unequally.

    Attributes:
        successes: between 0 and ``trials``; need not be whole.
        trials: made, not requested; may be 0.
    """

    successes: float
    trials: float

    @classmethod
    def of(cls, hits: Bools | Floats) -> "Proportion":
        """Count hits, shape (n,): booleans, or the part of each trial that succeeded."""
        return cls(float(np.sum(hits)), len(hits))

    @classmethod
    def of_clusters(cls, hits: Integers, tries: Integers) -> "Proportion":
        """Count trials of which several concern one record and are not independent, shape (records,) each.

        ``r = Σ h / Σ m`` with the variance of a ratio, ``v = Σ (h − r m)² / (Σ m)²``; stated as the
        ``n = r (1 − r) / v`` independent trials, rounded down, that would be as certain: no more than were
        made, and as many as there are records where none differs from another.
        """
        made = int(tries.sum())
        share = float(hits.sum()) / made
        variance = float(np.sum((hits - share * tries) ** 2)) / made**2
        worth = share * (1 - share) / variance if variance > 0 else len(tries)
        n = max(1, min(made, int(worth)))
        return cls(share * n, n)

    @classmethod
    def of_weights(cls, met: Floats, everything: float) -> "Proportion":
        """A sum of weights between 0 and 1 as a count among trials.

        Of k rows with weights w that were met by chance the sum has the variance ``Σ w²``, as a count times
        the unit u = Σ w² / Σ w has. Here ``u = (Σ w² + 1) / (Σ w + 1)``: the next row that is met may weigh
        1. With weights of 1 it is the count itself.

        Args:
            met: weights of the rows that were met, shape (k,). everything: what all rows weigh together.

        Source: Fay & Feuer 1997.
        """
        total, squares = float(met.sum()), float(np.square(met).sum())
        unit = (squares + 1) / (total + 1)
        return cls(min(total, everything) / unit, everything / unit)

    @property
    def share(self) -> float:
        """Successes per trial; NaN without a trial."""
        return self.successes / self.trials if self.trials else math.nan

    def interval(self, level: float) -> Interval:
        """The interval of the share; the whole of [0, 1] without a trial."""
        if not self.trials:
            return unknown_proportion(level)
        return proportion_interval(self.successes, self.trials, level)

    def estimate(self, level: float) -> IntervalEstimate:
        """The share with its interval."""
        return IntervalEstimate(self.share, self.interval(level))

    def less(self, other: "Proportion", level: float) -> IntervalEstimate:
        """The difference to an independent share; see :func:`proportion_difference`."""
        apart = proportion_difference(self.successes, self.trials, other.successes, other.trials, level)
        return IntervalEstimate(self.share - other.share, apart)

    def centre(self, level: float) -> float:
        """The middle of the interval; of Wilson's ``r = (N_S + z²/2) / (N_A + z²)``."""
        return middle_and_half_width(self.successes, self.trials, level)[0]


def chance_of_more(new: int, usual: int, n_new: int, n_usual: int) -> float:
    """How likely so many of ``new + usual`` rare events fall on the first sample, if each row may have one.

    ``P(X ≥ new)`` of ``X ~ Binomial(new + usual, n_new / (n_new + n_usual))``: the exact test that two
    Poisson rates are equal (Przyborowski & Wilenski 1940).

    Args:
        new, usual: events in either sample. n_new, n_usual: their rows.

    Returns:
        in (0, 1]; small where the first sample has more than the second lets expect.
    """
    from scipy.special import betainc  # here, since a code location must not load it

    if new == 0:
        return 1.0
    return float(betainc(new, usual + 1, n_new / (n_new + n_usual)))
