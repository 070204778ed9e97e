"""From values to the evidence file."""

from __future__ import annotations

import json
from typing import Any

from synth_audit.core import measurement as core
from synth_audit.core.audit import AuditInfo
from synth_audit.core.exposed_groups import RecordView
from synth_audit.core.outcome import AuditOutcome
from synth_audit.core.sensitivity import PlantedLeaks, SensitivityCurve
from synth_audit.core.series import Series
from synth_audit.core.verdict import GateReport, GateResult
from synth_audit.store.evidence import Evidence, GeneratorRecord
from synth_audit.store.wire_v1 import models
from synth_audit.store.wire_v1.privacy import write_account

OUTSIDE = ("digest", "created", "timings", "attempt", "ledger")
"""What the digest does not cover: it describes the run and not what was found."""


def text_of(evidence: Evidence) -> str:
    """The file's text; non-finite numbers as the strings NaN, Infinity, -Infinity."""
    return _evidence(evidence).model_dump_json(indent=2) + "\n"


def content_of(evidence: Evidence) -> dict[str, Any]:
    """The plain values that the digest covers."""
    plain: dict[str, Any] = json.loads(_evidence(evidence).model_dump_json())
    return {key: value for key, value in plain.items() if key not in OUTSIDE}


def _evidence(e: Evidence) -> models.Evidence:
    return models.Evidence(
        table=e.table,
        attempt=e.attempt,
        ledger=None if e.ledger is None else models.LedgerHead(lines=e.ledger.lines, digest=e.ledger.digest),
        plan=dict(e.plan),
        plan_sha256=e.plan_sha256,
        seed=e.seed,
        level=e.level,
        suppression=e.suppression,
        columns=tuple(
            models.Column(
                name=c.name,
                kind=c.kind,
                storage=c.storage,
                roles=c.roles,
                kind_declared=c.kind_declared,
                domain_declared=c.domain_declared,
                categories=c.categories,
            )
            for c in e.columns
        ),
        tables={n: models.Table(rows=t.rows, hmac=t.hmac, sha256=t.sha256) for n, t in e.tables.items()},  # type: ignore[misc]
        generator=_generator(e.generator),
        outcomes=tuple(map(_outcome, e.outcomes)),
        table_checks=tuple(
            models.TableCheck(key=c.key, met=c.met, explanation=c.explanation) for c in e.table_checks
        ),
        gates=_gates(e.gates),
        verdict=e.verdict.value,
        salt_commitment=e.salt_commitment,
        planting=_planting(e.planting),
        records=_records(e.records),
        warnings=e.warnings,
        versions=dict(e.versions),
        schema_version="1.2",
        digest=e.digest,
        created=e.created,
        timings=dict(e.timings),
    )


def _generator(g: GeneratorRecord) -> models.Generator:
    c = g.certificate
    claim = models.Certificate(claim=c.claim, reason=c.reason, epsilon=c.epsilon, delta=c.delta)
    spent = write_account(g.privacy)
    return models.Generator(name=g.name, config=dict(g.config), certificate=claim, privacy=spent)


def _outcome(o: AuditOutcome) -> models.Outcome:
    return models.Outcome(
        audit=o.audit,
        family=o.family,
        status=o.status.value,
        info=None if o.info is None else _info(o.info),
        config=dict(o.config),
        measurements=tuple(map(_measurement, o.measurements)),
        series=tuple(map(_series, o.series)),
        notes=o.notes,
        reason=o.reason,
        responses=tuple(map(_curve, o.responses)),
    )


def _info(i: AuditInfo) -> models.AuditInfo:
    return models.AuditInfo(
        title=i.title,
        question=i.question,
        threat_model=i.threat_model,
        not_covered=i.not_covered,
        quantities=tuple(map(_quantity, i.quantities)),
        risk=i.risk,
        needs=tuple(need.value for need in i.needs),
        leak=i.leak.value,
        default=i.default,
        spreads=i.spreads,
        cost=i.cost,
        source=i.source,
    )


