"""The accountant that a fit spends from, the least noise within a budget, and what plan and fit declare."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal, NoReturn

from synth_audit.dp.composition import COARSE, Spent, by_basic, by_gaussian_curve, by_pld, by_rdp, fits, spent
from synth_audit.dp.guarantee import Budget, Mechanism, MechanismRecord, Neighbouring, PrivacyGuarantee, Unit
from synth_audit.errors import BudgetSpent, PluginError

_STEP = 2e-3  # relative; the coarse grid of losses costs a little more
_LEAST, _MOST = 0.01, 1e5
"""Noise multipliers between which the least sufficient one is searched."""

Origin = Literal["declared", "bought", "inferred"]

_FIXED = (
    "noise, sampling rates and numbers of steps were set beforehand, not by what earlier mechanisms returned"
)

_FILTER = (
    "what shares a zero-concentrated spending was chosen by what came before it, and ran only while the sum "
    "of all that it cost stayed within the share (Feldman & Zrnic 2021)"
)

_FLOATS = "noise is drawn in floating point; the proofs are about real numbers (Mironov 2012)"

_ELSEWHERE = (
    "it is of this fit alone: fits of the same rows add up in the ledger of their workspace, and those of "
    "another workspace, or of one that was deleted, are in none"
)

_POISSON = "each row joined each batch independently at random (Poisson sampling), as it was run"

NO_GUARANTEE = "no DP guarantee: "
"""How :attr:`Accountant.why_none` begins."""

NOT_PROTECTED = (
    "evidence, measurements and report: they are computed on the real rows without noise",
    "the verdict, and the choice among candidates: both follow from those measurements",
)


@cache  # seconds each, and a sweep asks the same for every seed
def _least_noise(
    budget: Budget,
    kind: Mechanism,
    rate: float,
    steps: int,
    rows: int,
    before: tuple[MechanismRecord, ...],
    neighbouring: Neighbouring,
) -> float | None:
    """The smallest noise multiplier, to a percent, of ``steps`` steps within the budget; None for none.

    Epsilon falls with noise, so a bisection over geometric means finds it. What it returns has been checked
    to fit, and is at least 0.01.

    Args:
        rate: of Poisson sampling. rows: the most rows one unit contributes.
        before: what was spent from the same budget already.
    """
    sampled = rate if kind is Mechanism.POISSON_SUBSAMPLED_GAUSSIAN else None
    refused = 0.0  # by the Rényi sum, which then refuses all that is less: it need not be asked

    def enough(noise: float) -> bool:
        nonlocal refused
        step = MechanismRecord(
            what="-", mechanism=kind, noise_multiplier=noise, sampling_rate=sampled, count=steps, rows=rows
        )
        records = (*before, step)
        if by_basic(records, budget.delta, neighbouring).epsilon <= budget.epsilon:
            return True
        if budget.delta == 0:
            return False
        if (exact := by_gaussian_curve(records, budget.delta, neighbouring)) is not None:
            return exact.epsilon <= budget.epsilon
        if noise > refused:
            if by_rdp(records, budget.delta, neighbouring).epsilon <= budget.epsilon:
                return True
            refused = noise
        # The finest grid would at best find a percent less.
        return by_pld(records, budget.delta, neighbouring, grid=COARSE).epsilon <= budget.epsilon

    low, high = _LEAST, 1.0
    while not enough(high):
        low, high = high, 4 * high
        if high > _MOST:
            return None
    while high / low > 1 + _STEP:
        middle = (low * high) ** 0.5
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


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
            (:func:`~synth_audit.dp.mechanisms.bound_contributions`).
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
        self._assumptions: list[str] = []
        self._voids: list[str] = []
        self._rows_void = ""
        self._rows_stated = self._domain_stated = False
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
        stays within ρ: see :class:`~synth_audit.dp.composition.ConcentratedFilter`.
        """
        self._spend(Mechanism.CONCENTRATED, what, 1, noise_multiplier=(2 * rho) ** -0.5)

    def unpaid(self, reason: str) -> bool:
        """Whether nothing can be bought, since no budget is declared; the claim is then given up for this."""
        if self.budget is None:
            self.void(reason)
        return self.budget is None

    def reached(self, share: float) -> float:
        """The ε that all spendings reach with ``share`` of what is left of the budget, if there is one."""
        before = self.spent().epsilon if self._records else 0.0
        return before + share * (self.budget.epsilon - before) if self.budget else before

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
        return self._least(Mechanism.CONCENTRATED, "a share of zero-concentrated privacy") ** -2 / 2

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
        return self._least(Mechanism.GAUSSIAN, f"{steps:,} steps", steps, epsilon, sampling_rate)

    def least_laplace_noise(self, count: int = 1, *, epsilon: float | None = None) -> float:
        """The least noise multiplier of ``count`` Laplace mechanisms that what is left of the budget bears.

        Args:
            epsilon: of the budget, how much all spendings up to and with these may reach; all of it if left
                out.

        Raises:
            BudgetSpent: no noise is enough.
        """
        return self._least(Mechanism.LAPLACE, f"{count:,} Laplace mechanisms", count, epsilon)

    def _least(
        self,
        mechanism: Mechanism,
        what: str,
        steps: int = 1,
        epsilon: float | None = None,
        sampling_rate: float = 1.0,
    ) -> float:
        budget = self._declared(what)
        if epsilon is not None:
            budget = Budget(min(epsilon, budget.epsilon), budget.delta)
        kind = Mechanism.POISSON_SUBSAMPLED_GAUSSIAN if sampling_rate < 1 else mechanism
        noise = _least_noise(
            budget, kind, sampling_rate, steps, self.rows, self.mechanisms, self.neighbouring
        )
        if noise is None:
            laplace = kind is Mechanism.LAPLACE
            raise BudgetSpent(
                f"no amount of {'Laplace' if laplace else 'Gaussian'} noise fits what is left of the privacy "
                "budget",
                where=f"epsilon {budget.epsilon:g}, delta {budget.delta:g}, {steps:,} steps",
                expected=f"a budget{'' if laplace else ' with delta above 0'} of which something is left",
                fix="declare a larger budget, or take fewer steps",
            )
        return noise

    def draws(self, rows: int | None) -> None:
        """State how many synthetic rows are drawn.

        Args:
            rows: a public constant; None when as many as there are in train, which gives the number of rows
                away unless neighbours have the same number.
        """
        self._rows_stated = True
        if rows is not None:
            self.assume(f"the number of rows drawn, {rows:,}, is a public constant")
        elif self.neighbouring is Neighbouring.REPLACE and self.rows == 1:
            self.assume("as many rows are drawn as train has, which neighbours do not differ in")
        else:
            self._rows_void = (
                "as many rows are drawn as train has: the number of rows drawn must be a public constant"
            )

    def domain(self, origin: Origin) -> None:
        """State where bounds and categories come from; ``inferred`` ends every claim, for good."""
        self._domain_stated = True
        if origin == "inferred":
            self.void("inferred bounds or categories: they were read off the real rows")
        elif origin == "bought":
            self.assume("bounds and categories that the plan does not declare were bought from the budget")
        else:
            self.assume("bounds and categories declared in the plan are public knowledge")
        self.assume("so are the names, the order and the stored types of the columns of the source")

    def assume(self, text: str) -> None:
        """Record what must hold for the guarantee; no value from the table."""
        if text not in self._assumptions:
            self._assumptions.append(text)

    def void(self, reason: str) -> None:
        """Give up the claim for good: something touched the real rows that was not paid for."""
        if reason not in self._voids:
            self._voids.append(reason)

    def spent(self, delta: float | None = None) -> Spent:
        """What all spendings cost together, at the budget's delta if none is given."""
        at = delta if delta is not None else (self.budget.delta if self.budget else 0.0)
        return spent(self.mechanisms, at, self.neighbouring)

    @property
    def voids(self) -> tuple[str, ...]:
        """What the claim was given up for, in order."""
        return tuple(self._voids)

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
        before, stated = len(self._records), self._domain_stated
        self._domain_stated = False
        if budget is not None and epsilon is not None:
            self.budget = Budget(min(epsilon, budget.epsilon), budget.delta)
        self._within = f"{within}{what}: "
        try:
            yield
        finally:
            self.budget, self._within = budget, within
            if len(self._records) == before:
                self.void(f"{what} spent nothing on privacy")
            elif not self._domain_stated:
                self.void(f"{what} did not state where bounds and categories come from")
            self._domain_stated |= stated

    @property
    def why_none(self) -> str:
        """Why there is no guarantee; empty when there is one."""
        reasons = list(self._voids)
        if not self._records:
            reasons.append("the generator spent nothing on privacy")
        else:
            if self._rows_void:
                reasons.append(self._rows_void)
            if not self._rows_stated:
                reasons.append("nobody stated how many rows are drawn")
            if not self._domain_stated:
                reasons.append("the generator did not state where bounds and categories come from")
        return NO_GUARANTEE + "; ".join(reasons) if reasons else ""

    def guarantee(self) -> PrivacyGuarantee | None:
        """What may be claimed of everything drawn from the fit; None for the reason in :attr:`why_none`."""
        if self.why_none:
            return None
        kinds = {record.mechanism for record in self._records}
        each = (
            "each row is protected on its own; entities with several rows are not"
            if self.unit is Unit.ROW
            else f"the fit saw at most {self.rows:,} {'row' if self.rows == 1 else 'rows'} of any entity"
        )
        of_kinds = ((Mechanism.POISSON_SUBSAMPLED_GAUSSIAN, _POISSON), (Mechanism.CONCENTRATED, _FILTER))
        own = [text for kind, text in of_kinds if kind in kinds]
        fixed = [_FIXED] if len(self._records) > 1 else []
        total = self.spent()
        return PrivacyGuarantee(
            unit=self.unit,
            neighbouring=self.neighbouring,
            epsilon=total.epsilon,
            delta=total.delta,
            accountant=total.accountant,
            mechanisms=self.mechanisms,
            assumptions=(each, *own, *fixed, _FLOATS, _ELSEWHERE, *self._assumptions),
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


@dataclass(frozen=True, kw_only=True)
class FitTerms:
    """Under which terms a generator may spend.

    Attributes:
        total: the most that all fits on the table may spend together, ever; None when the plan declares none.
        fit: the most that one of them may.
        rows: the most rows of one unit.
        drawn: rows drawn from each fit, a public constant; None for as many as train has.
    """

    total: Budget | None
    fit: Budget | None
    unit: Unit
    neighbouring: Neighbouring = Neighbouring.ADD_OR_REMOVE
    rows: int = 1
    drawn: int | None = None

    def detached(self) -> Accountant:
        """An accountant beside the table's ledger, for a fit of which nothing but evidence comes.

        A game fits a generator again and again and looks at what it draws. What it finds reaches evidence and
        report alone, which no guarantee covers; so nothing of it is debited, and none of it may leave.
        """
        accountant = Accountant(self.fit, unit=self.unit, neighbouring=self.neighbouring, rows=self.rows)
        accountant.draws(self.drawn)
        return accountant


NO_BUDGET = FitTerms(total=None, fit=None, unit=Unit.ROW)
"""Nothing may be spent."""


@dataclass(frozen=True, kw_only=True)
class PrivacyAccount:
    """What one fit spent, the guarantee that follows, and what the whole table has cost with it.

    Attributes:
        guarantee: for everything drawn from this fit; None for the ``reason``.
        mechanisms: everything that the fit spent on, even where no guarantee follows.
        several_rows: some entity has more than one row in what the fit saw.
        table_epsilon, table_delta: all that was ever spent on the table, this fit included.
    """

    guarantee: PrivacyGuarantee | None
    reason: str = ""
    mechanisms: tuple[MechanismRecord, ...] = ()
    several_rows: bool = False
    table_epsilon: float = 0.0
    table_delta: float = 0.0
