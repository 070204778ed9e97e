"""The values of differential privacy: budget, mechanism that spent from it, guarantee that follows."""

import math
from dataclasses import dataclass
from enum import StrEnum

from synth_audit.errors import PluginError

# Wide enough for all that makes sense, narrow enough that nothing overflows on the way.
_RANGES = {"noise_multiplier": (1e-3, 1e6), "sampling_rate": (0, 1), "epsilon": (0, 1e3), "delta": (0, 1)}


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
