import math
import sys
import threading
from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pytest
from pydantic import TypeAdapter

from synth_audit import registry
from synth_audit.errors import DataError, NotApplicable, PluginError, ProcessLost
from synth_audit.examination.audit_runner import AuditTask, of_runs, run_audits, run_tasks, runs_of
from synth_audit.execution.context import RunContext
from synth_audit.execution.executor import Deadline, Executor
from synth_audit.findings.measurement import Exposure, Findings, Quantity
from synth_audit.plugins.audit import AuditInfo, AuditOutcome, Need, Status, Subject
from synth_audit.table.schema_inference import ColumnSpec, infer_schema
from synth_audit.table.table import read_table

CELL = "Zanzibar-7391"
SHARE = Quantity("share", "A share")


def _fail(kind):
    def act(subject, context):
        raise kind(f"bad cell {subject.train.labels('city')[0]}")

    return act


def _chained(subject, context):
    try:
        float(subject.train.labels("city")[0])
    except ValueError as error:
        raise RuntimeError(str(error)) from error


def _not_applicable(subject, context):
    raise NotApplicable("the table has no such column")


def _named(**names):
    m = SHARE.at(0.1)
    return replace(m, id=replace(m.id, **names))


def _exposed(setting=""):
    some = np.arange(2)
    return Exposure(SHARE.id(setting), (), some, some, some, some)


ACTS = {
    "measure": lambda s, context: Findings((SHARE.at(context.rng.random()),), notes=("a note",)),
    "ValueError": _fail(ValueError),
    "DataError": _fail(DataError),
    "PluginError": _fail(PluginError),
    "SystemExit": _fail(SystemExit),
    "RuntimeError": _chained,
    "numpy": lambda s, context: np.linalg.inv(np.zeros((2, 2))),
    "not applicable": _not_applicable,
    "nothing": lambda s, context: None,
    "undeclared": lambda s, context: Findings((replace(SHARE, name="other").at(0.5),)),
    "above": lambda s, context: Findings((SHARE.at(1.01),)),
    "below": lambda s, context: Findings((SHARE.at(-0.01),)),
    "twice": lambda s, context: Findings((SHARE.at(0.1), SHARE.at(0.2))),
    "audit named": lambda s, context: Findings((_named(audit="one"),)),
    "derived": lambda s, context: Findings((_named(derived_from=SHARE.id()),)),
    "columns": lambda s, context: Findings((SHARE.at(0.1, column="a"), SHARE.at(0.2, column="a"))),
    "loose exposure": lambda s, context: Findings((SHARE.at(0.1),), exposures=(_exposed("a"),)),
    "exposed twice": lambda s, context: Findings((SHARE.at(0.1),), exposures=(_exposed(), _exposed())),
    "settings": lambda s, context: Findings(
        (SHARE.at(0.1, setting="a"), SHARE.at(0.2, setting="b"), SHARE.at(0.3))
    ),
    "rounding": lambda s, context: Findings((SHARE.at(1 + 1e-12), SHARE.at(-1e-12, setting="a"))),
    "nan": lambda s, context: Findings((SHARE.at(math.nan),)),
    "empty": lambda s, context: Findings(()),
}


@dataclass(frozen=True, kw_only=True)
class Probe:
    """Does what its configuration says."""

    act: str = "measure"
    info: ClassVar[AuditInfo] = AuditInfo(
        title="Probe", question="?", threat_model="-", not_covered="-", quantities=(SHARE,), risk="membership"
    )

    def run(self, subject, context):
        return ACTS[self.act](subject, context)


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    """Stand-ins that are known as a third party's would be."""
    module = ModuleType("stand_in_audits")
    module.Probe = Probe
    monkeypatch.setitem(sys.modules, module.__name__, module)
    points = [EntryPoint(n, "stand_in_audits:Probe", "synth_audit.audits") for n in ("one", "two", "three")]
    monkeypatch.setattr(registry, "_entry_points", lambda room: tuple(points) if room == "audit" else ())


def subject(control=True, **specs):
    data = pa.table({"city": [CELL, "b", "a", "b"], "age": [1, 2, 3, 4]})
    known = {name: ColumnSpec(role=role) for name, role in specs.items()}
    real = read_table(data, infer_schema(data, known), where="train")
    return Subject(real, real if control else None, real)


def run_one(act):
    (outcome,), _ = run_audits({"one": Probe(act=act)}, subject(), RunContext(seed=1))
    return outcome


