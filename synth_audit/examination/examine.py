"""The whole examination of one candidate: audits, known-answer check, leak-equivalents, exposed records."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

from synth_audit.core import registry
from synth_audit.core.cache import Cache
from synth_audit.core.exposure import RecordView
from synth_audit.core.measurement import Measurement
from synth_audit.core.outcome import AuditOutcome, Status
from synth_audit.core.plan import KnownAnswerSpec
from synth_audit.core.plugin import Audit
from synth_audit.core.sensitivity import PlantedLeaks
from synth_audit.core.subject import Subject
from synth_audit.examination.exposure import (
    Exposures,
    as_measurements,
    exposed_records,
    record_view,
    worst_subgroups,
)
from synth_audit.examination.known_answer import with_answers
from synth_audit.examination.planted_leaks import LeakInjector, prepare_injection
from synth_audit.examination.reference_ratio import with_ratios
from synth_audit.examination.rounding import published
from synth_audit.examination.runner import Progress, Task, TaskResult, run_tasks, silent


@dataclass(frozen=True, eq=False)
class Examination:
    """Everything that was found out about a candidate.

    Attributes:
        planting: how leaks were planted for the known-answer check.
        view: what a reviewer may know of exposed records. exposed: their positions, for the restricted
            workspace only.
        seconds: time taken, by step.
    """

    outcomes: tuple[AuditOutcome, ...]
    planting: PlantedLeaks
    view: RecordView
    exposed: pa.Table
    seconds: Mapping[str, float]


def conduct(
    audits: Mapping[str, Audit],
    subject: Subject,
    seed: int,
    check: KnownAnswerSpec,
    progress: Progress = silent,
    workers: int = 1,
    cache: Cache | None = None,
) -> Examination:
    """Run every audit on the candidate, and every privacy audit on planted leaks too.

    Args:
        workers: processes to spread the work over; the numbers do not depend on it.
        cache: what several examinations share, such as fits of one vine and the answers to planted leaks,
            which no candidate has a part in; one of its own if left out.
    """
    with _of_its_own() if cache is None else nullcontext(cache) as shared:
        subject = replace(subject, seed=seed, cache=shared)
        planted, planting = _planted(audits, subject, check)
        tasks = [Task(n, a, subject, n, ("audit", n)) for n, a in audits.items()]
        if cache is None:
            ended = run_tasks([*tasks, *planted], seed, progress, workers)
            own, answered = ended[: len(tasks)], ended[len(tasks) :]
        else:
            own = run_tasks(tasks, seed, progress, workers)
            answered = _answered(
                planted, subject, check, partial(run_tasks, planted, seed, progress, workers)
            )
    others = list(zip(planted, answered, strict=True))
    exposures: Exposures = [x for e in own for x in e.exposures]
    subgroups = worst_subgroups(exposures, subject)
    extra = as_measurements(subgroups)
    outcomes = []
    for end in own:
        answers = [e.outcome for task, e in others if task.name == end.outcome.audit]
        outcomes.append(_completed(end.outcome, planting, answers, extra))
    return Examination(
        outcomes=tuple(outcomes),
        planting=planting,
        view=record_view(exposures, subgroups, subject),
        exposed=exposed_records(
            exposures, subject.train.n_rows, subject.control.n_rows if subject.control else 0
        ),
        seconds=_seconds(own, [e for _, e in others]),
    )


@contextmanager
def _of_its_own() -> Iterator[Cache]:
    with TemporaryDirectory(prefix="synth-audit-") as folder:  # mode 0700
        yield Cache(Path(folder))


def _planted(
    audits: Mapping[str, Audit], subject: Subject, check: KnownAnswerSpec
) -> tuple[list[Task], PlantedLeaks]:
    """One task for each privacy audit and each planted share, and how they were planted."""
    privacy = {n: a for n, a in audits.items() if registry.find("audit", n).family == registry.PRIVACY}
    ground = prepare_injection(subject, check.max_rows)
    if not isinstance(ground, LeakInjector):
        return [], ground
    shares = (0.0, check.small, 1.0)
    tasks = [
        Task(n, a, leaky, f"{n} on a {share:.0%} leak", ("known answer", f"{share:g}", n))
        for share in shares
        for n, a in privacy.items()
        for leaky in (ground.planted(share, a.info.leak),)
    ]
    return tasks, ground.planting(shares)


def _answered(
    planted: Sequence[Task],
    subject: Subject,
    check: KnownAnswerSpec,
    run: Callable[[], tuple[TaskResult, ...]],
) -> tuple[TaskResult, ...]:
    """What became of the planted leaks, from the subject's cache if another candidate met the same ones.

    They rest on the real rows and on the number of synthetic ones, not on what these are, nor on what made
    them.
    """
    control = subject.control.fingerprint if subject.control else ""
    asked = [(t.name, type(t.audit).__qualname__, registry.config_of(t.audit), t.stream) for t in planted]
    circumstances = (subject.synthetic.n_rows, subject.level, subject.suppression, subject.seed)
    inputs = (subject.train.fingerprint, control, repr(subject.schema), check.model_dump_json())
    fresh: list[tuple[TaskResult, ...]] = []

    def make() -> bytes:
        fresh.append(run())
        return pickle.dumps(fresh[0])

    kept = subject.cache.get("known answer", *inputs, json.dumps([circumstances, asked]), make=make)
    ended: tuple[TaskResult, ...] = fresh[0] if fresh else pickle.loads(kept)  # noqa: S301  (the run's own folder)
    return ended if fresh else tuple(replace(e, seconds=0.0) for e in ended)


def _completed(
    outcome: AuditOutcome,
    planting: PlantedLeaks,
    answers: Sequence[AuditOutcome],
    extra: Mapping[str, tuple[Measurement, ...]],
) -> AuditOutcome:
    """A privacy outcome with what the check and its exposures add; another with ratios to its references."""
    if outcome.family != registry.PRIVACY or outcome.status is not Status.MEASURED:
        return published(with_ratios(outcome))
    checked = with_answers(outcome, planting, answers)
    return replace(checked, measurements=(*checked.measurements, *extra.get(outcome.audit, ())))


def _seconds(own: Sequence[TaskResult], others: Sequence[TaskResult]) -> dict[str, float]:
    seconds = {f"audit.{e.outcome.audit}": e.seconds for e in own}
    for e in others:
        key = f"known answer.{e.outcome.audit}"
        seconds[key] = round(seconds.get(key, 0.0) + e.seconds, 3)
    return seconds
