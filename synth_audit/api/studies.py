"""Many audits for one question, tests of mechanisms, and recipes."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

from synth_audit.api.auditing import Running, run_context
from synth_audit.api.frames import as_arrow
from synth_audit.api.plans import PlanLike, as_plan, named_after, narrowed, workspace_of
from synth_audit.errors import PlanError

if TYPE_CHECKING:
    from synth_audit.api.frames import Frame
    from synth_audit.generators.external.recipe import Recipe, Setting
    from synth_audit.mechanism_test.claim import Claim
    from synth_audit.mechanism_test.distinguishing import MechanismResult
    from synth_audit.mechanism_test.subjects import ClaimedMechanism
    from synth_audit.plan.plan import Plan
    from synth_audit.run.context import Progress, RunContext
    from synth_audit.store.workspace import Workspace
    from synth_audit.studies.calibration import Calibration
    from synth_audit.studies.frontier import FrontierRecord
    from synth_audit.studies.run_estimate import RunEstimate
    from synth_audit.table.schema import Schema


def frontier(
    plan: PlanLike,
    out: str | Path | None = None,
    *,
    fresh: bool = False,
    **running: Unpack[Running],
) -> FrontierRecord:
    """Audit every candidate that the plan's ``frontier`` asks for and choose among those that pass.

    Each gets a workspace of its own under ``candidates/``, with a report; a candidate that an earlier call
    finished is kept. Nothing is released: see :func:`release` and its ``candidate``.

    Args:
        out: workspace folder; ``<plan's name>-audit`` beside the plan if left out.
        fresh: pull the source again and keep nothing of earlier calls.
        running: how the work is done, see :class:`Running`.

    Raises:
        PlanError, DataError, GateError: see their messages for what to do.
    """
    from synth_audit.store.scratch import in_use

    settled = as_plan(plan)
    workspace = workspace_of(settled, out)
    with in_use(workspace) as scratch, run_context(settled, scratch, **running) as context:
        return swept(settled, workspace, context, fresh=fresh)


def swept(plan: Plan, workspace: Workspace, context: RunContext, *, fresh: bool = False) -> FrontierRecord:
    """Sweep as :func:`frontier` does, in a context at hand, and write the pages."""
    from synth_audit.report import write_report
    from synth_audit.report.study_pages import write_frontier
    from synth_audit.store.evidence_store import evidence_store
    from synth_audit.studies.sweep import sweep

    record = sweep(plan, workspace, context, fresh=fresh)
    for found in record.candidates:
        own = workspace.candidate(found.slug)
        store = evidence_store(own)
        if store.newest_digest() and store.newest().report is None:
            write_report(own)
    write_frontier(record, workspace.frontier_page)
    return record


def calibrate(
    train: Frame,
    control: Frame,
    plan: PlanLike | None = None,
    *,
    steps: int = 10,
    noise: bool = True,
    only: tuple[str, ...] = (),
    seed: int | None = None,
    out: str | Path | None = None,
    **running: Unpack[Running],
) -> Calibration:
    """Plant leaks of every size in real rows and measure them with every privacy audit.

    Args:
        train: real rows; half of them play the training rows, the other half people never seen.
        control: real rows kept apart from both.
        steps: leaks at 0, 1/steps, … 1 of the rows.
        noise: repeat with all settings of the published leaky evaluation, eight times the work.
        out: folder to write ``review/calibration.json`` and ``.html`` into, with temporary files in its
            ``restricted/``; nothing is written without it.
        running: how the work is done, see :class:`Running`.

    Raises:
        DataError: train has too few rows to plant a leak in.
        PlanError: no privacy audit is chosen, or there are fewer than two steps.
    """
    from synth_audit.pipeline import stages
    from synth_audit.report.study_pages import render_calibration
    from synth_audit.store.files import write_text
    from synth_audit.store.scratch import in_use
    from synth_audit.store.workspace import Workspace
    from synth_audit.studies import calibration

    settled = narrowed(as_plan(plan if plan is not None else named_after(train)), only, seed)
    if steps < 2:
        raise PlanError(
            "a calibration needs leaks of more than one size",
            where="steps",
            expected="2 or more",
            fix="try 10",
        )
    real = as_arrow(train, "train")
    subject = stages.anchored_subject(real, as_arrow(control, "control"), real, settled)
    workspace = None if out is None else Workspace(Path(out)).prepare()
    held = nullcontext() if workspace is None else in_use(workspace)
    with held as scratch, run_context(settled, scratch, **running) as context:
        found = calibration.calibrate(
            settled.build_audits(),
            subject,
            context,
            table=settled.name,
            shares=[i / steps for i in range(steps + 1)],
            noises=calibration.LOUD if noise else calibration.QUIET,
            max_rows=settled.known_answer.max_rows,
        )
    if workspace is not None:
        write_text(workspace.calibration, found.to_json())
        write_text(workspace.calibration_page, render_calibration(found))
    return found


def estimate(plan: PlanLike, **running: Unpack[Running]) -> RunEstimate:
    """How long a run of a plan should take here: two small parts of its table are run, and nothing is kept.

    Args:
        running: how the work is done, see :class:`Running`; a run is expected to be done alike.

    Raises:
        PlanError, DataError, GateError: what a run of the plan would raise, or there are too few rows.
    """
    from synth_audit.files import temporary_folder
    from synth_audit.studies.run_estimate import estimate as extrapolate

    settled = as_plan(plan)
    with temporary_folder() as scratch, run_context(settled, Path(scratch), **running) as context:
        return extrapolate(settled, context, Path(scratch))


# ruff: noqa: PT028  (the verb is called test-mechanism; it is no test)


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
    from synth_audit.dp.guarantee import Neighbouring
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

    from synth_audit.dp.guarantee import Neighbouring
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
    from synth_audit.mechanism_test.subjects import generator_subject, terms_of
    from synth_audit.plugins.plugin_config import build_generator

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


@dataclass(frozen=True)
class RecipeState:
    """A recipe, and where its packages are.

    Attributes:
        folder: of its environment, made or not.
        version: of the package that generates; empty while it is not installed.
    """

    recipe: Recipe
    folder: Path
    version: str


def recipes() -> tuple[RecipeState, ...]:
    """Every recipe in alphabetical order."""
    from synth_audit.generators.external.recipe import RecipeEnvironment
    from synth_audit.generators.external.recipe import recipes as known

    places = [RecipeEnvironment.of(recipe) for recipe in known().values()]
    return tuple(RecipeState(p.recipe, p.folder, p.version if p.installed else "") for p in places)


def install_recipe(name: str, python: str | Path | None = None) -> RecipeState:
    """Fetch a recipe's packages into an environment of its own, outside this one.

    Args:
        python: an interpreter for it, where this one is too new or too old.

    Raises:
        PlanError: there is no such recipe, or no interpreter fits.
        DataError: the packages do not install.
    """
    from synth_audit.generators.external.recipe import RecipeEnvironment, recipe_named

    place = RecipeEnvironment.of(recipe_named(name))
    place.install(None if python is None else Path(python))
    return RecipeState(place.recipe, place.folder, place.version)


def try_recipe(name: str, settings: Mapping[str, Setting] | None = None, *, shown: bool = False) -> int:
    """Run an installed recipe on a made-up table; the number of rows that it drew.

    Args:
        settings: those that the recipe names for a trial if None.
        shown: what it prints goes to standard error.

    Raises:
        PlanError: there is no such recipe or setting.
        DataError: it is not installed, or does not do what a recipe must.
    """
    from synth_audit.errors import PlanError
    from synth_audit.generators.external.recipe import recipe_named
    from synth_audit.generators.external.recipe_model import trial

    recipe = recipe_named(name)
    try:
        recipe.settled(settings or {})
    except ValueError as error:
        raise PlanError(str(error), where=f"recipe {name!r}", fix="`synth-audit recipes list`") from None
    return trial(recipe, settings, shown=shown).n_rows
