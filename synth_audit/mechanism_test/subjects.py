"""What can be tested, and what is claimed of it: a generator, a program, a function, or a step of ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from synth_audit.dp.accountant import FitTerms
from synth_audit.dp.guarantee import Budget, Neighbouring, Unit
from synth_audit.dp.mechanisms import Noise
from synth_audit.errors import PlanError
from synth_audit.mechanism_test import white_box
from synth_audit.mechanism_test.claim import Claim, RunnableMechanism, worst_cases
from synth_audit.mechanism_test.distinguishing import Finding
from synth_audit.mechanism_test.table_mechanisms import GeneratorMaker, ProgramMaker, TableMechanism
from synth_audit.mechanism_test.white_box import (
    FunctionMechanism,
    GradientStep,
    array_pairs,
    given_pairs,
    look_inside,
    named,
)
from synth_audit.table.schema import Schema
from synth_audit.table.schema_inference import ColumnSpec, infer_schema

if TYPE_CHECKING:
    from synth_audit.plugins.generator import Generator

Step = Literal["dp_sgd", "marginals"]
"""Steps of ours that are tested from inside."""

PUBLIC_COLUMNS: Mapping[str, ColumnSpec] = {
    name: ColumnSpec.model_validate(declared)
    for name, declared in {
        "age": {"bounds": (0.0, 100.0)},
        "income": {"bounds": (0.0, 1000.0)},
        "group": {"categories": ("a", "b", "c", "d")},
        "member": {"categories": ("no", "yes")},
    }.items()
}
"""The columns of the tables that are made where no plan declares others."""

_BATCHED = 64

CELLS = 8
"""Labels of the column whose marginal is measured."""


@dataclass(frozen=True, eq=False)
class ClaimedMechanism:
    """A mechanism with its claim.

    Attributes:
        name: for a reader. findings: of a look inside. notes: what a reader should know.
    """

    name: str
    mechanism: RunnableMechanism
    claim: Claim
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()


def declared_schema(specs: Mapping[str, ColumnSpec]) -> Schema:
    """The schema of a table of which only declarations are known.

    Raises:
        PlanError: a column has neither bounds nor categories.
    """
    columns = {}
    for name, spec in specs.items():
        if spec.categories:
            columns[name] = pa.array(list(spec.categories[:1]))
        elif spec.numeric_bounds is not None and isinstance(spec.bounds, tuple):
            columns[name] = pa.array([float(spec.numeric_bounds[0])])
        else:
            raise PlanError(
                f"column {name!r} has neither bounds nor categories, and there is no source to read",
                where=f"columns.{name}",
                expected="bounds or categories",
                fix="declare them, or name the plan's source",
            )
    return infer_schema(pa.table(columns), specs, where="columns")


def generator_subject(
    generator: Generator,
    name: str,
    schema: Schema,
    terms: FitTerms,
    claim: Claim | None,
    *,
    rows: int,
    base: Path,
) -> ClaimedMechanism:
    """A generator of ours: its claim is read off the accountant, unless another is given.

    Raises:
        PlanError: nothing is claimed. PluginError: the generator failed.
    """
    maker = GeneratorMaker(generator, terms, terms.drawn or rows, base)
    relation = claim.neighbouring if claim else terms.neighbouring
    budget = terms.fit or Budget(1.0)
    assumed = claim or Claim(budget.epsilon, budget.delta, relation, terms.rows)
    pairs = worst_cases(schema, assumed, rows)
    _, guarantee, why_none = maker.fitted(pairs[0].without, 0)
    notes: tuple[str, ...] = ()
    if claim is None:
        if guarantee is None:
            raise PlanError(
                f"nothing is claimed that could be tested: {why_none}",
                where=f"generator {name}",
                expected="a guarantee of the accountant, or a claim given",
                fix="declare a budget and the domain in the plan, or give --epsilon and --delta",
            )
        claim = Claim(guarantee.epsilon, guarantee.delta, guarantee.neighbouring, terms.rows)
    elif guarantee is None:
        notes = (f"the generator itself claims nothing: {why_none}",)
    findings = look_inside(maker, pairs[0].without)
    return ClaimedMechanism(name, TableMechanism(maker, pairs), claim, findings, notes)


def program_subject(
    command: tuple[str, ...],
    schema: Schema,
    claim: Claim,
    *,
    rows: int,
    file_format: Literal["csv", "parquet"] = "csv",
    timeout: float = 600.0,
    seed_is_secret: bool = False,
    base: Path,
) -> ClaimedMechanism:
    """Somebody else's program.

    Raises:
        PlanError: it is not told where to read or write.
    """
    lacking = [mark for mark in ("{train}", "{synthetic}") if not any(mark in word for word in command[1:])]
    if not command or lacking:
        raise PlanError(
            f"the command lacks {' and '.join(lacking)}",
            where="command",
            expected="a program that reads {train} and writes {synthetic}",
            fix="for example: --command 'python mine.py {train} {synthetic} --seed {seed}'",
        )
    maker = ProgramMaker(command, claim, rows, file_format, timeout, base)
    pairs = worst_cases(schema, claim, rows)
    maker(pairs[0].without, 0)  # what cannot run says why before it is run a thousand times
    return ClaimedMechanism(command[0], TableMechanism(maker, pairs, seeded=not seed_is_secret), claim)


def function_subject(
    function: str, claim: Claim, *, rows: int, neighbours: str | None = None
) -> ClaimedMechanism:
    """A Python function ``(table, n) → n results``, as ``module:function``.

    Raises:
        PlanError: it cannot be imported.
    """
    draws = named(function, "function")
    pairs = given_pairs(named(neighbours, "neighbours")()) if neighbours else array_pairs(claim, rows)
    return ClaimedMechanism(function, FunctionMechanism(draws, pairs), claim)


def step_subject(
    step: Step, *, multiplier: float, rate: float, delta: float, relation: Neighbouring
) -> ClaimedMechanism:
    """A single step of ours, seen from inside, against what the accountant claims of it.

    Raises:
        PlanError: ``dp_sgd`` under replacing one, which its canaries do not do.
    """
    if step == "marginals":
        claim = white_box.step_claim(multiplier, delta=delta, neighbouring=relation)
        measure = white_box.MarginalMeasurement(CELLS, multiplier)
        name = f"marginals measured with Gaussian noise, multiplier {multiplier:g}"
        return ClaimedMechanism(name, white_box.marginal_measurement(measure, claim, CELLS), claim)
    if relation is Neighbouring.REPLACE:
        raise PlanError(
            "the step's canaries are added, not exchanged for another row",
            where="dp_sgd",
            expected="neighbours that differ in one row added or removed",
            fix="leave out --replace",
        )
    claim = white_box.step_claim(multiplier, rate=rate, delta=delta)
    mechanism = white_box.gradient_step(GradientStep(multiplier=multiplier, rate=rate))
    findings: tuple[Finding, ...] = ()
    if rate < 1:
        findings = white_box.batch_findings(lambda: Noise.poisson_sample(_BATCHED, rate), _BATCHED, rate)
    name = f"one DP-SGD step, multiplier {multiplier:g}, sampling rate {rate:g}"
    return ClaimedMechanism(name, mechanism, claim, findings)


def terms_of(claim: Claim, rows: int) -> FitTerms:
    """A budget of exactly the claim, for a generator without a plan."""
    budget = Budget(claim.epsilon, claim.delta)
    unit = Unit.ROW if claim.rows == 1 else Unit.ENTITY
    return FitTerms(
        total=budget, fit=budget, unit=unit, neighbouring=claim.neighbouring, rows=claim.rows, drawn=rows
    )
