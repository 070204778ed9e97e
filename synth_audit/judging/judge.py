"""The gate: a suite applied to an audit's outcomes and to the synthetic table, failing closed.

Gates on measurements are one pure function; Great Expectations runs the checks of the table and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from synth_audit.core.measurement import Measurement
from synth_audit.core.outcome import AuditOutcome, Status
from synth_audit.core.schema import Schema
from synth_audit.core.sensitivity import REFERENCE_RATIO
from synth_audit.core.table import Table
from synth_audit.core.verdict import GateReport, GateResult, Result, TableCheck
from synth_audit.judging.decide import Decision, Row, decide
from synth_audit.judging.limit import Limit
from synth_audit.judging.privacy_budget import Promise, promise_results
from synth_audit.judging.proven_leak import PROVEN_LEAK, TITLE, leak_result
from synth_audit.judging.schema_contract import (
    COLUMNS_TYPE,
    contract,
    contract_key,
    contract_part,
    gate_frame,
)
from synth_audit.judging.sensitivity_checked import sensitivity_checked_rows
from synth_audit.judging.suite import Gate, Suite, load_suite, parse_suite

__all__ = [
    "BUILT_IN",
    "CONTRACT",
    "Gate",
    "Result",
    "Suite",
    "check_suite",
    "check_table",
    "contract",
    "judge",
    "load_suite",
    "parse_suite",
]

CONTRACT = "schema_contract"
"""Identifier of the gate that every suite gets: the table is what its schema declares."""

_CONTRACT_TITLE = "The table holds exactly the declared columns, kinds, bounds and categories"

BUILT_IN = {
    CONTRACT: "The table is what its schema declares",
    PROVEN_LEAK: TITLE,
}
"""Gates that no suite need name and none can leave out, with their titles; all of them block."""

_CONTRACT_REASON = (
    "The schema is what the data owner agreed to hand out. A column more, an identifier above all, or a "
    "value outside its declared domain was never part of that agreement, and no audit has judged it."
)
_CONTRACT_ADVICE = (
    "Remove or repair the columns named here where the table is made; do not widen the declaration to fit "
    "the table."
)
_UNMET = {
    "expect_column_values_to_be_between": "has values outside its bounds",
    "expect_column_values_to_be_in_set": "has values outside its categories",
    "expect_column_values_to_be_in_type_list": "does not hold the kind of values it should",
    "expect_column_values_to_not_be_null": "has missing values",
}


def check_suite(suite: Suite) -> None:
    """Let Great Expectations itself build a suite's expectations on the table, so that mistakes show early.

    Limits on measurements were checked as the suite was read; without any other it is not imported.

    Raises:
        GateError: it refuses one, for example for an argument that its type does not take.
    """
    _check_buildable(suite.on_table)


def check_table(suite: Suite, synthetic: Table) -> tuple[TableCheck, ...]:
    """Evaluate the schema contract and the suite's own table expectations, booleans only.

    Returns:
        One check for each, the contract first. ``met`` is None where the expectation could not be
        evaluated. No explanation holds a cell value.

    Raises:
        GateError: an expectation cannot be built, or a result is missing or cannot be matched.
    """
    from synth_audit.judging import great_expectations_runner

    plain = {contract_key(x): x for x in contract(synthetic.schema)}
    plain |= {g.key: dict(g.plain) for g in suite.on_table}
    met = great_expectations_runner.run(gate_frame(synthetic), plain)
    return tuple(
        TableCheck(key, met[key], _check_words(expectation, met[key], synthetic))
        for key, expectation in plain.items()
    )


def judge(
    suite: Suite,
    outcomes: Sequence[AuditOutcome],
    table_checks: Sequence[TableCheck],
    promise: Promise | None = None,
) -> GateReport:
    """Apply a suite to measurements and table checks; needs no data.

    Args:
        outcomes: of every configured audit; only measurements of audits that ended *measured* count.
        table_checks: from :func:`check_table`; checks of other suites are ignored, missing ones are
            insufficient evidence.
        promise: the privacy budget that the plan declares, if any, and what was spent of it.

    Returns:
        The gates that every suite gets (:data:`BUILT_IN`), those of a declared budget and one result per
        gate, in the suite's order, without optional ones whose audit was not applicable.

    Raises:
        GateError: Great Expectations refuses an expectation of which there is no check, or a check of the
            contract is damaged.
    """
    checked = {c.key for c in table_checks}
    _check_buildable([g for g in suite.on_table if g.key not in checked])
    decisions = _decide(suite, outcomes)
    results = [_contract_result(table_checks), leak_result(outcomes)]
    results += promise_results(promise, outcomes)
    on_table = {gate.id: _table_result(gate, table_checks) for gate in suite.on_table}
    deciding = [r.result for r in (*results, *on_table.values()) if r.blocking]
    deciding += [decisions[g.id].result for g in suite.measured if g.blocking]
    lost = Result.FAIL in deciding
    idle = {o.audit for o in outcomes if o.status is Status.NOT_APPLICABLE}
    for gate in suite.gates:
        if gate.limit is None:
            results.append(on_table[gate.id])
        elif not (gate.optional and gate.limit.audit in idle):
            results.append(_measured_result(gate, gate.limit, decisions[gate.id], outcomes, lost))
    return GateReport(
        suite_name=suite.name,
        suite=suite.plain,
        suite_sha256=suite.sha256,
        results=tuple(results),
        blockers=tuple(_blocker(o) for o in outcomes if o.status is Status.ERROR),
    )


def _check_buildable(gates: Sequence[Gate]) -> None:
    if gates:
        from synth_audit.judging import great_expectations_runner

        great_expectations_runner.check_buildable({g.id: g.plain for g in gates})


def _decide(suite: Suite, outcomes: Sequence[AuditOutcome]) -> dict[str, Decision]:
    rows: dict[str, list[Row]] = {}  # by audit, so that no limit looks at the rows of another
    for row in (r for o in outcomes if o.status is Status.MEASURED for r in sensitivity_checked_rows(o)):
        rows.setdefault(row.id.audit, []).append(row)
    return {g.id: decide(g.limit, rows.get(g.limit.audit, ())) for g in suite.measured if g.limit}


def _measured(outcomes: Sequence[AuditOutcome]) -> list[Measurement]:
    return [m for o in outcomes if o.status is Status.MEASURED for m in o.measurements]


def _measured_result(
    gate: Gate, limit: Limit, decision: Decision, outcomes: Sequence[AuditOutcome], lost: bool
) -> GateResult:
    """One gate's result; where a deciding gate failed (``lost``), no hope is held out for undecided ones."""
    explanation = f"{decision.explanation} {'' if lost else decision.outlook}".strip()
    if decision.value is None and not _count(limit, outcomes):
        explanation = f"{explanation} {_absence(limit, outcomes)}".strip()
    return GateResult(
        gate=gate.id,
        title=gate.title,
        result=decision.result,
        blocking=gate.blocking,
        reason=gate.reason,
        explanation=explanation,
        advice=_advice(gate, limit, decision, outcomes, lost),
        measurement=decision.measurement,
        every=limit.every,
        bound=limit.compared,
        value=decision.value,
        low=decision.low,
        high=decision.high,
        level=decision.level,
        minimum=limit.minimum,
        maximum=limit.maximum,
        n_needed=decision.n_needed,
    )


