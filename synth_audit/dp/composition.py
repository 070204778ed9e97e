"""Adds mechanisms up: basic composition, Rényi and zero-concentrated privacy, privacy loss distributions."""

import logging
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from synth_audit.arrays import Floats
from synth_audit.dp.guarantee import Budget, Mechanism, MechanismRecord, Neighbouring
from synth_audit.errors import BudgetSpent, PluginError

_CURVE_ROUNDED = 1 - 1e-6  # of delta: far more than floats lose on the way, and less than 1e-6 of epsilon
_HALVINGS = 100  # more than floats have

BASIC = "basic composition"

RDP = "Rényi differential privacy (dp-accounting)"

PLD = "privacy loss distributions (dp-accounting)"

EXACT = "the exact sum of Gaussian mechanisms"

COARSE, _FINE = 1e-3, 1e-4  # grids of privacy loss; either rounds up

_HOPEFUL = 1.5  # how far above a budget the coarse grid may be for the fine one to be asked

_HOPELESS = 500.0  # beyond it the grid is not worth its time: the Rényi sum is within a few percent

_REMEMBERED = 1024  # sums: a game asks the same of every fit, a guarantee what was asked when it was spent

_FEW = (2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 63.0)  # orders

_WIDE = 10.0  # above this epsilon the grid grows with it, or noise of 0.05 would take half a minute

