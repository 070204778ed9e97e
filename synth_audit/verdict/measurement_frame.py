"""Measurements as a flat table, as gates see them, for the review folder and whoever plots or judges them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa

from synth_audit.findings import measurement
from synth_audit.findings.measurement import Measurement
from synth_audit.plugins.audit import AuditOutcome, Status
from synth_audit.store.evidence import Evidence
from synth_audit.verdict.gate_decision import Row
from synth_audit.verdict.judge import sensitivity_checked_rows

_FRAME_COLUMNS: tuple[tuple[str, pa.DataType, Callable[[AuditOutcome, Measurement, Row], object]], ...] = (
    ("audit", pa.string(), lambda o, m, row: o.audit),
    ("quantity", pa.string(), lambda o, m, row: m.id.quantity),
    ("setting", pa.string(), lambda o, m, row: m.id.setting),
    ("column", pa.string(), lambda o, m, row: m.id.column),
    ("derived_from", pa.string(), lambda o, m, row: str(m.id.derived_from or "")),
    ("id", pa.string(), lambda o, m, row: str(m.id)),
    ("name", pa.string(), lambda o, m, row: m.id.name),
    ("scope", pa.string(), lambda o, m, row: m.id.scope),
    ("value", pa.float64(), lambda o, m, row: row.value),
    ("ci_low", pa.float64(), lambda o, m, row: row.low),
    ("ci_high", pa.float64(), lambda o, m, row: row.high),
    ("level", pa.float64(), lambda o, m, row: row.level),
    ("n_requested", pa.int64(), lambda o, m, row: m.n_requested),
    ("n_achieved", pa.int64(), lambda o, m, row: row.n),
    ("n_minimum", pa.int64(), lambda o, m, row: row.n_minimum),
    ("unit", pa.string(), lambda o, m, row: m.unit),
    ("direction", pa.string(), lambda o, m, row: str(m.direction)),
    ("outcome", pa.string(), lambda o, m, row: str(o.status)),
    ("insensitive", pa.string(), lambda o, m, row: row.blind),
    ("copy_low", pa.float64(), lambda o, m, row: row.copy_low),
    ("copy_high", pa.float64(), lambda o, m, row: row.copy_high),
    ("worse", pa.string(), lambda o, m, row: row.worse),
)
"""Name, type and value of each column, from an audit's outcome, a measurement and its row as gates see it."""

_IDENTITY = ("quantity", "setting", "column", "derived_from", "id", "name", "scope")
"""Columns that are empty, and not missing, where an audit has no measurement."""


def measurement_frame(evidence: Evidence) -> pa.Table:
    """One row per measurement; an audit without any has one row that says why in ``outcome``.

    ``id`` is the text of its identity, ``name`` and ``scope`` the parts of that text before and inside the
    brackets, ``derived_from`` the text of another's.

    ``insensitive`` says why the known-answer check does not vouch for a number (empty when it does, or when
    it need not), ``copy_low`` and ``copy_high`` are its interval on a full copy of train, and ``worse`` is
    the way it moves there: what ``expect_measurement_to_be_within`` needs to decide as the audit did.
    """
    rows = [row for outcome in evidence.outcomes for row in _rows(outcome)]
    return pa.Table.from_pylist(rows, schema=pa.schema([column[:2] for column in _FRAME_COLUMNS]))


def judged_row(record: Mapping[str, object]) -> Row | None:
    """The row that a gate judges, from a record of the table as pandas or Arrow reads it.

    pandas reads what is absent as NaN. An interval is there when its level is; an end that is missing
    from it is damage, which no gate passes.

    Returns:
        None for a record that is no measurement of an audit that ended *measured*.

    Raises:
        KeyError: a column is missing. MeasurementNameError: an ``id`` is no name of a measurement.
    """
    if record["outcome"] != Status.MEASURED or not record["id"]:
        return None
    level = _number(record["level"])
    low, high = (None if level is None else _float(record[end]) for end in ("ci_low", "ci_high"))
    insensitive, worse = record["insensitive"], record["worse"]
    return Row(
        id=measurement.read(str(record["id"])),
        value=_float(record["value"]),
        low=low,
        high=high,
        level=level,
        n=_whole(record["n_achieved"]),
        n_minimum=_whole(record["n_minimum"]),
        blind=insensitive if isinstance(insensitive, str) else "nothing says whether it would see a leak",
        unit=str(record["unit"]),
        copy_low=_number(record["copy_low"]),
        copy_high=_number(record["copy_high"]),
        worse=worse if isinstance(worse, str) else None,
    )


def _rows(outcome: AuditOutcome) -> list[dict[str, object]]:
    if not outcome.measurements:
        return [{"audit": outcome.audit, "outcome": str(outcome.status), **dict.fromkeys(_IDENTITY, "")}]
    checked = zip(outcome.measurements, sensitivity_checked_rows(outcome), strict=True)
    return [{name: value(outcome, m, row) for name, _, value in _FRAME_COLUMNS} for m, row in checked]


def _float(x: object) -> float:
    number = _number(x)
    return float("nan") if number is None else number


def _number(x: object) -> float | None:
    """A number; None where pandas or Arrow says that there is none."""
    number = float(x) if isinstance(x, (int, float)) else None
    return None if number is None or number != number else number


def _whole(x: object) -> int | None:
    number = _number(x)
    return None if number is None else int(number)
