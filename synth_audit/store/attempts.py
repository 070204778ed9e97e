"""Attempts on a table: counted before the attack, closed with what it found; the last one governs."""

from __future__ import annotations

import os
from collections.abc import Mapping

from synth_audit.core.verdict import Result
from synth_audit.store.evidence import AttemptCount, Evidence, TableRecord, sha256_of
from synth_audit.store.ledger import Attempt, Ledger
from synth_audit.store.workspace import Workspace


def ledger_of(workspace: Workspace) -> Ledger:
    """The ledger of the workspace's table, without which there can be no journal."""
    return Ledger(workspace.home.restricted, history=os.path.lexists(workspace.journal))


def begin_attempt(
    workspace: Workspace, plan: str, suite: str, tables: Mapping[str, TableRecord]
) -> AttemptCount:
    """Enter an attempt before its candidate is attacked, so that one that is broken off counts too.

    The same candidate under the same plan and suite, beside the same real rows, is the same attempt.

    Args:
        plan, suite: their digests. tables: with the candidate as ``synthetic``.
    """
    beside = {"suite": suite} | {n: t.identity for n, t in tables.items() if n != "synthetic"}
    ledger = ledger_of(workspace)
    number = ledger.attempt(plan=plan, candidate=tables["synthetic"].identity, beside=sha256_of(beside))
    earlier = [a for a in ledger.attempts() if a.number < number]
    return AttemptCount(number, sum(a.verdict != Result.PASS for a in earlier))


def close_attempt(workspace: Workspace, number: int, evidence: Evidence) -> None:
    """Enter how an attempt ended, unless the ledger has it."""
    ledger = ledger_of(workspace)
    known = next((a for a in ledger.attempts() if a.number == number), None)
    end = {"verdict": str(evidence.verdict), "evidence": evidence.digest}
    if known is None or (known.verdict, known.evidence) != tuple(end.values()):
        ledger.judged(number, **end)


def governing_attempt(workspace: Workspace, evidence: Evidence) -> Attempt | None:
    """The last attempt on the rows that evidence is about: what it found counts, whatever was found before.

    None where no attempt on them came to an end.
    """
    about = evidence.tables.get("synthetic")
    ended = [
        a for a in ledger_of(workspace).attempts() if about and a.verdict and a.candidate == about.identity
    ]
    return max(ended, key=lambda a: a.number, default=None)