_SHARE_ROUNDED = 1e-9  # relative; what sums of floats may miss by


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The least ε, rounded up, at which a Gaussian mechanism is (ε, δ)-differentially private.

    δ(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ), which falls with ε (Balle & Wang 2018, theorem 8). Mechanisms of
    μ₁, μ₂ … whose parameters were set beforehand are together one of √(μ₁² + μ₂² + …) (Dong et al. 2022).

    Args:
        mu: the largest L2 change of what noise is added to, over its standard deviation; above 0.
        delta: in (0, 1).

    Returns:
        0 or more.
    """
    wanted = delta * _CURVE_ROUNDED
    if _delta(0.0, mu) <= wanted:
        return 0.0
    low, high = 0.0, mu
    while _delta(high, mu) > wanted:
        low, high = high, 2 * high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if _delta(middle, mu) > wanted else (low, middle)
    return high


def _delta(epsilon: float, mu: float) -> float:
    """e^ε Φ(b) is written as φ(a) Φ(b) / φ(b), in which nothing overflows: b² − a² = 2 ε."""
    from scipy.special import erfcx, ndtr  # here, so that looking around stays light

    a, b = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
    return float(ndtr(a) - math.exp(-a * a / 2) * erfcx(-b / math.sqrt(2)) / 2)


@dataclass(frozen=True)
class Spent:
    """What mechanisms cost together: ``epsilon`` at ``delta``, as ``accountant`` has it."""

    epsilon: float
    delta: float
    accountant: str


def spent(records: Sequence[MechanismRecord], delta: float, neighbouring: Neighbouring) -> Spent:
    """The smallest of the sums; epsilon is infinite where none is finite at this delta."""
    basic = by_basic(records, delta, neighbouring)
    if delta == 0:
        return basic
    if (exact := by_gaussian_curve(records, delta, neighbouring)) is not None:
        return exact
    others = by_rdp(records, delta, neighbouring), by_pld(records, delta, neighbouring)
    return min(basic, *others, key=lambda found: found.epsilon)


def fits(records: Sequence[MechanismRecord], budget: Budget, neighbouring: Neighbouring) -> bool:
    """True when the mechanisms together stay within the budget; asks the costly sums only when it must."""
    if by_basic(records, budget.delta, neighbouring).epsilon <= budget.epsilon:
        return True
    if budget.delta == 0:
        return False
    if (exact := by_gaussian_curve(records, budget.delta, neighbouring)) is not None:
        return exact.epsilon <= budget.epsilon
    if by_rdp(records, budget.delta, neighbouring).epsilon <= budget.epsilon:
        return True
    coarse = by_pld(records, budget.delta, neighbouring, grid=COARSE).epsilon
    if coarse <= budget.epsilon or coarse > _HOPEFUL * budget.epsilon:
        return coarse <= budget.epsilon
    return by_pld(records, budget.delta, neighbouring).epsilon <= budget.epsilon


def by_basic(records: Sequence[MechanismRecord], delta: float, neighbouring: Neighbouring) -> Spent:
    """Σ ε at Σ δ; infinite when a Gaussian is among them or Σ δ exceeds ``delta``."""
    epsilons, deltas = [0.0], [0.0]
    for record in records:
        epsilon, own_delta = _guaranteed(record, neighbouring)
        epsilons.append(record.count * epsilon)
        deltas.append(record.count * own_delta)
    total = math.fsum(deltas)
    return Spent(math.fsum(epsilons) if total <= delta else math.inf, min(total, delta), BASIC)


def by_gaussian_curve(
    records: Sequence[MechanismRecord], delta: float, neighbouring: Neighbouring
) -> Spent | None:
    """Gaussian mechanisms as the one that they amount to, of μ² = Σ (change / σ)², read off at ``delta`` > 0.

    None where there are no mechanisms, or others among them.
    """
    if not records or any(r.mechanism is not Mechanism.GAUSSIAN for r in records):
        return None
    squares = (r.count * (_changes(r, neighbouring) / _positive(r.noise_multiplier)) ** 2 for r in records)
    return Spent(gaussian_epsilon(math.sqrt(math.fsum(squares)), delta), delta, EXACT)


def by_rdp(records: Sequence[MechanismRecord], delta: float, neighbouring: Neighbouring) -> Spent:
    """Rényi divergences added order by order, read off at ``delta`` > 0; an (ε, δ) mechanism has none."""
    return Spent(_renyi_sum(tuple(_merged(records)), delta, neighbouring), delta, RDP)


@lru_cache(maxsize=_REMEMBERED)
def _renyi_sum(
    records: tuple[MechanismRecord, ...],
    delta: float,
    neighbouring: Neighbouring,
    among: tuple[float, ...] | None = None,
) -> float:
    from dp_accounting import rdp

    orders = rdp.RdpAccountant(among).orders
    total: Floats = np.zeros_like(orders)
    with _quiet():
        for record in records:
            total = total + record.count * _divergences(record, neighbouring, orders)
        return float(rdp.compute_epsilon(orders, total, delta)[0]) if np.isfinite(total).any() else math.inf


def by_pld(
    records: Sequence[MechanismRecord], delta: float, neighbouring: Neighbouring, *, grid: float = _FINE
) -> Spent:
    """Privacy losses convolved on a grid and rounded up, read off at ``delta`` > 0."""
    size = _rough_size(records, delta, neighbouring)
    if size > _HOPELESS or any(r.mechanism is Mechanism.CONCENTRATED for r in records):
        return Spent(math.inf, delta, PLD)
    if any(r.mechanism is Mechanism.POISSON_SUBSAMPLED_GAUSSIAN and r.rows > 1 for r in records):
        grid = max(grid, COARSE)  # a mixture is inverted point by point: half a minute on the fine one
    interval = grid * max(1.0, size / _WIDE)
    return Spent(_convolved(tuple(_merged(records)), delta, neighbouring, interval), delta, PLD)


@lru_cache(maxsize=_REMEMBERED)
def _convolved(
    records: tuple[MechanismRecord, ...], delta: float, neighbouring: Neighbouring, interval: float
) -> float:
    from dp_accounting.pld import privacy_loss_distribution as pld

    total = pld.identity(value_discretization_interval=interval)
    for record in records:
        total = total.compose(_losses(record, neighbouring, interval))
    return float(total.get_epsilon_for_delta(delta))


def _rough_size(records: Sequence[MechanismRecord], delta: float, neighbouring: Neighbouring) -> float:
    """Roughly the epsilon to expect. It sets the grid only, so that nothing sound hangs on it.

    Few orders bound it, which is enough where the grid would not grow; other than whole ones take long.
    """
    opaque = [r for r in records if r.mechanism is Mechanism.APPROXIMATE]
    others = [r for r in records if r.mechanism is not Mechanism.APPROXIMATE]
    doubled = 2 if neighbouring is Neighbouring.REPLACE else 1
    rest = by_basic(opaque, math.inf, neighbouring).epsilon
    if not others:
        return rest
    bound = doubled * _renyi_sum(tuple(_merged(others)), delta, Neighbouring.ADD_OR_REMOVE, _FEW) + rest
    if bound <= _WIDE:
        return bound
    return doubled * by_rdp(others, delta, Neighbouring.ADD_OR_REMOVE).epsilon + rest


def _guaranteed(record: MechanismRecord, neighbouring: Neighbouring) -> tuple[float, float]:
    """(ε, δ) of one run for the whole unit; ε is infinite for Gaussian noise, which has none at δ = 0."""
    size = _changes(record, neighbouring)
    if record.mechanism is Mechanism.LAPLACE:
        return size / _positive(record.noise_multiplier), 0.0
    if record.epsilon is None:
        return math.inf, 0.0
    delta = record.delta or 0.0
    if delta and size > 1:  # group privacy
        try:
            delta *= math.expm1(size * record.epsilon) / math.expm1(record.epsilon)
        except OverflowError:
            delta = 1.0
    return size * record.epsilon, min(delta, 1.0)


def _divergences(record: MechanismRecord, neighbouring: Neighbouring, orders: Floats) -> Floats:
    """Rényi divergence of one run at each order."""
    import dp_accounting as dp
    from dp_accounting import rdp

    size = _changes(record, neighbouring)
    event: dp.DpEvent
    match record.mechanism:
        case Mechanism.GAUSSIAN | Mechanism.CONCENTRATED:
            event = dp.GaussianDpEvent(_positive(record.noise_multiplier) / size)
        case Mechanism.POISSON_SUBSAMPLED_GAUSSIAN:
            event = dp.GaussianDpEvent(_positive(record.noise_multiplier) / size)
            if neighbouring is Neighbouring.ADD_OR_REMOVE:
                rate = _positive(record.sampling_rate)
                any_drawn = 1.0 if rate == 1 else -math.expm1(record.rows * math.log1p(-rate))
                event = dp.PoissonSampledDpEvent(any_drawn, event)
        case Mechanism.LAPLACE:
            event = dp.LaplaceDpEvent(_positive(record.noise_multiplier) / size)
        case Mechanism.APPROXIMATE:
            return np.full_like(orders, math.inf)
        case _:
            return _pure_divergences(record, size, orders)
    found: Floats = rdp.RdpAccountant(orders).compose(event).rdp
    return found


def _pure_divergences(record: MechanismRecord, size: int, orders: Floats) -> Floats:
    import dp_accounting as dp
    from dp_accounting import rdp

    epsilon = size * _positive(record.epsilon)
    # A coin that lies with probability 1/(1 + e^ε): two answers, replaced at random with twice that.
    lie = 2 * math.exp(-epsilon) / (1 + math.exp(-epsilon))
    worst = rdp.RdpAccountant(orders, dp.NeighboringRelation.REPLACE_ONE)
    found: Floats = worst.compose(dp.RandomizedResponseDpEvent(lie, 2)).rdp
    if record.mechanism is Mechanism.EXPONENTIAL:
        return np.minimum(found, epsilon**2 / 8 * orders)
    return found


@lru_cache(maxsize=64)  # those of what was bought before, while noise is calibrated and when it is added up
def _losses(record: MechanismRecord, neighbouring: Neighbouring, interval: float) -> Any:
    """The privacy loss distribution of all runs."""
    from dp_accounting.pld import common
    from dp_accounting.pld import privacy_loss_distribution as pld

    size, grid = _changes(record, neighbouring), {"value_discretization_interval": interval}
    match record.mechanism:
        case Mechanism.GAUSSIAN:
            noise = _positive(record.noise_multiplier) / size / math.sqrt(record.count)
            return pld.from_gaussian_mechanism(noise, **grid)
        case Mechanism.POISSON_SUBSAMPLED_GAUSSIAN:
            once = _sampled_losses(record, neighbouring, grid)
        case Mechanism.LAPLACE:
            once = pld.from_laplace_mechanism(_positive(record.noise_multiplier) / size, **grid)
        case _:
            bound = common.DifferentialPrivacyParameters(*_guaranteed(record, neighbouring))
            once = pld.from_privacy_parameters(bound, **grid)
    return once.self_compose(record.count)


def _sampled_losses(record: MechanismRecord, neighbouring: Neighbouring, grid: dict[str, float]) -> Any:
    import dp_accounting as dp
    from dp_accounting.pld import privacy_loss_distribution as pld

    noise, rate = _positive(record.noise_multiplier), _positive(record.sampling_rate)
    if rate == 1:
        return pld.from_gaussian_mechanism(noise / _changes(record, neighbouring), **grid)
    if record.rows == 1:
        relation = dp.NeighboringRelation[
            "REPLACE_ONE" if neighbouring is Neighbouring.REPLACE else "ADD_OR_REMOVE_ONE"
        ]
        return pld.from_gaussian_mechanism(noise, sampling_prob=rate, neighboring_relation=relation, **grid)
    shares = [
        math.comb(record.rows, i) * rate**i * (1 - rate) ** (record.rows - i) for i in range(record.rows + 1)
    ]
    drawn = [i for i, share in enumerate(shares) if share > 0]
    return pld.from_mixture_gaussian_mechanism(noise, drawn, [shares[i] for i in drawn], **grid)


def _changes(record: MechanismRecord, neighbouring: Neighbouring) -> int:
    """How many additions or removals of a row one step between neighbours amounts to.

    Raises:
        PluginError: Poisson sampling, several rows and replacement together, for which no bound is
            implemented.
    """
    replaced = neighbouring is Neighbouring.REPLACE
    if replaced and record.rows > 1 and record.mechanism is Mechanism.POISSON_SUBSAMPLED_GAUSSIAN:
        raise PluginError(
            "Poisson sampling of several rows per entity has no sum under replacing one",
            where=repr(record.what),
            expected=f"neighbouring: {Neighbouring.ADD_OR_REMOVE}",
            fix="keep one row per entity, or use the other relation",
        )
    return record.rows * (2 if replaced else 1)


def _merged(records: Sequence[MechanismRecord]) -> list[MechanismRecord]:
    """One record per set of parameters, runs added up: many small spendings cost no more time than one."""
    runs: Counter[MechanismRecord] = Counter()
    for record in records:
        runs[replace(record, what="-", count=1, epsilon_alone=None)] += record.count
    return [replace(record, count=count) for record, count in runs.items()]


def _positive(value: float | None) -> float:
    assert value is not None  # the record's own check
    return value


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the note that an order was left out because its series did not converge; the rest bounds."""
    logger, silent = logging.getLogger("absl"), logging.Filter("no such logger")
    logger.addFilter(silent)
    try:
        yield
    finally:
        logger.removeFilter(silent)


