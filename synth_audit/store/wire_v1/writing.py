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
from synth_audit.store.chained_log import Head
from synth_audit.store.evidence import Evidence
from synth_audit.store.evidence_records import EarlierAudit, GeneratorRecord
from synth_audit.store.wire_v1 import audit_models, models
from synth_audit.store.wire_v1.privacy import write_account

OUTSIDE = ("digest", "created", "timings", "attempt", "ledger", "earlier")
"""What the digest does not cover: it describes the run and not what was found."""


def text_of(evidence: Evidence) -> str:
    """The file's text; non-finite numbers as the strings NaN, Infinity, -Infinity."""
    return _evidence(evidence).model_dump_json(indent=2) + "\n"


def content_of(evidence: Evidence) -> dict[str, Any]:
    """The plain values that the digest covers."""
    plain: dict[str, Any] = json.loads(_evidence(evidence).model_dump_json())
    return {key: value for key, value in plain.items() if key not in OUTSIDE}


def _evidence(e: Evidence) -> models.WireEvidence:
    return models.WireEvidence(
        table=e.table,
        attempt=e.attempt,
        ledger=None if e.ledger is None else _ledger_head(e.ledger),
        earlier=tuple(map(_earlier, e.earlier)),
        plan=dict(e.plan),
        plan_sha256=e.plan_sha256,
        seed=e.seed,
        level=e.level,
        suppression=e.suppression,
        columns=tuple(
            models.WireColumn(
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
        tables={n: models.WireTable(rows=t.rows, hmac=t.hmac, sha256=t.sha256) for n, t in e.tables.items()},  # type: ignore[misc]
        generator=_generator(e.generator),
        outcomes=tuple(map(_outcome, e.outcomes)),
        table_checks=tuple(
            models.WireTableCheck(key=c.key, met=c.met, explanation=c.explanation) for c in e.table_checks
        ),
        gates=_gates(e.gates),
        verdict=e.verdict.value,
        fitness=e.fitness.value,
        salt_commitment=e.salt_commitment,
        planting=_planting(e.planting),
        records=_records(e.records),
        warnings=e.warnings,
        versions=dict(e.versions),
        schema_version="1.0",
        digest=e.digest,
        created=e.created,
        timings=dict(e.timings),
    )


def _ledger_head(h: Head) -> models.WireLedgerHead:
    return models.WireLedgerHead(lines=h.lines, digest=h.digest)


def _earlier(x: EarlierAudit) -> models.WireEarlierAudit:
    return models.WireEarlierAudit(
        at=x.at,
        plan=x.plan,
        suite=x.suite,
        verdict=x.verdict,  # type: ignore[arg-type]
        evidence=x.evidence,
    )


def _generator(g: GeneratorRecord) -> models.WireGenerator:
    return models.WireGenerator(
        name=g.name,
        config=dict(g.config),
        privacy=write_account(g.privacy),
        training=tuple(map(_series, g.training)),
        column_groups=g.column_groups,
    )


def _outcome(o: AuditOutcome) -> audit_models.WireOutcome:
    return audit_models.WireOutcome(
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


def _info(i: AuditInfo) -> audit_models.WireAuditInfo:
    return audit_models.WireAuditInfo(
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


def _quantity(q: core.Quantity) -> audit_models.WireQuantity:
    return audit_models.WireQuantity(
        name=q.name,
        title=q.title,
        unit=q.unit,
        direction=q.direction.value,
        range=q.range,
        help=q.help,
        proportional=q.proportional,
    )


def _measurement(m: core.Measurement) -> audit_models.WireMeasurement:
    return audit_models.WireMeasurement(
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


def _interval(i: core.Interval | None) -> audit_models.WireInterval | None:
    if i is None:
        return None
    return audit_models.WireInterval(low=i.low, high=i.high, level=i.level, method=i.method)


def _reference(r: core.Reference) -> audit_models.WireReference:
    c = r.candidate
    candidate = (
        None if c is None else audit_models.WireEstimate(value=c.value, interval=_interval(c.interval))
    )
    return audit_models.WireReference(
        value=r.value, meaning=r.meaning, interval=_interval(r.interval), candidate=candidate
    )


def _series(s: Series) -> audit_models.WireSeries:
    return audit_models.WireSeries(
        id=str(s.id),
        title=s.title,
        kind=s.kind,
        x_label=s.x_label,
        y_label=s.y_label,
        x=s.x,
        lines=dict(s.lines),
        places=tuple(map(str, s.places)),
    )


def _curve(c: SensitivityCurve) -> audit_models.WireSensitivityCurve:
    return audit_models.WireSensitivityCurve(
        id=str(c.id),
        direction=c.direction.value,
        sight=c.sensitivity.value,
        reason=c.reason,
        answers=tuple(
            audit_models.WirePlantedResult(share=a.share, value=a.value, low=a.low, high=a.high)
            for a in c.answers
        ),
        null=c.null,
        half_width=c.half_width,
        minimum_detectable=c.minimum_detectable,
    )


def _gates(g: GateReport) -> models.WireGates:
    return models.WireGates(
        suite_name=g.suite_name,
        suite=dict(g.suite),
        suite_sha256=g.suite_sha256,
        results=tuple(map(_gate, g.results)),
        blockers=g.blockers,
    )


def _gate(g: GateResult) -> models.WireGateResult:
    return models.WireGateResult(
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
        fitness=g.fitness,
    )


def _planting(p: PlantedLeaks) -> models.WirePlantedLeaks:
    return models.WirePlantedLeaks(
        train_rows=p.train_rows,
        control_rows=p.control_rows,
        release_rows=p.release_rows,
        shares=p.shares,
        reason=p.reason,
    )


def _records(r: RecordView) -> models.WireRecords:
    groups = tuple(
        models.WireExposedGroup(
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
        models.WireSubgroup(
            id=str(s.id),
            category=s.category,
            train_rows=s.train_rows,
            value=s.value,
            interval=audit_models.WireInterval(
                low=s.interval.low, high=s.interval.high, level=s.interval.level, method=s.interval.method
            ),
        )
        for s in r.subgroups
    )
    return models.WireRecords(
        train_rows=r.train_rows,
        exposed=r.exposed,
        control_rows=r.control_rows,
        control_exposed=r.control_exposed,
        groups=groups,
        subgroups=subgroups,
    )