def _quantity(q: core.Quantity) -> models.Quantity:
    return models.Quantity(
        name=q.name,
        title=q.title,
        unit=q.unit,
        direction=q.direction.value,
        range=q.range,
        help=q.help,
        proportional=q.proportional,
    )


def _measurement(m: core.Measurement) -> models.Measurement:
    return models.Measurement(
        id=str(m.id),
        value=m.value,
        interval=_interval(m.interval),
        n_requested=m.n_requested,
        n_achieved=m.n_achieved,
        n_minimum=m.n_minimum,
        unit=m.unit,
        direction=m.direction.value,
        reference=None if m.reference is None else _reference(m.reference),
    )


def _interval(i: core.Interval | None) -> models.Interval | None:
    if i is None:
        return None
    return models.Interval(low=i.low, high=i.high, level=i.level, method=i.method)


def _reference(r: core.Reference) -> models.Reference:
    c = r.candidate
    candidate = None if c is None else models.Estimate(value=c.value, interval=_interval(c.interval))
    return models.Reference(
        value=r.value, meaning=r.meaning, interval=_interval(r.interval), candidate=candidate
    )


def _series(s: Series) -> models.Series:
    return models.Series(
        id=str(s.id),
        title=s.title,
        kind=s.kind,
        x_label=s.x_label,
        y_label=s.y_label,
        x=s.x,
        lines=dict(s.lines),
        places=tuple(map(str, s.places)),
    )


def _curve(c: SensitivityCurve) -> models.SensitivityCurve:
    return models.SensitivityCurve(
        id=str(c.id),
        direction=c.direction.value,
        sight=c.sight.value,
        reason=c.reason,
        answers=tuple(
            models.PlantedResult(share=a.share, value=a.value, low=a.low, high=a.high) for a in c.answers
        ),
        null=c.null,
        half_width=c.half_width,
        minimum_detectable=c.minimum_detectable,
    )


def _gates(g: GateReport) -> models.Gates:
    return models.Gates(
        suite_name=g.suite_name,
        suite=dict(g.suite),
        suite_sha256=g.suite_sha256,
        results=tuple(map(_gate, g.results)),
        blockers=g.blockers,
    )


def _gate(g: GateResult) -> models.GateResult:
    return models.GateResult(
        gate=g.gate,
        title=g.title,
        result=g.result.value,
        blocking=g.blocking,
        reason=g.reason,
        explanation=g.explanation,
        advice=g.advice,
        measurement=None if g.measurement is None else str(g.measurement),
        every=g.every,
        bound=g.bound,
        value=g.value,
        low=g.low,
        high=g.high,
        level=g.level,
        minimum=g.minimum,
        maximum=g.maximum,
        n_needed=g.n_needed,
    )


def _planting(p: PlantedLeaks) -> models.PlantedLeaks:
    return models.PlantedLeaks(
        train_rows=p.train_rows,
        control_rows=p.control_rows,
        release_rows=p.release_rows,
        shares=p.shares,
        reason=p.reason,
    )


def _records(r: RecordView) -> models.Records:
    groups = tuple(
        models.ExposedGroup(
            id=str(g.id),
            columns=g.columns,
            train_tried=g.train_tried,
            train_hit=g.train_hit,
            control_tried=g.control_tried,
            control_hit=g.control_hit,
        )
        for g in r.groups
    )
    subgroups = tuple(
        models.Subgroup(
            id=str(s.id),
            category=s.category,
            train_rows=s.train_rows,
            value=s.value,
            interval=models.Interval(
                low=s.interval.low, high=s.interval.high, level=s.interval.level, method=s.interval.method
            ),
        )
        for s in r.subgroups
    )
    return models.Records(
        train_rows=r.train_rows,
        exposed=r.exposed,
        control_rows=r.control_rows,
        control_exposed=r.control_exposed,
        groups=groups,
        subgroups=subgroups,
    )
