"""The gate: a suite applied to an audit's outcomes and to the synthetic table, failing closed.

Measurements as gates see them are also a flat table, for the review folder.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from synth_audit import registry
from synth_audit.findings import measurement
from synth_audit.findings.measurement import Direction, Measurement
from synth_audit.findings.sensitivity import REFERENCE_RATIO, Sensitivity
from synth_audit.findings.verdict import GateReport, GateResult, Result, TableCheck
from synth_audit.plugins.audit import AuditOutcome, Leak, Status
from synth_audit.store.evidence import Evidence
from synth_audit.verdict import insufficient_evidence as lacking
from synth_audit.verdict.criteria import CONTRACT, answers_result, decides, fitness_result
from synth_audit.verdict.gate_decision import Decision, Limit, Row, decide, first_few, undecided
from synth_audit.verdict.privacy_budget import Promise, promise_results
from synth_audit.verdict.suite import Gate, Suite
from synth_audit.verdict.table_checks import check_buildable, contract_result, table_result

BUILT_IN = (CONTRACT,)
"""The gate that no suite need name and none can leave out; it blocks."""

COLUMNS_SHOWN = 5
"""Columns that an explanation names."""


def sensitivity_checked_rows(outcome: AuditOutcome) -> list[Row]:
    """The measurements of an audit as a gate sees them, with what the check says of each.

    A privacy measurement that the check did not try, or found blind, is not vouched for; what is derived from
    another stands and falls with it. Measurements of other families need nobody to vouch for them, nor do
    those of an audit that states its own limits.
    """
    rows = [Row.of(m) for m in outcome.measurements]
    if outcome.family != registry.PRIVACY or (outcome.info is not None and outcome.info.leak is Leak.OWN):
        return rows
    return [_sensitivity_checked(row, m, outcome) for row, m in zip(rows, outcome.measurements, strict=True)]


def _sensitivity_checked(row: Row, m: Measurement, outcome: AuditOutcome) -> Row:
    derived = m.id.derived_from is not None
    about = m.id.derived_from or m.id
    response = next((r for r in outcome.responses if r.id == about), None)
    if response is None:
        return replace(row, blind=lacking.NOT_TRIED.format(what=about if derived else "it"))
    if response.sensitivity is Sensitivity.INSENSITIVE or response.full is None:
        reason = response.reason or lacking.NO_ANSWER
        return replace(row, blind=f"{about}: {reason}" if derived else reason)
    if derived:
        return row
    worse = "up" if response.direction is Direction.LOWER else "down"
    return replace(row, copy_low=response.full.low, copy_high=response.full.high, worse=worse)


def judge(
    suite: Suite,
    outcomes: Sequence[AuditOutcome],
    table_checks: Sequence[TableCheck],
    promise: Promise | None = None,
    *,
    target: bool = False,
) -> GateReport:
    """Apply a suite to measurements and table checks; needs no data.

    Args:
        outcomes: of every configured audit; only measurements of audits that ended *measured* count.
        table_checks: from :func:`check_table`; checks of other suites are ignored, missing ones are
            insufficient evidence.
        promise: the privacy budget that the plan declares, if any, and what was spent of it.
        target: the plan names a target, by which fitness is judged.

    Returns:
        The gate that every suite gets (:data:`BUILT_IN`), those of a declared budget and one result per
        gate, in the suite's order, and last whether the answers that the suite demands were given and
        whether a release is fit that must be. Optional gates whose audit was not applicable are left out,
        and so is, beside a failed gate, a detection limit that was not measured.

    Raises:
        GateError: Great Expectations refuses an expectation of which there is no check, or a check of the
            contract is damaged.
    """
    checked = {c.key for c in table_checks}
    check_buildable([g for g in suite.on_table if g.key not in checked])
    decisions = _decide(suite, outcomes)
    results = [contract_result(table_checks), *promise_results(promise, outcomes)]
    on_table = {gate.id: table_result(gate, table_checks) for gate in suite.on_table}
    deciding = [r.result for r in (*results, *on_table.values()) if r.blocking]
    deciding += [decisions[g.id].result for g in suite.measured if g.blocking]
    lost = Result.FAIL in deciding
    idle = {o.audit for o in outcomes if o.status is Status.NOT_APPLICABLE}
    for gate in suite.gates:
        fitness = decides(gate.fitness, target=target)
        if gate.limit is None:
            found = on_table[gate.id]
        elif gate.optional and not fitness and (gate.fitness or gate.limit.audit in idle):
            continue
        elif gate.undecided and lost and decisions[gate.id].value is None:
            continue  # what else would have been found is not measured once a leak was
        else:
            found = _measured_result(gate, gate.limit, decisions[gate.id], outcomes, lost)
        results.append(replace(found, fitness=fitness))
    results = _tested(results, outcomes)
    if suite.answers:
        results.append(answers_result(suite.answers, outcomes, results))
    if suite.fitness_blocks:
        results.append(fitness_result(results))
    return GateReport(
        suite_name=suite.name,
        suite=suite.plain,
        suite_sha256=suite.sha256,
        results=tuple(results),
        blockers=tuple(
            f"The audit {o.audit} ended in an error: {o.reason or 'no reason recorded'}."
            for o in outcomes
            if o.status is Status.ERROR
        ),
    )


def judge_again(suite: Suite, evidence: Evidence) -> GateReport:
    """Apply a suite to what evidence holds."""
    promise = Promise.of(evidence.plan, evidence.generator.privacy)
    target = any("target" in column.roles for column in evidence.columns)
    return judge(suite, evidence.outcomes, evidence.table_checks, promise, target=target)


def _tested(results: list[GateResult], outcomes: Sequence[AuditOutcome]) -> list[GateResult]:
    """Where no audit that decides fitness was part of the run, it was not tested, and no gate decides it."""
    ran = {o.audit for o in outcomes}
    asked = (g for g in results if g.fitness)
    if any(g.measurement is None or g.measurement.audit in ran for g in asked):
        return results
    return [replace(g, fitness=False) for g in results]


def _decide(suite: Suite, outcomes: Sequence[AuditOutcome]) -> dict[str, Decision]:
    rows: dict[str, list[Row]] = {}  # by audit, so that no limit looks at the rows of another
    for row in (r for o in outcomes if o.status is Status.MEASURED for r in sensitivity_checked_rows(o)):
        rows.setdefault(row.id.audit, []).append(row)
    found = {g.id: decide(g.limit, rows.get(g.limit.audit, ())) for g in suite.measured if g.limit}
    for gate in suite.measured:
        if gate.limit and gate.undecided and found[gate.id].result is Result.FAIL:
            found[gate.id] = undecided(gate.limit, found[gate.id], rows.get(gate.limit.audit, ()))
    return found


def _measured(outcomes: Sequence[AuditOutcome]) -> list[Measurement]:
    return [m for o in outcomes if o.status is Status.MEASURED for m in o.measurements]


def _measured_result(
    gate: Gate, limit: Limit, decision: Decision, outcomes: Sequence[AuditOutcome], lost: bool
) -> GateResult:
    """One gate's result; where a deciding gate failed (``lost``), no hope is held out for undecided ones."""
    outlook = "" if lost or gate.undecided else decision.outlook  # how many people it takes is advice
    explanation = f"{decision.explanation} {outlook}".strip()
    columns = [] if limit.measurement.column or gate.fitness else proven_columns(limit.audit, outcomes)
    if decision.result is not Result.PASS and columns:
        named = first_few(columns, COLUMNS_SHOWN)
        explanation += f" The attack succeeds beyond chance on each of these columns by itself: {named}."
    unusable = decision.unusable
    if decision.value is None:  # the gate's own advice is about a number that is bad, not one that is absent
        why, advice = _absent(limit, outcomes)
        if not any(limit.applies_to(m.id) for m in _measured(outcomes)):
            explanation, unusable = f"{explanation} {why}", f"{unusable}. {why}"
    else:
        advice = _advice(gate, limit, decision, lost)
    shared = ("result", "measurement", "value", "low", "high", "level", "n_needed")
    return GateResult(
        gate=gate.id,
        title=gate.title,
        blocking=gate.blocking,
        reason=gate.reason,
        explanation=explanation,
        advice=advice,
        every=limit.every,
        bound=limit.compared,
        minimum=limit.minimum,
        maximum=limit.maximum if decision.maximum is None else decision.maximum,
        unusable=unusable,
        unit=next((m.unit for m in _measured(outcomes) if m.id == decision.measurement), ""),
        **{name: getattr(decision, name) for name in shared},
    )


