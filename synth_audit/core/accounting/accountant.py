"""What a generator is handed when it fits: it spends here before it looks, and here its guarantee is read."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import NoReturn

from synth_audit.core.accounting.calibration import least_noise
from synth_audit.core.accounting.claim import Origin, StatedClaim
from synth_audit.core.accounting.composition import Spent, fits, spent
from synth_audit.core.accounting.guarantee import (
    Budget,
    Mechanism,
    MechanismRecord,
    Neighbouring,
    PrivacyGuarantee,
    Unit,
)
from synth_audit.core.errors import BudgetSpent, PluginError

NO_GUARANTEE = "no DP guarantee: "
"""How :attr:`Accountant.why_none` begins."""

NOT_PROTECTED = (
    "evidence, measurements and report: they are computed on the real rows without noise",
    "the verdict, and the choice among candidates: both follow from those measurements",
)


class Accountant:
    """Sells privacy loss out of a declared budget.

    A mechanism is *spent on before it runs*: the call raises when the budget cannot bear it, and then the
    mechanism must not run. A loop is spent on once, with its number of steps. Parameters are those of one row
    added or removed; see :class:`MechanismRecord`.

    It cannot be pickled, copied or used by a forked process: a second one would sell the same budget again.

    Args:
        budget: None when the plan declares none; every spending is then refused.
        unit: ``entity`` only when the rows of an entity are bounded by ``rows``.
        rows: the most rows of one unit, declared publicly; the fit must see no more
            (:func:`~synth_audit.core.accounting.contributions.bound_contributions`).
        before: called with each record before it counts, to write it where it lasts; what it raises refuses
            the spending.
    """

    def __init__(
        self,
        budget: Budget | None,
        *,
        unit: Unit,
        neighbouring: Neighbouring = Neighbouring.ADD_OR_REMOVE,
        rows: int = 1,
        before: Callable[[MechanismRecord], object] | None = None,
    ) -> None:
        if rows < 1 or (unit is Unit.ROW and rows != 1):
            raise PluginError(
                "a unit has an impossible number of rows", where="rows", expected="1, or more per entity"
            )
        self.budget = budget
        self.unit = unit
        self.neighbouring = neighbouring
        self.rows = rows
        self._before = before
        self._records: list[MechanismRecord] = []
        self._claim = StatedClaim(unit=unit, neighbouring=neighbouring, rows=rows)
        self._within = ""
        self._lock = threading.RLock()
        self._process = os.getpid()

    @property
    def mechanisms(self) -> tuple[MechanismRecord, ...]:
        """Everything spent, in order."""
        return tuple(self._records)

    def gaussian(self, noise_multiplier: float, *, what: str, count: int = 1) -> None:
        """Spend on ``count`` Gaussian mechanisms over all rows; raises ``BudgetSpent``."""
        self._spend(Mechanism.GAUSSIAN, what, count, noise_multiplier=noise_multiplier)

    def poisson_subsampled_gaussian(
        self, sampling_rate: float, noise_multiplier: float, steps: int, *, what: str
    ) -> None:
        """Spend on ``steps`` Gaussian mechanisms, each over a fresh Poisson sample; raises ``BudgetSpent``.

        Batches must be drawn as stated: every row by a coin of its own, so that their sizes vary, and the sum
        is divided by the *expected* size. Shuffled batches of equal size are another mechanism and cost more.
        """
        kind = Mechanism.POISSON_SUBSAMPLED_GAUSSIAN
        self._spend(kind, what, steps, noise_multiplier=noise_multiplier, sampling_rate=sampling_rate)

    def laplace(self, noise_multiplier: float, *, what: str, count: int = 1) -> None:
        """Spend on ``count`` Laplace mechanisms of ε = 1 / ``noise_multiplier``; raises ``BudgetSpent``."""
        self._spend(Mechanism.LAPLACE, what, count, noise_multiplier=noise_multiplier)

    def exponential(self, epsilon: float, *, what: str, count: int = 1) -> None:
        """Spend on ``count`` exponential mechanisms exp(ε · score / 2 Δ); raises ``BudgetSpent``."""
        self._spend(Mechanism.EXPONENTIAL, what, count, epsilon=epsilon)

    def pure(self, epsilon: float, *, what: str, count: int = 1) -> None:
        """Spend on ``count`` mechanisms known to be ε-DP and no more; raises ``BudgetSpent``."""
        self._spend(Mechanism.PURE, what, count, epsilon=epsilon)

    def approximate(self, epsilon: float, delta: float, *, what: str, count: int = 1) -> None:
        """Spend on ``count`` mechanisms known to be (ε, δ)-DP and no more; raises ``BudgetSpent``."""
        self._spend(Mechanism.APPROXIMATE, what, count, epsilon=epsilon, delta=delta)

    def concentrated(self, rho: float, *, what: str) -> None:
        """Spend ρ of zero-concentrated privacy for one row; raises ``BudgetSpent``.

        Mechanisms whose parameters hang on what earlier ones returned may share it, as long as what they cost
        stays within ρ: see :class:`~synth_audit.core.accounting.concentrated_filter.ConcentratedFilter`.
        """
        self._spend(Mechanism.CONCENTRATED, what, 1, noise_multiplier=(2 * rho) ** -0.5)

    def check_delta(self) -> None:
        """Refuse a budget without δ, before anything is bought of it by who will need δ later.

        Raises:
            BudgetSpent: there is a budget, and its delta is 0.
        """
        if self.budget is not None and self.budget.delta == 0:
            raise BudgetSpent(
                "Gaussian noise needs a delta above 0",
                where="delta",
                expected="a privacy budget with delta above 0, well below one over the number of people",
                fix="declare a delta, or take the generator `priv_bayes`, whose noise needs none",
            )

    def most_concentrated(self) -> float:
        """The most ρ for one row that what is left of the budget bears.

        Raises:
            BudgetSpent: nothing is left, or delta is 0.
        """
        noise = least_noise(
            self._declared("a share of zero-concentrated privacy"),
            rows=self.rows,
            before=self.mechanisms,
            neighbouring=self.neighbouring,
            mechanism=Mechanism.CONCENTRATED,
        )
        return noise**-2 / 2

    def least_noise(
        self, *, sampling_rate: float = 1.0, steps: int = 1, epsilon: float | None = None
    ) -> float:
        """The least noise multiplier with which what was spent and these steps stay within the budget.

        Args:
            epsilon: of the budget, how much all spendings up to and with these steps may reach; all of it if
                left out.

        Raises:
            BudgetSpent: no noise is enough.
        """
        budget = self._declared(f"{steps:,} steps")
        return least_noise(
            budget if epsilon is None else Budget(min(epsilon, budget.epsilon), budget.delta),
            sampling_rate=sampling_rate,
            steps=steps,
            rows=self.rows,
            before=self.mechanisms,
            neighbouring=self.neighbouring,
        )

    def least_laplace_noise(self, count: int = 1, *, epsilon: float | None = None) -> float:
        """The least noise multiplier of ``count`` Laplace mechanisms that what is left of the budget bears.

        Args:
            epsilon: of the budget, how much all spendings up to and with these may reach; all of it if left
                out.

        Raises:
            BudgetSpent: no noise is enough.
        """
        budget = self._declared(f"{count:,} Laplace mechanisms")
        return least_noise(
            budget if epsilon is None else Budget(min(epsilon, budget.epsilon), budget.delta),
            steps=count,
            rows=self.rows,
            before=self.mechanisms,
            neighbouring=self.neighbouring,
            mechanism=Mechanism.LAPLACE,
        )

    def draws(self, rows: int | None) -> None:
        """State how many synthetic rows are drawn.

        Args:
            rows: a public constant; None when as many as there are in train, which gives the number of rows
                away unless neighbours have the same number.
        """
        self._claim.draws(rows)

    def domain(self, origin: Origin) -> None:
        """State where bounds and categories come from; ``inferred`` ends every claim, for good."""
        self._claim.domain(origin)

    def assume(self, text: str) -> None:
        """Record what must hold for the guarantee; no value from the table."""
        self._claim.assume(text)

    def void(self, reason: str) -> None:
        """Give up the claim for good: something touched the real rows that was not paid for."""
        self._claim.void(reason)

    def spent(self, delta: float | None = None) -> Spent:
        """What all spendings cost together, at the budget's delta if none is given."""
        at = delta if delta is not None else (self.budget.delta if self.budget else 0.0)
        return spent(self.mechanisms, at, self.neighbouring)

    @property
    def voids(self) -> tuple[str, ...]:
        """What the claim was given up for."""
        return self._claim.voids

    @contextmanager
    def part(self, what: str, epsilon: float | None = None) -> Iterator[None]:
        """Have one of several independent fits spend from this account, in the block.

        All that is spent composes as if one fit had spent it. A fit that spends nothing, or does not say
        where its bounds and categories come from, ends the claim of the whole: it looked at the rows too.

        Args:
            what: which fit it is; stands before what it buys.
            epsilon: how much all spendings up to the end of the block may reach; the whole budget if left
                out.
        """
        budget, within = self.budget, self._within
        if budget is not None and epsilon is not None:
            self.budget = Budget(min(epsilon, budget.epsilon), budget.delta)
        self._within = f"{within}{what}: "
        try:
            with self._claim.part(what, self._records):
                yield
        finally:
            self.budget, self._within = budget, within

    @property
    def why_none(self) -> str:
        """Why there is no guarantee; empty when there is one."""
        reasons = self._claim.against(self._records)
        return NO_GUARANTEE + "; ".join(reasons) if reasons else ""

    def guarantee(self) -> PrivacyGuarantee | None:
        """What may be claimed of everything drawn from the fit; None for the reason in :attr:`why_none`."""
        if self.why_none:
            return None
        total = self.spent()
        return PrivacyGuarantee(
            unit=self.unit,
            neighbouring=self.neighbouring,
            epsilon=total.epsilon,
            delta=total.delta,
            accountant=total.accountant,
            mechanisms=self.mechanisms,
            assumptions=self._claim.assumptions(self._records),
            not_protected=NOT_PROTECTED,
        )

    def _spend(self, mechanism: Mechanism, what: str, count: int, **parameters: float) -> None:
        what = self._within + what
        record = MechanismRecord(what=what, mechanism=mechanism, count=count, rows=self.rows, **parameters)
        budget = self._declared(what)
        with self._lock:
            if not fits((*self._records, record), budget, self.neighbouring):
                raise BudgetSpent(
                    "the privacy budget cannot bear this mechanism",
                    where=f"{what!r} ({mechanism}, {count:,} times)",
                    expected=f"at most epsilon {budget.epsilon:g} at delta {budget.delta:g} in all",
                    fix="add noise, take fewer steps, or declare a larger budget",
                )
            alone = spent((record,), budget.delta, self.neighbouring)
            record = replace(record, epsilon_alone=alone.epsilon)
            if self._before is not None:
                self._before(record)
            self._records.append(record)

    def _declared(self, what: str) -> Budget:
        if os.getpid() != self._process:
            _refuse_copy()
        if self.budget is None:
            raise BudgetSpent(
                "no privacy budget is declared, so nothing can be spent",
                where=repr(what),
                expected="a declared epsilon and delta",
                fix="declare a budget, or configure the generator without differential privacy",
            )
        return self.budget

    def __reduce__(self) -> NoReturn:
        _refuse_copy()


def _refuse_copy() -> NoReturn:
    raise PluginError(
        "an accountant cannot be copied to another process",
        where="accountant",
        expected="all spending in the process that runs the fit",
        fix="spend before the work is spread; a second accountant would sell the same budget again",
    )
