"""The candidates of a sweep: which there are, and their numbers, scores and choice side by side."""

import itertools
import json
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from synth_audit import registry
from synth_audit.errors import DataError, MeasurementNameError, PlanError
from synth_audit.findings.measurement import Direction, Measurement, MeasurementId, read
from synth_audit.findings.sensitivity import DERIVED, derived_of
from synth_audit.pipeline.stages import audits_of
from synth_audit.plan.plan import Plan
from synth_audit.plan.sections import FrontierSpec
from synth_audit.plugins.audit import AuditInfo
from synth_audit.plugins.generator import BoundedTruncation
from synth_audit.plugins.plugin_config import PluginChoice, combinations
from synth_audit.store.evidence import Evidence, SplitRecord
from synth_audit.store.evidence_store import evidence_store
from synth_audit.store.workspace import Workspace
from synth_audit.studies import frontier
from synth_audit.table.schema import RELEASED, Role
from synth_audit.verdict.suite import load_suite

USUAL_PRIVACY = (
    "attribute_game.retained",
    "attribute_attack.retained",
    "membership_game.privacy_gain",
    "closest_record.privacy_score",
    "exact_match.excess",
)

USUAL_UTILITY = ("prediction.auroc_tstr", "prediction.r2_tstr", "marginals.total_variation")
"""What is taken when the plan names nothing: the first that was measured."""

_DERIVED = {q.name for q in DERIVED}

LADDER = (1, 2, 5, 10, 15, 20)
"""Truncation levels that are tried without being asked for, as far as the table has columns, and then all."""

_VALUE_LENGTH = 20
"""Characters of a setting in a candidate's name, so that the table of candidates keeps its width."""

_SLUG_LENGTH = 60
"""Characters of a candidate's folder, well below what file systems allow."""

_SHARED = "known answer."
"""What the timings call the check that is made once for all candidates."""


@dataclass(frozen=True)
class Measure:
    """A measurement that candidates are compared by; ``higher`` is true when more is better."""

    id: MeasurementId
    higher: bool


def measure_of(text: str, key: str) -> Measure:
    """The measurement that a plan names under ``frontier.<key>``.

    Raises:
        PlanError: it is not declared by any audit, or says nothing about better and worse.
    """
    where = f"frontier.{key}"
    try:
        measurement = read(text)
    except MeasurementNameError as error:
        raise PlanError(error.what, where=where, expected=error.expected, fix=error.fix) from None
    if not measurement.audit:
        raise PlanError(f"there is no measurement {text!r}", where=where, expected="`audit.quantity`")
    audit, quantity, of = measurement.audit, measurement.quantity, measurement.derived_from
    ref = registry.find("audit", audit, where=where)
    info: AuditInfo = ref.info
    known = {q.name: q for q in (*info.quantities, *derived_of(ref.family))}
    declared = quantity in known and (of is None or of.quantity in known)
    if not declared or (of is None) == (quantity in _DERIVED):
        raise PlanError(
            f"there is no measurement {text!r}",
            where=where,
            expected=", ".join(f"{audit}.{q}" + "[of …]" * (q in _DERIVED) for q in known),
            fix=f"`synth-audit describe {audit}` shows what it measures",
        )
    if known[quantity].direction is Direction.NEUTRAL:
        raise PlanError(
            f"{measurement.name!r} only describes: neither more nor less of it is better",
            where=where,
            expected="a measurement with a direction",
            fix=f"`synth-audit describe {audit}` shows the direction of each",
        )
    return Measure(measurement, known[quantity].direction is Direction.HIGHER)


def settle(named: str | None, usual: Sequence[str], key: str, found: Sequence[Evidence]) -> Measure | None:
    """The measurement to compare by: the named one, else the first usual one that can be relied on.

    Of the usual ones the first that counts for all candidates, else the first that counts for any; None when
    none does.
    """
    if named is not None:
        return measure_of(named, key)
    usual_ones = [measure_of(name, key) for name in usual]
    for enough in (all, any):
        for measure in usual_ones:
            if found and enough(reliable(e, measure) is not None for e in found):
                return measure
    return None


