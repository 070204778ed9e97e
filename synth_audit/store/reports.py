"""Reports that were made of the same people: counted, and told from those of people who hardly differ.

Numbers of reports are computed on real rows without noise. Many of the same people say more together than
each was looked at for (Ganev & De Cristofaro 2025), and two of people who differ by one say by their
difference something of that one. Both are in the ledger of the table; the snapshots of a table share one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from synth_audit.core.errors import BudgetSpent
from synth_audit.core.people_sketch import PeopleSketch
from synth_audit.core.table import Table
from synth_audit.store.attempts import table_ledger
from synth_audit.store.chained_log import Entry
from synth_audit.store.journal import read_journal
from synth_audit.store.ledger import Ledger
from synth_audit.store.salts import workspace_salt
from synth_audit.store.workspace import Workspace

FEWEST = 20
"""People by whom two reports must differ, so that their difference is not about a few."""

_MOSTLY = 0.5
"""Share of the people from which on an earlier report counts as one of the same people."""


@dataclass(frozen=True)
class ReportStanding:
    """Where a report stands among those of its table.

    Attributes:
        number: reports of mostly the same people, this one included.
        near: an earlier one is of people of whom fewer than 20 differ.
    """

    number: int
    near: bool


def people_behind(tables: Iterable[Table | None], workspace: Workspace) -> PeopleSketch:
    """The people of the real tables that a report rests on, comparable within the table's workspaces."""
    key = workspace_salt(workspace.register).key("people behind a report")
    return PeopleSketch.of((t for t in tables if t is not None), key)


def refuse_spent(people: PeopleSketch, workspace: Workspace, most: int | None, repeated: str = "") -> None:
    """Raise ``BudgetSpent`` where a report of these people would be refused; nothing is entered.

    Args:
        repeated: digest of a plan that makes the same candidate of the same people again, and so the same
            report: of which, after a kill, nobody has seen anything.
    """
    if most is None:
        return
    entries = _ledger(workspace).log.entries()
    sets = _sets(entries)
    made = {"kind": "report", "plan": repeated, "people": sets.index(people) if people in sets else None}
    if not any(_is(entry, made) for entry in entries):
        _refuse(_standing(entries, people, None), most)


def enter_report(
    people: PeopleSketch, workspace: Workspace, *, plan: str, candidate: str, most: int | None
) -> ReportStanding:
    """Enter a report before it is made; the same one again, of the same candidate and plan, is no other.

    Args:
        plan: digest of the plan. candidate: salted digest of the candidate.
        most: reports of mostly the same people that may be made; None for any number.

    Raises:
        BudgetSpent: they have been made, or people of an earlier report hardly differ; nothing is entered.
        LedgerDamaged: the ledger is missing beside what was filed, or cannot be trusted.
    """
    with _ledger(workspace).log.appending() as log:
        sets = _sets(log.entries)
        index = sets.index(people) if people in sets else len(sets)
        entry = {"kind": "report", "plan": plan, "candidate": candidate, "people": index}
        standing = _standing(log.entries, people, entry)
        known = any(_is(e, entry) for e in log.entries)
        if most is not None and not known:
            _refuse(standing, most)
        if index == len(sets):
            log.append({"kind": "people", "people": people.people, "sums": list(people.sums)})
        if not known:
            log.append(entry)
    return standing


def _ledger(workspace: Workspace) -> Ledger:
    register = workspace.register
    return table_ledger(register, read_journal(register))


def _sets(entries: Sequence[Entry]) -> list[PeopleSketch]:
    return [PeopleSketch(e["people"], tuple(e["sums"])) for e in entries if e["kind"] == "people"]


def _is(entry: Entry, report: Entry) -> bool:
    return all(entry.get(name) == value for name, value in report.items())


def _standing(entries: Sequence[Entry], people: PeopleSketch, report: Entry | None) -> ReportStanding:
    """Of a report of these people; None for one that is still to be made."""
    sets = _sets(entries)
    same = {i for i, other in enumerate(sets) if people.shared(other) >= _MOSTLY * people.people}
    others = [e for e in entries if e["kind"] == "report" and e["people"] in same]
    if report is not None:
        others = [e for e in others if not _is(e, report)]
    return ReportStanding(len(others) + 1, any(0 < people.differing(other) < FEWEST for other in sets))


def _refuse(standing: ReportStanding, most: int) -> None:
    if standing.number > most:
        raise BudgetSpent(
            f"the reports that may be made of these people are made: this would be number {standing.number}",
            where="review.reports",
            expected=f"at most {most} of mostly the same people",
            fix="use those that are there; or declare a larger number, which is a decision of whoever signs",
        )
    if standing.near:
        raise BudgetSpent(
            f"an earlier report is of people of whom fewer than {FEWEST} differ from these",
            where="review.reports",
            expected="the same people, or others: what two reports differ in tells of whom they differ in",
            fix="report on the table as it was, or wait until more people have come or gone",
        )
