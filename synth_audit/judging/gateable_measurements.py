"""Which measurements a gate may name: what an installed audit declares, and what is derived from it."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import cast

from synth_audit.core import registry
from synth_audit.core.audit import AuditInfo
from synth_audit.core.errors import GateError, PluginError
from synth_audit.core.identity import MeasurementId
from synth_audit.core.sensitivity import derived_of
from synth_audit.judging.limit import EVERY_SCOPE, Limit


def check_gateable(limit: Limit, where: str) -> None:
    """Refuse a limit on what no installed audit reports.

    Raises:
        GateError: the audit or the quantity is not there, or the scope is one that no such number has.
    """
    measurement = limit.measurement
    own, derived = _declared(measurement, where)
    quantity, of = measurement.quantity, measurement.derived_from
    for name in (quantity, *([of.quantity] if of else [])):
        if name not in (known := [*own, *derived] if name == quantity else own):
            raise GateError(
                f"the audit {measurement.audit!r} reports no quantity {name!r}",
                where=where,
                expected=f"one of {', '.join(known)}",
                fix=suggestion(name, known),
            )
    if (of is None) == (quantity in derived) and not limit.every:
        raise GateError(
            f"{measurement.name} is {'derived from another number' if of is None else 'no derived number'}",
            where=where,
            expected=f"the scope `of quantity` or `of quantity[scope]`, or {EVERY_SCOPE!r}"
            if of is None
            else "a scope without `of`",
            fix=f"for example `of {own[0]}`" if of is None else "",
        )


def suggestion(word: str, known: Iterable[str]) -> str:
    """A question after the nearest known word; empty when none is near."""
    close = get_close_matches(word, list(known), n=1)
    return f"did you mean {close[0]!r}?" if close else ""


def _declared(measurement: MeasurementId, where: str) -> tuple[list[str], list[str]]:
    """The quantities of the audit, and those derived from them."""
    audit, known = measurement.audit, registry.catalogue("audit")
    if audit not in known:
        gone = registry.successor(audit)
        raise GateError(
            f"the measurement {measurement.name!r} belongs to no audit that is installed{gone}",
            where=where,
            expected=(not gone and suggestion(audit, known)) or f"one of {', '.join(known) or 'none'}",
            fix="`synth-audit list` shows every audit",
        )
    try:
        info = cast(AuditInfo, getattr(known[audit].load(), "info"))  # noqa: B009  (class variable)
    except PluginError as error:
        raise GateError(
            f"the audit {audit!r} of the measurement {measurement.name!r} does not load",
            where=where,
            fix=error.what,
        ) from error
    return [q.name for q in info.quantities], [q.name for q in derived_of(known[audit].family)]
