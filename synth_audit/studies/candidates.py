"""Which generators a sweep tries, each as a plan of its own and under a name of its own."""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from synth_audit.core import registry
from synth_audit.core.errors import DataError, PlanError
from synth_audit.core.generator import BoundedTruncation
from synth_audit.core.plan import Plan
from synth_audit.core.plan_sections.frontier import FrontierSpec
from synth_audit.core.plugin_config import PluginChoice, combinations
from synth_audit.core.schema import RELEASED, Role
from synth_audit.judging.judge import load_suite
from synth_audit.pipeline.stages import audits_of
from synth_audit.store.evidence_store import evidence_store
from synth_audit.store.stage_records import SplitRecord
from synth_audit.store.workspace import Workspace
from synth_audit.studies.comparison import measure_of

LADDER = (1, 2, 5, 10, 15, 20)
"""Truncation levels that are tried without being asked for, as far as the table has columns, and then all."""

_VALUE_LENGTH = 20
_SLUG_LENGTH = 60


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
    distinct: dict[str, _Asked] = {}
    for choice, varied in [*_grid(plan, spec, n_columns), *((c, {}) for c in spec.generators)]:
        candidate = plan.model_copy(update={"generator": choice}).located(plan.base)
        built = registry.config_of(candidate.build_generator())
        key = json.dumps([choice.name, built], sort_keys=True)
        distinct.setdefault(key, _Asked(choice, varied, built))
    common = {
        "level": 1 - (1 - plan.level) / len(distinct),
        "audits": _audits(plan, spec),
        "frontier": None,
        "generator": None,
    }
    shared = plan.model_copy(update=common).located(plan.base).check()
    asked = tuple(distinct.values())
    return tuple(
        Candidate(name, slug, shared.model_copy(update={"generator": a.choice}).located(plan.base), a.varied)
        for a, (name, slug) in zip(asked, _names(asked), strict=True)
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
    wanted = {measure_of(text, key).id.audit for key, text in _named(spec)}
    if _sensitive(plan) and not plan.audits and spec.privacy is None:
        wanted |= {"attribute_attack", "attribute_game"} & set(registry.catalogue("audit"))
    extra = wanted - set(audits_of(plan, load_suite(plan.gates, plan.base)))
    if not extra:
        return plan.audits
    own = plan.audits or tuple(PluginChoice(name=n) for n in registry.default_audits())
    return (*own, *(PluginChoice(name=n) for n in sorted(extra)))


def _named(spec: FrontierSpec) -> list[tuple[str, str]]:
    return [(k, text) for k, text in (("privacy", spec.privacy), ("utility", spec.utility)) if text]


@dataclass(frozen=True)
class _Asked:
    """A generator as the plan writes it, what the sweep varied, and all its settings with defaults."""

    choice: PluginChoice
    varied: Mapping[str, Any]
    built: Mapping[str, Any]


def _names(asked: Sequence[_Asked]) -> Iterator[tuple[str, str]]:
    """A name for readers and one for a folder, each different from all before it.

    They hold the settings that tell the candidates of one generator apart, and of long values the beginning.
    """
    names: set[str] = set()
    slugs: set[str] = set()
    for a in asked:
        alike = [o.built for o in asked if o.choice.name == a.choice.name]
        telling = (k for k in a.choice.config if any(o.get(k) != a.built.get(k) for o in alike))
        settings = ", ".join(f"{k}={_word(a.choice.config[k])}" for k in telling)
        name = _new(f"{a.choice.name} {settings}".strip(), names, " ({})")
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
