"""Runs audits so that each ends as measured, not applicable or an error, and none can vanish."""

import math
import time
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, get_args

import numpy as np
from pydantic import BeforeValidator, PlainSerializer, TypeAdapter

from synth_audit import registry
from synth_audit.arrays import Positions
from synth_audit.errors import OUT_OF_TIME, PROCESS_LOST, NotApplicable, PluginError, ProcessLost
from synth_audit.execution import telemetry
from synth_audit.execution.context import RunContext, silent
from synth_audit.execution.executor import Ending, Executor, Piece
from synth_audit.findings.measurement import Exposure, Findings
from synth_audit.findings.sensitivity import DERIVED
from synth_audit.neighbours.gpu_scores import scored_on
from synth_audit.plugins.audit import Audit, AuditInfo, AuditOutcome, Cost, Need, Status, Subject
from synth_audit.plugins.generator import refits
from synth_audit.store.evidence import FORM
from synth_audit.table.schema import Role

_ROUNDING = 1e-9
"""How far a value may stray out of its declared range by floating point alone."""


class BrokenContract(PluginError):
    """An audit returned what it had not declared. Raised here only, so its text is ours to show."""


@dataclass(frozen=True, eq=False)
class AuditTask:
    """One audit on one subject.

    Attributes:
        title: what a reader sees while it runs.
        stream: names the child generator of its draws, so that no other task moves them.
        planted: it belongs to the known-answer check, which progress names and does not count.
        known_by: everything that its outcome depends on; empty where the outcome is not to be journaled.
    """

    name: str
    audit: Audit
    subject: Subject
    title: str
    stream: tuple[str, ...]
    planted: bool = False
    known_by: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class TaskResult:
    """What became of a task; exposures hold positions of real rows and stay apart from the outcome.

    Attributes:
        rss: most bytes of memory that its process has held.
    """

    outcome: AuditOutcome
    exposures: tuple[Exposure, ...] = ()
    seconds: float = 0.0
    rss: int = 0


def run_audits(
    audits: Mapping[str, Audit], subject: Subject, context: RunContext
) -> tuple[tuple[AuditOutcome, ...], dict[str, float]]:
    """Run every audit once, each with its own child generator.

    Returns:
        One outcome per audit in the given order, and the seconds each took.
    """
    tasks = candidate_tasks(audits, subject)
    ended = run_tasks(tasks, context)
    seconds = {f"audit.{task.name}": end.seconds for task, end in zip(tasks, ended, strict=True)}
    return tuple(end.outcome for end in ended), seconds


def candidate_tasks(audits: Mapping[str, Audit], subject: Subject) -> list[AuditTask]:
    """A task for each audit of a candidate.

    Its draws depend on the candidate's rows too, in whatever order they are: a release that is changed to
    spare the rows that are looked up has others looked up.
    """
    rows = subject.synthetic.fingerprint
    return [AuditTask(n, audit, subject, n, ("audit", n, rows)) for n, audit in audits.items()]


