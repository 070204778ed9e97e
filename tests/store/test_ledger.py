"""What was tried and spent stays entered, whatever is killed, run twice or edited."""

import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from synth_audit.dp.accountant import FitTerms
from synth_audit.dp.composition import spent
from synth_audit.dp.guarantee import Budget, Mechanism, MechanismRecord, Neighbouring, Unit
from synth_audit.dp.mechanisms import laplace_noise
from synth_audit.errors import BudgetSpent, LedgerDamaged, PluginError
from synth_audit.store.journal import Head, chained, verified
from synth_audit.store.ledger import Ledger

PLAN = "a" * 64
TERMS = {"plan": PLAN, "unit": Unit.ENTITY, "neighbouring": Neighbouring.ADD_OR_REMOVE}
TOTAL = Budget(1.0)


def pure(epsilon: float, count: int = 1) -> MechanismRecord:
    return MechanismRecord(what="a count", mechanism=Mechanism.PURE, epsilon=epsilon, count=count)


def debit(ledger: Ledger, *epsilons: float, total: Budget = TOTAL) -> None:
    ledger.debit([pure(e) for e in epsilons], total=total, **TERMS)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path)


def toy_fit(values: np.ndarray, ledger: Ledger, epsilon: float, total: Budget) -> float:
    """A generator of one number: the noisy sum of values in [0, 1]."""
    accountant = ledger.accountant(FitTerms(total=total, fit=Budget(epsilon), unit=Unit.ENTITY), plan=PLAN)
    accountant.laplace(1 / epsilon, what="the sum")
    return float(np.clip(values, 0, 1).sum() + laplace_noise(1 / epsilon, 1)[0])


# --- debits -------------------------------------------------------------------------------------------------


def test_debits_add_up_and_the_one_too_many_is_refused(ledger):
    debit(ledger, 0.4)
    debit(ledger, 0.3, 0.2)
    with pytest.raises(BudgetSpent, match="of this table is spent") as caught:
        debit(ledger, 0.2)
    assert "0.9" in str(caught.value)
    assert ledger.spent(0.0).epsilon == pytest.approx(0.9)
    debit(ledger, 0.1)
    assert [len(d.mechanisms) for d in ledger.debits()] == [1, 2, 1]
    assert [d.epsilon for d in ledger.debits()] == pytest.approx([0.4, 0.5, 0.1])
    assert ledger.debits()[0].budget == TOTAL
    assert ledger.debits()[0].plan == PLAN


def test_a_refused_debit_leaves_the_file_as_it_was(ledger):
    debit(ledger, 0.9)
    before = ledger.path.read_bytes()
    with pytest.raises(BudgetSpent):
        debit(ledger, 0.2)
    assert ledger.path.read_bytes() == before


def test_candidates_compose_better_than_their_epsilons_add_up(ledger):
    total = Budget(4.0, 1e-5)
    step = MechanismRecord(what="a sum", mechanism=Mechanism.GAUSSIAN, noise_multiplier=5.0)
    for _ in range(6):
        ledger.debit([step], total=total, **TERMS)
    together = ledger.spent(1e-5)
    assert together == spent([step] * 6, 1e-5, Neighbouring.ADD_OR_REMOVE)
    assert max(d.epsilon for d in ledger.debits()) < together.epsilon
    assert together.epsilon < 0.5 * sum(d.epsilon for d in ledger.debits())


def test_every_fit_is_paid_for_until_the_table_has_nothing_left(ledger):
    values = np.linspace(0, 1, 100)
    for _ in range(2):
        toy_fit(values, ledger, 0.5, TOTAL)
    with pytest.raises(BudgetSpent, match="of this table"):
        toy_fit(values, ledger, 0.1, TOTAL)
    assert ledger.spent(0.0).epsilon == 1.0


def test_the_fits_own_budget_is_asked_before_the_tables(ledger):
    accountant = ledger.accountant(FitTerms(total=TOTAL, fit=Budget(0.1), unit=Unit.ENTITY), plan=PLAN)
    with pytest.raises(BudgetSpent, match="cannot bear"):
        accountant.pure(0.2, what="a count")
    assert ledger.debits() == ()


def test_promises_of_different_kinds_have_no_sum(ledger):
    debit(ledger, 0.1)
    for other in ({"unit": Unit.ROW}, {"neighbouring": Neighbouring.REPLACE}):
        with pytest.raises(PluginError, match="begun with"):
            ledger.debit([pure(0.1)], total=TOTAL, **(TERMS | other))
    assert len(ledger.debits()) == 1


# --- attempts -----------------------------------------------------------------------------------------------


