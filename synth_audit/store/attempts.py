"""Attempts on a table: each enters its ledger before the candidate is attacked, and counts for ever."""

from __future__ import annotations

from synth_audit.store.chained_log import Head
from synth_audit.store.journal import Journal, read_journal
from synth_audit.store.ledger import Attempt, Ledger
from synth_audit.store.workspace import Workspace


def table_ledger(workspace: Workspace, journal: Journal | None) -> Ledger:
    """The ledger of the table, which all its candidates and partitions share.

    Args:
        journal: the table's; where it has seen the ledger, there must be one.
    """
    return Ledger(workspace.home.restricted, history=journal is not None and journal.ledger is not None)


def begin_attempt(
    workspace: Workspace, *, plan: str, candidate: str, suite: str = ""
) -> tuple[int, Head, tuple[Attempt, ...]]:
    """Enter an attempt into the table's ledger, before the candidate is attacked: broken off it counts too.

    Returns:
        Its number, how far the ledger has come with it, and earlier attempts under other settings.

    Raises:
        LedgerDamaged: the ledger is missing beside what was filed, or cannot be trusted; nothing may run.
    """
    ledger = table_ledger(workspace, read_journal(workspace))
    number = ledger.attempt(plan=plan, candidate=candidate, suite=suite)
    return number, ledger.head(), ledger.other_settings(number)