def run_tasks(tasks: Sequence[AuditTask], context: RunContext) -> tuple[TaskResult, ...]:
    """What became of each task, in order; the numbers do not depend on the context's executor.

    Audits that spread their own work run one after the other, the others beside one another before them,
    the costliest first and known-answer checks last, which are short: so no worker waits long for another.
    What the context's journal knows is taken over, and what ends is journaled.
    """
    infos, costs = [task.audit.info for task in tasks], get_args(Cost)
    ranks = [(x.spreads, t.planted, -costs.index(x.cost)) for t, x in zip(tasks, infos, strict=True)]
    order = sorted(range(len(tasks)), key=ranks.__getitem__)
    ended = {i: found for i in order if (found := _journaled(tasks[i], context)) is not None}

    def tell(piece: str = "") -> None:
        """Count the audits of the candidate alone: one number, which only grows."""
        own = [i for i in order if not tasks[i].planted]
        waiting = next((tasks[i].title for i in order if i not in ended), "")
        words = ": ".join(filter(None, ("audits", waiting, piece)))
        context.progress(words, sum(i in ended for i in own), len(own))

    def tell_piece(what: str, done: int, total: int) -> None:
        if done < total:
            tell(f"{what} {done + 1} of {total}")

    def end(i: int, result: TaskResult) -> None:
        ended[i] = result
        _journal(tasks[i], result, context)
        telemetry.audit_ended(tasks[i].title, result.outcome.status, result.seconds, result.rss)
        tell()

    for i, kept in ended.items():
        telemetry.audit_ended(tasks[i].title, "kept", 0.0, kept.rss)
    tell()
    left = [i for i in order if i not in ended]
    several = [i for i in left if not tasks[i].audit.info.spreads]
    alone = partial(_run_one, replace(context, executor=Executor(), progress=silent))
    with context.executor.pieces(
        alone, [tasks[i] for i in several], context.scratch, context.deadline
    ) as ends:
        for position, piece in ends:
            i = several[position]
            end(i, _result(piece, tasks[i], alone))
    for i in left[len(several) :]:
        end(i, _run_one(replace(context, progress=tell_piece), tasks[i]))
    return tuple(ended[i] for i in range(len(tasks)))


@cache
def _form() -> TypeAdapter[TaskResult]:
    """Reads and writes a result as the journal keeps it: outcomes as in evidence, positions as runs."""
    rows = Annotated[Any, BeforeValidator(of_runs), PlainSerializer(runs_of, return_type=list[int])]
    return replace(FORM, spelt={**FORM.spelt, Positions: rows}).adapter(TaskResult)


def runs_of(rows: Positions) -> list[int]:
    """First position and length of each run of neighbours: an attack on everybody names millions in one.

    >>> runs_of(np.array([0, 1, 2, 7]))
    [0, 3, 7, 1]
    """
    first = np.flatnonzero(np.diff(rows, prepend=-2) != 1)
    lengths = np.diff(np.append(first, len(rows)))
    runs: list[int] = np.column_stack([rows[first], lengths]).ravel().tolist()
    return runs


def of_runs(runs: Sequence[int]) -> Positions:
    """The positions of :func:`runs_of`."""
    first, lengths = np.array(runs, np.intp).reshape(-1, 2).T
    before = np.cumsum(lengths) - lengths
    rows: Positions = np.repeat(first - before, lengths) + np.arange(lengths.sum())
    return rows


def _journaled(task: AuditTask, context: RunContext) -> TaskResult | None:
    """What an earlier run journaled of a task, which takes no time now; None if nothing can be used."""
    kept = context.journal.find(*task.known_by) if task.known_by else None
    return None if kept is None else replace(_form().validate_json(kept), seconds=0.0)


def _journal(task: AuditTask, result: TaskResult, context: RunContext) -> None:
    """Journal a result, but for one that may be another in the next run."""
    lasting = result.outcome.status is not Status.ERROR and not result.outcome.cut_short
    if task.known_by and lasting:
        with suppress(OSError):  # a full disk costs the next run its time, not this one its evidence
            context.journal.put(*task.known_by, made=_form().dump_json(result, by_alias=True))


def _result(piece: Piece[TaskResult], task: AuditTask, run: Callable[[AuditTask], TaskResult]) -> TaskResult:
    match piece.ending:
        case Ending.FAILED:
            return run(task)  # it could not travel, so it has its turn here
        case Ending.LATE:
            return TaskResult(replace(_unmeasured(task), reason=OUT_OF_TIME))
        case Ending.LOST:
            return TaskResult(replace(_unmeasured(task), status=Status.ERROR, reason=PROCESS_LOST))
    assert piece.result is not None
    return piece.result


def _run_one(context: RunContext, task: AuditTask) -> TaskResult:
    start = time.perf_counter()
    outcome, findings = _attempt(task, context)
    exposures = findings.exposures if findings else ()
    exposures = tuple(replace(e, measurement=e.measurement.stamped(task.name)) for e in exposures)
    return TaskResult(outcome, exposures, round(time.perf_counter() - start, 3), telemetry.peak_memory())


