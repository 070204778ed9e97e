"""By which measurements the candidates of a sweep are compared, and which of their numbers count."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from synth_audit.core import registry
from synth_audit.core.audit import AuditInfo
from synth_audit.core.errors import PlanError
from synth_audit.core.measurement import Direction, Measurement, Quantity
from synth_audit.core.sensitivity import derived_of
from synth_audit.store.evidence import Evidence

PRIVACY = (
    "attribute_game.retained",
    "membership_game.privacy_gain",
    "closest_record.privacy_score",
    "exact_match.excess",
)
UTILITY = ("prediction.auroc_tstr", "prediction.r2_tstr", "marginals.total_variation")
"""What is taken when the plan names nothing: the first that was measured."""

_WRITTEN = re.compile(r"\w+\.(?P<quantity>\w+)(\[(?P<scope>.+)\])?")


@dataclass(frozen=True)
class Measure:
    """A measurement that candidates are compared by; ``higher`` is true when more is better."""

    name: str
    scope: str
    higher: bool

    def __str__(self) -> str:
        return f"{self.name}[{self.scope}]" if self.scope else self.name


def measure_of(text: str, key: str) -> Measure:
    """The measurement that a plan names under ``frontier.<key>``.

    Raises:
        PlanError: it is not declared by any audit, or says nothing about better and worse.
    """
    where = f"frontier.{key}"
    audit = text.partition(".")[0]
    known = _quantities(audit, where)
    written = _WRITTEN.fullmatch(text)
    if written is None or written["quantity"] not in known:
        raise PlanError(
            f"there is no measurement {text!r}",
            where=where,
            expected=f"`name` or `name[scope]`, such as {', '.join(f'{audit}.{q}' for q in known)}",
            fix=f"`synth-audit describe {audit}` shows what it measures",
        )
    name, direction = f"{audit}.{written['quantity']}", known[written["quantity"]].direction
    if direction is Direction.NEUTRAL:
        raise PlanError(
            f"{name!r} only describes: neither more nor less of it is better",
            where=where,
            expected="a measurement with a direction",
            fix=f"`synth-audit describe {audit}` shows the direction of each",
        )
    return Measure(name, written["scope"] or "", direction is Direction.HIGHER)


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


def reliable(evidence: Evidence, measure: Measure | None) -> Measurement | None:
    """The measurement if it counts; None where it is missing, short of attempts or not finite."""
    m = _measured(evidence, measure)
    return m if m is not None and m.finite and not m.short else None


def shortfall(measure: Measure | None, found: Sequence[Evidence]) -> str:
    """For how many candidates the measurement came short, in a sentence; empty when for none."""
    measured = [m for e in found if (m := _measured(e, measure)) is not None]
    short = [m for m in measured if m.short]
    if not short:
        return ""
    worst = min(short, key=lambda m: m.n_achieved or 0)
    return (
        f" {measure} does not count for {len(short)} of {len(found)} audited: it rests on "
        f"{worst.n_achieved or 0:,} attempts where {worst.n_minimum:,} are needed."
    )


def _measured(evidence: Evidence, measure: Measure | None) -> Measurement | None:
    if measure is None:
        return None
    key = (measure.name, measure.scope)
    return next((m for m in evidence.measurements if (m.name, m.scope) == key), None)


def _quantities(audit: str, where: str) -> dict[str, Quantity]:
    ref = registry.find("audit", audit, where=where)
    info: AuditInfo = vars(ref.load())["info"]
    derived = derived_of(ref.family)
    return {q.name: q for q in (*info.quantities, *derived)}
