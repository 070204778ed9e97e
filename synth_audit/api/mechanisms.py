"""Tests what is claimed of a mechanism by running it on neighbouring tables."""

# ruff: noqa: PT028  (the verb is called test-mechanism; it is no test)
from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

from synth_audit.api.plans import PlanLike, as_plan
from synth_audit.api.running import run_context
from synth_audit.core.errors import PlanError

if TYPE_CHECKING:
    from synth_audit.core.context import Progress
    from synth_audit.core.plan import Plan
    from synth_audit.core.schema import Schema
    from synth_audit.mechanism_test.claim import Claim
    from synth_audit.mechanism_test.result import MechanismResult
    from synth_audit.mechanism_test.subjects import ClaimedMechanism


class MechanismChoice(TypedDict, total=False):
    """What is tested: exactly one of ``generator``, ``command``, ``function``, ``step``, or ``plan`` alone.

    Attributes:
        plan: its generator is tested under its budget; with another subject it declares the columns alone.
        generator: one of ours, named as in a plan: ``"mst"``, or ``{"mst": {...}}``.
        command: a program; ``{train}``, ``{synthetic}``, and if wanted ``{rows}``, ``{seed}``, ``{domain}``,
            ``{epsilon}`` and ``{delta}`` are filled in.
        function: ``module:function``, which takes a table and n and returns n results.
        step: ``dp_sgd`` or ``marginals``: a single step of ours, seen from inside.
        neighbours: for ``function``: ``module:function`` that returns [(name, without, having), …].
        multiplier, rate: of the noise and of the sampling of ``step``.
        format, timeout, seed_is_secret: for ``command``.
    """

    plan: PlanLike | None
    generator: str | Mapping[str, Any] | None
    command: str | Sequence[str] | None
    function: str | None
    step: Literal["dp_sgd", "marginals"] | None
    neighbours: str | None
    multiplier: float
    rate: float
    format: Literal["csv", "parquet"]
    timeout: float
    seed_is_secret: bool


def test_mechanism(
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    replace: bool = False,
    rows: int = 20,
    runs: int = 1000,
    seconds: float | None = 1500.0,
    workers: int | None = None,
    progress: Progress | None = None,
    **subject: Unpack[MechanismChoice],
) -> MechanismResult:
    """Whether a claimed (ε, δ) can be refuted by telling worst-case neighbouring tables apart.

    Args:
        epsilon, delta: the claim; left out, that of a plan's generator or of a step is its accountant's.
        replace: neighbours differ in one entity replaced, not added or removed.
        rows: of the tables that are made up.
        runs: of the mechanism in all. seconds: about how long at most.
        workers: processes to spread the runs over.
        progress: called with what is under way and how many pieces are done.
        subject: what is tested, see :class:`MechanismChoice`.

    Raises:
        PlanError: not exactly one subject, or nothing is claimed. DataError, PluginError: it cannot be run.
    """
    from synth_audit.mechanism_test.examination import Effort, examine_claim

    effort = Effort(runs, seconds)
    found = _subject(_claim(epsilon, delta, replace), delta, replace, rows, subject)
    with run_context(as_plan({}), workers=workers, progress=progress) as context:
        return examine_claim(
            found.mechanism,
            found.claim,
            name=found.name,
            effort=effort,
            context=context,
            findings=found.findings,
            notes=found.notes,
        )


test_mechanism.__test__ = False  # type: ignore[attr-defined]  # a verb; test runners collect by its name


def _claim(epsilon: float | None, delta: float, replace: bool) -> Claim | None:
    from synth_audit.core.accounting import Neighbouring
    from synth_audit.mechanism_test.claim import Claim

    relation = Neighbouring.REPLACE if replace else Neighbouring.ADD_OR_REMOVE
    return None if epsilon is None else Claim(epsilon, delta, relation)


def _subject(
    claim: Claim | None, delta: float, replace: bool, rows: int, subject: MechanismChoice
) -> ClaimedMechanism:
    from synth_audit.mechanism_test import subjects

    chosen = [key for key in ("generator", "command", "function", "step") if subject.get(key) is not None]
    plan = as_plan(subject["plan"]) if subject.get("plan") is not None else None  # type: ignore[arg-type]
    if len(chosen) > 1 or not (chosen or plan):
        raise PlanError(
            "what is to be tested is not clear",
            where=", ".join(chosen) or "test-mechanism",
            expected="exactly one of a plan, a generator, a command, a function or a step",
            fix="name one; beside another, a plan declares the columns alone",
        )
    kind = chosen[0] if chosen else "plan"
    if kind == "step":
        return _step(claim, delta, replace, subject)
    if kind in ("plan", "generator"):
        return _generator(claim, rows, plan, subject.get("generator"))
    if claim is None:
        raise PlanError(
            "a claim is needed", where="epsilon", expected="the ε that is claimed, and δ", fix="--epsilon 1"
        )
    if kind == "function":
        function = subject["function"]
        assert function is not None
        return subjects.function_subject(function, claim, rows=rows, neighbours=subject.get("neighbours"))
    command = subject["command"]
    assert command is not None
    return subjects.program_subject(
        tuple(shlex.split(command) if isinstance(command, str) else command),
        _schema(plan),
        claim,
        rows=rows,
        file_format=subject.get("format", "csv"),
        timeout=subject.get("timeout", 600.0),
        seed_is_secret=subject.get("seed_is_secret", False),
        base=plan.base if plan else Path.cwd(),
    )


def _step(claim: Claim | None, delta: float, replace: bool, subject: MechanismChoice) -> ClaimedMechanism:
    from dataclasses import replace as changed

    from synth_audit.core.accounting import Neighbouring
    from synth_audit.mechanism_test.subjects import step_subject

    relation = Neighbouring.REPLACE if replace else Neighbouring.ADD_OR_REMOVE
    step = subject["step"]
    assert step is not None
    found = step_subject(
        step,
        multiplier=subject.get("multiplier", 1.0),
        rate=subject.get("rate", 1.0),
        delta=delta or 1e-5,
        relation=relation,
    )
    return found if claim is None else changed(found, claim=claim)


def _generator(
    claim: Claim | None, rows: int, plan: Plan | None, named: str | Mapping[str, Any] | None
) -> ClaimedMechanism:
    from synth_audit.core.plugin_config import build_generator
    from synth_audit.mechanism_test.subjects import generator_subject, terms_of

    if named is None:
        assert plan is not None
        generator = plan.build_generator()
        name = plan.generator.name if plan.generator else "generator"
    else:
        generator = build_generator(named)
        name = named if isinstance(named, str) else next(iter(named))
    if plan is not None and plan.privacy is not None:
        terms = plan.fit_terms
    elif claim is not None:
        terms = terms_of(claim, rows)
    else:
        raise PlanError(
            "no budget is declared, so nothing is claimed",
            where="privacy",
            expected="`privacy` in the plan, or --epsilon",
            fix="give --epsilon and --delta",
        )
    base = plan.base if plan else Path.cwd()
    return generator_subject(generator, name, _schema(plan), terms, claim, rows=rows, base=base)


def _schema(plan: Plan | None) -> Schema:
    """Of the plan's columns, read off its source where it names one; of the usual columns without a plan."""
    from synth_audit.mechanism_test.subjects import PUBLIC_COLUMNS, declared_schema

    if plan is None:
        return declared_schema(PUBLIC_COLUMNS)
    if plan.source is None:
        return declared_schema(plan.columns or PUBLIC_COLUMNS)
    from synth_audit.pipeline.making import pull_source

    return pull_source(plan).schema.released_only()
