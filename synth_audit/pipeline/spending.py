"""Pays for what a generator spends on privacy out of the table's budget, before it runs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from synth_audit.dp.accountant import Accountant, FitTerms, PrivacyAccount
from synth_audit.errors import DataError
from synth_audit.plan.plan import Plan
from synth_audit.store.journal import read_journal
from synth_audit.store.ledger import Ledger, table_ledger
from synth_audit.store.stage_records import SyntheticRecord
from synth_audit.store.workspace import Workspace
from synth_audit.table.people import entities_of
from synth_audit.table.table import Table


@dataclass(frozen=True)
class Spender:
    """The table's ledger under a plan's terms.

    Attributes:
        plan: digest of the plan.
    """

    ledger: Ledger
    terms: FitTerms
    plan: str

    @classmethod
    def of(cls, plan: Plan, workspace: Workspace) -> Spender:
        """For a fit in this workspace; candidates of a sweep spend from the table's own ledger."""
        ledger = table_ledger(workspace, read_journal(workspace))
        return cls(
            replace(ledger, history=ledger.history or _has_spent(workspace)), plan.fit_terms, plan.digest
        )

    def accountant(self) -> Accountant:
        """An accountant for one fit, whose every spending is debited before it counts."""
        terms = self.terms
        if terms.total is None or terms.fit is None:
            return terms.detached()  # it has no budget and refuses whatever is spent
        accountant = self.ledger.accountant(
            terms.fit,
            plan=self.plan,
            total=terms.total,
            unit=terms.unit,
            neighbouring=terms.neighbouring,
            rows=terms.rows,
        )
        accountant.draws(terms.drawn)
        return accountant

    def account(self, accountant: Accountant, known: Table) -> PrivacyAccount:
        """What the fit spent.

        Args:
            known: the rows that the fit saw, with their keys.
        """
        total = self.terms.total
        if total is None and not accountant.mechanisms:
            return account_of(accountant)
        spent = self.ledger.spent(total.delta) if total is not None else accountant.spent()
        entities = entities_of(known)
        return PrivacyAccount(
            guarantee=accountant.guarantee(),
            reason=accountant.why_none,
            mechanisms=accountant.mechanisms,
            several_rows=len(set(entities)) < len(entities),
            table_epsilon=spent.epsilon,
            table_delta=spent.delta,
        )


def account_of(accountant: Accountant) -> PrivacyAccount:
    """What an accountant beside the ledger says; of most generators, why there is no guarantee."""
    return PrivacyAccount(
        guarantee=accountant.guarantee(), reason=accountant.why_none, mechanisms=accountant.mechanisms
    )


def _has_spent(workspace: Workspace) -> bool:
    """Whether a candidate of the table lies here whose fit was debited, so that there must be a ledger."""
    for path in _records(workspace.home):
        try:
            account = SyntheticRecord.read(path).generator.privacy
        except DataError:
            continue
        if account.mechanisms:
            return True
    return False


def _records(home: Workspace) -> Iterator[Path]:
    yield home.synthetic_record
    if os.path.isdir(home.candidates):
        yield from (home.candidate(p.name).synthetic_record for p in home.candidates.iterdir())
