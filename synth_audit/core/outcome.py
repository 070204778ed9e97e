"""What became of a configured audit: measured, not applicable, or an error; it can never vanish."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from synth_audit.core.audit import AuditInfo
from synth_audit.core.errors import OUT_OF_TIME, PROCESS_LOST
from synth_audit.core.measurement import Findings, Measurement
from synth_audit.core.sensitivity import CHECK_CUT_SHORT, SensitivityCurve
from synth_audit.core.series import Series


class Status(StrEnum):
    """The three ends an audit can have."""

    MEASURED = "measured"
    NOT_APPLICABLE = "not applicable"
    ERROR = "error"


@dataclass(frozen=True)
class AuditOutcome:
    """What became of one configured audit, with all that a reader needs to understand it.

    Attributes:
        audit: plug-in name; family: the room it lives in (privacy, fidelity, utility).
        info: what the audit says of itself; None only when it could not even be imported.
        config: its full configuration, defaults included.
        reason: why it was not applicable, or the kind and place of its error (never its text).
        responses: what the known-answer check found out about each of its measurements; privacy only.
    """

    audit: str
    family: str
    status: Status
    info: AuditInfo | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    measurements: tuple[Measurement, ...] = ()
    series: tuple[Series, ...] = ()
    notes: tuple[str, ...] = ()
    reason: str = ""
    responses: tuple[SensitivityCurve, ...] = ()

    @property
    def cut_short(self) -> bool:
        """True when it might end otherwise another time: it, or its known-answer check, ran out of time or
        lost its process."""
        if self.status is Status.MEASURED:
            return any(response.reason == CHECK_CUT_SHORT for response in self.responses)
        return self.reason in (OUT_OF_TIME, PROCESS_LOST)

    def with_findings(self, findings: Findings) -> AuditOutcome:
        """The outcome of a completed run; measurements and series are stamped with the audit's name."""
        return replace(
            self,
            status=Status.MEASURED,
            measurements=tuple(replace(m, id=m.id.stamped(self.audit)) for m in findings.measurements),
            series=tuple(s.stamped(self.audit) for s in findings.series),
            notes=findings.notes,
        )
