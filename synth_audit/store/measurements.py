"""Measurements as a flat table, for the review folder and for whoever plots them over time."""

from __future__ import annotations

import pyarrow as pa

from synth_audit.core.measurement import Measurement
from synth_audit.core.outcome import AuditOutcome
from synth_audit.store.evidence import Evidence

_SCHEMA = pa.schema(
    [
        ("audit", pa.string()),
        ("quantity", pa.string()),
        ("setting", pa.string()),
        ("column", pa.string()),
        ("derived_from", pa.string()),
        ("id", pa.string()),
        ("name", pa.string()),
        ("scope", pa.string()),
        ("value", pa.float64()),
        ("ci_low", pa.float64()),
        ("ci_high", pa.float64()),
        ("level", pa.float64()),
        ("n_requested", pa.int64()),
        ("n_achieved", pa.int64()),
        ("unit", pa.string()),
        ("direction", pa.string()),
        ("outcome", pa.string()),
    ]
)


def measurement_frame(evidence: Evidence) -> pa.Table:
    """One row per measurement; an audit without any has one row that says why in ``outcome``."""
    rows = [_row(outcome, m) for outcome in evidence.outcomes for m in (outcome.measurements or (None,))]
    return pa.Table.from_pylist(rows, schema=_SCHEMA)


def _row(outcome: AuditOutcome, m: Measurement | None) -> dict[str, object]:
    row: dict[str, object] = {"audit": outcome.audit, "outcome": str(outcome.status)}
    if m is None:
        return row | dict.fromkeys(
            ("quantity", "setting", "column", "derived_from", "id", "name", "scope"), ""
        )
    interval = m.interval
    return row | {
        "quantity": m.id.quantity,
        "setting": m.id.setting,
        "column": m.id.column,
        "derived_from": str(m.id.derived_from) if m.id.derived_from else "",
        "id": str(m.id),
        "name": m.id.name,
        "scope": m.id.scope,
        "value": m.value,
        "ci_low": interval.low if interval else None,
        "ci_high": interval.high if interval else None,
        "level": interval.level if interval else None,
        "n_requested": m.n_requested,
        "n_achieved": m.n_achieved,
        "unit": m.unit,
        "direction": str(m.direction),
    }
