"""The plan's ``coarsen`` for a table at hand: its rules, what a reader is told, and what they void."""

from dataclasses import replace

import numpy as np

from synth_audit.errors import PlanError
from synth_audit.execution.seeds import Salt
from synth_audit.plan.plan import Plan
from synth_audit.plan.sections import ColumnCoarsening, span_grid
from synth_audit.store.evidence import GeneratorRecord, TableRecord
from synth_audit.store.journal import read_journal
from synth_audit.store.ledger import table_ledger
from synth_audit.store.workspace import Workspace
from synth_audit.table import coarsening as rules
from synth_audit.table.kind import Order
from synth_audit.table.resolution import ValueGrid
from synth_audit.table.schema import Column, Schema, nominal, quantitative
from synth_audit.table.table import Table

_VOID = "the plan's `coarsen` was chosen on real data, which no accountant has paid for"


def coarsening_of(plan: Plan, schema: Schema) -> rules.Coarsening:
    """The plan's rules for the columns of a schema.

    Args:
        schema: of the real table, as inferred from train and the plan.

    Raises:
        PlanError: a rule names no column that is released, or does not suit it, or would do nothing.
    """
    if plan.coarsen is None:
        return rules.NO_COARSENING
    return rules.Coarsening({name: _rule(name, spec, schema) for name, spec in plan.coarsen.columns.items()})


def _rule(name: str, spec: ColumnCoarsening, schema: Schema) -> rules.ColumnRule:
    column = next((c for c in schema.features if c.name == name), None)
    if column is None:
        raise _wrong(name, "is none that is released", f"one of {', '.join(c.name for c in schema.features)}")
    if spec.of_numbers and not quantitative([column]):
        raise _wrong(
            name, f"is {column.kind}, which has no steps and no ends", "`merge` or `merge_rarer_than`"
        )
    if spec.of_labels and (not nominal([column]) or column.kind.fixed_domain is not None):
        raise _wrong(name, f"is {column.kind}, of which no labels merge", "`round_to`, `bottom` or `top`")
    return _rounding(column, spec) if spec.of_numbers else _merging(column, spec)


def _rounding(column: Column, spec: ColumnCoarsening) -> rules.Rounding:
    moments = column.kind.order is Order.DATES
    for value in (spec.round_to, spec.bottom, spec.top):
        if value is not None and moments != (not isinstance(value, int | float)):
            expected = "a span such as `1 day`, and dates" if moments else "numbers"
            raise _wrong(column.name, f"is {column.kind}", expected)
    step = spec.round_to
    grid = None if step is None else span_grid(step) if isinstance(step, str) else ValueGrid.of_step(step)
    low, high = spec.ends
    rule = rules.Rounding(grid, -np.inf if low is None else low, np.inf if high is None else high)
    for key, end in (("bottom", low), ("top", high)):
        if end is None:
            continue
        if grid is not None and grid.nearest(np.array([end]))[0] != end:
            raise _wrong(column.name, f"has a {key} that is no multiple of its step", f"{key} on the grid")
        if not rules.holds_number(column, end):
            raise _wrong(
                column.name, f"is stored as {column.storage}, which cannot hold the {key}", "another"
            )
    if grid is not None and grid.calendar is None and not rules.holds_number(column, grid.step):
        raise _wrong(column.name, f"is stored as {column.storage}, which cannot hold the step", "another")
    if _idle(column, rule):
        raise _wrong(column.name, "has a rule that does nothing", "a step or ends coarser than what is there")
    return rule


def _merging(column: Column, spec: ColumnCoarsening) -> rules.Merging:
    into = column.kind.label_meant(spec.label)
    labels = frozenset(map(column.kind.label_meant, spec.merge))
    known = column.declared_categories
    if known is not None and (odd := sorted(labels - {*known, into})):
        raise _wrong(column.name, f"is declared without {odd[0]!r}, which `merge` names", "declared labels")
    if not rules.holds_label(column, into):
        raise _wrong(
            column.name, f"is stored as {column.storage}, which cannot hold {into!r}", "another `into`"
        )
    return rules.Merging(into, labels, spec.merge_rarer_than or 0)


def _idle(column: Column, rule: rules.Rounding) -> bool:
    """Whether no value that the column can have would change."""
    known, ends = column.resolution, column.declared_bounds
    cuts = ends is None or ends[0] < rule.bottom or rule.top < ends[1]
    cut = np.isfinite([rule.bottom, rule.top]).any() and cuts
    if rule.grid is None:
        return not cut
    calendar = rule.grid.calendar or (known is not None and known.grid.calendar)
    if cut or calendar:
        return not cut and known is not None and known.grid == rule.grid
    step = max(rules.spacing(column), 0.0 if known is None else known.grid.step)
    several = step * np.array([1.0, 2.0, 3.0, 7.0, 10.0])
    return step > 0 and bool(np.allclose(rule.grid.nearest(several), several, rtol=1e-9, atol=0.0))


def _wrong(name: str, what: str, expected: str) -> PlanError:
    return PlanError(
        f"the plan coarsens column {name!r}, which {what}",
        where=f"coarsen.columns.{name}",
        expected=expected,
        fix=f"correct or drop the rule for {name!r} under `coarsen`",
    )


def refuse_coarsening(plan: Plan) -> None:
    """Raise ``PlanError`` where a plan coarsens and the table is a file, whose bytes are what may leave."""
    if plan.coarsen is not None:
        raise PlanError(
            "the plan coarsens what its generator makes, and this table was made elsewhere",
            where="coarsen",
            expected="no `coarsen` where finished files are audited",
            fix="run a plan with `generator: {external: {source: FILE}}`, or coarsen the file first",
        )


def refuse_uncounted(plan: Plan, workspace: Workspace, train: Table, salt: Salt) -> None:
    """Raise ``PlanError`` where a plan coarsens and tells of fewer candidates than mends of its rows have
    tried: all that were judged are chances of a wrong pass, whichever of them, or whatever else, was chosen.
    """
    if plan.coarsen is None:
        return
    ledger = table_ledger(workspace, read_journal(workspace))
    known = ledger.chosen_among(TableRecord.of(train, salt).hmac)
    if known > plan.coarsen.tries:
        raise PlanError(
            f"mends of these training rows have tried {known} candidates, and the plan tells of "
            f"{plan.coarsen.tries}",
            where="coarsen.tries",
            expected=f"at least {known}: every one that was judged is a chance of a wrong pass",
            fix=f"write `chosen_on: real data` and `tries: {known}` under `coarsen`",
        )


def without_void_guarantee(generator: GeneratorRecord, plan: Plan) -> GeneratorRecord:
    """The generator's record; a choice made on real data takes its guarantee away."""
    if plan.coarsen is None or not plan.coarsen.on_real_data or generator.privacy.guarantee is None:
        return generator
    return replace(generator, privacy=replace(generator.privacy, guarantee=None, reason=_VOID))