def replacement(chosen: Measure | None, usual: Sequence[str], what: str) -> str:
    """That another measurement stands in for the usual first one, in a sentence; empty where none does."""
    if chosen is None or str(chosen.id) == usual[0]:
        return ""
    return f" {what} is read from {chosen.id}: {usual[0]} does not count for every candidate."


def reliable(evidence: Evidence, measure: Measure | None) -> Measurement | None:
    """The measurement if it counts; None where it is missing, short of attempts or not finite."""
    m = _measured(evidence, measure)
    return m if m is not None and m.finite and not m.short else None


def shortfall(measure: Measure | None, found: Sequence[Evidence]) -> str:
    """For how many candidates the measurement came short, in a sentence; empty when for none."""
    measured = [m for e in found if (m := _measured(e, measure)) is not None]
    short = [m for m in measured if m.short]
    if measure is None or not short:
        return ""
    worst = min(short, key=lambda m: m.n_achieved or 0)
    return (
        f" {measure.id} does not count for {len(short)} of {len(found)} audited: it rests on "
        f"{worst.n_achieved or 0:,} attempts where {worst.n_minimum:,} are needed."
    )


def _measured(evidence: Evidence, measure: Measure | None) -> Measurement | None:
    if measure is None:
        return None
    return next((m for m in evidence.measurements if m.id == measure.id), None)


@dataclass(frozen=True)
class Candidate:
    """A generator that is to be tried.

    Attributes:
        plan: the sweep's plan with this generator, and with the level that their number calls for.
        varied: the settings that the sweep changed.
    """

    name: str
    slug: str
    plan: Plan
    varied: Mapping[str, Any]

    @property
    def generator(self) -> PluginChoice:
        """Its generator, as in the plan."""
        assert self.plan.generator is not None
        return self.plan.generator


def candidates_of(plan: Plan, n_columns: int) -> tuple[Candidate, ...]:
    """Every generator that the plan's ``frontier`` asks for, each once, in order.

    The settings under ``vary`` make a grid on the plan's own generator, the last one running fastest; then
    come those under ``generators``. Without either, a generator that can be truncated climbs ``LADDER``, a
    vine with sensitive columns no further than the last level that does not tie one of them to all others.

    Each plan has the level ``1 − (1 − level) / m`` for m candidates: to choose among m is to have m chances
    of a wrong pass (Bonferroni).

    Args:
        n_columns: columns that a generator sees.

    Raises:
        PlanError: there is nothing to try, or a generator refuses its settings.
    """
    spec = plan.frontier or FrontierSpec.model_validate({})
    distinct: dict[str, tuple[PluginChoice, Mapping[str, Any], Mapping[str, Any]]] = {}
    for choice, varied in [*_grid(plan, spec, n_columns), *((c, {}) for c in spec.generators)]:
        candidate = plan.model_copy(update={"generator": choice}).located(plan.base)
        built = registry.config_of(candidate.build_generator())
        key = json.dumps([choice.name, built], sort_keys=True)
        distinct.setdefault(key, (choice, varied, built))
    common = {
        "level": 1 - (1 - plan.level) / len(distinct),
        "audits": _audits(plan, spec),
        "frontier": None,
        "generator": None,
    }
    shared = plan.model_copy(update=common).located(plan.base).check()
    names = _names([(choice, built) for choice, _, built in distinct.values()])
    return tuple(
        Candidate(name, slug, shared.model_copy(update={"generator": choice}).located(plan.base), varied)
        for (choice, varied, _), (name, slug) in zip(distinct.values(), names, strict=True)
    )


def candidate_of(plan: Plan, workspace: Workspace, name: str) -> tuple[Candidate, Workspace]:
    """The candidate of that name or folder in a sweep of this plan, and where its files are.

    Raises:
        DataError: the plan was not swept here, or the candidate has no evidence.
        PlanError: the sweep has no such candidate.
    """
    # Not `Path.exists`: it raises for whoever may not read the restricted folder.
    if not os.path.exists(workspace.split_record):
        raise _not_swept(workspace)
    known = candidates_of(plan, column_count(SplitRecord.read(workspace.split_record)))
    for candidate in known:
        if name in (candidate.name, candidate.slug):
            own = workspace.candidate(candidate.slug)
            if not evidence_store(own).newest_digest():
                raise _not_swept(own)
            return candidate, own
    raise PlanError(
        f"the sweep has no candidate {name!r}",
        where="--candidate",
        expected=f"one of {', '.join(e.slug for e in known)}",
        fix="`synth-audit frontier PLAN` shows all with their names",
    )


