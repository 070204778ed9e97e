"""By which measurements the candidates of a sweep are compared, and which of their numbers count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from synth_audit.core import identity, registry
from synth_audit.core.audit import AuditInfo
from synth_audit.core.errors import MeasurementNameError, PlanError
from synth_audit.core.identity import MeasurementId
from synth_audit.core.measurement import Direction, Measurement, Quantity
from synth_audit.core.sensitivity import DERIVED, derived_of
from synth_audit.store.evidence import Evidence

PRIVACY = (
    "attribute_game.retained",
    "attribute_attack.retained",
    "membership_game.privacy_gain",
    "closest_record.privacy_score",
    "exact_match.excess",
)
UTILITY = ("prediction.auroc_tstr", "prediction.r2_tstr", "marginals.total_variation")
"""What is taken when the plan names nothing: the first that was measured."""

_DERIVED = {q.name for q in DERIVED}


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
        measurement = identity.read(text)
    except MeasurementNameError as error:
        raise PlanError(error.what, where=where, expected=error.expected, fix=error.fix) from None
    if not measurement.audit:
        raise PlanError(f"there is no measurement {text!r}", where=where, expected="`audit.quantity`")
    audit, quantity, of = measurement.audit, measurement.quantity, measurement.derived_from
    known = _quantities(audit, where)
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


def _quantities(audit: str, where: str) -> dict[str, Quantity]:
    ref = registry.find("audit", audit, where=where)
    info: AuditInfo = vars(ref.load())["info"]
    derived = derived_of(ref.family)
    return {q.name: q for q in (*info.quantities, *derived)}
