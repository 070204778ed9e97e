"""Checks of the synthetic table itself: the schema contract, a suite's expectations, and how full it is."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from synth_audit.errors import GateError
from synth_audit.findings.verdict import GateResult, Result, TableCheck
from synth_audit.plugins.generator import FEWEST_PEOPLE
from synth_audit.table.schema import Column, Schema, quantitative
from synth_audit.table.table import Table
from synth_audit.verdict import insufficient_evidence as lacking
from synth_audit.verdict.criteria import CONTRACT, own_result
from synth_audit.verdict.suite import Gate, Suite, key_of

if TYPE_CHECKING:
    import pandas as pd


COLUMNS_TYPE = "expect_table_columns_to_match_set"
FULLNESS_TYPE = "expect_cells_as_full_as_in_train"
"""Not Great Expectations' own: it compares the candidate with train."""

_CHANCE = 1e-6
"""Probability at most that a candidate as full as train is called emptier."""

COLUMN_MARGIN = 0.05
"""Share of a column's cells that may be missing beyond train: generators reproduce shares this closely."""

TABLE_MARGIN = 0.02
"""The same of all cells together, where single columns' deviations average out."""

_PREFIX = "contract: "

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


def contract(schema: Schema) -> tuple[dict[str, Any], ...]:
    """The expectations that every release of this schema must meet.

    The released columns exist and no others; each holds its kind; no value is missing where the plan
    says so; declared bounds and categories are kept. Inferred ones are not used: they are private.

    Returns:
        Great Expectations' own form; they apply to the frame of :func:`gate_frame`.
    """
    names = sorted(c.name for c in schema.features)
    columns = _expectation(COLUMNS_TYPE, column_set=names, exact_match=True)
    return (columns, *(x for c in schema.features for x in _of_column(c)))


def contract_key(expectation: Mapping[str, Any]) -> str:
    """Key of a check of the contract, told apart from the suite's own by its first word."""
    return _PREFIX + key_of(expectation)


def contract_part(key: str) -> Mapping[str, Any] | None:
    """The expectation behind a contract's key; None for any other key."""
    if not key.startswith(_PREFIX):
        return None
    try:
        part = json.loads(key.removeprefix(_PREFIX))
    except ValueError:
        part = None
    if not isinstance(part, dict) or set(part) != {"type", "kwargs"} or not isinstance(part["kwargs"], dict):
        raise GateError("a check of the schema contract is damaged", where="table_checks")
    return part


def gate_frame(table: Table) -> pd.DataFrame:
    """The table as expectations see it, the same whatever file it came from.

    Continuous columns are float64; integer ones int64, or Int64 where values are missing; dates and
    times datetime64[us] in UTC; discrete ones text labels as in the plan. A column that does not
    hold its kind stays as it is, so that its type check fails.
    """
    import pandas as pd

    names = table.names
    return pd.DataFrame({n: _series(table, n) for n in names}, columns=list(names))


def _of_column(column: Column) -> list[dict[str, Any]]:
    name, kind = column.name, column.kind
    types = list(kind.info.frame_types)
    found = [_expectation("expect_column_values_to_be_in_type_list", column=name, type_list=types)]
    if not column.nullable:
        found.append(_expectation("expect_column_values_to_not_be_null", column=name))
    if column.declared_bounds is not None:
        low, high = (kind.framed_bound(x) for x in column.declared_bounds)
        found.append(
            _expectation("expect_column_values_to_be_between", column=name, min_value=low, max_value=high)
        )
    if column.declared_categories is not None:
        allowed = sorted(column.declared_categories)
        found.append(_expectation("expect_column_values_to_be_in_set", column=name, value_set=allowed))
    return found


def _expectation(kind: str, **kwargs: Any) -> dict[str, Any]:
    return {"type": kind, "kwargs": kwargs, "severity": "critical"}


def _series(table: Table, name: str) -> pd.Series[Any]:
    import pandas as pd

    column, values = table.schema[name], table.column(name)
    if not column.released or not column.kind.allows(values.type):
        return pd.Series(values.to_pandas().astype(object))
    return column.kind.framed(values)