def _not_swept(workspace: Workspace) -> DataError:
    return DataError(
        "no sweep has audited this candidate",
        where=str(workspace.root),
        expected="the workspace of a sweep that finished it",
        fix="run `synth-audit frontier PLAN` first, with the same --out; its page tells what failed",
    )


def column_count(record: SplitRecord) -> int:
    """Columns of the split's tables that a generator sees."""
    return sum(RELEASED.issuperset(map(Role, column.roles)) for column in record.columns)


def _grid(plan: Plan, spec: FrontierSpec, n_columns: int) -> Iterator[tuple[PluginChoice, Mapping[str, Any]]]:
    """The plan's own generator with every combination of the settings that vary."""
    vary: Mapping[str, Sequence[Any]] = spec.vary
    if not vary and spec.generators:
        return
    if plan.generator is None:
        raise _nothing_to_try("the plan has no generator whose settings could vary")
    cls = registry.find("generator", plan.generator.name, where="generator").load()
    if not vary:
        if "truncation" not in registry.field_names(cls):
            raise _nothing_to_try(f"the generator {plan.generator.name!r} has no truncation levels to climb")
        vary = {"truncation": _levels(plan, n_columns)}
    for varied in combinations(vary):
        yield plan.generator.with_settings(varied), varied


def _levels(plan: Plan, n_columns: int) -> list[int | None]:
    """The ladder, up to the last level that the generator calls of use for the plan's sensitive columns."""
    generator = plan.build_generator()
    deepest = None
    if isinstance(generator, BoundedTruncation):
        deepest = generator.deepest(n_columns, _sensitive(plan))
    last = n_columns - 1 if deepest is None else deepest
    return [*(t for t in LADDER if t < last), deepest]


def _sensitive(plan: Plan) -> list[str]:
    return [n for n, c in plan.columns.items() if Role.SENSITIVE in c.roles and Role.TARGET not in c.roles]


def _nothing_to_try(what: str) -> PlanError:
    return PlanError(
        f"there is nothing to sweep: {what}",
        where="frontier",
        expected="`vary: {setting: [values]}` or `generators: [names]`",
        fix="add one of them under `frontier` in the plan",
    )


def _audits(plan: Plan, spec: FrontierSpec) -> tuple[PluginChoice, ...]:
    """The plan's audits and those whose measurements decide the choice.

    Without a word from the plan a table with a sensitive column gets attribute attack and attribute game: no
    other attack asks what truncation is to prevent.
    """
    named = {"privacy": spec.privacy, "utility": spec.utility}
    wanted = {measure_of(text, key).id.audit for key, text in named.items() if text}
    if _sensitive(plan) and not plan.audits and spec.privacy is None:
        wanted |= {"attribute_attack", "attribute_game"} & set(registry.catalogue("audit"))
    extra = wanted - set(audits_of(plan, load_suite(plan.gates, plan.base)))
    if not extra:
        return plan.audits
    own = plan.audits or tuple(PluginChoice(name=n) for n in registry.default_audits())
    return (*own, *(PluginChoice(name=n) for n in sorted(extra)))


def _names(asked: Sequence[tuple[PluginChoice, Mapping[str, Any]]]) -> Iterator[tuple[str, str]]:
    """A name for readers and one for a folder, each different from all before it.

    They hold the settings that tell the candidates of one generator apart, and of long values the beginning.

    Args:
        asked: generators as the plan writes them, each with all its settings, defaults included.
    """
    names, slugs = set[str](), set[str]()
    for choice, built in asked:
        alike = [all_of for other, all_of in asked if other.name == choice.name]
        telling = (k for k in choice.config if any(o.get(k) != built.get(k) for o in alike))
        settings = ", ".join(f"{k}={_word(choice.config[k])}" for k in telling)
        name = _new(f"{choice.name} {settings}".strip(), names, " ({})")
        plain = re.sub(r"[^a-z0-9.]+", "-", name.lower())[:_SLUG_LENGTH].strip("-.")
        yield name, _new(plain or "candidate", slugs, "-{}")