def test_attempts_are_counted_whether_or_not_they_end(ledger):
    assert ledger.attempts() == ()
    assert [ledger.attempt(plan=PLAN, candidate=c * 64) for c in "bcd"] == [1, 2, 3]
    ledger.judged(2, verdict="fail", evidence="e" * 64)
    ledger.judged(2, verdict="pass", evidence="f" * 64)
    first, second, third = ledger.attempts()
    assert (first.number, first.verdict, first.evidence) == (1, "", "")
    assert (second.verdict, second.evidence, second.candidate) == ("pass", "f" * 64, "c" * 64)
    assert third.number == 3
    debit(ledger, 0.1)
    assert ledger.attempt(plan=PLAN, candidate="g" * 64) == 4
    with pytest.raises(PluginError, match="no such attempt"):
        ledger.judged(9, verdict="pass", evidence="")


# --- the file -----------------------------------------------------------------------------------------------


def test_only_its_owner_can_read_it(ledger):
    debit(ledger, 0.1)
    ledger.path.chmod(0o644)
    debit(ledger, 0.1)
    assert stat.S_IMODE(ledger.path.stat().st_mode) == 0o600


def _filled(ledger: Ledger) -> list[bytes]:
    debit(ledger, 0.1)
    ledger.attempt(plan=PLAN, candidate="b" * 64)
    debit(ledger, 0.2)
    return ledger.path.read_bytes().splitlines(keepends=True)


@pytest.mark.parametrize(
    "edit",
    [
        lambda lines: [*lines[:1], *lines[2:]],
        lambda lines: [lines[0], lines[2], lines[1], lines[3]],
        lambda lines: [*lines, lines[3]],
        lambda lines: [lines[0], lines[1].replace(b'"epsilon":0.1', b'"epsilon":0.01'), *lines[2:]],
        lambda lines: [*lines[:3], lines[3].replace(b'"epsilon":0.2', b'"epsilon":0.02')],
        lambda lines: [*lines[:3], lines[3].replace(b'{"', b'{"epsilon":0,"', 1)],
        lambda lines: [*lines[:3], lines[3].replace(b":", b": ", 1)],
        lambda lines: [*lines, b"\n"],
        lambda lines: [*lines, b"[" * 9000 + b"\n"],
        lambda lines: [lines[0].replace(b'"version":1', b'"version":2'), *lines[1:]],
        lambda lines: lines[1:],
    ],
)
def test_an_edited_line_stops_everything(ledger, edit):
    ledger.path.write_bytes(b"".join(edit(_filled(ledger))))
    edited = ledger.path.read_bytes()
    for use in (ledger.attempts, ledger.debits, ledger.head, lambda: debit(ledger, 0.1)):
        with pytest.raises(LedgerDamaged, match="changed or damaged") as caught:
            use()
    assert "backup" in caught.value.fix
    assert ledger.path.read_bytes() == edited


def test_a_line_of_many_numbers_is_checked_though_few_readers_want_them():
    line, _ = chained({"kind": "people", "people": 3, "sums": [1, -3, 2]}, "0" * 64)
    assert verified(line, "0" * 64)["sums"] == "1,-3,2"
    assert verified(line.replace(b"-3", b"-1"), "0" * 64) is None
    assert verified(line[:-1], "0" * 64) is None
    line, _ = chained(
        {"kind": "other", "sums": [1, -3, 2], "text": 'half a pair \ud83d, and "sums":[1]}'}, ""
    )
    assert verified(line, "")["sums"] == [1, -3, 2]


def test_lines_cut_off_at_the_end_show_against_a_head_kept_elsewhere(ledger):
    lines = _filled(ledger)
    head = ledger.head()
    assert ledger.extends(head)
    debit(ledger, 0.1)
    assert ledger.extends(head)
    assert ledger.extends(Head(0, "0" * 64))
    ledger.path.write_bytes(b"".join(lines[:-1]))
    for use in (ledger.debits, lambda: ledger.extends(head), lambda: debit(ledger, 0.3)):
        with pytest.raises(LedgerDamaged, match="gone or changed"):
            use()
    ledger.mark.unlink()
    assert not ledger.extends(head)
    debit(ledger, 0.3)
    assert ledger.head().lines == head.lines
    assert not ledger.extends(head)


def test_a_missing_ledger_beside_history_is_an_error(tmp_path):
    history = Ledger(tmp_path, history=True)
    for use in (
        history.attempts,
        lambda: debit(history, 0.1),
        lambda: history.attempt(plan=PLAN, candidate=""),
    ):
        with pytest.raises(LedgerDamaged, match="is missing"):
            use()
    assert not history.path.exists()
    history.path.touch()
    with pytest.raises(LedgerDamaged, match="is empty"):
        debit(history, 0.1)
    debit(Ledger(tmp_path), 0.1)
    assert len(history.debits()) == 1