def check_buildable(gates: Sequence[Gate]) -> None:
    """Let Great Expectations itself build a suite's expectations on the table, so that mistakes show early.

    Limits on measurements were checked as the suite was read; without any other it is not imported.

    Raises:
        GateError: it refuses one, for example for an argument that its type does not take.
    """
    if gates:
        from synth_audit.verdict import expectations

        for gate in gates:
            expectations.expectation_of(gate.plain, 0, gate.id)


def check_table(suite: Suite, synthetic: Table) -> tuple[TableCheck, ...]:
    """Evaluate the schema contract and the suite's own table expectations, booleans only.

    Returns:
        One check for each, the contract first. ``met`` is None where the expectation could not be
        evaluated. No explanation holds a cell value.

    Raises:
        GateError: an expectation cannot be built, or a result is missing or cannot be matched.
    """
    from synth_audit.verdict import expectations

    plain = {contract_key(x): x for x in contract(synthetic.schema)}
    plain |= {g.key: dict(g.plain) for g in suite.on_table}
    met = expectations.run(gate_frame(synthetic), plain)
    return tuple(
        TableCheck(key, met[key], _check_words(expectation, met[key], synthetic))
        for key, expectation in plain.items()
    )


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
        explanation = lacking.COLUMNS_UNCHECKED
    return own_result(CONTRACT, result, explanation, _CONTRACT_ADVICE)


def _combined(checks: Sequence[TableCheck], *, expected: int) -> tuple[Result, str]:
    """One result of several checks: the worst; fewer or more of them than expected decide nothing."""
    if len(checks) != expected or not checks:
        why = lacking.CHECKED_TIMES.format(times=len(checks), wanted=max(expected, 1))
        return Result.INSUFFICIENT, why
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
        return lacking.NOT_EVALUATED.format(what=f"{column}: {words!r}")
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


def fullness(train: Table, candidate: Table, declared: Collection[str]) -> TableCheck:
    """Check that no column, nor the cells overall, are emptier in the candidate than in train.

    A column may have 5 percentage points more missing cells than in train, all cells together 2 points, and
    what chance adds in so many rows (1e-6). Labels that fewer than 20 training rows share may be missing too:
    generators withhold them.

    Args:
        declared: columns whose values the plan says may be withheld (``nullable: true`` or ``coarsen``).
    """
    import pyarrow.compute as pc
    from scipy.stats import binom  # lazy import: keeps CLI start fast

    columns = [c for c in train.schema.features if c.name in candidate.names and c.name not in declared]
    before, now, rows = {}, {c.name: candidate.n_missing(c.name) for c in columns}, candidate.n_rows
    for column in columns:
        lost = train.n_missing(column.name)
        if not quantitative([column]):
            counts = pc.value_counts(train.column(column.name).drop_null().combine_chunks()).field("counts")
            lost += int(pc.sum(pc.filter(counts, pc.less(counts, FEWEST_PEOPLE))).as_py() or 0)
        before[column.name] = lost / train.n_rows

    def most(share: float, margin: float) -> int:
        return int(binom.isf(_CHANCE, rows, min(1.0, share + margin)))

    empty = sorted(name for name in now if now[name] > most(before[name], COLUMN_MARGIN))
    overall = sum(before.values()) / max(1, len(columns))
    too_many = sum(now.values()) / max(1, len(columns)) > most(overall, TABLE_MARGIN)
    margins = {"column_margin": COLUMN_MARGIN, "table_margin": TABLE_MARGIN, "declared": sorted(declared)}
    key = contract_key({"type": FULLNESS_TYPE, "kwargs": margins})
    if empty:
        return TableCheck(key, False, f"Emptier than in train, by more than 5 points: {', '.join(empty)}.")
    if too_many:
        return TableCheck(key, False, "The table's cells are emptier than in train, by more than 2 points.")
    return TableCheck(key, True, "No column, nor the table as a whole, is emptier than in train.")