def _count(limit: Limit, outcomes: Sequence[AuditOutcome]) -> int:
    return sum(limit.applies_to(m.id) for m in _measured(outcomes))


def _absence(limit: Limit, outcomes: Sequence[AuditOutcome]) -> str:
    """Why a measurement is not there, from what became of its audit."""
    audit = limit.audit
    ends = [o for o in outcomes if o.audit == audit]
    if not ends:
        return f"The audit {audit} was not part of this run."
    if ends[0].status is Status.ERROR:
        return f"The audit {audit} ended in an error ({ends[0].reason})."
    if ends[0].status is Status.NOT_APPLICABLE:
        return f"The audit {audit} was not applicable: {ends[0].reason}."
    if limit.measurement.quantity == REFERENCE_RATIO.name:
        return "A ratio needs a reference that was measured on control rows and is not 0."
    return f"The audit {audit} ran but could not measure it; its notes say why."


def _advice(
    gate: Gate, limit: Limit, decision: Decision, outcomes: Sequence[AuditOutcome], lost: bool
) -> str:
    if decision.result is Result.PASS:
        return ""
    if decision.value is None:  # the gate's own advice is about a number that is bad, not one that is absent
        return _advice_on_absence(limit, outcomes)
    if decision.result is Result.FAIL:
        general = "Do not release this table." if gate.blocking else "Weigh this before releasing."
    elif lost and gate.blocking:
        general = "Another gate has failed: more evidence here would not let the table leave."
    elif decision.n_needed and not limit.allows(decision.value):
        general = "The value itself is beyond the limit, so more evidence would probably end in a fail."
    elif decision.n_needed:
        general = f"Repeat the audit with at least {decision.n_needed:,} attempts or rows."
    else:
        general = "More evidence may not help: look into the number itself before deciding."
    return f"{general} {gate.advice}".strip()


