"""Which generators a sweep tries, each as a plan of its own, and by which measurements it chooses."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from synth_audit.core import registry
from synth_audit.core.errors import PlanError
from synth_audit.core.measurement import Direction, Quantity
from synth_audit.core.plan import FrontierSpec, Plan, PluginChoice
from synth_audit.core.plugin import AuditInfo
from synth_audit.core.response import DERIVED
from synth_audit.core.schema import RELEASED, Role
from synth_audit.workflow.evidence import Evidence
from synth_audit.workflow.gate import load_suite
from synth_audit.workflow.pipeline import audits_of
from synth_audit.workflow.records import SplitRecord
from synth_audit.workflow.workspace import Workspace

LADDER = (1, 2, 5, 10, 15, 20)
"""Truncation levels that are tried without being asked for, as far as the table has columns, and then all."""

PRIVACY = (
    "attribute_game.retained",
    "membership_game.privacy_gain",
    "closest_record.privacy_score",
    "exact_match.excess",
)
UTILITY = ("prediction.auroc_tstr", "prediction.r2_tstr", "marginals.total_variation")
"""What is taken when the plan names nothing: the first that was measured."""

_SLUG_LENGTH = 60


@dataclass(frozen=True)
class Entrant:
    """A generator that is to be tried.

    Attributes:
        plan: the sweep's plan with this generator, and with the level that the number of entrants calls for.
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


@dataclass(frozen=True)
class Measure:
    """A measurement that candidates are compared by; ``higher`` is true when more is better."""

    name: str
    scope: str
    higher: bool

    def __str__(self) -> str:
        return f"{self.name}[{self.scope}]" if self.scope else self.name


def entrants(plan: Plan, n_columns: int) -> tuple[Entrant, ...]:
    """Every generator that the plan's ``frontier`` asks for, each once, in order.

    The settings under ``vary`` make a grid on the plan's own generator, the last one running fastest; then
    come those under ``generators``. Without either, a generator that can be truncated climbs ``LADDER``.

    Each plan has the level ``1 − (1 − level) / m`` for m entrants: to choose among m is to have m chances of
    a wrong pass (Bonferroni).

    Args:
        n_columns: columns that a generator sees.

    Raises:
        PlanError: there is nothing to try, or a generator refuses its settings.
    """
    spec = plan.frontier or FrontierSpec.model_validate({})
    distinct: dict[str, tuple[PluginChoice, Mapping[str, Any]]] = {}
    for choice, varied in [*_grid(plan, spec, n_columns), *((c, {}) for c in spec.generators)]:
        candidate = plan.model_copy(update={"generator": choice}).located(plan.base)
        built = registry.config_of(candidate.build_generator())
        distinct.setdefault(json.dumps([choice.name, built], sort_keys=True), (choice, varied))
    common = {
        "level": 1 - (1 - plan.level) / len(distinct),
        "audits": _audits(plan, spec),
        "frontier": None,
        "generator": None,
    }
    shared = plan.model_copy(update=common).located(plan.base).check()
    return tuple(
        Entrant(name, slug, shared.model_copy(update={"generator": choice}).located(plan.base), varied)
        for (choice, varied), (name, slug) in zip(distinct.values(), _names(distinct.values()), strict=True)
    )


def entrant_of(plan: Plan, workspace: Workspace, candidate: str) -> tuple[Entrant, Workspace]:
    """The entrant of that name or folder in a sweep of this plan, and where its files are.

    Raises:
        DataError: the plan was not swept here.
        PlanError: the sweep has no such candidate.
    """
    known = entrants(plan, column_count(SplitRecord.read(workspace.split_record)))
    for entrant in known:
        if candidate in (entrant.name, entrant.slug):
            return entrant, workspace.candidate(entrant.slug)
    raise PlanError(
        f"the sweep has no candidate {candidate!r}",
        where="--candidate",
        expected=f"one of {', '.join(e.slug for e in known)}",
        fix="`synth-audit frontier PLAN` shows all with their names",
    )


def column_count(record: SplitRecord) -> int:
    """Columns of the split's tables that a generator sees."""
    return sum(RELEASED.issuperset(map(Role, column.roles)) for column in record.columns)


