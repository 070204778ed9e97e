"""What attacks are worth: success rates of guesses, and the risk that is left when luck is taken out."""

import math
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from synth_audit.arrays import Bools
from synth_audit.findings.measurement import Estimate, Interval, IntervalEstimate
from synth_audit.stats.resampling import critical_value


class SuccessRate(Protocol):
    """How often guesses come true, and how surely."""

    @property
    def trials(self) -> float:
        """Made; may be 0."""

    def interval(self, level: float) -> Interval:
        """Of the rate; the whole of [0, 1] without a guess."""

    def centre(self, level: float) -> float:
        """The middle of the interval of the guesses made."""


def risk(train: SuccessRate, control: SuccessRate, level: float) -> IntervalEstimate:
    """Risk of an attack on training rows, beyond its success on rows the generator never saw.

    ``R = (r_t − r_c) / (1 − r_c)`` on the middles of their intervals (Giomi et al. 2022; contrastive privacy
    metrics, section 3.4), with the interval of :func:`risk_interval`.

    Returns:
        Part of the targets that only knowledge of the release puts at risk, unclipped: 0 none, 1 all, below 0
        by chance. NaN with an infinite interval without a guess on either side.
    """
    method = f"mover on {train.interval(level).method}"
    if not train.trials or not control.trials:
        return IntervalEstimate(math.nan, Interval(-math.inf, math.inf, level, method))
    r_t, r_c = train.centre(level), control.centre(level)
    low, high = risk_interval(r_t, train.interval(level), r_c, control.interval(level))
    return IntervalEstimate((r_t - r_c) / (1 - r_c), Interval(low, high, level, method))


def risk_interval(r_t: float, of_train: Interval, r_c: float, of_control: Interval) -> tuple[float, float]:
    """Ends of the interval of ``R = 1 − a / b``, where ``a = 1 − r_t`` and ``b = 1 − r_c``.

    With ``(l_a, u_a)`` and ``(l_b, u_b)`` the intervals of a and b, from those of the rates, a / b ends at
    ``[a b − sqrt((a b)² − l_a u_b (2a − l_a)(2b − u_b))] / [u_b (2b − u_b)]`` and
    ``[a b + sqrt((a b)² − u_a l_b (2a − u_a)(2b − l_b))] / [l_b (2b − l_b)]``:
    the method of variance estimates recovery for ratios. The published delta method is symmetric: at rates
    of 0.8 and 0.95, with 2,000 in train and 60 to 250 in control, it put the lower end above the truth in 5
    to 29 of 100 cases, not 2.5.
    Where all guesses may succeed on control the risk has no lower end; ``1 − 1 / b``, the least that any
    rate on train gives, stands for it. Source: Donner & Zou 2012.
    """
    a, l_a, u_a = 1 - r_t, 1 - of_train.high, 1 - of_train.low
    b, l_b, u_b = 1 - r_c, 1 - of_control.high, 1 - of_control.low
    b = max(b, u_b / 2 + 1e-12)
    least = a * b - math.sqrt(max(0.0, (a * b) ** 2 - l_a * u_b * (2 * a - l_a) * (2 * b - u_b)))
    high = 1 - least / (u_b * (2 * b - u_b))
    if l_b <= 1e-9:
        return 1 - 1 / b, high
    largest = a * b + math.sqrt(max(0.0, (a * b) ** 2 - u_a * l_b * (2 * a - u_a) * (2 * b - l_b)))
    return 1 - largest / (l_b * (2 * b - l_b)), high


def paired_risk(train: Bools, control: Bools, level: float) -> IntervalEstimate:
    """The same risk where each guess is tried on both tables, shape (n,) each.

    With a, b, c, d the guesses that hit both, train only, control only, neither (½ added to each, after
    Agresti & Min 2005), ``R = (b − c) / (b + d)``, and the delta method takes their correlation into account:
    ``δ_R² = z² [v_t / (1 − p_c)² + v_c (1 − p_t)² / (1 − p_c)⁴ − 2 cov (1 − p_t) / (1 − p_c)³]``,
    ``v = p (1 − p) / n``, ``cov = (a/n − p_t p_c) / n``.
    """
    a, b = np.sum(train & control) + 0.5, np.sum(train & ~control) + 0.5
    c, d = np.sum(~train & control) + 0.5, np.sum(~train & ~control) + 0.5
    n = float(a + b + c + d)
    p_t, p_c = float(a + b) / n, float(a + c) / n
    together = (float(a) / n - p_t * p_c) / n
    variance = (
        p_t * (1 - p_t) / n / (1 - p_c) ** 2
        + p_c * (1 - p_c) / n * (1 - p_t) ** 2 / (1 - p_c) ** 4
        - 2 * together * (1 - p_t) / (1 - p_c) ** 3
    )
    value = (p_t - p_c) / (1 - p_c)
    half = critical_value(level) * math.sqrt(max(variance, 0.0))
    return IntervalEstimate(value, Interval(value - half, value + half, level, "paired delta method"))


def corrected_level(level: float, n_choices: int) -> float:
    """Level at which each of ``n_choices`` intervals must stand for all of them to hold at ``level``.

    ``1 − (1 − level) / n`` (Bonferroni), valid whatever their dependence: what the worst of several
    settings needs.
    """
    return 1 - (1 - level) / max(1, n_choices)


def worst_interval(
    intervals: Sequence[Interval], level: float, tried: str, *, higher_is_safer: bool = False
) -> Interval:
    """Interval of the worst of several choices, from intervals that hold together at ``level``.

    Both ends are the worst over all choices, since the choice with the worst value need not be the least
    certain one.

    Args:
        intervals: each at its :func:`corrected_level`; an end that is NaN leaves the worst one unknown, too.
        tried: how many of what there were, for the reader, such as ``"3 settings"``.
    """
    worst = np.min if higher_is_safer else np.max  # Python's own pass over NaN, depending on its place
    return Interval(
        float(worst([i.low for i in intervals])),
        float(worst([i.high for i in intervals])),
        level,
        f"{intervals[0].method}, corrected for {tried}",
    )


def worst_estimate(
    estimates: Sequence[Callable[[float], Estimate | IntervalEstimate]],
    level: float,
    tried: str,
    *,
    higher_is_safer: bool = False,
) -> IntervalEstimate:
    """The worst of several estimates; an unknown one widens the interval, and the value is of the others.

    Args:
        estimates: each at whatever level it is asked for, with an interval.
        tried: how many of what there were, for the reader.
    """
    each = corrected_level(level, len(estimates))
    intervals = [i for estimate in estimates if (i := estimate(each).interval) is not None]
    values = [v for estimate in estimates if not math.isnan(v := estimate(level).value)]
    worst = (min if higher_is_safer else max)(values, default=math.nan)
    return IntervalEstimate(worst, worst_interval(intervals, level, tried, higher_is_safer=higher_is_safer))
