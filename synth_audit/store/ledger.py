"""What was ever tried on one table and what was ever spent on it, in one file that only grows."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from synth_audit.dp.accountant import Accountant, FitTerms
from synth_audit.dp.composition import Spent, fits, spent
from synth_audit.dp.guarantee import Budget, MechanismRecord, Neighbouring, Unit
from synth_audit.errors import BudgetSpent, LedgerDamaged, PluginError
from synth_audit.store.journal import ChainedLog, Entry, Head, Journal, read_journal
from synth_audit.store.workspace import Workspace

_Form = TypeVar("_Form")


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """The audit of one candidate.

    Attributes:
        number: counts the attempts on the table from 1 on; it stands in the report.
        plan: digest of the plan. suite: digest of its gate suite.
        candidate: salted digest of the candidate.
        verdict: empty when it never got as far.
        evidence: digest of the evidence, empty likewise.
    """

    number: int
    plan: str
    candidate: str
    at: str
    suite: str = ""
    verdict: str = ""
    evidence: str = ""


@dataclass(frozen=True, kw_only=True)
class Debit:
    """Mechanisms that were allowed to run once.

    Attributes:
        plan: digest of the plan.
        budget: the total declared when it was allowed.
        epsilon, delta: what these mechanisms cost alone.
    """

    plan: str
    unit: Unit
    neighbouring: Neighbouring
    mechanisms: tuple[MechanismRecord, ...]
    budget: Budget
    epsilon: float
    delta: float
    at: str


class Ledger(ChainedLog):
    """The ledger of the table whose restricted folder this is."""

    def attempt(self, *, plan: str, candidate: str, suite: str = "") -> int:
        """Enter an attempt, before the candidate is attacked.

        Args:
            plan: digest of the plan. suite: digest of its gate suite.
            candidate: salted digest of the candidate.

        Returns:
            The number of attempts on this table so far, this one included.
        """
        with self.appending() as log:
            number = 1 + len([entry for entry in log.entries if entry["kind"] == "attempt"])
            entry = {"number": number, "plan": plan, "suite": suite, "candidate": candidate, "at": _now()}
            log.append({"kind": "attempt", **entry})
        return number

    def judged(self, number: int, *, verdict: str, evidence: str) -> None:
        """Enter how an attempt ended.

        Raises:
            PluginError: there is no such attempt.
        """
        with self.appending() as log:
            if not any(e["kind"] == "attempt" and e["number"] == number for e in log.entries):
                raise PluginError(
                    "the ledger has no such attempt", where=f"attempt {number}", expected="its number"
                )
            log.append(
                {"kind": "judged", "number": number, "verdict": verdict, "evidence": evidence, "at": _now()}
            )

    def choice(self, *, train: str, candidates: int) -> int:
        """Enter that candidates made from the same rows are about to be judged so that one can be chosen.

        Args:
            train: identity of these rows.

        Returns:
            All that were ever entered for them, these included.
        """
        with self.appending() as log:
            before = _chosen_among(log.entries, train)
            log.append({"kind": "choice", "train": train, "candidates": candidates, "at": _now()})
        return before + candidates

    def chosen_among(self, train: str) -> int:
        """Candidates that were entered for these rows by :meth:`choice`; 0 before the first."""
        return _chosen_among(self.entries(), train)

    def attempts(self) -> tuple[Attempt, ...]:
        """Every attempt, oldest first, each with the last verdict on it."""
        entries = self.entries()
        ends = {
            e["number"]: {"verdict": e["verdict"], "evidence": e["evidence"]}
            for e in entries
            if e["kind"] == "judged"
        }
        begun = [e for e in entries if e["kind"] == "attempt"]
        return self._read(_ATTEMPTS, [{**e, **ends.get(e.get("number"), {})} for e in begun])

    def other_settings(self, number: int) -> tuple[Attempt, ...]:
        """Earlier attempts on the candidate of this one under another plan or suite, the last under each."""
        attempts = self.attempts()
        (own,) = (a for a in attempts if a.number == number)
        earlier = [a for a in attempts if a.number < number and a.candidate == own.candidate]
        last = {(a.plan, a.suite): a for a in earlier}
        return tuple(a for settings, a in last.items() if settings != (own.plan, own.suite))

    def debits(self) -> tuple[Debit, ...]:
        """Every debit, oldest first."""
        return self._debits(self.entries())

    def spent(self, delta: float) -> Spent:
        """What all debits of the table cost together at ``delta``, as one guarantee for all that was drawn.

        Args:
            delta: in [0, 1); at 0 only pure mechanisms have a finite sum.
        """
        return _sum(self.debits(), delta)

    def debit(
        self,
        mechanisms: Sequence[MechanismRecord],
        *,
        plan: str,
        total: Budget,
        unit: Unit,
        neighbouring: Neighbouring,
    ) -> None:
        """Enter mechanisms that are about to run, if the table's budget bears them on top of all before.

        Between looking and entering no other process can enter anything. When this returns the disk has the
        debit.

        Args:
            plan: digest of the plan.
            total: what is declared for the table in all, over every fit there ever was.

        Raises:
            BudgetSpent: it does not bear them; nothing is entered and nothing may run.
            LedgerDamaged: the ledger cannot be trusted or written; nothing may run.
        """
        with self.appending() as log:
            before = self._debits(log.entries)
            _same_promise(before, unit, neighbouring)
            known = [record for debit in before for record in debit.mechanisms]
            if not fits((*known, *mechanisms), total, neighbouring):
                gone = _sum(before, total.delta).epsilon
                raise BudgetSpent(
                    "the privacy budget of this table is spent",
                    where=f"{self.path}: epsilon {gone:.4g} is spent at delta {total.delta:g}",
                    expected=f"at most epsilon {total.epsilon:g} with the next mechanism",
                    fix="release a candidate that exists already, or declare a larger total",
                )
            alone = spent(mechanisms, total.delta, neighbouring)
            debit = Debit(
                plan=plan,
                unit=unit,
                neighbouring=neighbouring,
                mechanisms=tuple(mechanisms),
                budget=total,
                epsilon=alone.epsilon,
                delta=alone.delta,
                at=_now(),
            )
            log.append({"kind": "debit", **asdict(debit)})

    def accountant(self, terms: FitTerms, *, plan: str) -> Accountant:
        """An accountant for one fit whose every spending is debited here before it counts.

        Args:
            plan: digest of the plan.
        """
        total = terms.total
        if total is None or terms.fit is None:
            return terms.detached()  # it has no budget and refuses whatever is spent
        unit, neighbouring = terms.unit, terms.neighbouring

        def enter(record: MechanismRecord) -> None:
            self.debit((record,), plan=plan, total=total, unit=unit, neighbouring=neighbouring)

        accountant = Accountant(
            terms.fit, unit=unit, neighbouring=neighbouring, rows=terms.rows, before=enter
        )
        accountant.draws(terms.drawn)
        return accountant

    def _debits(self, entries: Sequence[Entry]) -> tuple[Debit, ...]:
        return self._read(_DEBITS, [entry for entry in entries if entry["kind"] == "debit"])

    def _read(self, form: TypeAdapter[_Form], entries: Sequence[Entry]) -> _Form:
        try:
            return form.validate_python(entries)
        except (ValidationError, PluginError) as error:
            raise LedgerDamaged(
                f"an entry of the ledger makes no sense ({type(error).__name__})",
                where=str(self.path),
                expected="entries as this version writes them",
                fix="use the version that wrote it, or put the ledger back from a backup",
            ) from None


_ATTEMPTS, _DEBITS = TypeAdapter(tuple[Attempt, ...]), TypeAdapter(tuple[Debit, ...])


def _chosen_among(entries: Sequence[Entry], train: str) -> int:
    return sum(e["candidates"] for e in entries if e["kind"] == "choice" and e["train"] == train)


def _sum(debits: Sequence[Debit], delta: float) -> Spent:
    records = [record for debit in debits for record in debit.mechanisms]
    return spent(records, delta, debits[0].neighbouring if debits else Neighbouring.ADD_OR_REMOVE)


def _same_promise(debits: Sequence[Debit], unit: Unit, neighbouring: Neighbouring) -> None:
    """Guarantees to different units, or under different relations, have no sum."""
    for debit in debits[:1]:
        if (debit.unit, debit.neighbouring) != (unit, neighbouring):
            raise PluginError(
                "the privacy unit or the neighbouring relation is not the one that this table was begun with",
                where=f"unit {unit}, {neighbouring}",
                expected=f"unit {debit.unit}, {debit.neighbouring}",
                fix="keep to it; what was spent under one promise cannot be added to another",
            )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


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