def measure_of(text: str, key: str) -> Measure:
    """The measurement that a plan names under ``frontier.<key>``.

    Raises:
        PlanError: it is not declared by any audit, or says nothing about better and worse.
    """
    name, _, rest = text.partition("[")
    where = f"frontier.{key}"
    audit, _, quantity = name.partition(".")
    known = _quantities(audit, where)
    if quantity not in known or (rest and not rest.endswith("]")):
        raise PlanError(
            f"there is no measurement {text!r}",
            where=where,
            expected=f"`name` or `name[scope]`, such as {', '.join(f'{audit}.{q}' for q in known)}",
            fix=f"`synth-audit describe {audit}` shows what it measures",
        )
    if known[quantity].direction is Direction.NEUTRAL:
        raise PlanError(
            f"{name!r} only describes: neither more nor less of it is better",
            where=where,
            expected="a measurement with a direction",
            fix=f"`synth-audit describe {audit}` shows the direction of each",
        )
    return Measure(name, rest.removesuffix("]"), known[quantity].direction is Direction.HIGHER)


def settle(named: str | None, usual: Sequence[str], key: str, found: Sequence[Evidence]) -> Measure | None:
    """The measurement to compare by: the named one, else the first usual one that most can offer.

    Of the usual ones the first that all candidates have, else the first that any has; None when none has any.
    """
    if named is not None:
        return measure_of(named, key)
    for enough in (all, any):
        for name in usual:
            if found and enough(any((m.name, m.scope) == (name, "") for m in e.measurements) for e in found):
                return measure_of(name, key)
    return None


def _quantities(audit: str, where: str) -> dict[str, Quantity]:
    ref = registry.find("audit", audit, where=where)
    info: AuditInfo = vars(ref.load())["info"]
    derived = DERIVED if ref.family == registry.PRIVACY else ()
    return {q.name: q for q in (*info.quantities, *derived)}


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
        vary = {"truncation": [*(t for t in LADDER if t < n_columns - 1), None]}
    for values in itertools.product(*vary.values()):
        varied = dict(zip(vary, values, strict=True))
        yield PluginChoice(name=plan.generator.name, config={**plan.generator.config, **varied}), varied


def _nothing_to_try(what: str) -> PlanError:
    return PlanError(
        f"there is nothing to sweep: {what}",
        where="frontier",
        expected="`vary: {setting: [values]}` or `generators: [names]`",
        fix="add one of them under `frontier` in the plan",
    )


def _audits(plan: Plan, spec: FrontierSpec) -> tuple[PluginChoice, ...]:
    """The plan's audits and those whose measurements decide the choice.

    Without a word from the plan a table with a sensitive column is played the attribute game: no other
    attack asks what truncation is to prevent.
    """
    wanted = {measure_of(text, key).name.split(".")[0] for key, text in _named(spec)}
    sensitive = any(Role.SENSITIVE in c.roles and Role.TARGET not in c.roles for c in plan.columns.values())
    if sensitive and not plan.audits and spec.privacy is None:
        wanted |= {"attribute_game"} & set(registry.catalogue("audit"))
    extra = wanted - set(audits_of(plan, load_suite(plan.gates, plan.base)))
    if not extra:
        return plan.audits
    own = plan.audits or tuple(PluginChoice(name=n) for n in registry.default_audits())
    return (*own, *(PluginChoice(name=n) for n in sorted(extra)))


def _named(spec: FrontierSpec) -> list[tuple[str, str]]:
    return [(k, text) for k, text in (("privacy", spec.privacy), ("utility", spec.utility)) if text]


def _names(chosen: Iterable[tuple[PluginChoice, Mapping[str, Any]]]) -> Iterator[tuple[str, str]]:
    """A name for readers and one for a folder, each different from all before it."""
    names: set[str] = set()
    slugs: set[str] = set()
    for choice, varied in chosen:
        settings = ", ".join(f"{k}={_word(v)}" for k, v in (varied or choice.config).items())
        name = _new(f"{choice.name} {settings}".strip(), names, " ({})")
        plain = re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-.")[:_SLUG_LENGTH]
        yield name, _new(plain, slugs, "-{}")


def _new(word: str, taken: set[str], suffix: str) -> str:
    tries = itertools.chain([word], (word + suffix.format(i) for i in itertools.count(2)))
    new = next(w for w in tries if w not in taken)
    taken.add(new)
    return new


def _word(value: object) -> str:
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value, default=str)
