"""What can be tested, and what is claimed of it: a generator, a program, a function, or a step of ours."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

import pyarrow as pa

from synth_audit.dp.accountant import FitTerms
from synth_audit.dp.guarantee import Budget, Neighbouring, Unit
from synth_audit.dp.mechanisms import Noise
from synth_audit.errors import PlanError
from synth_audit.generators.external.program import Format
from synth_audit.mechanism_test import table_mechanisms, white_box
from synth_audit.mechanism_test.examination import Claim, ClaimedMechanism, Finding
from synth_audit.plugins.plugin_config import build_generator
from synth_audit.table.schema import Schema
from synth_audit.table.schema_inference import ColumnSpec, infer_schema

if TYPE_CHECKING:
    from synth_audit.plan.plan import Plan

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
"""Rows that batches are drawn from to test their sampling."""

CELLS = 8
"""Labels of the column whose marginal is measured."""


class MechanismChoice(TypedDict, total=False):
    """What is tested: exactly one of ``generator``, ``command``, ``function``, ``step``, or a plan alone.

    Attributes:
        generator: one of ours, named as in a plan: ``"mst"``, or ``{"mst": {...}}``.
        command: a program; ``{train}``, ``{synthetic}``, and if wanted ``{rows}``, ``{seed}``, ``{domain}``,
            ``{epsilon}`` and ``{delta}`` are filled in.
        function: ``module:function``, which takes a table and n and returns n results.
        step: ``dp_sgd`` or ``marginals``: a single step of ours, seen from inside.
        neighbours: for ``function``: ``module:function`` that returns [(name, without, having), …].
        multiplier, rate: of the noise and of the sampling of ``step``.
        format, timeout, seed_is_secret: for ``command``.
    """

    generator: str | Mapping[str, Any] | None
    command: str | Sequence[str] | None
    function: str | None
    step: Step | None
    neighbours: str | None
    multiplier: float
    rate: float
    format: Format
    timeout: float
    seed_is_secret: bool


def claimed_mechanism(
    plan: Plan | None,
    claim: Claim | None,
    relation: Neighbouring,
    *,
    delta: float,
    rows: int,
    **choice: Unpack[MechanismChoice],
) -> ClaimedMechanism:
    """The one subject that is given, see :class:`MechanismChoice`, or the generator of the plan.

    Args:
        plan: its generator is tested under its budget; with another subject it declares the columns alone.
        claim: None where it is the accountant's of a plan's generator or of a step.
        relation, delta: of a step without a claim.
        rows: of the tables that are made up.

    Raises:
        PlanError: not exactly one subject, or nothing is claimed. DataError, PluginError: it cannot be run.
    """
    step, command, function = choice.get("step"), choice.get("command"), choice.get("function")
    chosen = [name for name in ("generator", "command", "function", "step") if choice.get(name) is not None]
    if len(chosen) > 1 or not (chosen or plan):
        raise PlanError(
            "what is to be tested is not clear",
            where=", ".join(chosen) or "test-mechanism",
            expected="exactly one of a plan, a generator, a command, a function or a step",
            fix="name one; beside another, a plan declares the columns alone",
        )
    if step is not None:
        found = _step(step, choice.get("multiplier", 1.0), choice.get("rate", 1.0), delta or 1e-5, relation)
        return found if claim is None else replace(found, claim=claim)
    if function is None and command is None:
        return _generator(plan, choice.get("generator"), claim, rows)
    if claim is None:
        raise PlanError(
            "a claim is needed", where="epsilon", expected="the ε that is claimed, and δ", fix="--epsilon 1"
        )
    if function is not None:
        draws, pairs = white_box.named(function, "function"), white_box.array_pairs(claim, rows)
        if own := choice.get("neighbours"):
            pairs = white_box.given_pairs(white_box.named(own, "neighbours")())
        return ClaimedMechanism(function, white_box.FunctionMechanism(draws, pairs), claim)
    assert command is not None
    words = tuple(shlex.split(command) if isinstance(command, str) else command)
    lacking = [mark for mark in ("{train}", "{synthetic}") if not any(mark in word for word in words[1:])]
    if lacking:
        raise PlanError(
            f"the command lacks {' and '.join(lacking)}",
            where="command",
            expected="a program that reads {train} and writes {synthetic}",
            fix="for example: --command 'python mine.py {train} {synthetic} --seed {seed}'",
        )
    form, timeout, base = choice.get("format", "csv"), choice.get("timeout", 600.0), _base(plan)
    maker = table_mechanisms.ProgramMaker(words, claim, rows, form, timeout, base)
    cases = table_mechanisms.worst_cases(_schema(plan), claim, rows)
    maker(cases[0].without, 0)  # what cannot run says why before it is run a thousand times
    seeded = not choice.get("seed_is_secret", False)
    return ClaimedMechanism(words[0], table_mechanisms.TableMechanism(maker, cases, seeded=seeded), claim)


def _base(plan: Plan | None) -> Path:
    return plan.base if plan else Path.cwd()


def _generator(
    plan: Plan | None, named: str | Mapping[str, Any] | None, claim: Claim | None, rows: int
) -> ClaimedMechanism:
    """A named generator of ours, or the plan's: its claim is the accountant's, unless another is given.

    Raises:
        PlanError: nothing is claimed. PluginError: the generator failed.
    """
    if named is not None:
        generator = build_generator(named)
        name = named if isinstance(named, str) else next(iter(named))
    else:
        assert plan is not None
        generator = plan.build_generator()
        name = plan.generator.name if plan.generator else "generator"
    if plan is not None and plan.privacy is not None:
        terms = plan.fit_terms
    elif claim is not None:
        budget = Budget(claim.epsilon, claim.delta)
        unit = Unit.ROW if claim.rows == 1 else Unit.ENTITY
        terms = FitTerms(
            total=budget, fit=budget, unit=unit, neighbouring=claim.neighbouring, rows=claim.rows, drawn=rows
        )
    else:
        raise PlanError(
            "no budget is declared, so nothing is claimed",
            where="privacy",
            expected="`privacy` in the plan, or --epsilon",
            fix="give --epsilon and --delta",
        )
    maker = table_mechanisms.GeneratorMaker(generator, terms, terms.drawn or rows, _base(plan))
    budget = terms.fit or Budget(1.0)
    assumed = claim or Claim(budget.epsilon, budget.delta, terms.neighbouring, terms.rows)
    pairs = table_mechanisms.worst_cases(_schema(plan), assumed, rows)
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
    findings = white_box.look_inside(maker, pairs[0].without)
    return ClaimedMechanism(name, table_mechanisms.TableMechanism(maker, pairs), claim, findings, notes)


def _schema(plan: Plan | None) -> Schema:
    """Of the plan's columns, read off its source where it names one; of the usual columns without a plan."""
    if plan is None:
        return declared_schema(PUBLIC_COLUMNS)
    if plan.source is None:
        return declared_schema(plan.columns or PUBLIC_COLUMNS)
    from synth_audit.pipeline.making import pull_source

    return pull_source(plan).schema.released_only()


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


def _step(
    step: Step, multiplier: float, rate: float, delta: float, relation: Neighbouring
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
    mechanism = white_box.gradient_step(white_box.GradientStep(multiplier=multiplier, rate=rate))
    findings: tuple[Finding, ...] = ()
    if rate < 1:
        findings = white_box.batch_findings(lambda: Noise.poisson_sample(_BATCHED, rate), _BATCHED, rate)
    name = f"one DP-SGD step, multiplier {multiplier:g}, sampling rate {rate:g}"
    return ClaimedMechanism(name, mechanism, claim, findings)