def proven_columns(audit: str, outcomes: Sequence[AuditOutcome]) -> list[str]:
    """Columns for each of which an audit proves by itself what it looks for, the worst first.

    That is a number for a column, lower being safer, whose whole interval lies beyond its exact reference.
    """
    proven = [
        m
        for m in _measured([o for o in outcomes if o.audit == audit])
        if m.id.column and m.id.derived_from is None and m.direction is Direction.LOWER and m.finite
        if m.interval and m.reference and m.reference.interval is None and not m.short
        if m.interval.low > max(0.0, m.reference.value)
    ]
    return list(dict.fromkeys(m.id.column for m in sorted(proven, key=lambda m: -m.value)))


def _advice(gate: Gate, limit: Limit, decision: Decision, lost: bool) -> str:
    if decision.result is Result.PASS or decision.value is None:
        return ""
    if decision.result is Result.FAIL:
        general = "Do not release this table." if gate.blocking else "Weigh this before releasing."
    elif lost and gate.blocking:
        general = lacking.ALREADY_LOST
    elif gate.undecided:
        general = lacking.UNSEEN
    elif decision.n_needed and not limit.allows(decision.value):
        general = lacking.WOULD_FAIL
    elif decision.n_needed:
        general = lacking.REPEAT.format(n=decision.n_needed)
    else:
        general = lacking.NO_OUTLOOK
    outlook = decision.outlook if gate.undecided and not lost else ""
    return " ".join(filter(None, (general, gate.advice, outlook)))


def _absent(limit: Limit, outcomes: Sequence[AuditOutcome]) -> tuple[str, str]:
    """Why a measurement is not there and what to do about it, by what became of its audit."""
    audit = limit.audit
    found = next((o for o in outcomes if o.audit == audit), None)
    if found is None:
        why, advice = lacking.NOT_RUN
        return why.format(audit=audit), advice.format(audit=audit)
    if found.status is not Status.MEASURED:
        why, advice = lacking.ERROR if found.status is Status.ERROR else lacking.NOT_APPLICABLE
        return why.format(audit=audit, reason=found.reason), advice
    why = lacking.NOT_MEASURED.format(audit=audit)
    if limit.measurement.quantity == REFERENCE_RATIO.name:
        why = lacking.NO_REFERENCE
    if near := sorted(m.id for m in found.measurements if m.id.whole == limit.measurement.whole):
        scopes = [x.scope or "the empty one" for x in near[:5]]
        return why, lacking.OTHER_SCOPE.format(scopes=" or ".join(scopes))
    return why, lacking.NOTHING_TO_MEASURE


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
