"""From the evidence file to values."""

from __future__ import annotations

from typing import Any

from synth_audit.core import identity
from synth_audit.core import measurement as core
from synth_audit.core.audit import AuditInfo, Leak, Need
from synth_audit.core.errors import MeasurementNameError, PluginError
from synth_audit.core.exposed_groups import ExposedGroup, RecordView, Subgroup
from synth_audit.core.outcome import AuditOutcome, Status
from synth_audit.core.sensitivity import PlantedLeaks, PlantedResult, Sensitivity, SensitivityCurve
from synth_audit.core.series import Series
from synth_audit.core.strict_yaml import load_json
from synth_audit.core.verdict import Fitness, GateReport, GateResult, Result, TableCheck
from synth_audit.store.chained_log import Head
from synth_audit.store.evidence import Evidence, OtherFormat
from synth_audit.store.evidence_records import ColumnRecord, EarlierAudit, GeneratorRecord, TableRecord
from synth_audit.store.wire_v1 import audit_models, models
from synth_audit.store.wire_v1.privacy import read_account


def parse(text: str) -> Evidence:
    """Evidence from the text of its file.

    Raises:
        OtherFormat: it says that it is of another format.
        ValueError: it is none, or it has a key that is unknown or occurs twice.
    """
    plain = load_json(text)
    version = plain.get("schema_version") if isinstance(plain, dict) else None
    if isinstance(version, str) and version != models.VERSION:
        raise OtherFormat(version)
    return _evidence(models.WireEvidence.model_validate_json(text))


def _evidence(w: models.WireEvidence) -> Evidence:
    try:
        return Evidence(
            table=w.table,
            attempt=w.attempt,
            ledger=None if w.ledger is None else Head(w.ledger.lines, w.ledger.digest),
            earlier=tuple(EarlierAudit(x.at, x.plan, x.suite, x.verdict, x.evidence) for x in w.earlier),
            plan=w.plan,
            plan_sha256=w.plan_sha256,
            seed=w.seed,
            level=w.level,
            suppression=w.suppression,
            columns=tuple(
                ColumnRecord(
                    c.name, c.kind, c.storage, c.roles, c.kind_declared, c.domain_declared, c.categories
                )
                for c in w.columns
            ),
            tables={name: TableRecord(t.rows, t.hmac, t.sha256) for name, t in w.tables.items()},
            generator=GeneratorRecord(
                w.generator.name,
                w.generator.config,
                read_account(w.generator.privacy),
                tuple(map(_series, w.generator.training)),
                w.generator.column_groups,
            ),
            outcomes=tuple(map(_outcome, w.outcomes)),
            table_checks=tuple(TableCheck(c.key, c.met, c.explanation) for c in w.table_checks),
            gates=_gates(w.gates),
            verdict=Result(w.verdict),
            fitness=Fitness(w.fitness),
            salt_commitment=w.salt_commitment,
            planting=_planting(w.planting),
            records=_records(w.records),
            warnings=w.warnings,
            versions=w.versions,
            digest=w.digest,
            created=w.created,
            timings=w.timings,
        )
    except (MeasurementNameError, PluginError) as error:
        raise ValueError(error.what) from None


def _planting(w: models.WirePlantedLeaks) -> PlantedLeaks:
    return PlantedLeaks(w.train_rows, w.control_rows, w.release_rows, w.shares, w.reason)


def _outcome(w: audit_models.WireOutcome) -> AuditOutcome:
    return AuditOutcome(
        audit=w.audit,
        family=w.family,
        status=Status(w.status),
        info=None if w.info is None else _info(w.info),
        config=w.config,
        measurements=tuple(map(_measurement, w.measurements)),
        series=tuple(map(_series, w.series)),
        notes=w.notes,
        reason=w.reason,
        responses=tuple(map(_curve, w.responses)),
    )


def _info(w: audit_models.WireAuditInfo) -> AuditInfo:
    return AuditInfo(
        title=w.title,
        question=w.question,
        threat_model=w.threat_model,
        not_covered=w.not_covered,
        quantities=tuple(map(_quantity, w.quantities)),
        risk=w.risk,
        needs=tuple(map(Need, w.needs)),
        leak=Leak(w.leak),
        default=w.default,
        spreads=w.spreads,
        cost=w.cost,
        source=w.source,
    )