def _attempt(task: AuditTask, context: RunContext) -> tuple[AuditOutcome, Findings | None]:
    audit, subject, outcome = task.audit, task.subject, _unmeasured(task)
    if lacking := [need for need in audit.info.needs if not _has(subject, need)]:
        return replace(outcome, reason=f"needs {' and '.join(lacking)}"), None
    try:
        context.deadline.check()
        with scored_on(context.device):
            findings = audit.run(subject, context.child(*task.stream))
        _check_contract(audit.info, findings)
    except NotApplicable as reason:
        return replace(outcome, reason=reason.what), None
    except ProcessLost as lost:
        return replace(outcome, status=Status.ERROR, reason=lost.what), None
    # Any other fault of a plug-in must become a visible outcome; a SystemExit would even end as a pass.
    except (Exception, SystemExit) as error:
        return replace(outcome, status=Status.ERROR, reason=describe_error(error)), None
    return outcome.with_findings(findings), findings


def _unmeasured(task: AuditTask) -> AuditOutcome:
    """The outcome of a task that gave no findings, but for the reason."""
    return AuditOutcome(
        audit=task.name,
        family=registry.find("audit", task.name).family,
        status=Status.NOT_APPLICABLE,
        info=task.audit.info,
        config=registry.config_of(task.audit),
    )


def _has(subject: Subject, need: Need) -> bool:
    match need:
        case Need.CONTROL:
            return subject.control is not None
        case Need.TARGET:
            return subject.schema.target is not None
        case Need.SENSITIVE:
            return bool(subject.schema.with_role(Role.SENSITIVE))
        case Need.GENERATOR:
            return subject.generator is not None and refits(subject.generator)


def _check_contract(info: AuditInfo, findings: Findings) -> None:
    """A measurement must be declared, within its range, and there once; an exposure rests on one."""
    declared = {q.name: q for q in info.quantities}
    for m in findings.measurements:
        quantity = m.id.quantity
        if quantity not in declared:
            raise BrokenContract(f"quantity {quantity!r} is not declared in the audit's info")
        if m.id.audit or m.id.derived_from:
            raise BrokenContract(f"quantity {quantity!r} names an audit or what it is derived from")
        low, high = declared[quantity].range
        if math.isfinite(m.value) and not low - _ROUNDING <= m.value <= high + _ROUNDING:
            raise BrokenContract(f"quantity {quantity!r} is outside its declared range")
    if reserved := {q.name for q in DERIVED} & set(declared):
        raise BrokenContract(f"quantity {min(reserved)!r} is worked out by the runner, not by an audit")
    ids = Counter(m.id for m in findings.measurements)
    if twice := [x.quantity for x, n in ids.items() if n > 1]:
        raise BrokenContract(f"quantity {twice[0]!r} is measured twice for one setting and column")
    attacks = Counter(e.measurement for e in findings.exposures)
    if twice := [x.quantity for x, n in attacks.items() if n > 1]:
        raise BrokenContract(f"records are exposed twice by one attack, that of {twice[0]!r}")
    if loose := [x.quantity for x in attacks if x not in ids]:
        raise BrokenContract(f"records are exposed by an attack whose {loose[0]!r} is not measured")


def describe_error(error: BaseException) -> str:
    """Kind and place of an error. Its text may hold a cell value, so only the runner's own show theirs."""
    frames = traceback.extract_tb(error.__traceback__)
    inside = [f for f in frames if f.filename != __file__] or frames
    own = [f for f in inside if "synth_audit" in Path(f.filename).parts] or inside
    place = f"{Path(own[-1].filename).name}:{own[-1].lineno} in {own[-1].name}" if own else "unknown place"
    text = f": {error}" if isinstance(error, BrokenContract) else ""
    return f"{type(error).__name__} at {place}{text}"