def test_a_ledger_that_is_deleted_after_a_debit_is_missed(ledger):
    """Nothing was filed yet, so that nothing else knows of it; the debit was on the disk before the fit."""
    debit(ledger, 0.75)
    ledger.path.unlink()
    uses = (ledger.debits, lambda: debit(ledger, 0.75), lambda: ledger.attempt(plan=PLAN, candidate=""))
    for use in uses:
        with pytest.raises(LedgerDamaged, match="is missing"):
            use()
    ledger.path.touch()
    with pytest.raises(LedgerDamaged, match="gone or changed"):
        debit(ledger, 0.75)
    other = Ledger(ledger.folder / "other")
    other.folder.mkdir()
    debit(other, 0.1)
    ledger.path.write_bytes(other.path.read_bytes())
    with pytest.raises(LedgerDamaged, match="gone or changed"):
        debit(ledger, 0.75)


def test_the_mark_stands_before_the_first_entry(ledger):
    code = """
write, calls = os.pwrite, []
def second_dies(descriptor, text, offset):
    calls.append(text)
    if len(calls) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return write(descriptor, text, offset)
os.pwrite = second_dies
debit(0.5)
"""
    _killed(code, ledger.folder)
    assert json.loads(ledger.mark.read_text())["lines"] == 1
    assert ledger.debits() == ()
    ledger.path.unlink()
    with pytest.raises(LedgerDamaged, match="is missing"):
        debit(ledger, 0.5)


@pytest.mark.parametrize("content", [b"", b"{}", b'{"lines": 1, "digest": "", "more": 1}', b"\xff"])
def test_a_damaged_mark_stops_everything(ledger, content):
    debit(ledger, 0.5)
    ledger.mark.write_bytes(content)
    with pytest.raises(LedgerDamaged, match="the mark beside it, is damaged"):
        ledger.debits()


def test_a_mark_is_private(ledger):
    debit(ledger, 0.5)
    assert stat.S_IMODE(ledger.mark.stat().st_mode) == 0o600


def test_no_folder_is_an_error(tmp_path):
    with pytest.raises(LedgerDamaged, match="folder of the ledger is missing"):
        debit(Ledger(tmp_path / "gone"), 0.1)


@pytest.mark.parametrize("make", [lambda p: p.symlink_to(p.parent / "other"), lambda p: p.mkdir(), os.mkfifo])
def test_what_is_no_regular_file_is_refused(ledger, make):
    make(ledger.path)
    with pytest.raises(LedgerDamaged, match=r"cannot be opened|no regular file"):
        debit(ledger, 0.1)
    assert not (ledger.folder / "other").exists()


def test_an_entry_that_makes_no_sense_is_damage(ledger):
    with ledger.appending() as log:
        log.append({"kind": "debit", "plan": PLAN})
    with pytest.raises(LedgerDamaged, match="makes no sense"):
        ledger.spent(0.0)


# --- kills and full disks -----------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 10**6))
def test_an_append_cut_anywhere_counts_wholly_or_not_at_all(tmp_path, cut):
    ledger = Ledger(tmp_path)
    ledger.path.unlink(missing_ok=True)
    ledger.mark.unlink(missing_ok=True)
    debit(ledger, 0.25)
    whole, mark = ledger.path.read_bytes(), ledger.mark.read_bytes()
    debit(ledger, 0.5)
    longer = ledger.path.read_bytes()
    kept = len(whole) + cut % (len(longer) - len(whole) + 1)
    ledger.path.write_bytes(longer[:kept])
    ledger.mark.write_bytes(mark)

    counted = kept >= len(longer) - 1  # all but the line break
    assert ledger.spent(0.0).epsilon == (0.75 if counted else 0.25)
    debit(ledger, 0.125)
    assert ledger.spent(0.0).epsilon == (0.875 if counted else 0.375)
    torn = [json.loads(line) for line in ledger.path.read_text().splitlines() if '"torn"' in line]
    assert [t["bytes"] for t in torn] == ([] if counted or kept == len(whole) else [kept - len(whole)])
    assert ledger.path.read_bytes().startswith(whole)


def test_a_short_entry_after_a_long_torn_one(ledger):
    debit(ledger, 0.25)
    mark = ledger.mark.read_bytes()
    debit(ledger, *[0.001] * 50)
    ledger.path.write_bytes(ledger.path.read_bytes()[:-2])
    ledger.mark.write_bytes(mark)
    ledger.attempt(plan=PLAN, candidate="b" * 64)
    assert ledger.path.read_bytes().endswith(b"}\n")
    assert len(ledger.attempts()) == 1
    assert ledger.spent(0.0).epsilon == 0.25


