"""What a plan declares of a table's privacy, and what a fit under it spent."""

from __future__ import annotations

from dataclasses import dataclass

from synth_audit.core.accounting.accountant import Accountant
from synth_audit.core.accounting.guarantee import (
    Budget,
    MechanismRecord,
    Neighbouring,
    PrivacyGuarantee,
    Unit,
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
