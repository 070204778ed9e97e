"""The whole examination of one candidate: audits, known-answer check, leak-equivalents, exposed records."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from synth_audit import registry
from synth_audit.examination import exposed_records
from synth_audit.examination.audit_runner import AuditTask, candidate_tasks, run_tasks
from synth_audit.examination.known_answer import with_answers
from synth_audit.examination.planted_leaks import LeakInjector, prepare_injection
from synth_audit.execution.context import RunContext
from synth_audit.execution.seeds import Salt, public_seed
from synth_audit.findings.measurement import Direction, Estimate, Interval, Measurement, Reference
from synth_audit.findings.sensitivity import REFERENCE_RATIO, PlantedLeaks, RecordView
from synth_audit.plan.sections import KnownAnswerSpec
from synth_audit.plugins.audit import Audit, AuditOutcome, Leak, Need, Status, Subject
from synth_audit.plugins.generator import repeats
from synth_audit.table.coarsening import NO_COARSENING

_USEFULNESS = ("fidelity", "utility")

DIGITS = 4
"""Decimals of a number that compares tables. All digits of several such numbers are equations for counts."""


@dataclass(frozen=True, eq=False)
class Views:
    """The subject as it is, and as whoever attacks a coarser release sees it.

    A copied record that was rounded equals nobody's record as it stands in train, and is a copy still: the
    rule is no secret, so whoever looks for somebody coarsens what they know of them first. So attacks compare
    with real records that were made coarser alike, and rounding hides nothing from them but what it takes out
    of the release. Two kinds of audits meet the real tables as they are: those that ask how useful the
    release is, for coarser values are what it loses; and those that run the generator again, which learns
    real rows as they are and of which each draw is made coarser.
    """

    plain: Subject
    coarse: Subject

    @classmethod
    def of(cls, subject: Subject) -> Views:
        """Both views; one and the same where nothing was made coarser."""
        if not subject.coarsening:
            return cls(subject, subject)
        train, control = subject.coarsening.view(subject.train, subject.control)
        synthetic = subject.synthetic.declared_as(train.schema)
        coarse = replace(subject, train=train, control=control, synthetic=synthetic, coarsening=NO_COARSENING)
        return cls(subject, coarse)

    def met_by(self, audit: Audit) -> Subject:
        """The subject that an audit is handed."""
        info = audit.info
        return self.plain if info.risk in _USEFULNESS or Need.GENERATOR in info.needs else self.coarse


def with_ratios(outcome: AuditOutcome) -> AuditOutcome:
    """An outcome of fidelity or utility with its ratios added; any other as it is."""
    if outcome.family == registry.PRIVACY or outcome.status is not Status.MEASURED or outcome.info is None:
        return outcome
    found = []
    for m in outcome.measurements:
        quantity = outcome.info.quantity(m.id.quantity)
        if (
            quantity.range[0] >= 0
            and quantity.direction is not Direction.NEUTRAL
            and (made := ratio(m)) is not None
        ):
            found.append(made)
    return replace(outcome, measurements=(*outcome.measurements, *found))


def ratio(m: Measurement) -> Measurement | None:
    """``value / reference`` at one number of rows; None where the reference was not measured, or is 0.

    The interval reaches from ``low / high of the reference`` to ``high / low of the reference``, which
    covers at least as often as the two intervals, and has no upper end where the reference may be 0.
    """
    if m.reference is None or m.reference.interval is None or not m.reference.value > 0:
        return None
    reference, beside = m.reference.value, m.reference.interval
    own = m.reference.candidate or Estimate(m.value, m.interval)
    interval = None
    if own.interval is not None:
        low = max(own.interval.low, 0.0) / max(beside.high, reference)
        high = max(own.interval.high, 0.0) / beside.low if beside.low > 0 else math.inf
        method = f"{own.interval.method}, over that of the reference"
        interval = Interval(low, high, own.interval.level, method)
    made = REFERENCE_RATIO.at(
        own.value / reference,
        interval=interval,
        n_requested=m.n_requested,
        n_achieved=m.n_achieved,
        n_minimum=m.n_minimum,
    )
    return replace(made, id=REFERENCE_RATIO.derived(m.id), direction=m.direction)


def rounded_for_publication(outcome: AuditOutcome) -> AuditOutcome:
    """An outcome whose measurements are rounded; an interval still holds its value."""
    return replace(outcome, measurements=tuple(map(_rounded, outcome.measurements)))


def _rounded(m: Measurement) -> Measurement:
    of, reference = m.reference, m.reference
    if of is not None:
        own = of.candidate and Estimate(_short(of.candidate.value), _ends(of.candidate.interval))
        reference = Reference(_short(of.value), of.meaning, _ends(of.interval), own)
    return replace(m, value=_short(m.value), interval=_ends(m.interval), reference=reference)


def _ends(interval: Interval | None) -> Interval | None:
    return interval and replace(interval, low=_short(interval.low), high=_short(interval.high))


def _short(x: float) -> float:
    return round(x, DIGITS) if math.isfinite(x) else x


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


def seed_of_draws(content: str, salt: Salt | None) -> int:
    """Return the seed of all draws of an examination. No setting of a plan moves it.

    Args:
        content: hash of the candidate, in which the order of its rows does not matter.
        salt: of the training table. Without one the seed follows from the content and can be predicted.
    """
    if salt is not None:
        return salt.seed("examination")
    return public_seed("examination", content)


def run_examination(
    audits: Mapping[str, Audit], subject: Subject, check: KnownAnswerSpec, context: RunContext
) -> Examination:
    """Run every audit on the candidate, and every privacy audit on planted leaks too.

    Args:
        context: its cache holds what several examinations share, such as fits of one vine; its journal the
            outcomes, among them answers to planted leaks, which no candidate has a part in.
    """
    with context.keeping() as keeping:
        views = Views.of(subject)
        planted, planting = _planted(audits, views, check, keeping.seed)
        tasks = [replace(t, subject=views.met_by(t.audit)) for t in candidate_tasks(audits, subject)]
        tasks += planted
        if keeping.journal.keeps:
            tasks = [replace(t, known_by=_known_by(t, subject, check, keeping)) for t in tasks]
        ended = run_tasks(tasks, keeping)
    own, answered = ended[: len(audits)], ended[len(audits) :]
    exposures: exposed_records.Exposures = [x for e in own for x in e.exposures]
    subgroups = exposed_records.worst_subgroups(exposures, subject)
    extra = exposed_records.as_measurements(subgroups)
    outcomes = []
    for end in own:
        answers = [e.outcome for e in answered if e.outcome.audit == end.outcome.audit]
        outcomes.append(_completed(end.outcome, planting, answers, extra))
    seconds = {f"audit.{e.outcome.audit}": e.seconds for e in own}
    for e in answered:
        key = f"known answer.{e.outcome.audit}"
        seconds[key] = round(seconds.get(key, 0.0) + e.seconds, 3)
    return Examination(
        outcomes=tuple(outcomes),
        planting=planting,
        view=exposed_records.record_view(exposures, subgroups, subject),
        exposed=exposed_records.exposed_records(
            exposures, subject.train.n_rows, subject.control.n_rows if subject.control else 0
        ),
        seconds=seconds,
    )


def _planted(
    audits: Mapping[str, Audit], views: Views, check: KnownAnswerSpec, seed: int
) -> tuple[list[AuditTask], PlantedLeaks]:
    """One task for each privacy audit and each planted share, and how they were planted.

    An audit that states its own limits has none. Leaks are planted in the tables that the audit meets, the
    same rows in both views.
    """
    privacy = {
        n: a
        for n, a in audits.items()
        if registry.find("audit", n).family == registry.PRIVACY and a.info.leak is not Leak.OWN
    }
    injector = prepare_injection(views.plain, check.max_rows, seed)
    if not isinstance(injector, LeakInjector):
        return [], injector
    coarse = injector if views.coarse is views.plain else replace(injector, subject=views.coarse)
    shares = (0.0, check.small, 1.0)
    answers = [(share, n, a) for share in shares for n, a in privacy.items()]
    tasks = []
    for place, (share, n, a) in enumerate(answers, 1):
        met = injector if views.met_by(a) is views.plain else coarse
        planted = f"with a leak of {share:.0%}" if share else "without a leak"
        title = f"known-answer check {place} of {len(answers)} ({n} {planted})"
        leaky = met.planted(share, a.info.leak)
        tasks.append(AuditTask(n, a, leaky, title, ("known answer", f"{share:g}", n), planted=True))
    return tasks, injector.planted_leaks(shares)


def _known_by(
    task: AuditTask, subject: Subject, check: KnownAnswerSpec, context: RunContext
) -> tuple[str, ...]:
    """What a task's outcome depends on beside the build; nothing where it may end otherwise another time.

    It may with the code of a plug-in, which the build leaves out, and with noise that is new in every fit:
    the best outcomes of several attempts could be put together. Answers to planted leaks rest on the real
    rows and on the number of synthetic ones, not on what these are, nor on what made them.
    """
    kind, split, generator = type(task.audit), subject.random_split, task.subject.generator
    fits = Need.GENERATOR in task.audit.info.needs and not task.subject.planted
    noisy = subject.terms.total is not None or (generator is not None and not repeats(generator))
    codes = [kind, *(type(column.kind) for column in subject.schema.columns), *[type(generator)] * fits]
    modules = [code.__module__ for code in codes] + [v.module for v in registry.catalogue("view").values()]
    if not all(module.startswith("synth_audit.") for module in modules) or (fits and noisy):
        return ()
    circumstances = (
        (task.name, kind.__qualname__, registry.config_of(task.audit), task.stream),
        [table.ordered_hash for table in subject.real],
        (subject.schema, subject.level, subject.suppression, subject.column_groups, subject.terms),
        (subject.synthetic.n_rows, sorted(subject.coarsening.rules.items())),
        (context.seed, context.device),
    )
    planted = (check, split and (split.ours, split.apart))
    own = (split, subject.guarantee, generator)
    return "outcome", repr(circumstances), repr(planted if task.subject.planted else own)


def _completed(
    outcome: AuditOutcome,
    planting: PlantedLeaks,
    answers: Sequence[AuditOutcome],
    extra: Mapping[str, tuple[Measurement, ...]],
) -> AuditOutcome:
    """A privacy outcome with what the check and its exposures add; another with ratios to its references."""
    if outcome.family != registry.PRIVACY or outcome.status is not Status.MEASURED:
        return rounded_for_publication(with_ratios(outcome))
    own_limits = outcome.info is not None and outcome.info.leak is Leak.OWN
    checked = outcome if own_limits else with_answers(outcome, planting, answers)
    return replace(checked, measurements=(*checked.measurements, *extra.get(outcome.audit, ())))