ENDS = dict.fromkeys(ACTS, Status.ERROR) | dict.fromkeys(
    ("measure", "settings", "rounding", "nan", "empty"), Status.MEASURED
)
ENDS["not applicable"] = Status.NOT_APPLICABLE


@pytest.mark.parametrize("act", list(ACTS))
def test_every_audit_ends_in_exactly_one_outcome(act):
    audits = {"one": Probe(), "two": Probe(act=act), "three": Probe()}
    outcomes, seconds = run_audits(audits, subject(), RunContext(seed=1))
    assert [o.audit for o in outcomes] == ["one", "two", "three"]
    assert [o.status for o in outcomes] == [Status.MEASURED, ENDS[act], Status.MEASURED]
    assert set(seconds) == {"audit.one", "audit.two", "audit.three"}
    middle = outcomes[1]
    assert (middle.info, middle.config, middle.family) == (Probe.info, {"act": act}, "privacy")
    assert bool(middle.reason) == (ENDS[act] is not Status.MEASURED)
    if ENDS[act] is not Status.MEASURED:
        assert middle.measurements == ()


@pytest.mark.parametrize("act", ["ValueError", "DataError", "PluginError", "SystemExit", "RuntimeError"])
def test_an_error_shows_kind_and_place_and_never_its_text(act, capsys):
    outcome = run_one(act)
    assert outcome.reason.startswith(f"{act} at test_audit_runner.py:")
    assert CELL not in TypeAdapter(AuditOutcome).dump_json(outcome).decode()
    assert CELL not in repr(outcome)
    printed = capsys.readouterr()
    assert CELL not in printed.out + printed.err


def test_a_fault_inside_a_library_is_placed_where_it_happened():
    assert "in inv" in run_one("numpy").reason or "linalg" in run_one("numpy").reason


@pytest.mark.parametrize(
    ("act", "says"),
    [("undeclared", "'other' is not declared"), ("above", "outside its declared range"),
     ("below", "outside its declared range"), ("twice", "'share' is measured twice"),
     ("columns", "measured twice for one setting and column"), ("audit named", "names an audit"),
     ("derived", "names an audit or what it is derived from"), ("loose exposure", "'share' is not measured"),
     ("exposed twice", "exposed twice by one attack")],
)  # fmt: skip
def test_a_broken_contract_says_how(act, says):
    assert says in run_one(act).reason


def test_measurements_are_stamped_with_the_audits_name():
    outcome = run_one("settings")
    assert [(m.id.name, m.id.setting) for m in outcome.measurements] == [
        ("one.share", "a"),
        ("one.share", "b"),
        ("one.share", ""),
    ]
    assert run_one("measure").notes == ("a note",)


def test_not_applicable_keeps_its_reason():
    assert run_one("not applicable").reason == "the table has no such column"


@pytest.mark.parametrize("need", list(Need))
def test_an_audit_that_lacks_what_it_needs_is_not_run(need, monkeypatch):
    ran = []
    monkeypatch.setitem(ACTS, "measure", lambda s, context: ran.append(1) or Findings((SHARE.at(0.5),)))
    monkeypatch.setattr(Probe, "info", replace(Probe.info, needs=(need,)))
    (lacking,), _ = run_audits({"one": Probe()}, subject(control=False), RunContext(seed=1))
    assert (lacking.status, lacking.reason) == (Status.NOT_APPLICABLE, f"needs {need}")
    assert not ran
    rich = replace(subject(city="target", age="sensitive"), generator=object())
    (given,), _ = run_audits({"one": Probe()}, rich, RunContext(seed=1))
    assert given.status is Status.MEASURED
    assert ran


def test_removing_or_reordering_audits_moves_no_number_of_another():
    def numbers(*names, seed=1):
        outcomes, _ = run_audits({n: Probe() for n in names}, subject(), RunContext(seed=seed))
        return {o.audit: o.measurements[0].value for o in outcomes}

    everything = numbers("one", "two", "three")
    assert len(set(everything.values())) == 3
    for some in (("one", "three"), ("three", "two"), ("two",)):
        assert numbers(*some) == {name: everything[name] for name in some}
    assert numbers("one", seed=2)["one"] != everything["one"]


def test_progress_is_told_before_and_after():
    told = []
    context = RunContext(progress=lambda *x: told.append(x))
    run_audits({"one": Probe(), "two": Probe(act="ValueError")}, subject(), context)
    assert told == [("audits: one", 0, 2), ("audits: two", 1, 2), ("audits", 2, 2)]