def _quantity(w: audit_models.WireQuantity) -> core.Quantity:
    return core.Quantity(
        name=w.name,
        title=w.title,
        unit=w.unit,
        direction=core.Direction(w.direction),
        range=w.range,
        help=w.help,
        proportional=w.proportional,
    )


def _measurement(w: audit_models.WireMeasurement) -> core.Measurement:
    return core.Measurement(
        id=identity.read(w.id),
        value=w.value,
        interval=_interval(w.interval),
        n_requested=w.n_requested,
        n_achieved=w.n_achieved,
        n_minimum=w.n_minimum,
        unit=w.unit,
        direction=core.Direction(w.direction),
        reference=None if w.reference is None else _reference(w.reference),
    )


def _interval(w: audit_models.WireInterval | None) -> core.Interval | None:
    return None if w is None else _whole(w)


def _reference(w: audit_models.WireReference) -> core.Reference:
    c = w.candidate
    candidate = None if c is None else core.Estimate(c.value, _interval(c.interval))
    return core.Reference(w.value, w.meaning, _interval(w.interval), candidate)


def _series(w: audit_models.WireSeries) -> Series:
    return Series(
        id=identity.read(w.id),
        title=w.title,
        kind=w.kind,
        x_label=w.x_label,
        y_label=w.y_label,
        x=w.x,
        lines=w.lines,
        places=tuple(map(identity.read, w.places)),
    )


def _curve(w: audit_models.WireSensitivityCurve) -> SensitivityCurve:
    return SensitivityCurve(
        id=identity.read(w.id),
        direction=core.Direction(w.direction),
        sensitivity=Sensitivity(w.sight),
        reason=w.reason,
        answers=tuple(PlantedResult(a.share, a.value, a.low, a.high) for a in w.answers),
        null=w.null,
        half_width=w.half_width,
        minimum_detectable=w.minimum_detectable,
    )


def _gates(w: models.WireGates) -> GateReport:
    return GateReport(w.suite_name, w.suite, w.suite_sha256, tuple(map(_gate, w.results)), w.blockers)


def _gate(w: models.WireGateResult) -> GateResult:
    return GateResult(
        gate=w.gate,
        title=w.title,
        result=Result(w.result),
        blocking=w.blocking,
        reason=w.reason,
        explanation=w.explanation,
        advice=w.advice,
        measurement=None if w.measurement is None else identity.read(w.measurement),
        every=w.every,
        bound=w.bound,
        value=w.value,
        low=w.low,
        high=w.high,
        level=w.level,
        minimum=w.minimum,
        maximum=w.maximum,
        n_needed=w.n_needed,
        fitness=w.fitness,
    )


def _records(w: models.WireRecords) -> RecordView:
    groups = tuple(
        ExposedGroup(
            identity.read(g.id), g.columns, g.train_tried, g.train_hit, g.control_tried, g.control_hit
        )
        for g in w.groups
    )
    subgroups = tuple(
        Subgroup(identity.read(s.id), s.category, s.train_rows, s.value, _whole(s.interval))
        for s in w.subgroups
    )
    return RecordView(w.train_rows, w.exposed, w.control_rows, w.control_exposed, groups, subgroups)


def _whole(w: audit_models.WireInterval) -> core.Interval:
    return core.Interval(w.low, w.high, w.level, w.method)


def schema() -> dict[str, Any]:
    """JSON Schema of the file."""
    found: dict[str, Any] = _with_words_for_numbers(models.WireEvidence.model_json_schema())
    return found


def _with_words_for_numbers(schema: Any) -> Any:
    """The schema with NaN and the infinities as the strings that stand for them in the file."""
    if isinstance(schema, list):
        return [_with_words_for_numbers(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    parts = {key: _with_words_for_numbers(part) for key, part in schema.items()}
    if parts.get("type") != "number":
        return parts
    words = {"enum": ["NaN", "Infinity", "-Infinity"]}
    return {k: v for k, v in parts.items() if k != "type"} | {"anyOf": [{"type": "number"}, words]}