_PRELUDE = """
import os, signal, sys
from pathlib import Path
from synth_audit.dp.guarantee import Budget, Mechanism, MechanismRecord, Neighbouring, Unit
from synth_audit.errors import BudgetSpent
from synth_audit.store.ledger import Ledger
ledger = Ledger(Path(sys.argv[1]))
def debit(epsilon):
    record = MechanismRecord(what="a count", mechanism=Mechanism.PURE, epsilon=epsilon)
    terms = {"unit": Unit.ENTITY, "neighbouring": Neighbouring.ADD_OR_REMOVE}
    ledger.debit([record], plan="a", total=Budget(1.0), **terms)
"""


def _start(code: str, folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _PRELUDE + code, str(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _killed(code: str, folder: Path) -> None:
    """Run code that kills its own process."""
    done = _start(code, folder)
    _, errors = done.communicate()
    assert done.returncode == -signal.SIGKILL, errors


def test_a_kill_in_the_middle_of_an_append_leaves_a_ledger_that_reads(ledger):
    debit(ledger, 0.25)
    code = """
write = os.pwrite
def half(descriptor, text, offset):
    write(descriptor, text[: len(text) // 2], offset)
    os.kill(os.getpid(), signal.SIGKILL)
os.pwrite = half
debit(0.5)
"""
    _killed(code, ledger.folder)
    assert not ledger.path.read_bytes().endswith(b"\n")
    assert ledger.spent(0.0).epsilon == 0.25
    debit(ledger, 0.5)
    assert ledger.spent(0.0).epsilon == 0.75


def test_a_crash_between_debit_and_fit_stays_spent(ledger):
    _killed("debit(0.75)\nos.kill(os.getpid(), signal.SIGKILL)", ledger.folder)
    assert ledger.spent(0.0).epsilon == 0.75
    with pytest.raises(BudgetSpent):  # the retry is paid for again
        debit(ledger, 0.75)


def test_processes_that_debit_at_once_never_overspend(ledger):
    code = """
import time
(ledger.folder / f"ready{os.getpid()}").touch()
while not (ledger.folder / "go").exists():
    time.sleep(0.001)
allowed = 0
for _ in range(20):
    try:
        debit(0.0625)
        allowed += 1
    except BudgetSpent:
        pass
print(allowed)
"""
    running = [_start(code, ledger.folder) for _ in range(2)]
    while len(list(ledger.folder.glob("ready*"))) < 2 and all(p.poll() is None for p in running):
        time.sleep(0.01)
    (ledger.folder / "go").touch()
    outputs = [process.communicate() for process in running]
    allowed = [int(out.split()[-1]) for out, _ in outputs]
    assert sum(allowed) == 16, outputs
    assert len(ledger.debits()) == 16
    assert ledger.spent(0.0).epsilon == 1.0


def _full(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    written = os.pwrite

    def short(descriptor: int, text: bytes, offset: int) -> int:
        return written(descriptor, text[:10], offset)

    monkeypatch.setattr(os, "pwrite", short)
    return monkeypatch.undo


def _fails(name: str) -> Callable[[pytest.MonkeyPatch], Callable[[], None]]:
    def patch(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
        def fail(*_: object) -> None:
            raise OSError(28, "no space left")

        monkeypatch.setattr(os, name, fail)
        return monkeypatch.undo

    return patch


@pytest.mark.parametrize("trouble", [_full, _fails("pwrite"), _fails("ftruncate"), _fails("fchmod")])
def test_a_full_disk_refuses_the_fit_and_leaves_the_ledger_whole(ledger, monkeypatch, trouble):
    debit(ledger, 0.25)
    before = ledger.path.read_bytes()
    undo = trouble(monkeypatch)
    with pytest.raises(LedgerDamaged, match="cannot be written"):
        debit(ledger, 0.5)
    undo()
    assert ledger.path.read_bytes() == before
    debit(ledger, 0.5)
    assert ledger.spent(0.0).epsilon == 0.75


def test_what_may_not_have_reached_the_disk_refuses_the_fit_and_still_counts(ledger, monkeypatch):
    debit(ledger, 0.25)
    undo = _fails("fsync")(monkeypatch)
    with pytest.raises(LedgerDamaged, match="cannot be written"):
        debit(ledger, 0.5)
    undo()
    assert ledger.spent(0.0).epsilon == 0.75