def test_the_costliest_audits_start_first_and_those_that_spread_come_last():
    costs = {
        "one": {"cost": "instant"},
        "two": {"cost": "minutes"},
        "three": {"cost": "hours", "spreads": True},
    }
    audits, begun = {}, []
    for name, told in costs.items():
        audits[name] = Probe()
        object.__setattr__(audits[name], "info", replace(Probe.info, **told))
    run_audits(audits, subject(), RunContext(progress=lambda what, done, total: begun.append(what)))
    assert begun == ["audits: two", "audits: one", "audits: three", "audits"]


def test_planted_leaks_come_last_and_progress_names_them_and_counts_the_audits_alone():
    told = []
    own = [AuditTask(n, Probe(), subject(), n, (n,)) for n in ("one", "two")]
    planted = [AuditTask("one", Probe(), subject(), "one on a leak", ("one", "5"), planted=True)]
    run_tasks([own[0], *planted, own[1]], RunContext(progress=lambda *x: told.append(x)))
    assert told == [
        ("audits: one", 0, 2),
        ("audits: two", 1, 2),
        ("audits: one on a leak", 2, 2),
        ("audits", 2, 2),
    ]


def test_an_audit_that_has_no_time_left_is_not_applicable_and_says_why():
    context = RunContext(deadline=Deadline.within(1e-9))
    (outcome,), _ = run_audits({"one": Probe()}, subject(), context)
    assert (outcome.status, outcome.reason) == (Status.NOT_APPLICABLE, "ran out of time")
    assert outcome.cut_short
    (other,), _ = run_audits({"one": Probe(act="not applicable")}, subject(), RunContext())
    assert not other.cut_short


class Threads:
    """A pool whose work ends when it is told to stop."""

    size, shares_files = 2, True

    def __init__(self):
        self.stopped, self.calls = threading.Event(), ThreadPoolExecutor(1)

    def submit(self, call):
        return self.calls.submit(call)

    def result(self, made):
        return made.result()

    def stop(self, at_work):
        self.stopped.set()

    def lost(self, error):
        return isinstance(error, BrokenExecutor)


def test_the_deadline_stops_an_audit_at_work_and_leaves_the_outcomes_of_those_that_ended(monkeypatch):
    pool = Threads()
    monkeypatch.setitem(ACTS, "slow", lambda s, c: pool.stopped.wait(600))
    audits = {"one": Probe(), "two": Probe(act="slow"), "three": Probe()}
    context = RunContext(executor=Executor(pool), deadline=Deadline.within(0.5))
    outcomes, _ = run_audits(audits, subject(), context)
    late = (Status.NOT_APPLICABLE, "ran out of time")
    assert [(o.status, o.reason) for o in outcomes] == [(Status.MEASURED, ""), late, late]


def test_an_audit_whose_process_is_lost_is_an_error_beside_the_others(monkeypatch):
    pool = Threads()
    true_submit, lost = pool.submit, Future()
    lost.set_exception(BrokenExecutor())
    answers = iter([true_submit, lambda call: lost, true_submit])
    monkeypatch.setattr(pool, "submit", lambda call: next(answers)(call))
    audits = {"one": Probe(), "two": Probe(), "three": Probe()}
    outcomes, _ = run_audits(audits, subject(), RunContext(executor=Executor(pool)))
    assert [o.status for o in outcomes] == [Status.MEASURED, Status.ERROR, Status.MEASURED]
    assert "ended before it answered" in outcomes[1].reason
    assert outcomes[1].cut_short


def test_a_lost_piece_of_an_audit_that_spreads_is_told_of_in_words(monkeypatch):
    def lose(s, c):
        raise ProcessLost

    monkeypatch.setitem(ACTS, "measure", lose)
    (outcome,), _ = run_audits({"one": Probe()}, subject(), RunContext())
    assert (outcome.status, outcome.cut_short) == (Status.ERROR, True)


@pytest.mark.parametrize("rows", [[], [0], [5], [0, 1, 2, 7], range(50), range(1, 90, 2), [3, 2, 1, 2]])
def test_positions_are_journaled_as_runs(rows):
    rows = np.array(rows, np.intp)
    assert np.array_equal(of_runs(runs_of(rows)), rows)
    assert len(runs_of(np.arange(10**5))) == 2