def _advice_on_absence(limit: Limit, outcomes: Sequence[AuditOutcome]) -> str:
    """What to do about a number that is not there, by what became of its audit."""
    found = next((o for o in outcomes if o.audit == limit.audit), None)
    if found is None:
        return f"Run the audit: add {limit.audit} to the plan's `audits`, or leave out `--only`."
    if found.status is Status.ERROR:
        return "The audit failed, which says nothing about the table: mend its cause and audit again."
    if found.status is Status.NOT_APPLICABLE:
        return (
            "Give the audit what it lacks: other settings under `audits`, control rows, or a role in the "
            "plan's `columns` (such as `role: target`)."
        )
    if near := sorted(m.id for m in found.measurements if m.id.whole == limit.measurement.whole):
        scopes = [x.scope or "the empty one" for x in near[:5]]
        return f"The number exists with the scope {' or '.join(scopes)}: name one in the gate."
    return "The table gives the audit nothing to measure here; see what it reports instead."


def _table_result(gate: Gate, checks: Sequence[TableCheck]) -> GateResult:
    result, explanation = _combined([c for c in checks if c.key == gate.key], expected=1)
    advice = (
        "" if result is Result.PASS else gate.advice or "Repair the table where it is made, then audit again."
    )
    return GateResult(gate.id, gate.title, result, gate.blocking, gate.reason, explanation, advice)


def _contract_result(checks: Sequence[TableCheck]) -> GateResult:
    parts = {c.key: part for c in checks if (part := contract_part(c.key)) is not None}
    mine = [c for c in checks if c.key in parts]
    result, explanation = _combined(mine, expected=len(parts))
    if sum(part["type"] == COLUMNS_TYPE for part in parts.values()) != 1:
        result = Result.FAIL if result is Result.FAIL else Result.INSUFFICIENT
        explanation = "The released columns themselves were not checked exactly once."
    advice = "" if result is Result.PASS else _CONTRACT_ADVICE
    return GateResult(CONTRACT, _CONTRACT_TITLE, result, True, _CONTRACT_REASON, explanation, advice)


def _combined(checks: Sequence[TableCheck], *, expected: int) -> tuple[Result, str]:
    """One result of several checks: the worst; fewer or more of them than expected decide nothing."""
    if len(checks) != expected or not checks:
        return (
            Result.INSUFFICIENT,
            f"The table was checked {len(checks)} times for this, not {max(expected, 1)}.",
        )
    failed = [c.explanation for c in checks if c.met is False]
    unknown = [c.explanation for c in checks if c.met is None]
    if failed or unknown:
        result = Result.FAIL if failed else Result.INSUFFICIENT
        return result, " ".join([*failed, *unknown])
    return Result.PASS, checks[0].explanation if expected == 1 else f"All {expected} checks hold."


def _check_words(expectation: Mapping[str, Any], met: bool | None, table: Table) -> str:
    kwargs = expectation["kwargs"]
    column = f"Column {kwargs['column']!r}" if "column" in kwargs else "The table"
    words = str(expectation["type"]).removeprefix("expect_").replace("_", " ")
    if met is None:
        return f"{column}: {words!r} could not be evaluated."
    if met:
        return f"{column} meets {words!r}."
    if expectation["type"] == COLUMNS_TYPE:
        return _column_words(set(kwargs["column_set"]), table)
    return f"{column} {_UNMET.get(expectation['type'], f'does not meet {words!r}')}."


def _column_words(expected: set[str], table: Table) -> str:
    schema: Schema = table.schema
    present = set(table.names)
    kept_back = sorted(c.name for c in schema if not c.released and c.name in present - expected)
    parts = [
        (kept_back, "holds what must not leave (identifiers or split keys)"),
        (sorted(present - expected - set(kept_back)), "holds columns that were not declared"),
        (sorted(expected - present), "lacks columns that were declared"),
    ]
    said = "; ".join(f"{what}: {', '.join(names)}" for names, what in parts if names)
    return f"The table {said or 'does not hold the declared columns'}."


def _blocker(outcome: AuditOutcome) -> str:
    return f"The audit {outcome.audit} ended in an error: {outcome.reason or 'no reason recorded'}."
