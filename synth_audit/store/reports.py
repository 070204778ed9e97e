"""Reports that were made of the same people, what they say for machines, and whether pages are unaltered."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from html import unescape

import numpy as np

from synth_audit.arrays import Integers
from synth_audit.errors import BudgetSpent, DataError
from synth_audit.files import read_plain
from synth_audit.findings.verdict import Fitness, GateResult
from synth_audit.hashing import framed
from synth_audit.store.approvals import Approval
from synth_audit.store.evidence import Evidence
from synth_audit.store.evidence_store import REPORT
from synth_audit.store.files import make_private, sha256_of_bytes, write_text
from synth_audit.store.journal import Entry, read_journal
from synth_audit.store.ledger import Ledger, table_ledger
from synth_audit.store.locate import LocatedEvidence
from synth_audit.store.salts import workspace_salt
from synth_audit.store.workspace import Workspace
from synth_audit.table.people import SIGNS, PeopleSketch
from synth_audit.table.table import Table

FEWEST_DIFFERING = 20
"""People by whom two reports must differ, so that their difference is not about a few."""

_MOSTLY = 0.5
"""Share of the people from which on an earlier report counts as one of the same people."""

Marks = Mapping[str, str]
"""Attributes of one element of a page, by which machines read what it says."""

WRITTEN_BY = "data-written-by"

_AUDIT, _GATE = "data-evidence-digest", "data-gate"

_ATTRIBUTE_NAME = "(?:[a-z]+[A-Z][A-Za-z]*|[a-z][a-z0-9:-]*)"
_ATTRIBUTE_VALUE = '(?:[^"<>&]|&(?:amp|lt|gt|quot|#34|#39|#x27);)*+'
_ATTRIBUTE = re.compile(rf' ({_ATTRIBUTE_NAME})(?:="({_ATTRIBUTE_VALUE})")?')
_TAG_ATTRIBUTES = rf'(?: {_ATTRIBUTE_NAME}(?:="{_ATTRIBUTE_VALUE}")?)*+'
_OTHER_TEXT = "style|title|script|template|textarea|select|xmp|iframe|frameset|plaintext|no[a-z]+"
"""Elements within which a browser sees no tags, or not all."""

_TAG = re.compile(r"<[a-z][^>]*>")
_PLAIN_PAGE = re.compile(  # without groups that are kept: Python 3.11 fails on those within a possessive one
    rf"(?:[^<]++|<!DOCTYPE html>|</[a-z][a-z0-9]*+>"
    rf"|<style{_TAG_ATTRIBUTES}>[^<]*+</style>|<title{_TAG_ATTRIBUTES}>[^<]*+</title>"
    rf"|<(?!(?:{_OTHER_TEXT})[ />])[a-z][a-z0-9]*+{_TAG_ATTRIBUTES}/?>)*+"
)
"""A page in the HTML that the templates write, of which every reader makes the same elements."""


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
    entries = _ledger(workspace).entries()
    sets = _Sets.of(entries)
    made = {"kind": "report", "plan": repeated, "people": sets.index(people)}
    if not any(_is(entry, made) for entry in entries):
        _refuse(_standing(entries, sets, people, None), most)


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
    with _ledger(workspace).appending() as log:
        sets = _Sets.of(log.entries)
        index = sets.index(people)
        entry = {"kind": "report", "plan": plan, "candidate": candidate, "people": index}
        standing = _standing(log.entries, sets, people, entry)
        known = any(_is(e, entry) for e in log.entries)
        if most is not None and not known:
            _refuse(standing, most)
        if index == len(sets.people):
            log.append({"kind": "people", "people": people.people, "sums": list(people.sums)})
        if not known:
            log.append(entry)
    return standing


def _ledger(workspace: Workspace) -> Ledger:
    register = workspace.register
    return table_ledger(register, read_journal(register))


@dataclass(frozen=True, eq=False)
class _Sets:
    """The sketches that were entered: numbers of people, shape (n,), and their sums, shape (n, 256)."""

    people: Integers
    sums: Integers

    @classmethod
    def of(cls, entries: Sequence[Entry]) -> "_Sets":
        of = [e for e in entries if e["kind"] == "people"]
        sums = np.fromstring(",".join(e["sums"] for e in of), np.int64, sep=",").reshape(-1, SIGNS)
        return cls(np.array([e["people"] for e in of], np.int64), sums)

    def index(self, people: PeopleSketch) -> int:
        """Where these people stand; the number of sets where they do not."""
        same = (self.people == people.people) & (self.sums == people.sums).all(axis=1)
        return [*np.flatnonzero(same).tolist(), len(same)][0]


def _is(entry: Entry, report: Entry) -> bool:
    return all(entry.get(name) == value for name, value in report.items())


def _standing(
    entries: Sequence[Entry], sets: _Sets, people: PeopleSketch, report: Entry | None
) -> ReportStanding:
    """Of a report of these people; None for one that is still to be made."""
    differing = people.differing(sets.sums)
    shared = (people.people + sets.people - differing) / 2
    same = set(np.flatnonzero(shared >= _MOSTLY * people.people).tolist())
    others = [e for e in entries if e["kind"] == "report" and e["people"] in same]
    if report is not None:
        others = [e for e in others if not _is(e, report)]
    near = (differing > 0) & (differing < FEWEST_DIFFERING)
    return ReportStanding(len(others) + 1, bool(near.any()))


def _refuse(standing: ReportStanding, most: int) -> None:
    if standing.number > most:
        raise BudgetSpent(
            f"the reports that may be made of these people are made: this would be number {standing.number}",
            where="review.reports",
            expected=f"at most {most} of mostly the same people",
            fix="use those that are there, or let the person who signs declare a larger number",
        )
    if standing.near:
        raise BudgetSpent(
            f"an earlier report is about nearly the same people: fewer than {FEWEST_DIFFERING} differ",
            where="review.reports",
            expected="the same people, or more others, since two reports tell about the difference",
            fix="report on the table as it was, or wait for more changes",
        )


@dataclass(frozen=True)
class PageMarks:
    """The marks of one page; gates in no order.

    Attributes:
        written_by: version of the package that wrote the page; empty when it says so nowhere.
    """

    audit: Marks
    gates: tuple[Marks, ...]
    written_by: str = ""


def audit_marks(evidence: Evidence) -> Marks:
    """Attributes of the page's main part."""
    return {
        _AUDIT: evidence.digest,
        "data-schema-version": _ascii(evidence.schema_version),
        "data-verdict": str(evidence.verdict),
        "data-attempt": str(evidence.attempt),
        # absent where it was not tested
        **({} if evidence.fitness is Fitness.NOT_TESTED else {"data-fitness": str(evidence.fitness)}),
    }