def _new(word: str, taken: set[str], suffix: str) -> str:
    tries = itertools.chain([word], (word + suffix.format(i) for i in itertools.count(2)))
    new = next(w for w in tries if w not in taken)
    taken.add(new)
    return new


def _word(value: object) -> str:
    if value is None:
        return "none"
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= _VALUE_LENGTH else text[: _VALUE_LENGTH - 1] + "…"


@dataclass(frozen=True, eq=False)
class CandidateRun:
    """What became of a candidate; without evidence there is a problem."""

    candidate: Candidate
    evidence: Evidence | None
    correlations: frontier.Correlations = frontier.NO_CORRELATIONS
    kept: bool = False
    problem: str = ""


def ranked(
    plan: Plan, tried: Sequence[CandidateRun], real: frontier.Correlations, split_kept: str = ""
) -> frontier.FrontierRecord:
    """The record of a sweep of ``plan`` with the choice among its candidates.

    Args:
        real: correlations of the training rows.
        split_kept: when the split was made, if an earlier run made it.
    """
    spec = plan.frontier or FrontierSpec.model_validate({})
    found = [t.evidence for t in tried if t.evidence is not None]
    privacy = settle(spec.privacy, USUAL_PRIVACY, "privacy", found)
    utility = settle(spec.utility, USUAL_UTILITY, "utility", found)
    candidates = frontier.scored(
        tuple(_candidate(t, privacy, utility) for t in tried),
        spec.alpha,
        higher_privacy=privacy is not None and privacy.higher,
        higher_utility=utility is not None and utility.higher,
    )
    gates = load_suite(plan.gates, plan.base).measured
    limits = [g.limit for g in gates if g.blocking and g.limit is not None]
    best, reason = frontier.choose(candidates)
    for named, measure in ((spec.privacy, privacy), (spec.utility, utility)):
        reason += shortfall(measure, found) if named else ""
    reason += "" if spec.utility else replacement(utility, USUAL_UTILITY, "Usefulness")
    return frontier.FrontierRecord(
        table=plan.name,
        plan_sha256=plan.digest,
        seed=plan.seed,
        level=tried[0].candidate.plan.corrected_level,
        alpha=spec.alpha,
        utility=utility.id if utility else None,
        privacy=privacy.id if privacy else None,
        candidates=candidates,
        chosen=best.name if best else None,
        reason=reason,
        real_correlations=real,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        split_kept=split_kept,
        releasable=plan.release is not None,
        privacy_gated=privacy is None or any(limit.applies_to(privacy.id) for limit in limits),
    )


def _candidate(
    tried: CandidateRun, privacy: Measure | None, utility: Measure | None
) -> frontier.CandidateResult:
    candidate, evidence = tried.candidate, tried.evidence
    plain = frontier.CandidateResult(
        name=candidate.name,
        slug=candidate.slug,
        generator={"name": candidate.generator.name, "config": candidate.generator.config},
        varied=candidate.varied,
        verdict=frontier.ERROR,
        problem=tried.problem,
    )
    if evidence is None:
        return plain
    return replace(
        plain,
        verdict=str(evidence.verdict),
        gates=tuple(
            frontier.GateOutcome(g.gate, g.title, str(g.result)) for g in evidence.gates.results if g.blocking
        ),
        privacy=_number(evidence, privacy),
        utility=_number(evidence, utility),
        boxes=tuple(s for o in evidence.outcomes for s in o.series if s.kind == "box"),
        correlations=tried.correlations,
        seconds=round(sum(s for step, s in evidence.timings.items() if not step.startswith(_SHARED)), 3),
        kept=tried.kept,
    )


def _number(evidence: Evidence, measure: Measure | None) -> frontier.Number | None:
    m = reliable(evidence, measure)
    if m is None:
        return None
    low, high = (m.interval.low, m.interval.high) if m.interval else (math.nan, math.nan)
    return frontier.Number(m.value, low, high)