class ConcentratedFilter:
    """Lets mechanisms run until ρ is spent, though each is chosen by what earlier ones returned.

    The sum of what they cost is bounded whatever is chosen, and then all of them together have ρ
    (Feldman & Zrnic 2021; Whitehouse et al. 2023). To be bought from an accountant first.

    Args:
        rho: for one row added or removed.
    """

    def __init__(self, rho: float) -> None:
        self.rho = rho * (1 - _SHARE_ROUNDED)
        self._costs: list[float] = []

    @property
    def left(self) -> float:
        """What can still be spent, 0 or more."""
        return max(0.0, self.rho - math.fsum(self._costs))

    @property
    def used(self) -> float:
        """The share of ρ that was spent, 0 to 1."""
        return min(1.0, math.fsum(self._costs) / self.rho)

    def gaussian(self, noise_multiplier: float) -> None:
        """Spend 1 / (2 σ²) before a Gaussian mechanism of this noise over its L2 sensitivity.

        Raises:
            BudgetSpent: it is more than what is left; the mechanism must not run.
        """
        self._spend(noise_multiplier**-2 / 2)

    def exponential(self, epsilon: float) -> None:
        """Spend ε² / 8 before an exponential mechanism (Cesar & Rogers 2021).

        Raises:
            BudgetSpent: it is more than what is left; the mechanism must not run.
        """
        self._spend(epsilon**2 / 8)

    def _spend(self, rho: float) -> None:
        if not rho <= self.left + _SHARE_ROUNDED * self.rho:
            raise BudgetSpent(
                "a mechanism costs more than is left of the share it was to come from",
                where="zero-concentrated privacy",
                expected=f"at most {self.left:.3g} of {self.rho:.3g}",
            )
        self._costs.append(rho)