def gate_marks(gate: GateResult) -> Marks:
    """Attributes of one gate: numbers to their last digit, without those that it does not have."""
    numbers = {name: getattr(gate, name) for name in ("value", "low", "high", "minimum", "maximum")}
    return {
        _GATE: _ascii(gate.gate),
        "data-result": str(gate.result),
        "data-blocking": str(gate.blocking).lower(),
        "data-measurement": _ascii(str(gate.measurement or "")),
        "data-every": str(gate.every).lower(),
        "data-bound": _ascii(gate.bound),
    } | {f"data-{name}": repr(float(x)) for name, x in numbers.items() if x is not None}


def marks_of(evidence: Evidence) -> PageMarks:
    """What the report of this evidence must say."""
    return PageMarks(audit_marks(evidence), _sorted([gate_marks(g) for g in evidence.gates.results]))


@lru_cache(maxsize=2)  # writing, checking and releasing each ask of the same page and its certificate
def read_marks(page: str) -> PageMarks | None:
    """What a page says; None when it is not clear, since it says nothing or the same thing twice.

    A page is clear only in the HTML that the templates write: of any other, a browser may make other
    elements. Text and attributes may hold what they like. The time to read it grows with its length alone.
    """
    if not _PLAIN_PAGE.fullmatch(page):
        return None
    audits: list[Marks] = []
    gates: list[Marks] = []
    for tag in _TAG.findall(page):
        attributes = _ATTRIBUTE.findall(tag)
        found = {name: unescape(text) for name, text in attributes if name.startswith("data-")}
        if _AUDIT not in found and _GATE not in found:
            continue
        own, tags = ("<main ", audits) if _AUDIT in found else ("<li ", gates)
        doubled = len(dict(attributes)) < len(attributes) or (_AUDIT in found and _GATE in found)
        if doubled or not tag.startswith(own):  # a browser drops other elements in some places
            return None
        tags.append(found)
    if len(audits) != 1:
        return None
    rest = {name: text for name, text in audits[0].items() if name != WRITTEN_BY}
    return PageMarks(rest, _sorted(gates), audits[0].get(WRITTEN_BY, ""))


def _sorted(gates: Sequence[Marks]) -> tuple[Marks, ...]:
    return tuple(sorted(gates, key=lambda g: sorted(g.items())))


def _ascii(text: str) -> str:
    """Text whose letters no page needs to clean or to escape otherwise than as HTML."""
    return json.dumps(text)[1:-1]


def report_as_filed(found: LocatedEvidence, content: bytes) -> bool | None:
    """Whether this is the report that was filed; None where no journal knows of one."""
    journal = found.journal
    entry = journal.entry(found.folder.digest) if journal is not None and found.folder is not None else None
    filed = entry.files.get(REPORT) if entry is not None else None
    return None if filed is None else filed == sha256_of_bytes(content)


def keep_certificate_hash(found: LocatedEvidence, content: bytes) -> None:
    """Record what is about to be written, where the restricted folder of the evidence is at hand."""
    if found.workspace is None or found.folder is None or found.journal is None:
        return
    path = found.workspace.certificate_hash(found.folder.digest)
    with suppress(DataError):  # without it the certificate is as good, and checked by its own build alone
        make_private(path.parent)
        write_text(path, f"{_hash(content, found.approvals())}\n", private=True)


def certificate_as_written(found: LocatedEvidence, content: bytes) -> bool | None:
    """Whether this certificate was written last, with the approvals that lie there; None without a record."""
    if found.workspace is None or found.folder is None:
        return None
    try:
        kept = read_plain(found.workspace.certificate_hash(found.folder.digest))
    except OSError:
        return None
    return kept.decode(errors="replace").strip() == _hash(content, found.approvals())


def _hash(content: bytes, approvals: Sequence[Approval]) -> str:
    return hashlib.sha256(framed([content, *(a.to_bytes() for a in approvals)])).hexdigest()
