"""The values of differential privacy: budget, mechanism, guarantee, and what it leaves an attacker."""

import math
from dataclasses import dataclass
from enum import StrEnum

from synth_audit.errors import PluginError

# Wide enough for all that makes sense, narrow enough that nothing overflows on the way.
_RANGES = {"noise_multiplier": (1e-3, 1e6), "sampling_rate": (0, 1), "epsilon": (0, 1e3), "delta": (0, 1)}

LARGEST_EPSILON = 700.0
"""Of a larger one the exponential overflows, and nothing is promised anyway."""


class Unit(StrEnum):
    """Whose presence is hidden: everything of one entity, or one row only."""

    ENTITY = "entity"
    ROW = "row"


class Neighbouring(StrEnum):
    """How two tables differ that must look alike."""

    ADD_OR_REMOVE = "add or remove one"
    REPLACE = "replace one"


class Mechanism(StrEnum):
    """What can be spent on; see :class:`MechanismRecord` for what each is described by."""

    GAUSSIAN = "gaussian"
    POISSON_SUBSAMPLED_GAUSSIAN = "poisson-subsampled gaussian"
    LAPLACE = "laplace"
    EXPONENTIAL = "exponential"
    PURE = "pure"
    APPROXIMATE = "approximate"
    CONCENTRATED = "zero-concentrated"


_PARAMETERS = {
    Mechanism.GAUSSIAN: ("noise_multiplier",),
    Mechanism.POISSON_SUBSAMPLED_GAUSSIAN: ("noise_multiplier", "sampling_rate"),
    Mechanism.LAPLACE: ("noise_multiplier",),
    Mechanism.EXPONENTIAL: ("epsilon",),
    Mechanism.PURE: ("epsilon",),
    Mechanism.APPROXIMATE: ("epsilon", "delta"),
    Mechanism.CONCENTRATED: ("noise_multiplier",),
}


@dataclass(frozen=True)
class Budget:
    """The most that may be spent.

    Attributes:
        epsilon: above 0, finite.
        delta: in [0, 1); well below one over the number of entities, or it promises nothing.

    Raises:
        PluginError: a number is out of range.
    """

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        if not (0 < self.epsilon < math.inf and 0 <= self.delta < 1):
            raise PluginError(
                "a privacy budget is out of range",
                where="budget",
                expected="0 < epsilon < ∞ and 0 ≤ delta < 1",
            )


@dataclass(frozen=True, kw_only=True)
class MechanismRecord:
    """One spending: a mechanism, run ``count`` times.

    All numbers are those of *one row added or removed*; what the neighbouring relation and several rows of
    one entity make of them is the business of :mod:`synth_audit.dp.composition`.

    Attributes:
        what: what it bought, for a reader; never a value from the table.
        mechanism: its kind.
        noise_multiplier: gaussian: standard deviation over the largest L2 norm of one row's contribution (the
            clipping norm); laplace: scale over the largest L1 norm; zero-concentrated: 1 / √(2 ρ), that of
            the Gaussian mechanism of the same ρ.
        sampling_rate: the probability q with which each row joins a batch, by a coin of its own, in (0, 1].
        epsilon, delta: what one run alone guarantees (pure, exponential: delta is 0).
        count: how often it runs.
        rows: the most rows that one unit contributes.
        epsilon_alone: what all ``count`` runs would cost alone, at the delta of the budget they were spent
            from.

    Raises:
        PluginError: a parameter is missing, superfluous or out of range.
    """

    what: str
    mechanism: Mechanism
    noise_multiplier: float | None = None
    sampling_rate: float | None = None
    epsilon: float | None = None
    delta: float | None = None
    count: int = 1
    rows: int = 1
    epsilon_alone: float | None = None

    def __post_init__(self) -> None:
        for name in ("noise_multiplier", "sampling_rate", "epsilon", "delta"):
            value: float | None = getattr(self, name)
            wanted, (least, most) = name in _PARAMETERS[self.mechanism], _RANGES[name]
            if (value is not None) != wanted or not (value is None or least < value <= most):
                raise PluginError(
                    f"the {self.mechanism} mechanism cannot be accounted for",
                    where=f"{name} of {self.what!r}",
                    expected=f"{' and '.join(_PARAMETERS[self.mechanism])}; noise above 0.001, rates to 1",
                )
        if min(self.count, self.rows) < 1 or not self.what:
            raise PluginError(
                "a spending is described badly",
                where=repr(self.what),
                expected="what it buys, and counts of at least 1",
            )


