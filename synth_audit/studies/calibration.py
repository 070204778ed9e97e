"""The full leaky evaluation: every privacy measurement against the share of copied rows, noise or none."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass

import numpy as np
from pydantic import ConfigDict, with_config

from synth_audit import registry
from synth_audit.errors import DataError, PlanError
from synth_audit.examination.audit_runner import AuditTask, TaskResult, run_tasks
from synth_audit.examination.planted_leaks import LeakInjector, prepare_injection
from synth_audit.execution.context import RunContext
from synth_audit.execution.seeds import child_rng
from synth_audit.findings.measurement import Direction, MeasurementId
from synth_audit.findings.sensitivity import PlantedLeaks
from synth_audit.plugins.audit import Audit, Status, Subject
from synth_audit.store.records import to_json
from synth_audit.table.kind import Disturbance
from synth_audit.table.table import Table, assemble

STRENGTH = 0.05
"""Noise of the published evaluation: each of its three kinds is this, or none."""


QUIET = (Disturbance(),)
"""Leaks as they are."""

LOUD = tuple(Disturbance(*kinds) for kinds in itertools.product((0.0, STRENGTH), repeat=3))
"""Each of the three kinds of noise, or none."""


@dataclass(frozen=True)
class Point:
    """One measurement on one planted leak."""

    share: float
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Curve:
    """A measurement against the share of copied rows, under one kind of noise.

    Attributes:
        points: by ascending share.
        slope, intercept: of the least-squares line.
        r_squared: share of the variance that the line explains; NaN for fewer than three points or none.
    """

    id: MeasurementId
    noise: Disturbance
    points: tuple[Point, ...]
    slope: float
    intercept: float
    r_squared: float


@with_config(ConfigDict(ser_json_inf_nan="strings"))  # holds for what is within it too
@dataclass(frozen=True)
class Calibration:
    """All curves, and what became of audits that gave none.

    Attributes:
        silent: audits without a number on some leak, with their reason.
    """

    table: str
    seed: int
    level: float
    planting: PlantedLeaks
    curves: tuple[Curve, ...]
    silent: Mapping[str, str]

    def to_json(self) -> str:
        """The calibration as JSON text."""
        return to_json(self)


def calibrate(
    audits: Mapping[str, Audit],
    subject: Subject,
    context: RunContext,
    *,
    table: str,
    shares: Sequence[float],
    noises: Sequence[Disturbance] = QUIET,
    max_rows: int = 10_000,
) -> Calibration:
    """Measure planted leaks of every share under every noise, with every privacy audit.

    Args:
        subject: train and control; its synthetic table only sets the size of the planted releases.
        context: its seed decides the leaks and all draws.
        shares: of copied rows, in [0, 1].

    Raises:
        DataError: train has too few rows to plant a leak in.
        PlanError: no privacy audit is among them.
    """
    chosen = {n: a for n, a in audits.items() if registry.find("audit", n).family == registry.PRIVACY}
    if not chosen:
        raise PlanError(
            "none of the audits looks for leaks, so there is nothing to calibrate",
            where="audits",
            expected="at least one privacy audit",
            fix="`synth-audit list` shows all",
        )
    seed = context.seed
    with context.keeping() as keeping:
        injector = prepare_injection(subject, max_rows, seed)
        if not isinstance(injector, LeakInjector):
            raise DataError(
                f"no leak can be planted: {injector.reason}",
                where="train",
                expected="enough training rows for a release and a training table of their own",
                fix="calibrate on a larger table of the same kind",
            )
        grid, tasks = list(itertools.product(noises, sorted(set(shares)))), []
        for noise, share in grid:
            name = f"{share:g} {noise.sigma:g} {noise.rate:g} {noise.flip:g}"
            leaks = disturbed(injector.leaks(share), noise, child_rng(seed, "calibration", name))
            leaky = injector.leaky(injector.release(share, leaks))
            tasks += [
                AuditTask(n, audit, leaky, f"{n} at {share:.0%}", ("calibration", name, n))
                for n, audit in chosen.items()
            ]
        ended = run_tasks(tasks, keeping)
    places = [(noise, share) for noise, share in grid for _ in chosen]
    return Calibration(
        table=table,
        seed=seed,
        level=subject.level,
        planting=injector.planted_leaks(sorted(set(shares))),
        curves=_curves(places, ended),
        silent={e.outcome.audit: e.outcome.reason for e in ended if e.outcome.status is not Status.MEASURED},
    )


def disturbed(table: Table, noise: Disturbance, rng: np.random.Generator) -> Table:
    """Put noise on every column; missing values stay missing, and without noise all stays as it is."""
    if noise.none:
        return table
    columns = {
        c.name: c.kind.disturbed(c.kind.plain(table.column(c.name)), c.domain, noise, rng)
        for c in table.schema
    }
    return assemble(table.schema, columns)


def _curves(places: Sequence[tuple[Disturbance, float]], ended: Sequence[TaskResult]) -> tuple[Curve, ...]:
    found: dict[tuple[MeasurementId, Disturbance], list[Point]] = {}
    for (noise, share), end in zip(places, ended, strict=True):
        for m in end.outcome.measurements:
            if m.direction is not Direction.NEUTRAL and m.interval is not None and m.finite:
                found.setdefault((m.id, noise), []).append(
                    Point(share, m.value, m.interval.low, m.interval.high)
                )
    ordered = sorted(found.items(), key=lambda item: (item[0][0], astuple(item[0][1])))
    return tuple(_curve(*key, points) for key, points in ordered)


def _curve(measurement: MeasurementId, noise: Disturbance, points: Sequence[Point]) -> Curve:
    x, y = (np.array([getattr(p, part) for p in points]) for part in ("share", "value"))
    slope, intercept, explained = float("nan"), float("nan"), float("nan")
    if len(points) > 2 and np.ptp(x) > 0:
        slope, intercept = (float(c) for c in np.polyfit(x, y, 1))
        spread = float(np.sum((y - y.mean()) ** 2))
        if spread > 0:
            explained = 1 - float(np.sum((y - intercept - slope * x) ** 2)) / spread
    return Curve(measurement, noise, tuple(points), slope, intercept, explained)
