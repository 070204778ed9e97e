"""Checks of the synthetic table itself, the schema contract and a suite's expectations, and their gates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from synth_audit.core.schema import Schema
from synth_audit.core.table import Table
from synth_audit.core.verdict import GateResult, Result, TableCheck
from synth_audit.judging.schema_contract import (
    COLUMNS_TYPE,
    contract,
    contract_key,
    contract_part,
    gate_frame,
)
from synth_audit.judging.suite import Gate, Suite

CONTRACT = "schema_contract"
"""Identifier of the gate that every suite gets: the table is what its schema declares."""

_CONTRACT_TITLE = "The table holds exactly the declared columns, kinds, bounds and categories"

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
    check_buildable(suite.on_table)


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


def check_buildable(gates: Sequence[Gate]) -> None:
    """See :func:`check_suite`."""
    if gates:
        from synth_audit.judging import great_expectations_runner

        great_expectations_runner.check_buildable({g.id: g.plain for g in gates})


def table_result(gate: Gate, checks: Sequence[TableCheck]) -> GateResult:
    """The result of a gate on the table: of the one check of its expectation."""
    result, explanation = _combined([c for c in checks if c.key == gate.key], expected=1)
    advice = (
        "" if result is Result.PASS else gate.advice or "Repair the table where it is made, then audit again."
    )
    return GateResult(gate.id, gate.title, result, gate.blocking, gate.reason, explanation, advice)


def contract_result(checks: Sequence[TableCheck]) -> GateResult:
    """The result of the gate that every suite gets: of all checks of the schema contract."""
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