@dataclass(frozen=True)
class PrivacyGuarantee:
    """What differential privacy promises of everything drawn from one fit.

    Attributes:
        unit: whose presence is hidden. With ``row``, an entity with several rows is *not* covered.
        neighbouring: the relation under which it holds.
        epsilon, delta: the promise.
        accountant: what added the mechanisms up.
        mechanisms: what was spent on what.
        assumptions: what must hold for it.
        not_protected: what was computed from real rows outside it.
    """

    unit: Unit
    neighbouring: Neighbouring
    epsilon: float
    delta: float
    accountant: str
    mechanisms: tuple[MechanismRecord, ...]
    assumptions: tuple[str, ...]
    not_protected: tuple[str, ...]

    @property
    def covers_entities(self) -> bool:
        """True when the promise is made to whole entities, however many rows they have."""
        return self.unit is Unit.ENTITY


@dataclass(frozen=True)
class AttackerLimit:
    """The guarantee that holds between the two tables an attacker has to tell apart.

    Attributes:
        label: names the line in a picture, by the guarantee as it was given.
        epsilon, delta: between these two tables.
    """

    label: str
    epsilon: float
    delta: float

    @classmethod
    def of(cls, guarantee: PrivacyGuarantee | None, *, replaced: bool) -> "AttackerLimit | None":
        """The promise of a fit; None where nothing is promised.

        Args:
            replaced: the tables have as many rows, one in the place of another; else one has a row more.
        """
        if guarantee is None:
            return None
        label = f"most that ε = {guarantee.epsilon:g} allows"
        epsilon, delta = guarantee.epsilon, guarantee.delta
        if replaced and guarantee.neighbouring is Neighbouring.ADD_OR_REMOVE:
            epsilon, delta = of_replacing(epsilon, delta)
        return cls(label, epsilon, delta)


def most_found(false_alarms: float, epsilon: float, delta: float) -> float:
    """The largest true-positive rate at a rate of false alarms, ``min(1, e^ε f + δ, 1 − e^−ε (1 − δ − f))``.

    The two tables differ by what the guarantee hides. Concave in ``f``: it holds for a mean over several
    games too.

    Args:
        false_alarms: f, in [0, 1]. epsilon: at least 0. delta: in [0, 1).

    Returns:
        In [f, 1].

    Source: Wasserman & Zhou 2010; Kairouz, Oh & Viswanath 2015.
    """
    factor = math.exp(min(epsilon, LARGEST_EPSILON))
    rising = factor * false_alarms + delta
    falling = 1 - (1 - delta - false_alarms) / factor
    return min(1.0, rising, falling)


def most_advantage(epsilon: float, delta: float) -> float:
    """The largest difference of both rates, ``(e^ε − 1 + 2δ) / (e^ε + 1)``, where the two lines above meet.

    Source: Kairouz, Oh & Viswanath 2015; Humphries et al. 2023.
    """
    factor = math.exp(min(epsilon, LARGEST_EPSILON))
    return (factor - 1 + 2 * delta) / (factor + 1)


def of_replacing(epsilon: float, delta: float) -> tuple[float, float]:
    """The guarantee against one row in another's place, where that of adding or removing one is given.

    Two steps between neighbours: ``(2 ε, (1 + e^ε) δ)``. Source: Dwork & Roth 2014, group privacy.
    """
    return 2 * epsilon, min(1.0, (1 + math.exp(min(epsilon, LARGEST_EPSILON))) * delta)
